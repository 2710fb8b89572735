"""Rules on whole topics: refused, paused, deleted, moved."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.doctor.case import Case
from sparkmirror.doctor.finding import Severity
from sparkmirror.doctor.rule import Rule, Sign, counted
from sparkmirror.engine.snapshot import PartitionState

FORGOTTEN_S = 3600.0
"""A pause that is meant to be short is over by then."""


def _refused(case: Case) -> Iterator[Sign]:
    for topic in case.flow.topics:
        if topic.refused:
            copied = len(topic.partitions)
            evidence = f"only {counted(copied, 'partition')} of it is copied" if copied else "nothing of it is copied"
            yield Sign(topic.topic, evidence, topic.refused)


def _paused(case: Case) -> Iterator[Sign]:
    for topic in case.flow.topics:
        paused = [one for one in topic.partitions if one.state is PartitionState.PAUSED and one.lag]
        if not paused:
            continue
        oldest = max((one.lag_s for one in paused if one.lag_s is not None), default=0.0)
        first = case.flow.retention_of.rpartition("-")[0] == topic.topic
        yield Sign(
            topic.topic,
            f"{sum(one.lag or 0 for one in paused):,} records wait in {counted(len(paused), 'partition')}, the oldest "
            f"for {oldest:,.0f} s",
            severity=Severity.WARNING if oldest > FORGOTTEN_S else None,
            explains=(*(("retention-race",) if first else ()), "lag-over-objective", "lag-growing"),
        )


def _late(case: Case) -> Iterator[Sign]:
    for topic in case.flow.topics:
        if topic.late:
            partitions = ", ".join(str(number) for number in sorted(topic.late_in)[:5])
            yield Sign(topic.topic, f"{topic.late:,} offsets since, in partitions {partitions}")


def _gone(case: Case) -> Iterator[Sign]:
    for topic in case.flow.topics:
        if topic.gone:
            copy = f"its copy {topic.target_topic}" if topic.target_topic else "its copy"
            yield Sign(topic.topic, f"{copy} stays")


TOPICS = (
    Rule(
        "topic-refused",
        Severity.WARNING,
        "A topic can't be copied, or not whole",
        "The topic matches, and its copy, or the copy's newest partitions, are refused: by the target, or because "
        "another flow has it.",
        "The reason names it.",
        "Change what the cause names, or take the topic out of `topics`.",
        _refused,
        ("group-not-synced",),
    ),
    Rule(
        "paused",
        Severity.NOTICE,
        "A paused topic has something to copy",
        "Its partitions are paused and lag. A warning once the oldest record has waited for an hour.",
        "An operator has paused it (`sparkmirror pause`), and perhaps forgotten it.",
        "Go on with it: `sparkmirror resume FILE`.",
        _paused,
    ),
    Rule(
        "late-records",
        Severity.WARNING,
        "Writers that were said to have moved still write",
        "The source's topic has grown since `sparkmirror topics done`.",
        "Somebody still writes to the source's topic.",
        "Stop that writer, or take the move back: `sparkmirror topics undo FILE --topics REGEX`.",
        _late,
    ),
    Rule(
        "topic-deleted",
        Severity.NOTICE,
        "A topic was deleted at the source",
        "It was copied, and is not there any more.",
        "Somebody deleted it there.",
        "Delete the copy if nobody reads it.",
        _gone,
    ),
)
