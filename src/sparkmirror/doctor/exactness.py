"""Rules on the conditions of exactly once."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.doctor.case import Case
from sparkmirror.doctor.finding import Severity
from sparkmirror.doctor.rule import Rule, Sign


def _weaker(case: Case) -> Iterator[Sign]:
    for line in case.flow.weaker:
        yield Sign(subject=case.flow.source.alias, evidence="said by the brokers' versions", cause=line)


EXACTNESS = (
    Rule(
        name="exactness-weaker",
        severity=Severity.NOTICE,
        title="Some faults can't be noticed with these brokers",
        when="The brokers are too old to tell all that the copy's guarantees rest upon.",
        cause="Old brokers.",
        action="Follow the reason, or upgrade the brokers (docs/versions.md).",
        look=_weaker,
    ),
)
