"""Loss kinds, and the table that tells what each says about the flow's records.

Page, doctor, status, metrics, alerts, runbook and docs/losses.md describe a loss ledger's entry by its row here;
`tests/durable/test_loss_kinds.py` holds them to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class LossKind(StrEnum):
    """A loss's kind."""

    EXPIRED = "expired"
    """The source deleted records before the copy: retention, or DeleteRecords."""
    TRUNCATED = "truncated"
    """An unclean leader election cut the source's log below the copied records."""
    RECREATED = "recreated"
    """The source topic was deleted and created again."""
    SHRUNK = "shrunk"
    """The source topic has fewer partitions than were copied."""
    TARGET_TRUNCATED = "target-truncated"
    """The target lost acknowledged records.

    The pump copies the lost records again, unless nothing tells where to continue.
    """
    TARGET_RECREATED = "target-recreated"
    """The target topic is a new topic.

    Every record that the source still has is copied again.
    """
    FOREIGN = "foreign-writer"
    """A foreign producer wrote to the target partition."""
    FENCED = "fenced"
    """The flow's markers that fenced a predecessor: no loss.

    Each marker takes an offset.
    """
    COPY_EXPIRED = "copy-expired"
    """The target deleted copied records before the source: the copy keeps less."""
    ALTERED = "altered"
    """An operator had the copy continue at another offset.

    Records are skipped, or copied again.
    """


Action = Literal["halted", "continued", "restarted", "healed", "expected"]
"""Action on a loss.

`expected` is no loss: the topic's own writers have moved to the target, and the operator has said so.
"""


class LossOutcome(StrEnum):
    """Fate of the flow's records; the worst first."""

    LOST = "lost"
    """The records are not at the target and never will be."""
    TAKEN_BACK = "taken back"
    """The source took back records that were copied: only the target has them."""
    MAY_BE_LOST = "may be lost"
    """Possibly there were more records than those copied."""
    ONLY_AT_SOURCE = "only at the source"
    """The target deleted the copied records, and the source still had them."""
    SKIPPED = "skipped"
    """An operator had the copy continue after the records."""
    TWICE = "copied twice"
    """An operator had the records copied again: the target has them twice."""
    FOREIGN = "foreign"
    """The records are another producer's; all the flow's records are there."""
    HEALED = "healed"
    """The target lost the records, and they were copied again."""
    EXPECTED = "expected"
    """The flow's records are not affected."""

    @property
    def is_loss(self) -> bool:
        """True if records are lost, or may be: health checks and alerts say so."""
        return self in (LossOutcome.LOST, LossOutcome.TAKEN_BACK, LossOutcome.MAY_BE_LOST)

    @property
    def differs(self) -> bool:
        """True if the copy is not the source's log, record by record.

        Then an operator must look before a cut-over.
        """
        return self.is_loss or self in (LossOutcome.ONLY_AT_SOURCE, LossOutcome.SKIPPED, LossOutcome.TWICE)

    def words(self, entries: int, offsets: int) -> str:
        """Return a clause about entries with this outcome, with their numbers."""
        records = f"{offsets:,} offset{'' if offsets == 1 else 's'}" if offsets else "records"
        were = "was" if offsets == 1 else "were"
        of = f"({entries:,} {'entry' if entries == 1 else 'entries'})"
        match self:
            case LossOutcome.LOST:
                return f"{records} {were} lost for good" + ("" if offsets else f" {of}")
            case LossOutcome.TAKEN_BACK:
                return f"the source took back {records} that {were} copied"
            case LossOutcome.MAY_BE_LOST:
                return f"records may be lost {of}"
            case LossOutcome.ONLY_AT_SOURCE:
                return f"the target deleted {records} that the source had longer"
            case LossOutcome.SKIPPED:
                return f"an operator had {records} skipped"
            case LossOutcome.TWICE:
                return f"an operator had {records} copied twice"
            case LossOutcome.FOREIGN:
                return f"another producer has written {records} to copies"
            case LossOutcome.HEALED:
                return f"copies lost records, which were copied again {of}"
            case LossOutcome.EXPECTED:
                return f"nothing was lost {of}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """One kind's row: what its entries mean."""

    outcomes: Mapping[Action, LossOutcome]
    """LossOutcome by the entry's action; the worst first."""
    counts: bool = True
    """True if the entries have an offset range; False if only their place is known."""
    at_target: bool = False
    """True if the offsets are the target's."""
    healed_but_for_range: bool = False
    """True if a healed entry's range has the records that could not be copied again."""


LOSS_KINDS: Mapping[LossKind, KindRow] = {
    LossKind.EXPIRED: KindRow(outcomes={"continued": LossOutcome.LOST, "halted": LossOutcome.LOST}),
    LossKind.TRUNCATED: KindRow(outcomes={"continued": LossOutcome.TAKEN_BACK, "halted": LossOutcome.TAKEN_BACK}),
    LossKind.RECREATED: KindRow(
        outcomes={"restarted": LossOutcome.MAY_BE_LOST, "halted": LossOutcome.MAY_BE_LOST}, counts=False
    ),
    LossKind.SHRUNK: KindRow(outcomes={"halted": LossOutcome.MAY_BE_LOST}, counts=False),
    LossKind.TARGET_TRUNCATED: KindRow(
        outcomes={"halted": LossOutcome.MAY_BE_LOST, "healed": LossOutcome.HEALED}, at_target=True
    ),
    LossKind.TARGET_RECREATED: KindRow(
        outcomes={"restarted": LossOutcome.LOST, "healed": LossOutcome.HEALED}, healed_but_for_range=True
    ),
    LossKind.FOREIGN: KindRow(outcomes={"continued": LossOutcome.FOREIGN}, at_target=True),
    LossKind.FENCED: KindRow(outcomes={"continued": LossOutcome.EXPECTED}, at_target=True),
    LossKind.COPY_EXPIRED: KindRow(outcomes={"continued": LossOutcome.ONLY_AT_SOURCE}),
    LossKind.ALTERED: KindRow(outcomes={"continued": LossOutcome.SKIPPED, "restarted": LossOutcome.TWICE}),
}
"""The table: a row for each kind.

An entry whose action is `expected` is `LossOutcome.EXPECTED`, whatever its kind.
"""

AT_TARGET = frozenset(kind for kind, row in LOSS_KINDS.items() if row.at_target)
"""Kinds with target offsets."""

NOT_OURS = frozenset({LossKind.FOREIGN, LossKind.FENCED})
"""Kinds whose ranges at the target hold no record that the flow wrote."""


def outcome_of(kind: LossKind, action: Action, offsets: int) -> LossOutcome:
    """Return what an entry says about the flow's records.

    An action that the kind's row lacks, from another release, counts as the row's worst.
    """
    if action == "expected":
        return LossOutcome.EXPECTED
    row = LOSS_KINDS[kind]
    outcome = row.outcomes.get(action, next(iter(row.outcomes.values())))
    return LossOutcome.LOST if outcome is LossOutcome.HEALED and row.healed_but_for_range and offsets else outcome
