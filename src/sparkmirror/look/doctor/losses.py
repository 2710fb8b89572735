"""Rules on the loss ledger: one for each outcome that an operator should know."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sparkmirror.exact.durable.loss_kinds import LOSS_KINDS, LossOutcome
from sparkmirror.look.doctor.case import Case
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.rule import Rule, Sign, counted

NEWS_MS = 7 * 86_400_000
"""Age in milliseconds of a loss that is history: a week.

The ledger keeps the loss.
"""
ACKNOWLEDGE = "Once you know what it means, say so: `sparkmirror losses ack FILE WHY`."


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


def _keeps_less(case: Case) -> Iterator[Sign]:
    for topic, reason in case.flow.keeping_less.items():
        yield Sign(subject=topic, evidence=f"at {case.flow.target.alias} {reason}")


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
        action=f"Look at `sparkmirror losses FILE`, and tell the readers of the copy. {ACKNOWLEDGE}",
        look=_look(LossOutcome.LOST),
        explains=("group-would-reread",),
    ),
    LossOutcome.TAKEN_BACK: Rule(
        name="records-taken-back",
        severity=Severity.CRITICAL,
        title="The source took back records that were copied",
        when=_when(LossOutcome.TAKEN_BACK),
        cause="An unclean leader election at the source cut its log: only the target has these records.",
        action=f"Look at `sparkmirror losses FILE`, and decide which side is right. {ACKNOWLEDGE}",
        look=_look(LossOutcome.TAKEN_BACK),
        explains=("group-would-reread",),
    ),
    LossOutcome.MAY_BE_LOST: Rule(
        name="records-may-be-lost",
        severity=Severity.WARNING,
        title="Whether records were lost is not known",
        when=_when(LossOutcome.MAY_BE_LOST),
        cause="A log ended, and nothing tells whether records came after the last copied one.",
        action=f"Look at `sparkmirror losses FILE`, and ask the topic's writers. {ACKNOWLEDGE}",
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
        f"If not, stop the other producer. {ACKNOWLEDGE}",
        look=_look(LossOutcome.FOREIGN),
    ),
    LossOutcome.ONLY_AT_SOURCE: Rule(
        name="copy-expired",
        severity=Severity.WARNING,
        title="The target has deleted records that the source had longer",
        when=_when(LossOutcome.ONLY_AT_SOURCE),
        cause="The copy's retention is shorter than the source's, often by another default of the target's brokers.",
        action="Set the property at the source's topic, or, unless the source's brokers have it in their files, write "
        "`A->B.use.defaults.from = source`. To have the records again, delete the copy: the mirror copies what the "
        f"source still has. {ACKNOWLEDGE} That word also counts for what the copy loses later.",
        look=_look(LossOutcome.ONLY_AT_SOURCE),
        explains=("copy-keeps-less",),
    ),
    LossOutcome.SKIPPED: Rule(
        name="offsets-altered",
        severity=Severity.NOTICE,
        title="An operator had the copy skip records",
        when=_when(LossOutcome.SKIPPED),
        cause="A connector's offsets were altered or reset.",
        action=f"Look at `sparkmirror losses FILE` for which, and compare both sides: `sparkmirror verify FILE`. "
        f"{ACKNOWLEDGE}",
        look=_look(LossOutcome.SKIPPED),
        explains=("group-would-reread",),
    ),
    LossOutcome.TWICE: Rule(
        name="records-twice",
        severity=Severity.NOTICE,
        title="An operator had records copied twice",
        when=_when(LossOutcome.TWICE),
        cause="A connector's offsets were altered or reset.",
        action=f"Look at `sparkmirror losses FILE` for which, and tell the readers of the copy. {ACKNOWLEDGE}",
        look=_look(LossOutcome.TWICE),
        explains=("group-would-reread",),
    ),
    LossOutcome.HEALED: Rule(
        name="copy-healed",
        severity=Severity.NOTICE,
        title="The target lost records, and they were copied again",
        when=_when(LossOutcome.HEALED),
        cause="An unclean leader election, or an operator or a tool deleted the copy.",
        action=f"Compare both sides: `sparkmirror verify FILE`. {ACKNOWLEDGE}",
        look=_look(LossOutcome.HEALED),
        explains=("group-would-reread", "group-not-synced"),
    ),
}
"""Rule by outcome."""

LOSSES = (
    *LOSSES_BY_OUTCOME.values(),
    Rule(
        name="copy-keeps-less",
        severity=Severity.NOTICE,
        title="The target deletes copied records earlier than the source",
        when="A copy's effective retention (time, size, cleanup policy, tombstones) is shorter than its source's. "
        "20 findings at most.",
        cause="The property isn't set at the source's topic, and the clusters' defaults differ; or "
        "`config.properties.exclude` has it.",
        action="Set the property at the source's topic, from where the mirror brings it to the copy, or, unless the "
        "source's brokers have it in their files, write `A->B.use.defaults.from = source`.",
        look=_keeps_less,
    ),
)
