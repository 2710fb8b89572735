"""One flow's connections to the source's brokers, each with its partitions."""

from __future__ import annotations

from collections.abc import Callable

from sparkmirror.config import FlowConfig
from sparkmirror.config.model import FetchConfig
from sparkmirror.pump.copy_state import QUEUE_BYTES
from sparkmirror.pump.dialer import Dialer
from sparkmirror.pump.limits import Lane, Limits
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.memory_budget import FETCH_BYTES, SMALLEST_FETCH_BYTES, MemoryBudget
from sparkmirror.pump.messages.figures import LineFigures
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.ready import Fetch
from sparkmirror.pump.source_connection import Fetched, FetchSize, SourceConnection
from sparkmirror.pump.source_lane import SourceLane
from sparkmirror.pump.tally import TrafficMeter
from sparkmirror.pump.window import window

USUAL_PARTITION_BYTES = FetchConfig().max_partition_fetch_bytes
"""Default for `max.partition.fetch.bytes`.

The default leaves the size on a long line to the pump.
"""

PROMPT_S = 3.0
"""Seconds for which a partition that comes from another task may be expected."""

LEAST_QUEUE_BYTES = 256 << 10
"""A partition's bytes that may always wait for the target."""


class SourceConnections:
    """One flow's connections to the source's brokers.

    `on_refused` is called for each partition on a connection whose requests are refused, with the error and the reason;
    `on_lost` for each partition on a lost connection, with the reason.
    """

    def __init__(
        self,
        flow: FlowConfig,
        loop: Loop,
        dialer: Dialer,
        limits: Limits,
        meter: TrafficMeter,
        memory: MemoryBudget,
        *,
        on_fetched: Fetched,
        on_refused: Callable[[PartitionCopy, int, str], None],
        on_lost: Callable[[PartitionCopy, str], None],
    ) -> None:
        self._settings = flow.fetch
        self._loop = loop
        self._dialer = dialer
        self._limits = limits
        self._meter = meter
        self._memory = memory
        self._on_fetched = on_fetched
        self._on_refused = on_refused
        self._on_lost = on_lost
        self._lanes: dict[Lane, SourceLane] = {}
        self.fetching: dict[PartitionCopy, SourceConnection] = {}
        """Connection of each partition that is fetched, or held back for a moment."""
        self._waking: set[Lane] = set()
        """Lanes with a running timer until the caps allow a fetch."""
        self._prompt_until: dict[int, float] = {}
        """Time until which a broker's answers are not waited for long."""
        self._ending = False

    def follow(self, copy: PartitionCopy, fetch: Fetch | None) -> None:
        """Fetch a partition as its copy wants; None: stop."""
        connection = self.fetching.get(copy)
        if fetch is None:
            if connection is not None:
                self.stop(copy)
            return
        key = copy.source_partition
        if fetch.lane is not None:
            if connection is None or connection.lane != fetch.lane:
                self.stop(copy)
                connection = self.fetching[copy] = self._lane(fetch.lane).deal(key)
            elif not (lane := self._lanes[fetch.lane]).is_single:
                connection = self.fetching[copy] = lane.deal_again(key, connection)
        if connection is None:
            return
        if fetch.position is None:
            connection.hold_back(key)
        else:
            connection.want(key, fetch.topic_id, fetch.position)

    def expect(self, broker: int) -> None:
        """Connect to a broker from which another partition will be fetched soon."""
        self._prompt_until[broker] = self._loop.now + PROMPT_S
        if not self._ending:
            self._lane(Lane(broker, backfill=False)).dial_ahead()

    def is_prompt(self, broker: int) -> bool:
        """True if another partition can be fetched from a broker at once."""
        return self._lane(Lane(broker, backfill=False)).is_prompt

    def stop(self, copy: PartitionCopy) -> None:
        connection = self.fetching.pop(copy, None)
        if connection is not None:
            connection.forget(copy.route.source)
            connection.dealt.discard(copy.route.source)

    def flush(self) -> None:
        if not self._ending:
            for connection in self._all():
                connection.pump()

    def check(self) -> None:
        """Give connections with overdue answers up."""
        timeout_s = (self._settings.fetch_max_wait_ms + self._settings.request_timeout_ms) / 1000
        for connection in self._all():
            connection.check(timeout_s)

    def is_any_slow(self, slow_s: float) -> bool:
        """True if a connection is refused, or has waited so long to continue."""
        return any(connection.refusal or connection.is_slow(slow_s) for connection in self._all())

    def end(self) -> None:
        self._ending = True
        for copy in list(self.fetching):
            self.stop(copy)

    def close(self) -> None:
        for connection in self._all():
            connection.close()

    def _all(self) -> list[SourceConnection]:
        """Return all connections, in a separate list.

        A connection that breaks leaves its lane.
        """
        return [connection for lane in self._lanes.values() for connection in lane.connections]

    def _lane(self, lane: Lane) -> SourceLane:
        if lane not in self._lanes:
            self._lanes[lane] = SourceLane(lane, lambda: self._loop.now, self._connect)
        return self._lanes[lane]

    def _connect(self, lane: SourceLane) -> SourceConnection:
        return SourceConnection(
            lane.lane,
            self._loop,
            dial=self._dialer.dial_source,
            renew=self._dialer.renew,
            on_fetched=self._on_fetched,
            on_refused=self._refused,
            on_lost=self._lost,
            next_size=self._next_size,
            meter=self._meter,
            line=lane.meter,
            max_wait_ms=self._settings.fetch_max_wait_ms,
        )

    def _next_size(self, connection: SourceConnection) -> FetchSize | None:
        """Return how much a connection may ask for now; None: nothing now.

        All answers under way share half the memory, the same part for each lane in use.
        """
        if not self._may_fetch(connection.lane):
            return None
        all_connections = self._all()
        lanes = {other.lane for other in all_connections if other.dealt}
        lane = self._lanes[connection.lane]
        share = self._memory.answers // max(len(lanes), 1)
        chosen = window(lane.meter.line, usual=FETCH_BYTES, most=share, pressure=self._limits.pressure)
        lane.open_to(chosen, min(FETCH_BYTES, self._settings.fetch_max_bytes))
        each = chosen.size // len(lane.connections)
        most = min(each, self._settings.fetch_max_bytes, self._memory.answer)
        capped = self._limits.fetch_bytes(backfill=connection.lane.backfill)
        answer = max(SMALLEST_FETCH_BYTES, most if capped is None else min(most, capped))
        asked = sum(other.asked_bytes for other in all_connections)
        if asked and asked + answer > self._memory.answers and answer > SMALLEST_FETCH_BYTES:
            return None  # the next answer makes room
        prompt = self._loop.now < self._prompt_until.get(connection.lane.broker, 0.0)
        return FetchSize(answer, self._partition_bytes(lane, connection, answer), prompt)

    def _partition_bytes(self, lane: SourceLane, connection: SourceConnection, answer: int) -> int:
        """Return one partition's bytes in an answer.

        One answer is all that a partition gets in a round trip.
        """
        usual = min(self._settings.max_partition_fetch_bytes, FETCH_BYTES)
        if not lane.window.follows_line or self._settings.max_partition_fetch_bytes != USUAL_PARTITION_BYTES:
            return usual
        return max(usual, answer // max(len(connection.dealt), 1))

    def lines(self) -> list[LineFigures]:
        return [
            LineFigures(
                side="source",
                broker=lane.lane.broker,
                backfill=lane.lane.backfill,
                round_trip_ms=round(round_trip_s * 1000, 1),
                bytes_per_s=int(lane.meter.line.bytes_per_s),
                window_bytes=lane.window.size,
                connections=len(lane.connections),
                why=lane.window.choice,
            )
            for lane in self._lanes.values()
            if (round_trip_s := lane.meter.round_trip_s) is not None
        ]

    def queue_bytes(self, copy: PartitionCopy, partitions: int) -> int:
        """Return a partition's bytes that may wait while more is fetched.

        On a long line what comes in two round trips may wait, so that the next records are under way meanwhile. While
        memory is short a partition has its share at most, so that a slow one does not hold up the others.
        """
        connection = self.fetching.get(copy)
        most = QUEUE_BYTES
        if connection is not None:
            lane = self._lanes[connection.lane]
            if lane.window.follows_line:
                most = max(most, 2 * lane.window.size // max(lane.partitions, 1))
        if self._limits.pressure > 0:
            most = min(most, max(self._memory.queue(partitions), LEAST_QUEUE_BYTES))
        return most

    def _may_fetch(self, lane: Lane) -> bool:
        if self._ending or not self._limits.has_memory(backfill=lane.backfill):
            return False
        wait_s = self._limits.wait_s(backfill=lane.backfill)
        if wait_s and lane not in self._waking:
            self._waking.add(lane)
            self._loop.at(self._loop.now + wait_s, lambda: self._waking.discard(lane))  # the flush afterwards fetches
        return not wait_s

    def _of(self, connection: SourceConnection) -> list[PartitionCopy]:
        return [copy for copy, own in self.fetching.items() if own is connection]

    def _refused(self, connection: SourceConnection, error: int) -> None:
        for copy in self._of(connection):
            self._on_refused(copy, error, connection.refusal)

    def _lost(self, connection: SourceConnection, reason: str) -> None:
        self._lanes[connection.lane].lost(connection)
        for copy in self._of(connection):
            del self.fetching[copy]
            self._on_lost(copy, reason)
