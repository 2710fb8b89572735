"""Topics of two flows with the same name at a common target.

Only the flows' own topic names and policies are asked, no cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.mirror.sync.topic_rules import TopicRules, topic_rules
from sparkmirror.policy.sample_names import named, names_like


@dataclass(frozen=True, slots=True)
class FanIn:
    """Two flows, by their names, that would copy into topics with the same name."""

    flows: tuple[str, str]
    topics: tuple[str, ...]
    """Names at the target, or a possible name as an example."""
    certain: bool
    """True if both flows list the topics by name.

    False if only patterns match: then the clusters tell whether such topics exist.
    """
    renamed: bool
    """True if the policies put aliases before names: aliases with a separator clash."""


def fan_ins(flows: Sequence[FlowConfig]) -> list[FanIn]:
    """Return an entry for each pair of flows into one target, certain entries first."""
    rules = {flow.name: rule for flow in flows if flow.copies and (rule := _rules(flow)) is not None}
    clashes = []
    for left, right in combinations((flow for flow in flows if flow.name in rules), 2):
        if left.target.alias != right.target.alias:
            continue
        fan_in = _between(left, right, rules)
        if fan_in is not None:
            clashes.append(fan_in)
    return sorted(clashes, key=lambda candidate: not candidate.certain)


def _rules(flow: FlowConfig) -> TopicRules | None:
    try:
        return topic_rules(flow)
    except SparkMirrorError:
        return None  # another check reports this error


def _between(left: FlowConfig, right: FlowConfig, rules: Mapping[str, TopicRules]) -> FanIn | None:
    first, second = rules[left.name], rules[right.name]
    try:
        listed = _copies(first, _listed(left)), _copies(second, _listed(right))
        common = listed[0].keys() & listed[1].keys()
        if common:
            renamed = any(name not in (listed[0][name], listed[1][name]) for name in common)
            return FanIn((left.name, right.name), tuple(sorted(common)), True, renamed)
        tried = list(dict.fromkeys([*_meant(left), *_meant(right)]))
        # A topic name of one flow can be a copy's name of the other flow, without the alias.
        tried += [f"{alias}{name}" for alias in _tails(left, right) for name in tried]
        could = _copies(first, tried), _copies(second, tried)
        shared = sorted(could[0].keys() & could[1].keys())
    except SparkMirrorError:
        return None  # a custom policy that can't tell
    if not shared:
        return None
    renamed = any(name not in (could[0][name], could[1][name]) for name in shared)
    return FanIn((left.name, right.name), tuple(shared[:1]), False, renamed)


def _copies(rules: TopicRules, names: Iterable[str]) -> dict[str, str]:
    """Map the names at the target to the source topics that the flow copies."""
    return {rules.remote_name(name): name for name in names if rules.wanted(name)}


def _listed(flow: FlowConfig) -> list[str]:
    return [name for pattern in flow.topics for name in named(pattern) or ()]


def _meant(flow: FlowConfig) -> list[str]:
    return ["orders", *(name for pattern in flow.topics for name in names_like(pattern))]


def _tails(left: FlowConfig, right: FlowConfig) -> list[str]:
    """Return the longer alias without the shorter and a separator, plus a separator.

    `us.east` and `us` give `east.`.
    """
    tails = []
    for flow, longer in ((left, right), (right, left)):
        separator = flow.replication_policy_separator
        start = f"{flow.source.alias}{separator}"
        if separator and longer.source.alias.startswith(start):
            tails.append(longer.source.alias.removeprefix(start) + separator)
    return tails
