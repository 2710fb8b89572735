"""Checks on topics: there, led, copied, with equal properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from sparkmirror.migrate import phase
from sparkmirror.migrate.actions import listed
from sparkmirror.migrate.checks.facts import Facts
from sparkmirror.migrate.checks.of_flows import findings
from sparkmirror.migrate.checks.precondition import Check, CheckFind, CheckVerdict, blocked, fail, ok, unknown, warn
from sparkmirror.migrate.file import MigrationType
from sparkmirror.migrate.ties import AtomicSet, beyond, touches
from sparkmirror.mirror.sync.topic_properties import config_change
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.schemas import SchemaCheck


def _of_topics(verdict: CheckVerdict, *rules: str) -> Callable[[Facts], Iterator[CheckFind]]:
    """Return a look for lint's findings on the sets' topics, in both flows."""

    def look(facts: Facts) -> Iterator[CheckFind]:
        chosen = {topic for moving in facts.sets for topic in moving.topics}
        for probe in facts.probes.values():
            for finding in findings(probe, *rules):
                if finding.key in chosen:
                    yield CheckFind(verdict, f"{probe.flow.name}: {finding.key}: {finding.what}", finding.fix)

    return look


def _drift(facts: Facts) -> Iterator[CheckFind]:
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


def _ties(facts: Facts) -> Iterator[CheckFind]:
    known = []
    for moving in facts.sets:
        topics, groups = frozenset(moving.topics), frozenset(moving.groups)
        side = facts.leaving(moving)
        ties = facts.ties.get(side)
        if ties is None:
            continue
        copies = {phase.word(facts.seen, side.other, topic).copy for topic in topics} - topics
        sets = [replace(tie, topics=tie.topics - copies) for tie in ties.sets]
        for tie in beyond(sets, topics, groups):
            outside = sorted((tie.topics - topics) | (tie.groups - groups))
            yield fail(
                f"{_who(tie)} ties {moving.name} to {listed(outside)}", f"put {listed(outside)} into set {moving.name}"
            )
        inside = [tie for tie in sets if touches(tie, topics, groups)]
        for tie in inside:
            if tie.streams and facts.file.type is not MigrationType.ALL_AT_ONCE:
                yield warn(
                    f"{listed(sorted(tie.streams))} is a Streams application, which moves all at once only",
                    "stop it, and run `sparkmirror migration switch all` for its set",
                )
        if not inside and ties.unknown:
            yield unknown(
                f"{moving.name}: {ties.unknown[0]}", "grant READ there, or look at your applications yourself"
            )
        known += inside
    seen = f"{len(known)} ties of transactions or Streams were seen, each within one set"
    yield ok(seen if known else "no transaction or Streams application was seen to tie topics")


def _who(tie: AtomicSet) -> str:
    if tie.streams:
        return f"Streams application {listed(sorted(tie.streams))}"
    return f"transactional id {listed(sorted(tie.transactional_ids))}" if tie.transactional_ids else "a transaction"


def _schemas(facts: Facts) -> Iterator[CheckFind]:
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
        id="transactional-sets",
        what="no transaction or Streams application was seen to tie topics or groups of different sets",
        remedy="put all that it ties into one set",
        look=_ties,
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
