"""Topics that `topics` lists but a flow never copies, each with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.policy import DefaultTopicFilter, compile_java, is_cycle
from sparkmirror.policy.sample_names import named, names_like
from sparkmirror.sync.topic_rules import TopicRules, topic_rules
from sparkmirror.sync.topics import illegal

_INTERNAL = re.compile(r"\^?(?:(?:__|\\\.|\[\.\])[^|]*|mm2[^|]*internal\$?|[^|]*checkpoints[^|]*internal\$?)")
"""Pattern that may be meant for internal topics only; sample names decide."""


@dataclass(frozen=True, slots=True)
class NeverCopied:
    """One topic or expression listed in vain."""

    topic: str
    """Name of the topic, or the expression."""
    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Listed:
    """Result of checking a flow's `topics`."""

    never: tuple[NeverCopied, ...] = ()
    nothing: bool = False
    """True if every listed topic is listed in vain."""


def listed_topics(flow: FlowConfig) -> Listed:
    """Return the topics that a flow lists in vain.

    Empty for a custom topic filter, which may read `topics` in any way.
    """
    try:
        rules = topic_rules(flow)
    except SparkMirrorError:
        return Listed()  # another check reports this error
    if not flow.copies or type(rules.topics) is not DefaultTopicFilter:
        return Listed()
    never = list(_never(flow, rules))
    listed = [name for pattern in flow.topics for name in (named(pattern) or [pattern])]
    return Listed(tuple(never), bool(listed) and {entry.topic for entry in never} >= set(listed))


def _never(flow: FlowConfig, rules: TopicRules) -> Iterator[NeverCopied]:
    for pattern in dict.fromkeys(flow.topics):
        names = named(pattern)
        if names is None:
            if _INTERNAL.fullmatch(pattern) and all(map(rules.policy.is_internal_topic, names_like(pattern))):
                why = "it matches internal topics only, which are never copied"
                yield NeverCopied(pattern, why, _take_out(pattern))
            continue
        for name in names:
            try:
                never = _why(flow, rules, name)
            except SparkMirrorError:
                continue  # a custom policy that can't tell
            if never is not None:
                yield never


def _why(flow: FlowConfig, rules: TopicRules, name: str) -> NeverCopied | None:
    policy = rules.policy
    if policy.is_internal_topic(name):
        if policy.is_mm2_internal_topic(name):
            why = "it is called as MirrorMaker 2's own topics are, which are never copied"
        else:
            why = "names that begin with __ or a dot are of internal topics, which are never copied"
        return NeverCopied(name, why, _take_out(name))
    if is_cycle(policy, name, flow.target.alias):
        why = f"by its name it is a copy that came from {flow.target.alias}, and copies don't go back"
        return NeverCopied(name, why, _take_out(name))
    if not rules.wanted(name):
        by = next((pattern for pattern in flow.topics_exclude if _matches(pattern, name)), "")
        if by:
            why = f"topics.exclude has {by}, which matches it"
            return NeverCopied(name, why, f"take {by} out of topics.exclude, or {name} out of topics")
        return NeverCopied(name, "its copy would be the target's own topic of heartbeats", _take_out(name))
    why = illegal(rules.remote_name(name))
    return NeverCopied(name, why, _take_out(name)) if why else None


def _take_out(name: str) -> str:
    return f"take {name} out of topics"


def _matches(pattern: str, name: str) -> bool:
    try:
        return compile_java(pattern).fullmatch(name) is not None
    except ValueError:
        return False  # half of an expression that contains a comma
