"""Rule on standby processes."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.doctor.case import Case
from sparkmirror.doctor.finding import Severity
from sparkmirror.doctor.rule import Rule, Sign


def _alone(case: Case) -> Iterator[Sign]:
    if case.flow.processes == 1:
        yield Sign(subject="", evidence="1 process")


STANDBY = (
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
