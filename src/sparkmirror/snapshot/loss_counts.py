"""The loss ledger in a snapshot: summed up, and its newest entries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sparkmirror.exact.durable.acknowledgements import LedgerEntry
from sparkmirror.exact.durable.loss_kinds import LOSS_KINDS, LossOutcome

MOST_ROWS = 200
"""Most entries in a snapshot: about 100 KB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCount:
    """Entries of one kind and outcome in the loss ledger, acknowledged or not."""

    kind: str
    outcome: LossOutcome = LossOutcome.LOST
    acknowledged: bool = False
    entries: int
    offsets: int
    newest_ms: int
    words: str
    """The newest entry's words."""

    @property
    def is_open_loss(self) -> bool:
        """True if records are lost, or may be, and no operator has acknowledged it."""
        return self.outcome.is_loss and not self.acknowledged


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRow:
    """One entry in the loss ledger, for people."""

    number: str
    """Number by which `sparkmirror losses ack --entry` names the entry."""
    kind: str
    outcome: LossOutcome
    at_ms: int
    topic: str
    """The offsets' topic, at the source or at the target."""
    partition: int
    first: int
    offsets: int
    """Number of offsets from `first` on; 0: only the place is known."""
    action: str
    words: str
    acknowledged: str = ""
    """Words on the acknowledgement, with time, operator and reason; empty without one."""


def loss_counts(entries: Iterable[LedgerEntry]) -> tuple[LossCount, ...]:
    by_kind: dict[tuple[str, LossOutcome, bool], list[LedgerEntry]] = defaultdict(list)
    for entry in entries:
        key = entry.loss.kind.value, entry.loss.outcome, entry.acknowledgement is not None
        by_kind[key].append(entry)
    return tuple(
        LossCount(
            kind=kind,
            outcome=outcome,
            acknowledged=acknowledged,
            entries=len(of_kind),
            offsets=sum(entry.loss.offsets for entry in of_kind),
            newest_ms=of_kind[-1].loss.at_ms,
            words=of_kind[-1].loss.words,
        )
        for (kind, outcome, acknowledged), of_kind in sorted(by_kind.items())
    )


def loss_rows(entries: Sequence[LedgerEntry]) -> tuple[LossRow, ...]:
    """Return the newest entries as rows, the newest first."""
    return tuple(loss_row(entry) for entry in reversed(entries[-MOST_ROWS:]))


def loss_row(entry: LedgerEntry) -> LossRow:
    loss = entry.loss
    return LossRow(
        number=loss.number,
        kind=loss.kind.value,
        outcome=loss.outcome,
        at_ms=loss.at_ms,
        topic=loss.target_topic if LOSS_KINDS[loss.kind].at_target else loss.source_topic,
        partition=loss.partition,
        first=loss.first,
        offsets=loss.offsets,
        action=loss.action,
        words=loss.words,
        acknowledged=_told(entry),
    )


def _told(entry: LedgerEntry) -> str:
    word = entry.acknowledgement
    if word is None:
        return ""
    return f"{datetime.fromtimestamp(word.at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC by {word.by}: {word.why}"


def totals(losses: Iterable[LossCount]) -> Iterator[tuple[LossOutcome, int, int]]:
    """Yield the outcomes of unacknowledged entries, the worst first.

    With each outcome come its entry count and their offset count.
    """
    open_ones = [loss for loss in losses if not loss.acknowledged]
    for outcome in LossOutcome:
        of_it = [loss for loss in open_ones if loss.outcome is outcome]
        if entries := sum(loss.entries for loss in of_it):
            yield outcome, entries, sum(loss.offsets for loss in of_it)


def summed_up(losses: Iterable[LossCount]) -> tuple[str, ...]:
    """Return a few words per kind of open loss: number of losses, and of offsets."""
    entries: Counter[str] = Counter()
    offsets: Counter[str] = Counter()
    for loss in losses:
        if loss.is_open_loss:
            entries[loss.kind] += loss.entries
            offsets[loss.kind] += loss.offsets
    return tuple(
        f"{entries[kind]:,} {kind}" + (f" ({offsets[kind]:,} offsets)" if offsets[kind] else "")
        for kind in sorted(entries)
    )


def acknowledged(losses: Iterable[LossCount]) -> int:
    """Return the number of acknowledged entries after which the copy differs."""
    return sum(loss.entries for loss in losses if loss.acknowledged and loss.outcome.differs)
