"""Topics that flows send in a circle: names are followed from flow to flow, by the flows' own policies and filters.

A topic that comes back to its cluster for ever stops a run before anything is created. One that comes back once or
twice, until a policy or filter ends it, is copied more often than anybody wants, and no more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.policy.replication import HEARTBEATS, DefaultReplicationPolicy
from sparkmirror.policy.sample_names import names_like
from sparkmirror.sync.topic_rules import TopicRules, topic_rules

_MOST_STEPS = 300
"""Copies that are looked at for one name: meshes of many clusters have more than anybody waits for."""
_ENDLESS = 4
"""Of topics at one cluster, made of each other: filters end it sooner, if they do."""


@dataclass(frozen=True, slots=True)
class Echo:
    """Flows, by their names, that send a topic round."""

    flows: tuple[str, ...]
    words: str
    """How it goes round."""
    endless: bool
    """Whether it goes round for ever."""
    apart: tuple[str, ...] = ()
    """Aliases that the policy can't find in its own topics' names, as they hold the separator; empty: none do."""
    separator: str = ""
    """The one that those aliases hold."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """A topic at a cluster, and the flow that made it; none made the first."""

    cluster: str
    name: str
    flow: str = ""


_Way = tuple[_Copy, ...]


def echoes(flows: Sequence[FlowConfig]) -> list[Echo]:
    """One for each set of flows that do it, those that never end first."""
    rules = dict(_rules(flows))
    found: dict[frozenset[str], Echo] = {}
    for first in _firsts(flows):
        try:
            echo = _echo_of(first, rules)
        except SparkMirrorError:
            continue  # a policy of the user's own that can't tell
        if echo is not None:
            known = found.get(frozenset(echo.flows))
            if known is None or (echo.endless and not known.endless):
                found[frozenset(echo.flows)] = echo
    return sorted(found.values(), key=lambda echo: not echo.endless)


def _firsts(flows: Sequence[FlowConfig]) -> list[_Copy]:
    """Topics to follow: an ordinary one, heartbeats, and what the flows' patterns are meant for."""
    patterns = ((flow, pattern) for flow in flows for pattern in ("orders", *flow.topics, HEARTBEATS))
    return list(dict.fromkeys(_Copy(flow.source.alias, name) for flow, one in patterns for name in names_like(one)))


def _rules(flows: Sequence[FlowConfig]) -> Iterator[tuple[str, TopicRules]]:
    for flow in flows:
        if not flow.copies:
            continue
        try:
            yield flow.name, topic_rules(flow, flow.originals)
        except SparkMirrorError:
            continue  # its own check tells


def _echo_of(first: _Copy, rules: Mapping[str, TopicRules]) -> Echo | None:
    """What comes back to where it was, or to one cluster by ever new names; if nothing does, what comes back at all."""
    ways: deque[_Way] = deque([(first,)])
    back: _Way = ()
    for _ in range(_MOST_STEPS):
        if not ways:
            break
        way = ways.popleft()
        here = way[-1]
        if _before(way) is not None or sum(one.cluster == here.cluster for one in way) == _ENDLESS:
            return _echo(way, rules, endless=True)
        for flow, rule in rules.items():
            if rule.source_alias == here.cluster and rule.wanted(here.name):
                copy = _Copy(rule.target_alias, rule.remote_name(here.name), flow)
                comes_back = any(one.cluster == copy.cluster for one in way)
                back = back or ((*way, copy) if comes_back else ())
                (ways.appendleft if comes_back else ways.append)((*way, copy))
    return _echo(back, rules, endless=False) if back else None


def _before(way: _Way) -> int | None:
    """The index at which the last topic was on its way already."""
    last = way[-1]
    places = ((index, one) for index, one in enumerate(way[:-1]))
    return next((index for index, one in places if (one.cluster, one.name) == (last.cluster, last.name)), None)


def _echo(way: _Way, rules: Mapping[str, TopicRules], *, endless: bool) -> Echo:
    last = way[-1]
    start = _before(way)
    if start is not None:
        circle = way[start:]
        words = f"{last.name} goes {' -> '.join(one.cluster for one in circle)}"
    else:
        circle = way[next(index for index, one in enumerate(way) if one.cluster == last.cluster) :]
        names = list(dict.fromkeys(one.name for one in circle if one.cluster == last.cluster))
        if endless:
            words = f"at {last.cluster} {', '.join(names[:3])} and so on are copies of one topic"
        else:
            words = f"{names[0]} of {last.cluster} comes back to it as {names[-1]}"
    flows = tuple(dict.fromkeys(one.flow for one in circle[1:]))
    apart, separator = _not_told(flows, rules)
    return Echo(flows, words, endless, apart, separator)


def _not_told(flows: Sequence[str], rules: Mapping[str, TopicRules]) -> tuple[tuple[str, ...], str]:
    """Aliases that a policy doesn't find again in the names that it makes of them, and the separator in them."""
    aliases: list[str] = []
    separator = ""
    for rule in (rules[flow] for flow in flows):
        policy, alias = rule.policy, rule.source_alias
        if not isinstance(policy, DefaultReplicationPolicy) or not policy.separator or policy.separator not in alias:
            continue
        if policy.topic_source(rule.remote_name("orders")) != alias:  # one that keeps names knows it anyway
            aliases.append(alias)
            separator = policy.separator
    return tuple(dict.fromkeys(aliases)), separator
