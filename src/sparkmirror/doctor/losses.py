"""Rules on the loss ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sparkmirror.doctor.case import Case
from sparkmirror.doctor.finding import Severity
from sparkmirror.doctor.rule import Rule, Sign, counted
from sparkmirror.durable.losses import LossKind

NEWS_MS = 7 * 86_400_000
"""Age in milliseconds of a loss that is history: a week.

The ledger keeps the loss.
"""
_AT_SOURCE = (LossKind.EXPIRED, LossKind.TRUNCATED, LossKind.RECREATED, LossKind.SHRUNK)
_AT_TARGET = (LossKind.TARGET_TRUNCATED, LossKind.TARGET_RECREATED)


def _look(*kinds: LossKind) -> Callable[[Case], Iterator[Sign]]:
    def look(case: Case) -> Iterator[Sign]:
        for loss in case.flow.losses:
            if loss.is_loss and loss.entries and loss.kind in kinds:
                size = f"{counted(loss.entries, 'entry', 'entries')}, {counted(loss.offsets, 'offset')}"
                old = case.flow.at_ms - loss.newest_ms > NEWS_MS
                yield Sign(
                    subject=loss.kind,
                    evidence=size + (", all of them over a week old" if old else ""),
                    cause=loss.words,
                    severity=Severity.NOTICE if old else None,
                    explains=() if old else None,
                )

    return look


LOSSES = (
    Rule(
        name="records-lost",
        severity=Severity.CRITICAL,
        title="Records are not at the target and never will be",
        when="The ledger has losses at the source (expired, truncated, recreated, shrunk). A notice after a week.",
        cause="The source deleted or lost them before they were copied.",
        action="Look at `sparkmirror losses FILE`, and tell the readers of the copy.",
        look=_look(*_AT_SOURCE),
        explains=("group-would-reread",),
    ),
    Rule(
        name="copy-damaged",
        severity=Severity.CRITICAL,
        title="The target lost records that it had acknowledged",
        when="The ledger has losses at the target (target-truncated, target-recreated). A notice after a week.",
        cause="An unclean leader election, or an operator or a tool deleted the copy.",
        action="Compare both sides: `sparkmirror verify FILE`.",
        look=_look(*_AT_TARGET),
        explains=("group-would-reread", "group-not-synced"),
    ),
    Rule(
        name="foreign-writer",
        severity=Severity.WARNING,
        title="Another producer has written to a copy",
        when="The ledger has records of another producer in a copy. A notice after a week.",
        cause="The topic's writers have moved to the copy, or another producer writes there by mistake.",
        action="Have the topic's writers moved to the copy? If so: `sparkmirror topics done FILE --topics REGEX`. "
        "If not, "
        "stop the other producer.",
        look=_look(LossKind.FOREIGN),
    ),
    Rule(
        name="offsets-altered",
        severity=Severity.NOTICE,
        title="An operator had the copy go on at another offset",
        when="The ledger has an entry of an altered offset. Records were skipped, or copied again.",
        cause="A connector's offsets were altered or reset.",
        action="Look at `sparkmirror losses FILE` for which, and compare both sides: `sparkmirror verify FILE`.",
        look=_look(LossKind.ALTERED),
        explains=("group-would-reread",),
    ),
)
