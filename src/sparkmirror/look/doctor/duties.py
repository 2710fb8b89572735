"""Rules on duties: the periodic work next to the copying."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.look.doctor.case import Case
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.rule import Rule, Sign, counted
from sparkmirror.snapshot.snapshot import Duty

LATE_TURNS = 3
"""Intervals without a good turn that make a duty late.

The alert GroupSyncLate has the same number.
"""
GRACE_S = 30.0
"""Longest delay of a turn after failures, in seconds."""
MANY_GROUPS = 10_000
"""Largest measured number of groups (docs/groups.md)."""
_GROUPS = ("group-not-synced", "group-sync-late", "group-would-reread")
_AGAIN = (
    "Start the process again: the turn begins again, and copying continues exactly where it ended. If the duty is late "
    "once more though the host has CPU left, report it, with the log."
)


def due_s(duty: Duty) -> float:
    """Return the greatest allowed age of a duty's last good turn, in seconds."""
    return LATE_TURNS * duty.interval_s + GRACE_S


def _concerns(duty: Duty) -> tuple[str, ...]:
    return _GROUPS if duty.duty in ("checkpoints", "group offsets", "group watch", "offset syncs") else ()


def _failing(case: Case) -> Iterator[Sign]:
    for duty in case.flow.duties:
        if duty.failing:
            yield Sign(
                subject=duty.duty,
                evidence=counted(duty.failures, "failure"),
                cause=duty.failing,
                explains=_concerns(duty),
            )


def _long(case: Case) -> Iterator[Sign]:
    for duty in case.flow.duties:
        if duty.took_s is not None and duty.took_s > duty.interval_s:
            yield Sign(
                subject=duty.duty,
                evidence=f"{duty.took_s:,.1f} s for a turn, every {duty.interval_s:,.0f} s",
                explains=_concerns(duty),
            )


def _late(case: Case) -> Iterator[Sign]:
    for duty in case.flow.duties:
        since = duty.succeeded_ms if duty.succeeded_ms is not None else case.flow.state_since_ms
        age = (case.flow.at_ms - since) / 1000
        if not duty.failing and since > 0 and age > due_s(duty):
            last = "its last good turn" if duty.succeeded_ms is not None else "no good turn yet, begun"
            yield Sign(
                subject=duty.duty,
                evidence=f"{last} {age:,.0f} s ago, due every {duty.interval_s:,.0f} s",
                action=_AGAIN,
                explains=_concerns(duty),
            )


def _many_groups(case: Case) -> Iterator[Sign]:
    count = len(case.flow.groups)
    if count >= MANY_GROUPS:
        long = any(_concerns(duty) and (duty.took_s or 0.0) > duty.interval_s for duty in case.flow.duties)
        yield Sign(
            subject="",
            evidence=counted(count, "group"),
            severity=Severity.WARNING if long else None,
            explains=None if long else (),
        )


DUTIES = (
    Rule(
        name="many-groups",
        severity=Severity.NOTICE,
        title="The flow has very many groups",
        when="10,000 groups or more, as many as were measured. A warning if a turn of a duty of groups takes "
        "longer than its interval.",
        cause="The filter includes every group of the source.",
        action="Narrow `groups`, or raise emit.checkpoints.interval.seconds and sync.group.offsets.interval.seconds.",
        look=_many_groups,
        explains=("duty-slow", "duty-late", "group-sync-late", "group-would-reread"),
    ),
    Rule(
        name="duty-failing",
        severity=Severity.WARNING,
        title="A duty other than copying fails",
        when="The last turn of a duty failed.",
        cause="The reason names the cause.",
        action="Correct what the reason names; the duty is tried again by itself.",
        look=_failing,
        explains=_GROUPS,
    ),
    Rule(
        name="duty-slow",
        severity=Severity.NOTICE,
        title="A turn takes longer than its interval",
        when="The last good turn of a duty took longer than the time between two of them.",
        cause="There is more to do than fits, or a cluster answers slowly.",
        action="Raise the interval, or narrow `topics` and `groups`.",
        look=_long,
        explains=("duty-late", *_GROUPS),
    ),
    Rule(
        name="duty-late",
        severity=Severity.WARNING,
        title="A duty other than copying is late",
        when="No good turn for 3 intervals and 30 s, and none failed either.",
        cause="Its turn hangs: a cluster does not answer, or the host is overloaded.",
        action="Start the process again: the turn begins again.",
        look=_late,
        explains=_GROUPS,
    ),
)
