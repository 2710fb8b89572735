"""Partitions dealt between several connections to one broker: none moves while something of it is in flight.

The copies and connections here are stand-ins with as much of the real ones as dealing looks at.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump import target_broker
from sparkmirror.pump.limits import Lane
from sparkmirror.pump.source_lane import SourceLane
from sparkmirror.pump.target_broker import TargetBroker
from sparkmirror.pump.window import LineWindow, WindowReason

MB = 1 << 20
PARTITIONS = 9


class StandInSource:
    """A connection that notes what its last request asked for."""

    def __init__(self) -> None:
        self.dealt: set[TopicPartition] = set()
        self.wanted: set[TopicPartition] = set()
        self.under_way: set[TopicPartition] = set()

    def asks_for(self, key: TopicPartition) -> bool:
        return key in self.under_way

    def forget(self, key: TopicPartition) -> None:
        self.wanted.discard(key)


class DealtSources(RuleBasedStateMachine):
    """Fetches in any order, over a window that changes as it likes."""

    def __init__(self) -> None:
        super().__init__()
        made: Any = lambda _: StandInSource()  # noqa: E731
        self.lane = SourceLane(Lane(1, backfill=True), lambda: 0.0, made)
        self.place: dict[TopicPartition, Any] = {}

    @rule(size=st.integers(1, 40 * MB))
    def opens(self, size: int) -> None:
        self.lane.open_to(LineWindow(size, WindowReason.LINE, size), 4 * MB)

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def wants(self, partition: int) -> None:
        key = "t", partition
        before = self.place.get(key)
        after: Any = self.lane.deal(key) if before is None else self.lane.deal_again(key, before)
        if before is not None and after is not before:
            assert key not in before.under_way, "an answer with its records may come"
            assert key not in before.wanted
        after.wanted.add(key)
        self.place[key] = after

    @rule(number=st.integers(0, 7))
    def asks(self, number: int) -> None:
        connections: Any = self.lane.connections
        if number < len(connections):
            connections[number].under_way = set(connections[number].wanted)

    @rule(number=st.integers(0, 7))
    def is_answered(self, number: int) -> None:
        connections: Any = self.lane.connections
        if number < len(connections):
            connections[number].under_way.clear()

    @precondition(lambda self: self.lane.connections)
    @rule(number=st.integers(0, 7))
    def breaks(self, number: int) -> None:
        connections: Any = self.lane.connections
        broken = connections[number % len(connections)]
        self.lane.lost(broken)
        self.place = {key: own for key, own in self.place.items() if own is not broken}

    @invariant()
    def each_partition_is_in_one_place(self) -> None:
        connections: Any = self.lane.connections
        assert sorted(key for each in connections for key in each.dealt) == sorted(self.place)
        for key, own in self.place.items():
            assert key in own.dealt
            assert [each for each in connections if key in each.wanted] == [own]


class StandInTarget:
    """A connection that sends one batch of each offered partition when it is told to."""

    def __init__(self) -> None:
        self.dealt = 0
        self.ready: list[Any] = []

    @property
    def busy_partitions(self) -> int:
        return 0

    def offer(self, copy: Any) -> None:
        if copy not in self.ready:
            self.ready.append(copy)

    def withdraw(self, copy: Any) -> None:
        if copy in self.ready:
            self.ready.remove(copy)


class StandInCopy:
    """A partition's copy with the connection of each batch in flight."""

    def __init__(self) -> None:
        self.in_flight: list[Any] = []


class DealtTargets(RuleBasedStateMachine):
    """Batches and acknowledgements in any order, over a line that changes as it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        made: Any = lambda _: StandInTarget()  # noqa: E731
        self.broker = TargetBroker(1, lambda: self.now, made, usual_bytes=5 * MB, most_bytes=32 * MB)
        self.copies: list[Any] = [StandInCopy() for _ in range(PARTITIONS)]

    @rule(rate=st.floats(0, 400e6), round_trip_s=st.sampled_from((0.001, 0.1)))
    def measures(self, rate: float, round_trip_s: float) -> None:
        for _ in range(4):
            self.now += 15.0
            self.broker.meter.answered(int(rate * 15), 0.1, round_trip_s)
        self.broker.look()

    @rule(number=st.integers(0, PARTITIONS - 1))
    def offers(self, number: int) -> None:
        copy = self.copies[number]
        if len(copy.in_flight) < 5:
            self.broker.offer(copy)

    @rule(number=st.integers(0, 7))
    def sends(self, number: int) -> None:
        connections: Any = self.broker.connections
        if number < len(connections):
            ready, connections[number].ready = connections[number].ready, []
            for copy in ready:
                assert set(copy.in_flight) <= {connections[number]}, "its order is that of one connection"
                copy.in_flight.append(connections[number])

    @rule(number=st.integers(0, PARTITIONS - 1))
    def is_acknowledged(self, number: int) -> None:
        copy = self.copies[number]
        if copy.in_flight:
            copy.in_flight.pop(0)
            self.broker.offer(copy)

    @precondition(lambda self: self.broker.connections)
    @rule(number=st.integers(0, 7))
    def breaks(self, number: int) -> None:
        connections: Any = self.broker.connections
        broken = connections[number % len(connections)]
        self.broker.lost(broken)
        for copy in self.copies:
            copy.in_flight = [own for own in copy.in_flight if own is not broken]

    @invariant()
    def a_partition_waits_at_one_connection(self) -> None:
        connections: Any = self.broker.connections
        for copy in self.copies:
            assert sum(copy in each.ready for each in connections) <= 1
        dealt = [self.broker.connection_of(copy) for copy in self.copies]
        assert [each.dealt for each in connections] == [dealt.count(each) for each in connections]


TestDealtSources = DealtSources.TestCase
TestDealtSources.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestDealtTargets = DealtTargets.TestCase
TestDealtTargets.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


def test_a_wider_window_spreads_busy_partitions_without_a_stop() -> None:
    """All have five batches in flight all the time; each waits for its own acknowledgements, and goes over once."""
    now = [0.0]
    made: Any = lambda _: StandInTarget()  # noqa: E731
    broker = TargetBroker(1, lambda: now[0], made, usual_bytes=5 * MB, most_bytes=32 * MB)
    copies: list[Any] = [StandInCopy() for _ in range(8)]
    for copy in copies:
        broker.offer(copy)
        copy.in_flight = [broker.connections[0]] * 5
    for connection in list[Any](broker.connections):
        connection.ready.clear()
    broker.meter.answered(0, 0.0, 0.1)
    for _ in range(5):
        now[0] += target_broker.LOOK_S * 3
        broker.meter.answered(int(100e6 * 0.3), 0.1, 0.1)
        broker.look()
    for _ in range(6):
        for copy in copies:
            if copy.in_flight:
                copy.in_flight.pop()
            broker.offer(copy)
        for connection in list[Any](broker.connections):
            for copy in connection.ready:
                copy.in_flight.append(connection)
            connection.ready.clear()
    assert len(broker.connections) == 4
    assert [connection.dealt for connection in broker.connections] == [2, 2, 2, 2]
    assert all(set(copy.in_flight) == {broker.connection_of(copy)} for copy in copies)


def test_a_partition_is_fetched_where_it_is_until_its_answer_is_there() -> None:
    made: Any = lambda _: StandInSource()  # noqa: E731
    lane = SourceLane(Lane(1, backfill=True), lambda: 0.0, made)
    keys = [("t", number) for number in range(8)]
    first: Any = lane.deal(keys[0])
    for key in keys[1:]:
        assert lane.deal(key) is first
    first.wanted = first.under_way = set(keys)
    lane.open_to(LineWindow(16 * MB, WindowReason.LINE, 16 * MB), 4 * MB)
    assert [lane.deal_again(key, first) for key in keys] == [first] * 8
    first.under_way = set()
    for key in keys:
        lane.deal_again(key, first)
    assert [len(connection.dealt) for connection in lane.connections] == [2, 2, 2, 2]
