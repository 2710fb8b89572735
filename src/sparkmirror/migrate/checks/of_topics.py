"""Checks on topics: there, led, copied, and of the same properties on both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sparkmirror.migrate import phase
from sparkmirror.migrate.actions import listed
from sparkmirror.migrate.checks.check import Check, CheckVerdict, Found, blocked, fail, ok, unknown, warn
from sparkmirror.migrate.checks.facts import Facts
from sparkmirror.migrate.checks.of_flows import findings
from sparkmirror.mirror.sync.topic_properties import config_change
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.schemas import SchemaCheck


def _of_topics(verdict: CheckVerdict, *rules: str) -> Callable[[Facts], Iterator[Found]]:
    """Return a look for lint's findings on the sets' topics, in both flows."""

    def look(facts: Facts) -> Iterator[Found]:
        chosen = {topic for one in facts.sets for topic in one.topics}
        for probe in facts.probes.values():
            for finding in findings(probe, *rules):
                if finding.key in chosen:
                    yield Found(verdict, f"{probe.flow.name}: {finding.key}: {finding.what}", finding.fix)

    return look


def _drift(facts: Facts) -> Iterator[Found]:
    for side, topic in facts.topics():
        probe = facts.probes.get(side)
        if probe is None:
            continue
        copy = phase.word(facts.seen, side, topic).copy
        here, there = probe.source.configs.get(topic), probe.target.configs.get(copy)
        if not here or not there:
            continue
        change, _ = config_change(copy, here.values(), there.values(), topic_rules(probe.flow))
        for name in sorted({*change.values, *change.removed}):
            values = f"{here[name].value} at {facts.alias(side)}, {there[name].value} at {facts.alias(side.other)}"
            yield warn(f"{name} of {topic} is {values}")
        parts, copies = probe.source.topics[topic].partitions, probe.target.topics[copy].partitions
        if len(parts) != len(copies):
            yield warn(
                f"{topic} has {len(parts)} partitions at {facts.alias(side)}, its copy {len(copies)}: producers that"
                " move put keys into other partitions",
                "let the mirror add the missing ones, or create the copy with as many",
            )


def _schemas(facts: Facts) -> Iterator[Found]:
    match facts.schemas:
        case None:
            yield ok("the mirror's file names no schema registries")
        case SchemaCheck() as checked if checked.differs:
            wrong = [part.target_topic for part in checked.parts if any(not each.resolves for each in part.ids)]
            yield fail(f"schema ids in {listed(sorted({*wrong, *checked.unread}))} have no equal schema at the target")
        case SchemaCheck():
            yield ok("schema ids of a sample lead to equal schemas at the target")
        case reason:
            yield unknown(f"the registries can't be asked: {reason}")


TOPIC_CHECKS = (
    Check(
        id="missing-topic",
        what="each topic of a set is there",
        remedy="correct its name in the file",
        look=blocked("missing-topic"),
    ),
    Check(
        id="leaderless",
        what="each partition has a leader",
        remedy="bring its brokers back",
        look=blocked("leaderless"),
    ),
    Check(
        id="lag",
        what="the copy lacks no more than the policy allows",
        remedy="wait, or raise policies.lag",
        look=blocked("lag"),
    ),
    Check(
        id="turn",
        what="both flows agree where each topic is live",
        remedy="see `sparkmirror migration status`, and `sparkmirror topics` for the published ends",
        look=blocked("unclear"),
    ),
    Check(
        id="topic-config-drift",
        what="topics have the same properties and partitions on both sides",
        remedy="let sync.topic.configs.enabled bring it over, or set it by hand",
        look=_drift,
    ),
    Check(
        id="message-size",
        what="each side takes batches as large as the other does",
        remedy="raise max.message.bytes there",
        look=_of_topics(CheckVerdict.WARN, "message-too-large"),
    ),
    Check(
        id="record-age",
        what="the target takes records as old as the source has",
        remedy="raise message.timestamp.before.max.ms there",
        look=_of_topics(CheckVerdict.FAIL, "too-old"),
    ),
    Check(
        id="copy-keeps-less",
        what="copies keep what the source keeps",
        remedy="set the source's retention at the copy, too",
        look=_of_topics(CheckVerdict.WARN, "copy-keeps-less"),
    ),
    Check(
        id="schema-ids",
        what="schema ids in records lead to equal schemas at the target",
        remedy="see `sparkmirror schemas check` (docs/schemas.md)",
        look=_schemas,
    ),
)
