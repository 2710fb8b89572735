"""Rule on standby processes."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.doctor.case import Case
from sparkmirror.doctor.finding import Severity
from sparkmirror.doctor.rule import Rule, Sign


def _alone(case: Case) -> Iterator[Sign]:
    if case.flow.processes == 1:
        yield Sign("", "1 process")


STANDBY = (
    Rule(
        "no-standby",
        Severity.NOTICE,
        "No process takes over if this process ends",
        "The lease's group has one member.",
        "No other process was started for this flow.",
        "Start `sparkmirror run FILE` on another host, too.",
        _alone,
    ),
)
