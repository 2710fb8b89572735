"""Rule on standby processes."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.look.doctor.case import Case
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.rule import Rule, Sign, counted


def _alone(case: Case) -> Iterator[Sign]:
    if case.flow.processes == 1:
        yield Sign(subject="", evidence="1 process")


def _differs(case: Case) -> Iterator[Sign]:
    differs = case.flow.differs
    if differs:
        here = case.flow.leader or "the process that works on it"
        yield Sign(
            subject="",
            evidence=f"{counted(len(differs), 'setting')} of {here} {'differs' if len(differs) == 1 else 'differ'}",
            cause="; ".join(differs),
        )


STANDBY = (
    Rule(
        name="other-settings",
        severity=Severity.WARNING,
        title="The process that works on the flow has other settings",
        when="Settings of the file (of the verb, or of a process that stands by) differ from those that the working "
        "process has published. Client ids and racks may differ.",
        cause="The file was changed after the process had started, or two deployments have the same aliases.",
        action="Start all processes of a flow on one file. A process that was started on this one changes these "
        "settings once it works on the flow.",
        look=_differs,
        everywhere=True,
    ),
    Rule(
        name="no-standby",
        severity=Severity.NOTICE,
        title="No process takes over if this process ends",
        when="The lease's group has one member.",
        cause="No other process was started for this flow.",
        action="Start `sparkmirror run FILE` on another host, too.",
        look=_alone,
    ),
)
