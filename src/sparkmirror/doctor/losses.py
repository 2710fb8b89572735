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
                    loss.kind,
                    size + (", all of them over a week old" if old else ""),
                    loss.words,
                    severity=Severity.NOTICE if old else None,
                    explains=() if old else None,
                )

    return look


LOSSES = (
    Rule(
        "records-lost",
        Severity.CRITICAL,
        "Records are not at the target and never will be",
        "The ledger has losses at the source (expired, truncated, recreated, shrunk). A notice after a week.",
        "The source deleted or lost them before they were copied.",
        "Look at `sparkmirror losses FILE`, and tell the readers of the copy.",
        _look(*_AT_SOURCE),
        ("group-would-reread",),
    ),
    Rule(
        "copy-damaged",
        Severity.CRITICAL,
        "The target lost records that it had acknowledged",
        "The ledger has losses at the target (target-truncated, target-recreated). A notice after a week.",
        "An unclean leader election, or an operator or a tool deleted the copy.",
        "Compare both sides: `sparkmirror verify FILE`.",
        _look(*_AT_TARGET),
        ("group-would-reread", "group-not-synced"),
    ),
    Rule(
        "foreign-writer",
        Severity.WARNING,
        "Another producer has written to a copy",
        "The ledger has records of another producer in a copy. A notice after a week.",
        "The topic's writers have moved to the copy, or another producer writes there by mistake.",
        "Have the topic's writers moved to the copy? If so: `sparkmirror topics done FILE --topics REGEX`. If not, "
        "stop the other producer.",
        _look(LossKind.FOREIGN),
    ),
    Rule(
        "offsets-altered",
        Severity.NOTICE,
        "An operator had the copy go on at another offset",
        "The ledger has an entry of an altered offset. Records were skipped, or copied again.",
        "A connector's offsets were altered or reset.",
        "Look at `sparkmirror losses FILE` for which, and compare both sides: `sparkmirror verify FILE`.",
        _look(LossKind.ALTERED),
        ("group-would-reread",),
    ),
)
