"""A flow's memory in a pump, and its parts."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.kafka.wire.answer_bounds import LARGEST_BATCH

FETCH_BYTES = 4 << 20
"""Most bytes that one fetch asks for."""

SMALLEST_FETCH_BYTES = 64 * 1024

ANSWER_OVERHEAD_BYTES = 256 << 10
"""Room in a buffer next to the records; a larger answer's memory is never reused."""


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Parts of `total`, in bytes, for data on its way from source to target.

    `total` is a flow's share in `pump.MEMORY_BYTES`. `FramePool` keeps to `most`; `Limits`, `SourceConnections` and
    `TargetConnections` keep to the other parts.

    The backfill stops below the live tail, so that a topic with a month of history does not delay today's records.
    """

    total: int

    @property
    def block(self) -> int:
        """A pooled buffer's size: an answer to a usual fetch."""
        return min(FETCH_BYTES, max(SMALLEST_FETCH_BYTES, self.total // 2)) + ANSWER_OVERHEAD_BYTES

    @property
    def blocks(self) -> int:
        """Most free buffers that the pool keeps."""
        return max(2, self.total // 2 // self.block)

    @property
    def most(self) -> int:
        """Most bytes in use while a frame larger than a buffer arrives."""
        return 2 * self.total + LARGEST_BATCH

    @property
    def plenty(self) -> float:
        """Held bytes up to which memory is plentiful."""
        return self.total / 4

    def held(self, *, backfill: bool) -> float:
        """Held bytes above which a lane fetches nothing, and makes no batches."""
        return self.total * (3 / 8 if backfill else 1 / 2)

    @property
    def answers(self) -> int:
        """Bytes in all answers under way from the source."""
        return self.total // 2

    @property
    def answer(self) -> int:
        """Bytes in one answer."""
        return max(self.answers // 2, FETCH_BYTES)

    @property
    def requests(self) -> int:
        """Bytes in all requests under way to the target."""
        return self.total * 3 // 8

    def queue(self, partitions: int) -> int:
        """Bytes of one of these partitions that wait while memory is short."""
        return self.total // 4 // max(partitions, 1)
