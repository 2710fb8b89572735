"""What takes long is a reason that people see; a slow connection and a slow reading don't wait for each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

import pytest
from model_broker import FRESH_MS, Source
from model_pump import World
from told_receipts import ToldReceipts

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.exact.position.reader import PositionReader
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import LogEntry
from sparkmirror.pump import flow_reports
from sparkmirror.pump.flow_pump import FlowPump
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.control import ControlState
from sparkmirror.pump.messages.orders import FlowOrder, Receipt, RouteOrder


class Flow:
    """A pump of two partitions whose readings the test answers, and whose dials end when it says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loop = Loop()
        self.dialed = threading.Event()
        self.may_answer = threading.Event()
        source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
        flow = FlowConfig(source=source, target=target)
        routes = tuple(RouteOrder(source_topic="t", target_topic="A.t", partition=number) for number in range(2))
        order = FlowOrder(flow=flow, cluster_id="c", producer_id=1, producer_epoch=0, leader_rank=-1, routes=routes)
        self.pump = FlowPump(order, self.loop, memory_bytes=8 << 20)
        self._told = ToldReceipts(self.pump)
        self.read: Callable[[PartitionPair], bool] = lambda route: True
        """Whether this one's position is told."""
        monkeypatch.setattr(PositionReader, "read", lambda _, routes, ready: self._read(routes, ready))
        monkeypatch.setattr(ClusterClient, "dial", lambda _, node_id, **settings: self._dial())

    def _read(
        self,
        routes: Mapping[PartitionPair, object],
        ready: Callable[[Mapping[PartitionPair, PartitionReading | Refusal]], None],
    ) -> None:
        world = World(Source([(10, FRESH_MS)]))
        found = world.target.partition_reading(world.source, self.loop.now)
        told = {route: found for route in routes if self.read(route)}
        ready(told)
        if len(told) < len(routes):
            self.may_answer.wait(20)

    def _dial(self) -> NoReturn:
        self.dialed.set()
        self.may_answer.wait(20)
        raise ConnectionError("nobody is there")

    def turn_until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not reached():
            assert time.monotonic() < deadline
            self.pump.flush()
            self.loop.turn(0.05)

    def receipts(self) -> list[Receipt]:
        return self._told.receipts()

    def close(self) -> None:
        self.may_answer.set()
        self.pump.close()
        self.loop.close()


@pytest.fixture
def flow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Flow]:
    monkeypatch.setattr(flow_reports, "SLOW_S", 0.1)
    made = Flow(monkeypatch)
    yield made
    made.close()


def test_a_connection_that_takes_long_is_a_reason(flow: Flow) -> None:
    flow.pump.control(ControlState())
    flow.turn_until(flow.dialed.is_set)
    flow.turn_until(lambda: all(one.reason for one in flow.receipts()))
    assert {(one.state, one.reason) for one in flow.receipts()} == {
        ("running", "source broker 1 is being connected to")
    }


def test_connections_are_made_while_other_positions_are_read(flow: Flow) -> None:
    flow.read = lambda route: route.partition == 0
    flow.pump.control(ControlState())
    flow.turn_until(flow.dialed.is_set)
    flow.turn_until(lambda: all(one.reason for one in flow.receipts()))
    assert [one.reason for one in flow.receipts()] == [
        "source broker 1 is being connected to",
        "its position is being read",
    ]


def test_nothing_is_fetched_before_it_is_known_what_is_paused(flow: Flow) -> None:
    flow.turn_until(lambda: all(one.state == "running" and one.reason for one in flow.receipts()))
    assert {one.reason for one in flow.receipts()} == {
        "pauses and caps are not known yet: the flow's control topic is being read"
    }
    assert not flow.dialed.is_set()
    paused = ControlState()
    paused.apply([LogEntry(0, b"pause", b'{"topics": ["t"]}')])
    flow.pump.control(paused)
    assert {(one.state, one.reason) for one in flow.receipts()} == {("waiting", "paused")}
    assert not flow.dialed.is_set()
    flow.pump.control(ControlState())
    flow.turn_until(flow.dialed.is_set)
