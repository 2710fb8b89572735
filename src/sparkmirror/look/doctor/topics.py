"""Rules on whole topics: refused, paused, deleted, moved."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.look.doctor.case import Case
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.rule import Rule, Sign, counted
from sparkmirror.snapshot.snapshot import FlowState, PartitionState

NAMED = 20
"""Most patterns with a finding of their own."""

FORGOTTEN_S = 3600.0
"""Seconds of pause that count as forgotten.

A short pause is over by then.
"""


def _nothing(case: Case) -> Iterator[Sign]:
    if case.flow.state is FlowState.NOTHING:
        yield Sign(subject="", evidence=case.flow.reason or "no topic of the source matches")


def _unmatched(case: Case) -> Iterator[Sign]:
    nothing_of = {"topics"} if case.flow.state is FlowState.NOTHING else set()
    nothing_of |= {"groups"} if case.flow.no_group else set()
    for pattern in case.flow.unmatched[:NAMED]:
        if pattern.key not in nothing_of:
            yield Sign(subject=pattern.pattern, evidence=f"a pattern of {pattern.key}", cause=pattern.hint)


def _refused(case: Case) -> Iterator[Sign]:
    for topic in case.flow.topics:
        if topic.refused:
            copied = len(topic.partitions)
            evidence = f"only {counted(copied, 'partition')} of it is copied" if copied else "nothing of it is copied"
            yield Sign(subject=topic.topic, evidence=evidence, cause=topic.refused)


def _paused(case: Case) -> Iterator[Sign]:
    for topic in case.flow.topics:
        paused = [each for each in topic.partitions if each.state is PartitionState.PAUSED and each.lag]
        if not paused:
            continue
        oldest = max((each.lag_s for each in paused if each.lag_s is not None), default=0.0)
        first = case.flow.retention_of.rpartition("-")[0] == topic.topic
        yield Sign(
            subject=topic.topic,
            evidence=f"{sum(each.lag or 0 for each in paused):,} records wait in "
            f"{counted(len(paused), 'partition')}, the oldest for {oldest:,.0f} s",
            severity=Severity.WARNING if oldest > FORGOTTEN_S else None,
            explains=(*(("retention-race",) if first else ()), "lag-over-objective", "lag-growing"),
        )


def _late(case: Case) -> Iterator[Sign]:
    for topic in case.flow.topics:
        if topic.late:
            partitions = ", ".join(str(number) for number in sorted(topic.late_in)[:5])
            again = "the topic was created again: " if topic.recreated else ""
            copied = f"; {topic.late_copied:,} more were copied before that" if topic.late_copied else ""
            evidence = f"{again}{topic.late:,} offsets since, in partitions {partitions}{copied}"
            yield Sign(subject=topic.topic, evidence=evidence)
        elif topic.late_copied:
            evidence = f"{topic.late_copied:,} offsets since, copied or passed over before the pump heard of it"
            yield Sign(subject=topic.topic, evidence=evidence, severity=Severity.NOTICE)


def _gone(case: Case) -> Iterator[Sign]:
    for topic in case.flow.topics:
        if topic.gone:
            copy = f"its copy {topic.target_topic}" if topic.target_topic else "its copy"
            yield Sign(subject=topic.topic, evidence=f"{copy} stays")


TOPICS = (
    Rule(
        name="nothing-to-copy",
        severity=Severity.CRITICAL,
        title="The flow has nothing to copy",
        when="No topic of the source matches `topics` without `topics.exclude`; heartbeats, which every flow copies, "
        "and internal topics don't count.",
        cause="A pattern is misspelt, the topics are not there yet, or sparkmirror's principal may not describe them.",
        action="Correct `topics` or `topics.exclude`: each is a list of Java regular expressions, separated by "
        "commas, and each of them must match whole names. Or grant DESCRIBE on the topics at the source.",
        look=_nothing,
    ),
    Rule(
        name="pattern-unmatched",
        severity=Severity.NOTICE,
        title="A pattern matches nothing at the source",
        when="A pattern of `topics` or `groups` matches no name of the source; or one of `topics.exclude` that isn't a "
        f"default matches none, and is misspelt or like a topic's name. {NAMED} findings at most.",
        cause="It is misspelt, or what it is for is not there yet.",
        action="Correct the pattern, or wait until the topic or group is there.",
        look=_unmatched,
    ),
    Rule(
        name="topic-refused",
        severity=Severity.WARNING,
        title="A topic can't be copied, or not whole",
        when="The topic matches, and its copy, or the copy's newest partitions, are refused: by the target, or because "
        "another flow has it.",
        cause="The reason names the cause.",
        action="Correct what the reason names, or take the topic out of `topics`.",
        look=_refused,
        explains=("group-not-synced",),
    ),
    Rule(
        name="paused",
        severity=Severity.NOTICE,
        title="A paused topic has something to copy",
        when="Its partitions are paused and lag. A warning once the oldest record has waited for an hour.",
        cause="An operator has paused it (`sparkmirror pause`), and perhaps forgotten it.",
        action="Resume the topic: `sparkmirror resume FILE`.",
        look=_paused,
    ),
    Rule(
        name="late-records",
        severity=Severity.WARNING,
        title="Writers that were said to have moved still write",
        when="The source's topic has grown since `sparkmirror topics done`, or was created again. A notice if all of "
        "that was copied before the pump heard of the move.",
        cause="A producer still writes to the source's topic, or did so for a moment.",
        action="Stop that writer, and take the move back to copy its records: `sparkmirror topics undo FILE --topics "
        "REGEX`. Say `sparkmirror topics done` again once the writer has stopped. Of a topic that a migration has "
        "moved, write the records again where it is live, and say `sparkmirror topics done` again.",
        look=_late,
    ),
    Rule(
        name="topic-deleted",
        severity=Severity.NOTICE,
        title="A topic was deleted at the source",
        when="A topic that was copied is no longer at the source.",
        cause="An operator or a tool deleted the topic there.",
        action="Delete the copy if it has no readers.",
        look=_gone,
    ),
)
