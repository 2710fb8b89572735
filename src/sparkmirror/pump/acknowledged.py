"""One partition's records that the target has acknowledged."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.position.decision import Position
from sparkmirror.exact.position.route import PartitionReading
from sparkmirror.pump.batch import Batch


class Appended(NamedTuple):
    """Last batch that a copy has appended since the position was read."""

    next_sequence: int
    """Sequence of the record after the batch; not wrapped."""
    leader_epoch: int
    """The batch's leader epoch at the source; -1: unknown."""


class AcknowledgedRecords:
    """Records that a partition's copy has appended; None means unknown.

    `was_fenced` is True if marker fences from release 0.1 may lie in the target's log.
    """

    def __init__(self, before: ReportedProgress, *, was_fenced: bool) -> None:
        self.records = 0
        self.bytes = 0
        self.upstream: int | None = None
        """Next upstream offset to be acknowledged."""
        self.downstream: int | None = None
        """Next downstream offset to be acknowledged."""
        self.last: tuple[int, int] | None = None
        """The last acknowledged record's upstream and downstream offset.

        The next offsets need not follow directly: a gap, a marker or a foreign record may lie between.
        """
        self.newest: Appended | None = None
        """Last batch; None: none was appended since the position was read."""
        self.timestamp_ms: int | None = None
        """Own timestamp of the last record known to be copied."""
        self.appended = bytes.fromhex(before.target_topic_id), before.appended
        """Target topic id, and offset after the last acknowledged record; -1: not known."""
        self._before = before
        self._was_fenced = was_fenced

    @property
    def reported(self) -> ReportedProgress:
        """Progress for the next position reading, also in later rounds."""
        topic_id, appended = self.appended
        if self.upstream is None or self.downstream is None:
            return ReportedProgress(self._before.upstream, self._before.downstream, appended, topic_id.hex())
        return ReportedProgress(self.upstream, self.downstream, appended, topic_id.hex())

    def expect(self, upstream: int, downstream: int) -> None:
        """Forget the last record unless these next offsets follow it."""
        if self.last != (upstream - 1, downstream - 1):
            self.last = None

    def start(self, upstream: int, position: Position) -> None:
        """Continue from a position that was read."""
        self.newest = None
        self.upstream = upstream
        self.downstream = position.downstream
        if position.newest_timestamp_ms is not None:
            self.timestamp_ms = position.newest_timestamp_ms

    def note(self, batch: Batch, target_topic_id: bytes) -> None:
        """Count an acknowledged batch."""
        count, last = batch.count, batch.runs[-1]
        downstream = batch.downstream + count
        self.records += count
        self.bytes += len(batch.view)
        self.upstream = batch.next_upstream
        self.downstream = downstream
        self.last = last.upstream + last.length - 1, downstream - 1
        self.newest = Appended(batch.sequence + count, batch.leader_epoch)
        self.appended = target_topic_id, downstream
        self.timestamp_ms = batch.max_timestamp if batch.max_timestamp >= 0 else None

    def settled(self, reading: PartitionReading, source_end: int, confirmed_at: float) -> PartitionReading | None:
        """Return the position after the last batch as if it had been read, or None.

        `reading` is the partition's last reading; `confirmed_at` is the time at which the position was true.
        """
        newest, last = self.newest, self.last
        if newest is None or last is None:
            return None
        upstream, downstream = last[0] + 1, last[1] + 1
        position = Position(
            sequence=newest.next_sequence,
            upstream=upstream,
            downstream=downstream,
            claim_due=False,
            leader_epoch=newest.leader_epoch,
            source_topic_id=reading.source_topic_id,
            newest_timestamp_ms=self.timestamp_ms,
            end=downstream,
        )
        return dataclasses.replace(
            reading,
            position=position,
            resume_at=upstream,
            source_end=source_end,
            read_at=confirmed_at,
            replicated=True,
        )

    def is_of_another_topic(self, target_topic_id: bytes) -> bool:
        """True if records are known to be in a target topic with another id."""
        topic_id, _ = self.appended
        return bool(topic_id) and topic_id != target_topic_id

    def objection_to(self, position: Position, target_topic_id: bytes) -> str:
        """Return the reason why an emptied log's end does not tell the position.

        An empty reason means that the end is believed.
        """
        topic_id, appended = self.appended
        if topic_id != target_topic_id or appended < 0:
            return "no note tells how many of its offsets were markers of a fence" if self._was_fenced else ""
        if appended < position.end:
            return f"offsets {appended} to {position.end - 1} may have been a foreign producer's"
        return ""
