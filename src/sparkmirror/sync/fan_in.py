"""Topics of two flows that would get one name at their common target: told from the flows' own names and policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.policy.sample_names import named, names_like
from sparkmirror.sync.topic_rules import TopicRules, topic_rules


@dataclass(frozen=True, slots=True)
class FanIn:
    """Two flows, by their names, with the same name at the target for what each of them copies."""

    flows: tuple[str, str]
    topics: tuple[str, ...]
    """The names at the target, or some that there could be."""
    certain: bool
    """Whether both flows list the topics; else patterns match, and the clusters tell whether there are any."""
    renamed: bool
    """Whether the policies put aliases before names: then the aliases with their separator are to blame."""


def fan_ins(flows: Sequence[FlowConfig]) -> list[FanIn]:
    """One for each pair of flows into one target; those that are certain first."""
    rules = {flow.name: rule for flow in flows if flow.copies and (rule := _rules(flow)) is not None}
    found = []
    for one, other in combinations((flow for flow in flows if flow.name in rules), 2):
        if one.target.alias != other.target.alias:
            continue
        fan_in = _between(one, other, rules)
        if fan_in is not None:
            found.append(fan_in)
    return sorted(found, key=lambda one: not one.certain)


def _rules(flow: FlowConfig) -> TopicRules | None:
    try:
        return topic_rules(flow, flow.originals)
    except SparkMirrorError:
        return None  # its own check tells


def _between(one: FlowConfig, other: FlowConfig, rules: Mapping[str, TopicRules]) -> FanIn | None:
    first, second = rules[one.name], rules[other.name]
    try:
        listed = _copies(first, _listed(one)), _copies(second, _listed(other))
        both = listed[0].keys() & listed[1].keys()
        if both:
            renamed = any(name not in (listed[0][name], listed[1][name]) for name in both)
            return FanIn((one.name, other.name), tuple(sorted(both)), True, renamed)
        tried = list(dict.fromkeys([*_meant(one), *_meant(other)]))
        # What one flow's topic is called could be what the other's would be, without its alias.
        tried += [f"{alias}{name}" for alias in _tails(one, other) for name in tried]
        could = _copies(first, tried), _copies(second, tried)
        some = sorted(could[0].keys() & could[1].keys())
    except SparkMirrorError:
        return None  # a policy of the user's own that can't tell
    if not some:
        return None
    renamed = any(name not in (could[0][name], could[1][name]) for name in some)
    return FanIn((one.name, other.name), tuple(some[:1]), False, renamed)


def _copies(rules: TopicRules, names: Iterable[str]) -> dict[str, str]:
    """Those that the flow copies, by their names at the target."""
    return {rules.remote_name(name): name for name in names if rules.wanted(name)}


def _listed(flow: FlowConfig) -> list[str]:
    return [name for pattern in flow.topics for name in named(pattern) or ()]


def _meant(flow: FlowConfig) -> list[str]:
    return ["orders", *(name for pattern in flow.topics for name in names_like(pattern))]


def _tails(one: FlowConfig, other: FlowConfig) -> list[str]:
    """What the longer of two aliases has behind the shorter and a separator, with a separator behind it."""
    tails = []
    for flow, longer in ((one, other), (other, one)):
        separator = flow.replication_policy_separator
        start = f"{flow.source.alias}{separator}"
        if separator and longer.source.alias.startswith(start):
            tails.append(longer.source.alias.removeprefix(start) + separator)
    return tails
