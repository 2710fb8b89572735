"""What is left until a goal: told by partition, and nothing once all of it is copied."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.snapshot_samples import NOW_MS, flow, partition, topic

from sparkmirror.api import caught_up
from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.config.model import FetchConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.topic_descriptions import PartitionDescription, TopicDescription
from sparkmirror.kafka.wire.topic_ids import NO_ID
from sparkmirror.snapshot.snapshot import Cause, Flow, PartitionState, Process, Snapshot

ENDS = {("orders", 0): 100, ("orders", 1): 7}
A, B, C = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "ABC")
ID, OTHER_ID = b"1" * 16, b"2" * 16


class Source:
    """The source as it is now: the topic's id, and its partitions' ends; None: no leader."""

    def __init__(self, topic_id: bytes, ends: dict[int, int | None]) -> None:
        self._topic_id, self._ends = topic_id, ends

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None: ...

    def topics(self, _: set[str]) -> dict[str, TopicDescription]:
        partitions = tuple(
            PartitionDescription(partition=number, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,))
            for number in self._ends
        )
        return {"orders": TopicDescription("orders", self._topic_id, partitions)} if self._ends else {}

    def end_offsets(self, _: object, *, isolation: str) -> dict[tuple[str, int], int]:
        assert isolation == "read_committed"
        return {("orders", number): end for number, end in self._ends.items() if end is not None}


AS_IT_WAS = Source(ID, {0: 150, 1: 7})


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class Waiting:
    """Someone who waits for the ends; the source is asked again each 5 seconds."""

    goal: caught_up.CatchUp
    clock: Clock
    source: Source | None = AS_IT_WAS
    """None: it is away."""
    asked: int = 0

    def connect(self, *_: object) -> Source:
        self.asked += 1
        if self.source is None:
            raise ClusterUnreachable("cluster A can't be reached")
        return self.source

    def missing(self, *flows: Flow) -> list[str]:
        process: Any = SimpleNamespace(spec=Process)
        return self.goal.missing(Snapshot(process, NOW_MS, flows))

    def later(self, *flows: Flow) -> list[str]:
        self.clock.now += 5
        return self.missing(*flows)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    ends = {at: caught_up.DueEnd(ID, end) for at, end in ENDS.items()}
    monkeypatch.setattr(caught_up, "_ends", lambda _: dict(ends))
    clock = Clock()
    monkeypatch.setattr(caught_up, "time", clock)
    copies = FlowConfig(source=A, target=B, fetch=FetchConfig(isolation_level="read_committed"))
    made = Waiting(caught_up.CatchUp([copies, FlowConfig(source=A, target=C, copies=False)]), clock)
    monkeypatch.setattr(ClusterAdmin, "connect", made.connect)
    return made


def orders(*positions: int | None, **more: Any) -> Flow:
    parts = [partition(number, position=position) for number, position in enumerate(positions)]
    return flow(topics=(topic("orders", *parts, **more),))


def test_nothing_is_left_of_what_is_copied(waiting: Waiting) -> None:
    assert waiting.missing(orders(100, 7)) == []
    assert waiting.missing(orders(120, 9)) == []


def test_one_offset_is_enough_to_wait(waiting: Waiting) -> None:
    assert waiting.missing(orders(99, 7)) == ["orders-0: 1 offsets are left"]


def test_what_is_not_known_is_not_copied(waiting: Waiting) -> None:
    assert waiting.missing(orders(100)) == ["orders-1: its position is not known yet"]
    assert waiting.missing(orders(100, None)) == ["orders-1: its position is not known yet"]
    assert len(waiting.missing()) == 2


def test_reasons_are_told(waiting: Waiting) -> None:
    parked = partition(0, position=3, state=PartitionState.PARKED, cause=Cause.TOO_LARGE, reason="a batch is too large")
    seen = flow(topics=(topic("orders", parked, partition(1, position=7)),))
    assert waiting.missing(seen) == ["orders-0: 97 offsets are left (a batch is too large)"]
    recreated = partition(0, position=500, state=PartitionState.PARKED, cause=Cause.RECREATED, reason="made again")
    seen = flow(topics=(topic("orders", recreated, partition(1, position=7)),))
    assert waiting.missing(seen) == ["orders-0: made again"], "its position is another topic's"
    assert waiting.missing(orders(refused="the target has no room")) == [
        "orders-0: the target has no room",
        "orders-1: the target has no room",
    ]
    later = partition(0, position=100, state=PartitionState.PARKED, cause=Cause.TOO_LARGE, reason="too large")
    assert waiting.missing(flow(topics=(topic("orders", later, partition(1, position=7)),))) == []


def test_a_topic_whose_writers_have_moved_is_not_waited_for(waiting: Waiting) -> None:
    assert waiting.missing(orders(3, 4, released=True)) == []


def test_a_topic_of_the_opposite_flows_turn_is_not_waited_for(waiting: Waiting) -> None:
    assert waiting.missing(orders(waits=True)) == []


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (Source(ID, {}), "orders-{}: the source shows it no more"),
        (Source(OTHER_ID, {0: 900, 1: 900}), "orders-{}: the topic was created again at the source"),
        (Source(NO_ID, {0: 5, 1: 4}), "orders-{}: it ends at {} at the source now, and ended at {}"),
    ],
)
@pytest.mark.parametrize("seen", [(), (orders(50, 7),), (orders(50, None),)])
def test_records_that_the_source_has_lost_are_not_waited_for(
    source: Source, told: str, seen: tuple[Flow, ...], waiting: Waiting
) -> None:
    """Neither are they told to be copied, though a new topic's position is as high."""
    waiting.source = source
    first = [told.format(0, 5, 100), told.format(1, 4, 7)]
    assert len(waiting.missing(*seen)) in (1, 2)
    assert waiting.later(*seen) == first
    assert waiting.goal.gone == [], "a broker that has just started may know less"
    assert waiting.missing(orders(900, 900)) == first
    assert waiting.later(orders(900, 900)) == first
    assert waiting.goal.gone == first


def test_a_topic_that_is_deleted_after_it_was_copied_is_copied(waiting: Waiting) -> None:
    """As the last question has shown; the other partition is still on its way."""
    assert waiting.later(orders(50, 7)) == ["orders-0: 50 offsets are left"]
    waiting.source = Source(ID, {0: 150})
    for position in (60, 70):
        assert waiting.later(orders(position)) == [f"orders-0: {100 - position} offsets are left"]
    assert waiting.missing(orders(100)) == []
    assert waiting.goal.gone == []


def test_a_short_absence_is_none(waiting: Waiting) -> None:
    waiting.source = Source(ID, {})
    assert len(waiting.missing(orders(100, 7))) == 2
    waiting.source = Source(ID, {0: 150, 1: None})
    assert len(waiting.later(orders(100, 7))) == 2
    assert waiting.missing(orders(100, 7)) == []
    assert waiting.goal.gone == []


def test_a_source_that_is_away_changes_nothing(waiting: Waiting) -> None:
    waiting.source = None
    for _ in range(3):
        assert waiting.later(orders(50, 7)) == ["orders-0: 50 offsets are left"]
    assert waiting.missing(orders(100, 7)) == []
    assert waiting.asked == 4


def test_the_source_is_asked_at_times(waiting: Waiting) -> None:
    for _ in range(9):
        waiting.missing(orders(50, 7))
    assert waiting.asked == 0
    waiting.later(orders(50, 7))
    assert waiting.asked == 1


def test_a_topic_that_was_deleted_after_its_writers_had_moved_is_no_loss(waiting: Waiting) -> None:
    waiting.source = Source(ID, {})
    assert waiting.later(orders(3, 4, released=True)) == []
    assert waiting.asked == 0
