"""Rules about a schema registry's topic, `_schemas`.

The rules apply to files that name the topic, and to clusters that have the topic.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.lint.findings import LintRule, LintSeverity, Spot, at
from sparkmirror.lint.probe import FlowProbe
from sparkmirror.lint.subject import Subject
from sparkmirror.mirror.sync.topic_rules import TopicRules, topic_rules
from sparkmirror.policy import DefaultTopicFilter
from sparkmirror.policy.sample_names import named

SCHEMAS_TOPIC = "_schemas"
"""Default topic of a registry's whole state.

Confluent's, Karapace's and Redpanda's registries use this name.
"""


def schemas_renamed(subject: Subject) -> Iterator[Spot]:
    for flow, rules in _naming_it(subject):
        if rules.wanted(SCHEMAS_TOPIC) and rules.remote_name(SCHEMAS_TOPIC) != SCHEMAS_TOPIC:
            yield _at(subject, flow, "topics", f"{SCHEMAS_TOPIC} becomes {rules.remote_name(SCHEMAS_TOPIC)}")


def schemas_copied(subject: Subject) -> Iterator[Spot]:
    for flow, rules in _naming_it(subject):
        if rules.wanted(SCHEMAS_TOPIC) and rules.remote_name(SCHEMAS_TOPIC) == SCHEMAS_TOPIC:
            yield _at(subject, flow, "topics", SCHEMAS_TOPIC)


def schemas_left_out(subject: Subject) -> Iterator[Spot]:
    """Yield flows in which a user's pattern excludes the topic.

    Rule `never-copied` covers flows whose `topics` lists the topic by name.
    """
    for flow, rules in _flows(subject):
        excluded = type(rules.topics) is DefaultTopicFilter and not rules.wanted(SCHEMAS_TOPIC)
        listed = excluded and DefaultTopicFilter(flow.topics).should_replicate_topic(SCHEMAS_TOPIC)
        if listed and not _names_it(flow):
            yield _at(subject, flow, "topics.exclude", f"{SCHEMAS_TOPIC} of {flow.source.alias}")


def registry_renamed(probe: FlowProbe) -> Iterator[Spot]:
    if (remote := probe.names.get(SCHEMAS_TOPIC, SCHEMAS_TOPIC)) != SCHEMAS_TOPIC:
        yield _of(probe, f"{SCHEMAS_TOPIC} becomes {remote}")


def registry_copied(probe: FlowProbe) -> Iterator[Spot]:
    if probe.names.get(SCHEMAS_TOPIC) == SCHEMAS_TOPIC:
        yield _of(probe, SCHEMAS_TOPIC)


def registry_left_out(probe: FlowProbe) -> Iterator[Spot]:
    if SCHEMAS_TOPIC in probe.source.topics and SCHEMAS_TOPIC not in probe.names:
        yield _of(probe, SCHEMAS_TOPIC)


def _naming_it(subject: Subject) -> Iterator[tuple[FlowConfig, TopicRules]]:
    """Return flows whose `topics` lists the topic by name.

    Most flows have `.*`, and most of their clusters have no registry.
    """
    return ((flow, rules) for flow, rules in _flows(subject) if _names_it(flow))


def _names_it(flow: FlowConfig) -> bool:
    return any(SCHEMAS_TOPIC in (named(pattern) or ()) for pattern in flow.topics)


def _flows(subject: Subject) -> Iterator[tuple[FlowConfig, TopicRules]]:
    for flow in subject.flows:
        try:
            rules = topic_rules(flow)
            rules.wanted(SCHEMAS_TOPIC)
            rules.remote_name(SCHEMAS_TOPIC)
        except SparkMirrorError:
            continue  # rule `wrong-pattern` reports the error
        if flow.copies:
            yield flow, rules


def _at(subject: Subject, flow: FlowConfig, key: str, detail: str) -> Spot:
    return at(subject.stated(key, flow) or subject.flow_spot(flow), detail)


def _of(probe: FlowProbe, detail: str) -> Spot:
    return Spot(path=f"flow {probe.flow.name}", line=0, key="topics", detail=detail)


_RENAMED = {
    "what": "a schema registry's topic gets another name",
    "effect": "a registry at the target looks for _schemas, and schema ids in copied records lead nowhere there",
    "fix": (
        "copy it in a flow with IdentityReplicationPolicy, or write its new name as kafkastore.topic of a registry that"
        " only reads, or take _schemas out and export schemas (docs/schemas.md)"
    ),
}
_COPIED = {
    "what": "a schema registry's topic is copied under its own name",
    "effect": (
        "a registry that reads the copy has the source's ids; one that registers schemas there as well gives them twice"
    ),
    "fix": (
        "let it read only as long as the flow runs, by leader.eligibility = false (docs/schemas.md); or take _schemas"
        " out"
    ),
}
_LEFT_OUT = {
    "what": "a schema registry's topic is left out",
    "effect": (
        "this is right if one registry serves both clusters, or schemas are exported; a registry that is to read the"
        " copy has nothing to read"
    ),
    "fix": (
        "leave it, or take the pattern that matches _schemas out of topics.exclude; sparkmirror schemas check tells"
        " whether ids hold"
    ),
}

SCHEMA_FILE_RULES: tuple[LintRule[Subject], ...] = (
    LintRule(name="schemas-renamed", severity=LintSeverity.WARNING, look=schemas_renamed, **_RENAMED),
    LintRule(name="schemas-copied", severity=LintSeverity.INFO, look=schemas_copied, **_COPIED),
    LintRule(name="schemas-left-out", severity=LintSeverity.INFO, look=schemas_left_out, **_LEFT_OUT),
)
SCHEMA_CLUSTER_RULES: tuple[LintRule[FlowProbe], ...] = (
    LintRule(name="registry-renamed", severity=LintSeverity.WARNING, look=registry_renamed, **_RENAMED),
    LintRule(name="registry-copied", severity=LintSeverity.INFO, look=registry_copied, **_COPIED),
    LintRule(name="registry-left-out", severity=LintSeverity.INFO, look=registry_left_out, **_LEFT_OUT),
)
