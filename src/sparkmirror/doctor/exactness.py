"""Rules on the conditions of exactly once."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.doctor.case import Case
from sparkmirror.doctor.finding import Severity
from sparkmirror.doctor.rule import Rule, Sign


def _weaker(case: Case) -> Iterator[Sign]:
    for line in case.flow.weaker:
        yield Sign(case.flow.source.alias, "said by the brokers' versions", line)


EXACTNESS = (
    Rule(
        "exactness-weaker",
        Severity.NOTICE,
        "Some faults can't be noticed with these brokers",
        "The brokers are too old to tell all that the copy's guarantees rest upon.",
        "Old brokers.",
        "Follow the reason, or upgrade the brokers (docs/versions.md).",
        _weaker,
    ),
)
