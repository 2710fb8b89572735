"""Connections of one flow to the source's brokers, with the partitions of each."""

from __future__ import annotations

from collections.abc import Callable

from sparkmirror.config import FlowConfig
from sparkmirror.pump.dialer import Dialer
from sparkmirror.pump.limits import FETCH_BYTES, SMALLEST_FETCH_BYTES, Lane, Limits
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.ready import Fetch
from sparkmirror.pump.source_connection import Fetched, SourceConnection
from sparkmirror.pump.tally import TrafficMeter


class SourceConnections:
    """Connections of one flow to the source's brokers.

    `on_refused` is called for each partition of a connection whose requests are refused, with the error and the reason;
    `on_lost` for each partition of a lost connection, with the reason.
    """

    def __init__(
        self,
        flow: FlowConfig,
        loop: Loop,
        dialer: Dialer,
        limits: Limits,
        meter: TrafficMeter,
        memory_bytes: int,
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
        self._memory_bytes = memory_bytes
        self._on_fetched = on_fetched
        self._on_refused = on_refused
        self._on_lost = on_lost
        self._connections: dict[Lane, SourceConnection] = {}
        self.fetching: dict[PartitionCopy, SourceConnection] = {}
        """Connection of each partition that is fetched, or held back for a moment."""
        self._waking: set[Lane] = set()
        """Lanes with a running timer until the caps allow a fetch."""
        self._ending = False

    def follow(self, copy: PartitionCopy, fetch: Fetch | None) -> None:
        """Fetch a partition as its copy wants; None: stop."""
        connection = self.fetching.get(copy)
        if fetch is None:
            if connection is not None:
                self.stop(copy)
            return
        if fetch.lane is not None and (connection is None or connection.lane != fetch.lane):
            self.stop(copy)
            connection = self.fetching[copy] = self._connection(fetch.lane)
        if connection is None:
            return
        if fetch.position is None:
            connection.hold_back(copy.route.source)
        else:
            connection.want(copy.route.source, fetch.topic_id, fetch.position)

    def stop(self, copy: PartitionCopy) -> None:
        """Stop fetching a partition."""
        connection = self.fetching.pop(copy, None)
        if connection is not None:
            connection.forget(copy.route.source)

    def flush(self) -> None:
        """Send the next requests."""
        if not self._ending:
            for connection in list(self._connections.values()):  # a connection that breaks now leaves the dict
                connection.pump()

    def check(self) -> None:
        """Give connections with overdue answers up."""
        timeout_s = (self._settings.fetch_max_wait_ms + self._settings.request_timeout_ms) / 1000
        for connection in list(self._connections.values()):
            connection.check(timeout_s)

    def is_any_slow(self, slow_s: float) -> bool:
        """True if a connection is refused, or has waited so long for its broker or its channel."""
        return any(connection.refusal or connection.is_slow(slow_s) for connection in self._connections.values())

    def follow_limits(self) -> None:
        """Ask for as much as the caps allow from now on."""
        for lane, connection in self._connections.items():
            connection.max_bytes = self._limits.fetch_bytes(backfill=lane.backfill)

    def end(self) -> None:
        """Fetch no more."""
        self._ending = True
        for copy in list(self.fetching):
            self.stop(copy)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _connection(self, lane: Lane) -> SourceConnection:
        connection = self._connections.get(lane)
        if connection is None:
            connection = self._connections[lane] = SourceConnection(
                lane,
                self._loop,
                dial=lambda connection: self._dialer.dial_source(connection, self._fetch_bytes),
                renew=self._dialer.renew,
                on_fetched=self._on_fetched,
                on_refused=self._refused,
                on_lost=self._lost,
                may_fetch=self._may_fetch,
                meter=self._meter,
                max_wait_ms=self._settings.fetch_max_wait_ms,
            )
            connection.max_bytes = self._limits.fetch_bytes(backfill=lane.backfill)
        return connection

    def _fetch_bytes(self) -> int:
        """Return the bytes for one fetch; all connections share the memory."""
        share = self._memory_bytes // 2 // max(len(self._connections), 1)
        return max(SMALLEST_FETCH_BYTES, min(self._settings.fetch_max_bytes, FETCH_BYTES, share))

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
        self._connections.pop(connection.lane, None)
        for copy in self._of(connection):
            del self.fetching[copy]
            self._on_lost(copy, reason)
