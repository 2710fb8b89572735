"""Reports of tasks and journals on ranges, and results of a verification."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

Side = Literal["source", "target"]
SOURCE: Final = "source"
TARGET: Final = "target"
Kind = Literal["missing", "duplicate", "reordered", "changed", "extra"]

KINDS: tuple[Kind, ...] = ("missing", "duplicate", "reordered", "changed", "extra")


class ReportModel(BaseModel):
    """Frozen value that travels as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Unmatched(NamedTuple):
    """A record on one side without an equal in its place on the opposite side."""

    side: Side
    offset: int
    gap: int
    """Number of the stretch between equal records in a range."""
    across: int
    """Lowest possible place on the opposite side: an offset after the record.

    The missing record can have been just before the offset. Of several equal records any may be gone.
    """
    timestamp: int
    content: str
    """Digest of key, value, headers and, if compared, the timestamp."""
    key: int
    """The key's digest."""
    tombstone: bool
    room: int = -1
    """Most records in the stretch that the opposite side's cleaner can have taken.

    Only records on this record's side count; -1 if unknown.
    """


class RangeReport(ReportModel):
    """Result of comparing one range."""

    range: int
    records: int
    """Number of equal records."""
    bytes: int
    """Bytes read from the source."""
    whole_batches: int
    """Number of batches that were equal as a whole, without decompression."""
    expired: int = 0
    """Number of records whose equals retention deleted before they were read."""
    unmatched: tuple[Unmatched, ...] = ()
    not_listed: int = 0
    """Number of unmatched records beyond the most that a range lists."""
    equal_to: int = 0
    """Source offset after the last equal record."""
    behind: int = 0
    """Number of unlisted source records behind all the target's, due at the begin."""
    damage: str = ""
    """Reason why the range was not compared: an unreadable batch, or a changed log."""


class Difference(NamedTuple):
    """A record that is not exactly once, in order and equal on both sides."""

    flow: str
    topic: str
    target_topic: str
    partition: int
    kind: Kind
    upstream: int | None
    """The source record's offset; for a duplicate, the repeated record's."""
    downstream: int | None
    what: str
    """The parts that differ in a changed record."""


class PartitionResult(ReportModel):
    """One partition's figures."""

    flow: str
    topic: str
    target_topic: str
    partition: int
    records: int = 0
    """Number of records that are equal on both sides, in order."""
    bytes: int = 0
    differences: dict[Kind, int] = Field(default_factory=dict)
    """Number of differences by kind."""
    compacted: int = 0
    """Number of records on one side only because the opposite log was compacted."""
    not_copied_yet: int = 0
    """Number of records due since the verification's begin and absent at its end.

    The records were at the source when the verification began, and are not at the target at the end.
    """
    because: str = ""
    """Reason for `not_copied_yet` in a few words, the same for many partitions."""
    expired: int = 0
    """Offsets below one side's log start, or below the copy's start: not compared."""
    deleted: int = 0
    """Number of source offsets where kept records have deleted copies."""
    unjudged: int = 0
    """Number of unmatched records beyond the most that are judged."""
    not_compared: dict[str, int] = Field(default_factory=dict)
    """Number of target offsets that were not compared, by reason."""
    notes: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """True if the partition has a difference or an unjudged record."""
        return bool(self.unjudged or any(self.differences.values()))

    @property
    def at(self) -> tuple[str, str, int]:
        return self.flow, self.topic, self.partition

    def joined(self, later: PartitionResult) -> PartitionResult:
        """Return the result joined with that of a second look at the partition's rest."""
        differences = Counter(self.differences) + Counter(later.differences)
        return self.model_copy(
            update={
                "records": self.records + later.records,
                "bytes": self.bytes + later.bytes,
                "differences": dict(differences),
                "compacted": self.compacted + later.compacted,
                "unjudged": self.unjudged + later.unjudged,
                "notes": tuple(dict.fromkeys((*self.notes, *later.notes))),
            }
        )

    def beyond(self, listed: int) -> str:
        """Describe faults beyond the listed differences; empty if there are none."""
        more = sum(self.differences.values()) - listed
        parts = [f"{more} more difference(s)"] if more else []
        parts += [f"{self.unjudged} record(s) could not be judged"] if self.unjudged else []
        return "; ".join([*parts, *self.notes]) if parts else ""


class Verdict(StrEnum):
    """A verification's outcome."""

    EQUAL = "equal"
    """The target has all records that the source had when the verification began."""
    DELETED = "equal, but deleted at the target"
    """All records at the target are equal, but the target has deleted kept records."""
    SO_FAR = "equal so far"
    """All records at the target are equal, but later records are missing."""
    DIFFERENT = "different"
    """A record differs, or could not be judged."""


class Verification(NamedTuple):
    """Findings of a verification."""

    partitions: tuple[PartitionResult, ...]
    differences: tuple[Difference, ...]
    """Differences, limited to the requested number for each partition."""
    ranges: int
    """Number of compared ranges; with a sample, fewer than all."""
    all_ranges: int

    @property
    def differs(self) -> bool:
        return any(partition.differs for partition in self.partitions)

    @property
    def deleted(self) -> int:
        """Number of source offsets whose copies the target has deleted."""
        return sum(partition.deleted for partition in self.partitions)

    @property
    def behind(self) -> dict[str, int]:
        """Numbers of records not copied yet, by reason."""
        counts: Counter[str] = Counter()
        for partition in self.partitions:
            counts[partition.because] += partition.not_copied_yet
        return {reason: count for reason, count in counts.items() if count}

    @property
    def not_compared(self) -> dict[str, int]:
        """Numbers of target offsets that were not compared, by reason."""
        counts: Counter[str] = Counter()
        for partition in self.partitions:
            counts.update(partition.not_compared)
        return dict(counts)

    @property
    def verdict(self) -> Verdict:
        if self.differs:
            return Verdict.DIFFERENT
        if self.deleted:
            return Verdict.DELETED
        return Verdict.SO_FAR if self.behind else Verdict.EQUAL
