"""Readings of positions in turn: what is wanted during one is read afterwards, all at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.exact.position.reader import PositionReader
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.pump import readings as readings_module
from sparkmirror.pump.copies import PartitionCopies
from sparkmirror.pump.flow_clients import FlowClients
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.orders import FlowOrder, RouteOrder
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.readings import PositionReadings


class Readings:
    """Readings of six partitions, with a stand-in for the reader, which may be held up, or fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loop = Loop()
        self.read: list[list[int]] = []
        self.ahead: list[list[int]] = []
        self.may_end = threading.Event()
        self.may_end.set()
        self.error: Exception | None = None
        self.answered: list[int] = []
        monkeypatch.setattr(PositionReader, "read", lambda _, routes, ready: self._read(routes, ready))
        monkeypatch.setattr(PositionReader, "look_ahead", lambda _, routes: self._look_ahead(routes))
        source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
        flow = FlowConfig(source=source, target=target)
        self.routes = [RouteOrder(source_topic="t", target_topic="A.t", partition=number) for number in range(6)]
        order = FlowOrder(flow=flow, cluster_id="c", producer_id=1, producer_epoch=0, routes=tuple(self.routes))
        self.copies = PartitionCopies(order).add(self.routes, self.loop.now, unclean=False)
        self.readings = PositionReadings(
            order,
            self.loop,
            FlowClients(flow),
            on_read=self._answer,
            on_superseded=lambda _: None,
            on_changed_policies=lambda _: None,
        )

    def _answer(self, copy: PartitionCopy, _: PartitionReading | Refusal) -> None:
        self.answered.append(copy.route.partition)

    def _read(
        self,
        routes: Mapping[PartitionPair, object],
        ready: Callable[[Mapping[PartitionPair, PartitionReading | Refusal]], None],
    ) -> None:
        self.read.append([route.partition for route in routes])
        assert self.may_end.wait(20)
        if self.error is not None:
            raise self.error
        ready({route: Refusal("later") for route in routes})

    def _look_ahead(self, routes: Sequence[PartitionPair]) -> dict[PartitionPair, tuple[int, int]]:
        self.ahead.append([route.partition for route in routes])
        if self.error is not None:
            raise self.error
        return {route: (1, 2) for route in routes}

    def want(self, *numbers: int) -> None:
        for number in numbers:
            self.readings.want(self.copies[number])
        self.readings.flush()

    def turn_until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not reached():
            assert time.monotonic() < deadline
            self.readings.flush()
            self.loop.turn(0.02)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Readings]:
    readings = Readings(monkeypatch)
    yield readings
    readings.readings.close()
    readings.loop.close()


@pytest.mark.parametrize("error", [None, ConnectionError("nobody is there")])
def test_what_is_wanted_during_a_reading_is_read_at_once_afterwards(made: Readings, error: Exception | None) -> None:
    """Partitions come from other tasks one by one; each reading alone would hold up the next."""
    made.error = error
    made.may_end.clear()
    made.want(0)
    made.turn_until(lambda: made.read == [[0]])
    for number in (1, 2, 3):
        made.want(number)
        made.loop.turn(0.01)
    made.may_end.set()
    made.turn_until(lambda: len(made.answered) == 4)
    assert made.read == [[0], [1, 2, 3]]


@pytest.mark.parametrize("error", [None, ConnectionError("nobody is there")])
def test_a_position_does_not_wait_for_all_that_is_read_ahead(
    made: Readings, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    monkeypatch.setattr(readings_module, "AHEAD_AT_ONCE", 2)
    made.error = error
    told: list[Mapping[PartitionPair, tuple[int, int]]] = []
    made.readings.look_ahead(made.routes[:5], told.append)
    made.want(5)
    made.turn_until(lambda: bool(told) and bool(made.answered))
    assert sorted(number for part in made.ahead for number in part) == [0, 1, 2, 3, 4]
    assert [len(part) for part in made.ahead] == [1, 2, 2]
    assert {route.partition for route in told[0]} == (set() if error else {0, 1, 2, 3, 4})
