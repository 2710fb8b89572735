"""The checks of a topic's or a group's name, in the order in which they decide.

By the file alone: `TopicRules.failed` and the group filter are asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.config import FlowConfig
from sparkmirror.mirror.sync.name_refusals import (
    LeftOut,
    NameAnswer,
    filtered,
    lasting_refusal,
    own_class,
    topic_refusals,
)
from sparkmirror.mirror.sync.topic_rules import NameCheck, TopicRules
from sparkmirror.policy import DefaultGroupFilter, GroupFilter, matching


def topic_answers(flow: FlowConfig, rules: TopicRules, topic: str) -> tuple[NameAnswer, ...]:
    """Return the answers in order, up to the first that leaves the topic out."""
    if not flow.copies:
        change = "enable the flow, or its MirrorSourceConnector"
        return (NameAnswer("filter", "the flow copies no records", LeftOut.NOTHING_COPIED, change),)
    refusals = topic_refusals(flow, rules, topic)
    policy = flow.replication_policy_class.rpartition(".")[2]
    passed = {
        NameCheck.FILTER: _wanted(flow, rules, topic),
        NameCheck.INTERNAL: NameAnswer("internal", "it is no internal topic"),
        NameCheck.CYCLE: NameAnswer("cycle", f"it did not come from {flow.target.alias}"),
        NameCheck.LEGAL: NameAnswer("policy", f"{policy} calls its copy {rules.remote_name(topic)}"),
    }
    if not refusals:
        return tuple(passed.values())
    decides = next(iter(refusals))
    refusal, lasting = refusals[decides], lasting_refusal(refusals)
    if lasting != refusal:  # the filter decides, but to change it would not help
        refusal = refusal._replace(change=f"nothing: {lasting.words}")
    before = list(NameCheck)[: list(NameCheck).index(decides)]
    return (*(passed[check] for check in before if check in passed), refusal)


def group_answer(flow: FlowConfig, chosen: GroupFilter, group: str) -> NameAnswer:
    """Return the group filter's answer."""
    settings = flow.group
    own = settings.group_filter_class if type(chosen) is not DefaultGroupFilter else ""
    if chosen.should_replicate_group(group):
        return _accepted("groups", settings.groups, group, own)
    return filtered("groups", settings.groups, settings.groups_exclude, group, own)


def _wanted(flow: FlowConfig, rules: TopicRules, topic: str) -> NameAnswer:
    if rules.has_all_heartbeats(topic) and not rules.accepts(topic):
        return NameAnswer("filter", "heartbeats go along whatever topics says")
    return _accepted("topics", flow.topics, topic, own_class(flow, rules))


def _accepted(key: str, included: Sequence[str], name: str, by_class: str) -> NameAnswer:
    by = f"{matching(included, name)} of {key} matches it, and nothing of {key}.exclude does"
    return NameAnswer("filter", f"{by_class} wants it" if by_class else by)
