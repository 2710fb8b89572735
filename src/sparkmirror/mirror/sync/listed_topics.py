"""Topics that `topics` lists but a flow never copies, each with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.mirror.sync.name_refusals import LeftOut, lasting_refusal, topic_refusals
from sparkmirror.mirror.sync.topic_rules import TopicRules, topic_rules
from sparkmirror.policy import DefaultTopicFilter
from sparkmirror.policy.sample_names import named, names_like

_INTERNAL = re.compile(r"\^?(?:(?:__|\\\.|\[\.\])[^|]*|mm2[^|]*internal\$?|[^|]*checkpoints[^|]*internal\$?)")
"""Pattern that may be meant for internal topics only; sample names decide."""


@dataclass(frozen=True, slots=True)
class NeverCopied:
    """One topic or expression listed in vain."""

    topic: str
    """The topic's name, or the expression."""
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
    refusals = topic_refusals(flow, rules, name)
    if not refusals:
        return None
    refusal = lasting_refusal(refusals)
    change = f"{refusal.change}, or {name} out of topics" if refusal.left_out is LeftOut.EXCLUDED else _take_out(name)
    return NeverCopied(name, refusal.words, change)


def _take_out(name: str) -> str:
    return f"take {name} out of topics"
