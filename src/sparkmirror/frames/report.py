"""What tasks and journals say of ranges, and what a verification says in the end."""

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
    """A frozen value that travels as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Unmatched(NamedTuple):
    """A record of one side that has no equal in its place on the other."""

    side: Side
    offset: int
    gap: int
    """Which stretch between equal records it is in; one number a stretch of a range."""
    across: int
    """The lowest offset on the other side that it may have been before: any of several equal records may be gone."""
    timestamp: int
    content: str
    """Digest of key, value, headers and, where it is compared, the timestamp."""
    key: int
    """Digest."""
    tombstone: bool
    room: int = -1
    """So many records of its side in its stretch can the other side's cleaner have taken, at most; -1: not known."""


class RangeReport(ReportModel):
    """What the comparison of one range found."""

    range: int
    records: int
    """That are equal."""
    bytes: int
    """Read from the source."""
    whole_batches: int
    """That were equal as a whole, and not decompressed."""
    expired: int = 0
    """Records of one side whose equals on the other were deleted by retention before they were read."""
    unmatched: tuple[Unmatched, ...] = ()
    not_listed: int = 0
    """Unmatched records past the most that a range tells."""
    damage: str = ""
    """A batch that can't be read, or a log that has changed: the range was not compared."""


class Difference(NamedTuple):
    """One record that is not once, in order and equal on both sides."""

    flow: str
    topic: str
    target_topic: str
    partition: int
    kind: Kind
    upstream: int | None
    """Of the source's record; for a duplicate that of the record that is there twice."""
    downstream: int | None
    what: str
    """Of a changed record: what is different."""


class PartitionResult(ReportModel):
    """The figures of one partition."""

    flow: str
    topic: str
    target_topic: str
    partition: int
    records: int = 0
    """Equal on both sides, in order."""
    bytes: int = 0
    differences: dict[Kind, int] = Field(default_factory=dict)
    """Kind -> how many."""
    compacted: int = 0
    """On one side only, because the other side's log was compacted."""
    not_copied_yet: int = 0
    """Records that were at the source when the verification began, and are not at the target at its end."""
    because: str = ""
    """In a few words, the same for many partitions: why they aren't."""
    expired: int = 0
    """Offsets below one side's log start, or below the copy's start: not compared."""
    unjudged: int = 0
    """Unmatched records past the most that are looked into."""
    notes: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether anything is wrong, or could not be told."""
        return bool(self.unjudged or any(self.differences.values()))

    @property
    def at(self) -> tuple[str, str, int]:
        """Flow, topic and partition."""
        return self.flow, self.topic, self.partition

    def joined(self, later: PartitionResult) -> PartitionResult:
        """The same with what a second look at the rest of the partition has found."""
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
        """What is wrong beside so many differences that are listed; empty if nothing is."""
        more = sum(self.differences.values()) - listed
        parts = [f"{more} more difference(s)"] if more else []
        parts += [f"{self.unjudged} record(s) could not be judged"] if self.unjudged else []
        return "; ".join([*parts, *self.notes]) if parts else ""


class Verdict(StrEnum):
    """What a verification comes to."""

    EQUAL = "equal"
    """All that was at the source when it began is at the target."""
    SO_FAR = "equal so far"
    """All that is at the target is, but something is missing behind it."""
    DIFFERENT = "different"
    """A record differs, or could not be judged."""


class Verification(NamedTuple):
    """What a verification found."""

    partitions: tuple[PartitionResult, ...]
    differences: tuple[Difference, ...]
    """As many of each partition as were asked for."""
    ranges: int
    """Compared; with a sample fewer than there are."""
    all_ranges: int

    @property
    def differs(self) -> bool:
        """Whether any partition does."""
        return any(partition.differs for partition in self.partitions)

    @property
    def behind(self) -> dict[str, int]:
        """How many records are not copied yet, by reason."""
        counts: Counter[str] = Counter()
        for partition in self.partitions:
            counts[partition.because] += partition.not_copied_yet
        return {reason: count for reason, count in counts.items() if count}

    @property
    def verdict(self) -> Verdict:
        """What it comes to."""
        if self.differs:
            return Verdict.DIFFERENT
        return Verdict.SO_FAR if self.behind else Verdict.EQUAL
