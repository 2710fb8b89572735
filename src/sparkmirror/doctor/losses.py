"""Rules on the loss ledger: one for each outcome that an operator should know."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sparkmirror.doctor.case import Case
from sparkmirror.doctor.finding import Severity
from sparkmirror.doctor.rule import Rule, Sign, counted
from sparkmirror.durable.loss_kinds import LOSS_KINDS, LossOutcome

NEWS_MS = 7 * 86_400_000
"""Age in milliseconds of a loss that is history: a week.

The ledger keeps the loss.
"""
_ACKNOWLEDGE = "Once you know what it means, say so: `sparkmirror losses ack FILE WHY`."


def _look(outcome: LossOutcome) -> Callable[[Case], Iterator[Sign]]:
    def look(case: Case) -> Iterator[Sign]:
        for loss in case.flow.losses:
            if loss.outcome is outcome and loss.entries and not loss.acknowledged:
                size = counted(loss.entries, "entry", "entries")
                size += f", {counted(loss.offsets, 'offset')}" if loss.offsets else ", of how many offsets is not known"
                old = case.flow.at_ms - loss.newest_ms > NEWS_MS
                yield Sign(
                    subject=loss.kind,
                    evidence=size + (", all of them over a week old" if old else ""),
                    cause=loss.words,
                    severity=Severity.NOTICE if old else None,
                    explains=() if old else None,
                )

    return look


def _when(outcome: LossOutcome) -> str:
    kinds = [kind for kind, row in LOSS_KINDS.items() if outcome in row.outcomes.values()]
    return (
        f"The ledger has entries with the outcome `{outcome}` (of the kinds {', '.join(kinds)}) that no operator has "
        "acknowledged. A notice after a week."
    )


LOSSES_BY_OUTCOME = {
    LossOutcome.LOST: Rule(
        name="records-lost",
        severity=Severity.CRITICAL,
        title="Records are not at the target and never will be",
        when=_when(LossOutcome.LOST),
        cause="The source deleted or lost them before they were copied.",
        action=f"Look at `sparkmirror losses FILE`, and tell the readers of the copy. {_ACKNOWLEDGE}",
        look=_look(LossOutcome.LOST),
        explains=("group-would-reread",),
    ),
    LossOutcome.TAKEN_BACK: Rule(
        name="records-taken-back",
        severity=Severity.CRITICAL,
        title="The source took back records that were copied",
        when=_when(LossOutcome.TAKEN_BACK),
        cause="An unclean leader election at the source cut its log: only the target has these records.",
        action=f"Look at `sparkmirror losses FILE`, and decide which side is right. {_ACKNOWLEDGE}",
        look=_look(LossOutcome.TAKEN_BACK),
        explains=("group-would-reread",),
    ),
    LossOutcome.MAY_BE_LOST: Rule(
        name="records-may-be-lost",
        severity=Severity.WARNING,
        title="Whether records were lost is not known",
        when=_when(LossOutcome.MAY_BE_LOST),
        cause="A log ended, and nothing tells whether records came after the last copied one.",
        action=f"Look at `sparkmirror losses FILE`, and ask the topic's writers. {_ACKNOWLEDGE}",
        look=_look(LossOutcome.MAY_BE_LOST),
        explains=("group-would-reread", "group-not-synced"),
    ),
    LossOutcome.FOREIGN: Rule(
        name="foreign-writer",
        severity=Severity.WARNING,
        title="Another producer has written to a copy",
        when=_when(LossOutcome.FOREIGN),
        cause="The topic's writers have moved to the copy, or another producer writes there by mistake.",
        action="Have the topic's writers moved to the copy? If so: `sparkmirror topics done FILE --topics REGEX`. "
        f"If not, stop the other producer. {_ACKNOWLEDGE}",
        look=_look(LossOutcome.FOREIGN),
    ),
    LossOutcome.SKIPPED: Rule(
        name="offsets-altered",
        severity=Severity.NOTICE,
        title="An operator had the copy skip records",
        when=_when(LossOutcome.SKIPPED),
        cause="A connector's offsets were altered or reset.",
        action=f"Look at `sparkmirror losses FILE` for which, and compare both sides: `sparkmirror verify FILE`. "
        f"{_ACKNOWLEDGE}",
        look=_look(LossOutcome.SKIPPED),
        explains=("group-would-reread",),
    ),
    LossOutcome.TWICE: Rule(
        name="records-twice",
        severity=Severity.NOTICE,
        title="An operator had records copied twice",
        when=_when(LossOutcome.TWICE),
        cause="A connector's offsets were altered or reset.",
        action=f"Look at `sparkmirror losses FILE` for which, and tell the readers of the copy. {_ACKNOWLEDGE}",
        look=_look(LossOutcome.TWICE),
        explains=("group-would-reread",),
    ),
    LossOutcome.HEALED: Rule(
        name="copy-healed",
        severity=Severity.NOTICE,
        title="The target lost records, and they were copied again",
        when=_when(LossOutcome.HEALED),
        cause="An unclean leader election, or an operator or a tool deleted the copy.",
        action=f"Compare both sides: `sparkmirror verify FILE`. {_ACKNOWLEDGE}",
        look=_look(LossOutcome.HEALED),
        explains=("group-would-reread", "group-not-synced"),
    ),
}
"""Rule by outcome."""

LOSSES = tuple(LOSSES_BY_OUTCOME.values())
