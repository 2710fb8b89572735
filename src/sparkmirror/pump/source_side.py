"""Source's side of one partition's copy: the log's end, and the lane to fetch in."""

from __future__ import annotations

from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.position.route import PartitionReading
from sparkmirror.pump.limits import Lane

BACKFILL_BYTES = 256 << 10
"""An answer this large, short of the log's end, shows a partition far behind."""

BACKFILL_OFFSETS = 5_000
"""Distance in offsets from the log's end at which a partition is far behind.

An answer's size does not matter then. Under a cap, each partition in a topic full of history would otherwise take one
fetch's bytes from the live tail before an answer shows the distance.
"""


class SourceSide:
    """Source's side of one partition's copy."""

    def __init__(self, *, from_latest: bool, reported: ReportedProgress) -> None:
        self.from_latest = from_latest
        """True if a copy without earlier records begins at the source's end."""
        self.end: int | None = None
        """High watermark, as last heard; None: unknown."""
        self.backfilling = False
        """True if the partition is far behind, so belongs to the backfill."""
        self.read_from: int | None = None
        """Follower nearby to fetch from (KIP-392); None: the leader."""
        self._reported = reported
        self._latest: int | None = None
        """Source's end at the first reading, if the copy begins there."""
        self._answered_bytes = 0
        """Record bytes in the last answer."""

    def lane(self, reading: PartitionReading) -> Lane:
        return Lane(reading.source_leader if self.read_from is None else self.read_from, self.backfilling)

    def resume_at(self, reading: PartitionReading) -> int:
        """Return the source offset to fetch next.

        If no record was ever copied and `latest` is asked for, the source's end at the first reading counts: that of
        an earlier task, if its start claim could not be written.
        """
        if reading.resume_at is not None:
            return reading.resume_at
        if not self.from_latest or reading.position.lost:
            return reading.source_start
        if self._latest is None:
            began, end = self._reported.upstream, reading.source_end
            self._latest = max(began, reading.source_start) if 0 <= began <= end else end
        return self._latest

    def start(self, upstream: int, end: int) -> None:
        """Continue at a source offset, with the log's end just read."""
        self.backfilling = self.backfilling or end - upstream >= BACKFILL_OFFSETS

    def answered(self, high_watermark: int, size: int) -> None:
        """Note a fetch answer with `size` bytes of records."""
        self.end = high_watermark
        self._answered_bytes = size

    def prepared(self, upstream: int) -> None:
        """Take note that an answer is wholly made ready, up to a source offset."""
        behind = 0 if self.end is None else self.end - upstream
        if behind <= 0:
            self.backfilling = False
        elif self._answered_bytes >= BACKFILL_BYTES or behind >= BACKFILL_OFFSETS:
            self.backfilling = True
