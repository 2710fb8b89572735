"""Limit a pump's fetching: memory and bandwidth caps, the live tail first.

Partitions far behind, the backfill, are fetched in a lane with separate connections. The backfill stops fetching at a
lower memory mark, takes from the cap only what the live tail leaves, and may have a cap for itself. So a topic with a
month of history does not delay today's records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sparkmirror.clock import now_s
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.pump.memory_budget import SMALLEST_FETCH_BYTES, MemoryBudget

MADE_BYTES = 16 << 20
"""Largest batch made from one record that was unpacked piece by piece.

Twice the size of the source's batch is the limit if that is more.
"""

STEP_S = 0.25
"""One step's time: under a cap one fetch asks for as many bytes as pass in it."""

LONGEST_THROTTLE_S = 300.0
"""Longest wait for a broker that throttles (`throttle_time_ms`, KIP-219).

After one `FETCH_BYTES` fetch a 14 kB/s quota asks for as much.
"""

BACKFILL_LEAVES = 1 / 2
"""Share of a step's bytes that the backfill leaves to the live tail in the bucket."""


class Lane(NamedTuple):
    """Broker to fetch from, for the live tail or for the backfill."""

    broker: int
    backfill: bool


class Bucket:
    """Bucket of bytes that may pass, filled at a rate up to one step's bytes.

    Without a rate there is no limit.
    """

    def __init__(self, clock: Callable[[], float] = now_s) -> None:
        self._clock = clock
        self._rate: float | None = None
        self._level = 0.0
        self._at = clock()

    def set_rate(self, bytes_per_second: float | None) -> None:
        """Change the rate; the bucket keeps its bytes."""
        self._fill()
        self._rate = bytes_per_second

    def take(self, size: int) -> None:
        """Take bytes that have passed, even below zero."""
        if self._rate is not None:
            self._fill()
            self._level -= size

    def wait_s(self, leave: float = 0.0) -> float:
        """Return the seconds until more than the share `leave` of a step is in the bucket.

        0 means that more is there now.
        """
        if self._rate is None:
            return 0.0
        self._fill()
        missing = leave * self._rate * STEP_S - self._level
        return max(missing / self._rate + 0.001, 0.0) if missing >= 0 else 0.0

    @property
    def step_bytes(self) -> int | None:
        """Bytes that may pass in one step; None: no limit."""
        return None if self._rate is None else max(SMALLEST_FETCH_BYTES, int(self._rate * STEP_S))

    def _fill(self) -> None:
        now = self._clock()
        if self._rate is not None:
            self._level = min(self._level + (now - self._at) * self._rate, self._rate * STEP_S)
        self._at = now


class Limits:
    """One flow's limits in one pump."""

    def __init__(self, pool: FramePool, memory: MemoryBudget, share: float, clock: Callable[[], float] = now_s) -> None:
        self._pool = pool
        self._memory = memory
        self.share = share
        """Pump's share of the flow's caps; a change counts from the next `set_rates` on."""
        self._all, self._backfill = Bucket(clock), Bucket(clock)

    def set_rates(self, bytes_per_second: float | None, backfill_bytes_per_second: float | None) -> None:
        """Set the whole flow's caps, of which this pump gets a share."""
        for bucket, rate in ((self._all, bytes_per_second), (self._backfill, backfill_bytes_per_second)):
            bucket.set_rate(None if rate is None else rate * self.share)

    def passed(self, size: int, *, backfill: bool) -> None:
        self._all.take(size)
        if backfill:
            self._backfill.take(size)

    def has_memory(self, *, backfill: bool) -> bool:
        """True if little enough memory is held for another fetch.

        Answers under way count as asked for, not as held.
        """
        return self._pool.held <= self._memory.held(backfill=backfill)

    @property
    def pressure(self) -> float:
        """Memory shortage, from 0 (a quarter is held) to 1 (no lane may fetch)."""
        plenty, full = self._memory.plenty, self._memory.held(backfill=False)
        return min(max((self._pool.held - plenty) / (full - plenty), 0.0), 1.0)

    def may_prepare(self, *, backfill: bool, idle: bool) -> bool:
        """True if there is memory to make more batches from fetched data.

        `idle` is True for a partition without a batch on the way, which may use all the pump's memory.
        """
        return self._pool.in_use <= (self._memory.total if idle else self._memory.held(backfill=backfill))

    def wait_s(self, *, backfill: bool) -> float:
        """Return the seconds until the caps allow a fetch; 0: now."""
        if not backfill:
            return self._all.wait_s()
        return max(self._all.wait_s(BACKFILL_LEAVES), self._backfill.wait_s())

    def fetch_bytes(self, *, backfill: bool) -> int | None:
        """Return the most bytes that one fetch may ask for under the caps; None: no cap."""
        steps = [self._all.step_bytes] + ([self._backfill.step_bytes] if backfill else [])
        return min((step for step in steps if step is not None), default=None)
