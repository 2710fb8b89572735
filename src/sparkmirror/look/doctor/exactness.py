"""Rules on the conditions of exactly once."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.look.doctor.case import Case
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.rule import Rule, Sign


def _weaker(case: Case) -> Iterator[Sign]:
    for line in case.flow.weaker:
        yield Sign(subject=case.flow.source.alias, evidence="said by the brokers' versions", cause=line)


def _unsafe(case: Case) -> Iterator[Sign]:
    for line in case.flow.unsafe_topics:
        yield Sign(subject=case.flow.target.alias, evidence="said by the topic's settings at the start", cause=line)


EXACTNESS = (
    Rule(
        name="own-topics-unsafe",
        severity=Severity.WARNING,
        title="One of sparkmirror's own topics may lose records",
        when="A topic of sparkmirror's own at the target allows unclean leader elections, or has min.insync.replicas "
        "below 2 with three replicas or more.",
        cause="The cluster's defaults, or settings from before.",
        action="Run the command that the reason names; then start the mirror again.",
        look=_unsafe,
    ),
    Rule(
        name="exactness-weaker",
        severity=Severity.NOTICE,
        title="Some faults can't be noticed with these brokers",
        when="They are too old to tell all that the guarantees rest upon.",
        cause="Old brokers.",
        action="Upgrade the brokers, and inter.broker.protocol.version with them "
        "(docs/versions.md); then start the mirror again.",
        look=_weaker,
    ),
)
