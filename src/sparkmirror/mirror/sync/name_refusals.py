"""Refusals of a topic's or a group's name, one line each.

`TopicRules.failed` and the filters decide. `explain`, lint and the checks at the start print these words.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.mirror.sync.topic_rules import NameCheck, TopicRules, illegal
from sparkmirror.policy import DefaultTopicFilter, matching

_LASTING = (NameCheck.INTERNAL, NameCheck.CYCLE, NameCheck.OWN_HEARTBEATS)
"""Checks that a name fails whatever the filter says."""


class LeftOut(StrEnum):
    """Reasons to leave a topic or a group out by its name, in the order of the checks."""

    NOTHING_COPIED = "the flow copies nothing"
    NOT_LISTED = "no expression matches it"
    EXCLUDED = "it is excluded"
    OWN_FILTER = "a filter of the user's own does not want it"
    INTERNAL_OF_MM2 = "it is one of MirrorMaker 2's own"
    INTERNAL = "it is internal"
    CYCLE = "it came from the target"
    OWN_HEARTBEATS = "its copy would be the target's own topic of heartbeats"
    ILLEGAL_NAME = "its copy's name would not be legal"


class NameAnswer(NamedTuple):
    """A check's answer to a name."""

    check: str
    words: str
    left_out: LeftOut | None = None
    """Reason to leave it out; `None` if the check passed."""
    change: str = ""
    """Action for another answer; empty without an action."""


def topic_refusals(flow: FlowConfig, rules: TopicRules, topic: str) -> dict[NameCheck, NameAnswer]:
    """Return the answers of all checks that a topic fails; the first decides."""
    return {check: _refusal(flow, rules, topic, check) for check in rules.failed(topic)}


def lasting_refusal(refusals: dict[NameCheck, NameAnswer]) -> NameAnswer:
    """Return the first refusal that another filter would not change, else the first."""
    return next((refusals[check] for check in _LASTING if check in refusals), next(iter(refusals.values())))


def own_class(flow: FlowConfig, rules: TopicRules) -> str:
    return flow.topic_filter_class if type(rules.topics) is not DefaultTopicFilter else ""


def filtered(key: str, included: Sequence[str], excluded: Sequence[str], name: str, by_class: str) -> NameAnswer:
    if by_class:
        change = f"change {by_class}, which {key[:-1]}.filter.class names"
        return NameAnswer("filter", f"{by_class} does not want it", LeftOut.OWN_FILTER, change)
    if not (by := matching(included, name)):
        return NameAnswer("filter", f"no expression of {key} matches it", LeftOut.NOT_LISTED, f"add it to {key}")
    out = matching(excluded, name)
    words = f"{by} of {key} matches it, and so does {out} of {key}.exclude"
    return NameAnswer("filter", words, LeftOut.EXCLUDED, f"take {out} out of {key}.exclude")


def _refusal(flow: FlowConfig, rules: TopicRules, topic: str, check: NameCheck) -> NameAnswer:
    target, remote = flow.target.alias, rules.remote_name(topic)
    match check:
        case NameCheck.FILTER:
            return filtered("topics", flow.topics, flow.topics_exclude, topic, own_class(flow, rules))
        case NameCheck.INTERNAL if rules.policy.is_mm2_internal_topic(topic):
            words = "its name is reserved for MirrorMaker 2's own topics, which are never copied"
            return NameAnswer("internal", words, LeftOut.INTERNAL_OF_MM2, "give the topic another name")
        case NameCheck.INTERNAL:
            words = f"{flow.replication_policy_class.rpartition('.')[2]} takes it for internal, and internal topics"
            return NameAnswer("internal", f"{words} are never copied", LeftOut.INTERNAL, "give the topic another name")
        case NameCheck.CYCLE:
            words = f"by its name it is a copy that came from {target}, and copies don't go back"
            change = "nothing, if it is a copy; else give the topic a name that does not begin with an alias"
            return NameAnswer("cycle", words, LeftOut.CYCLE, change)
        case NameCheck.OWN_HEARTBEATS:
            words = f"its copy would be {remote}, where {target}'s own heartbeats go"
            change = "nothing: heartbeats of both would mix; a policy that renames copies takes it along"
            return NameAnswer("cycle", words, LeftOut.OWN_HEARTBEATS, change)
        case NameCheck.LEGAL:
            change = "give the topic or the source's alias a shorter or legal name"
            change += ", or take another replication.policy.class"
            return NameAnswer("policy", illegal(remote), LeftOut.ILLEGAL_NAME, change)
