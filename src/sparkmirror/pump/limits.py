"""What a pump may fetch now: memory, and the flow's bandwidth caps, the live tail before the backfill.

Partitions that are far behind are fetched over connections of their own (lanes). They stop fetching at a lower mark
of memory, take from the cap only what the live ones leave, and may have a cap of their own: a topic with a month of
history does not delay today's records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sparkmirror.clock import now_s
from sparkmirror.wire.buffers import FramePool

FETCH_BYTES = 4 << 20
"""The most that one fetch asks for."""

SMALLEST_FETCH_BYTES = 64 * 1024

MADE_BYTES = 16 << 20
"""The largest batch that is made of one record which was unpacked piece by piece; of a larger batch, twice its size."""

STEP_S = 0.25
"""Under a cap one fetch asks for what may pass in this time."""

LONGEST_THROTTLE_S = 300.0
"""A broker that says to wait longer (`throttle_time_ms`, KIP-219) is asked again after this. A quota of 14 kB/s
asks for as much after one fetch of `FETCH_BYTES`."""

LIVE_SHARE, BACKFILL_SHARE = 1 / 2, 3 / 8
"""Of the pump's memory: nothing is fetched while more than this is held."""

BACKFILL_LEAVES = 1 / 2
"""Of a step's bytes: so much the backfill leaves in the bucket for the live tail."""


class Lane(NamedTuple):
    """Who is fetched from, and by which of the two."""

    broker: int
    backfill: bool


class Bucket:
    """Bytes that may pass; filled at a rate, up to one step's worth. Without a rate there is no limit."""

    def __init__(self, clock: Callable[[], float] = now_s) -> None:
        self._clock = clock
        self._rate: float | None = None
        self._level = 0.0
        self._at = clock()

    def set_rate(self, bytes_per_second: float | None) -> None:
        """Change the rate; what is in the bucket stays."""
        self._fill()
        self._rate = bytes_per_second

    def take(self, size: int) -> None:
        """So many bytes have passed; it may go below nothing."""
        if self._rate is not None:
            self._fill()
            self._level -= size

    def wait_s(self, leave: float = 0.0) -> float:
        """How long until there is more in it than `leave` of a step; 0: there is now."""
        if self._rate is None:
            return 0.0
        self._fill()
        missing = leave * self._rate * STEP_S - self._level
        return max(missing / self._rate + 0.001, 0.0) if missing >= 0 else 0.0

    @property
    def step_bytes(self) -> int | None:
        """What may pass in one step; None: as much as one likes."""
        return None if self._rate is None else max(SMALLEST_FETCH_BYTES, int(self._rate * STEP_S))

    def _fill(self) -> None:
        now = self._clock()
        if self._rate is not None:
            self._level = min(self._level + (now - self._at) * self._rate, self._rate * STEP_S)
        self._at = now


class Limits:
    """One flow's limits in one pump."""

    def __init__(self, pool: FramePool, memory_bytes: int, share: float, clock: Callable[[], float] = now_s) -> None:
        self._pool = pool
        self._memory_bytes = memory_bytes
        self.share = share
        """This pump's part of the flow's caps; what is set counts from the next `set_rates` on."""
        self._all, self._backfill = Bucket(clock), Bucket(clock)

    def set_rates(self, bytes_per_second: float | None, backfill_bytes_per_second: float | None) -> None:
        """The whole flow's caps; this pump gets its share."""
        for bucket, rate in ((self._all, bytes_per_second), (self._backfill, backfill_bytes_per_second)):
            bucket.set_rate(None if rate is None else rate * self.share)

    def passed(self, size: int, *, backfill: bool) -> None:
        """Count what was fetched."""
        self._all.take(size)
        if backfill:
            self._backfill.take(size)

    def has_memory(self, *, backfill: bool) -> bool:
        """Whether enough of what was fetched before has gone."""
        return self._pool.in_use <= self._memory_bytes * (BACKFILL_SHARE if backfill else LIVE_SHARE)

    def may_prepare(self, *, backfill: bool, idle: bool) -> bool:
        """Whether more batches may be made of what was fetched; `idle`: of a partition with none on its way."""
        return self.has_memory(backfill=backfill) or (idle and self._pool.in_use <= self._memory_bytes)

    def wait_s(self, *, backfill: bool) -> float:
        """How long until the caps allow a fetch; 0: they do now."""
        if not backfill:
            return self._all.wait_s()
        return max(self._all.wait_s(BACKFILL_LEAVES), self._backfill.wait_s())

    def fetch_bytes(self, *, backfill: bool) -> int | None:
        """The most that one fetch may ask for under the caps; None: no cap."""
        steps = [self._all.step_bytes] + ([self._backfill.step_bytes] if backfill else [])
        return min((step for step in steps if step is not None), default=None)
