"""Topics that flows send in a circle, found by following names from flow to flow.

The flows' own policies and filters decide. A topic that comes back to its cluster for ever stops a run before anything
is created. A topic that comes back once or twice, until a policy or filter ends the circle, is copied more often than
wanted, and no more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.mirror.sync.topic_rules import TopicRules, topic_rules
from sparkmirror.policy.replication import HEARTBEATS, DefaultReplicationPolicy
from sparkmirror.policy.sample_names import names_like

_MOST_STEPS = 300
"""Most copies to follow for one name; large meshes have too many to wait for."""
_ENDLESS = 4
"""Number of topics at one cluster, each a copy of the last, in an endless chain.

A filter that ends such chains ends them earlier.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo:
    """Flows that send a topic in a circle, by their names."""

    flows: tuple[str, ...]
    words: str
    """The circle in words."""
    endless: bool
    """True if the topic circulates for ever."""
    apart: tuple[str, ...] = ()
    """Aliases that the policy can't find in topic names; empty if there are none.

    The names can't be split because these aliases hold the separator.
    """
    separator: str = ""
    """Separator that the aliases in `apart` hold."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """A topic at a cluster, and the flow that copied it; empty for the first topic."""

    cluster: str
    name: str
    flow: str = ""


_Way = tuple[_Copy, ...]


def echoes(flows: Sequence[FlowConfig]) -> list[Echo]:
    """Return one echo for each set of flows with a circle, endless circles first."""
    rules = dict(_rules(flows))
    opposites = turn_pairs(flows)
    by_flows: dict[frozenset[str], Echo] = {}
    for first in _firsts(flows):
        try:
            echo = _echo_of(first, rules, opposites)
        except SparkMirrorError:
            continue  # a custom policy that can't tell
        if echo is not None:
            known = by_flows.get(frozenset(echo.flows))
            if known is None or (echo.endless and not known.endless):
                by_flows[frozenset(echo.flows)] = echo
    return sorted(by_flows.values(), key=lambda echo: not echo.endless)


def _firsts(flows: Sequence[FlowConfig]) -> list[_Copy]:
    """Return the topics to follow: an ordinary one, heartbeats, and pattern samples."""
    patterns = ((flow, pattern) for flow in flows for pattern in ("orders", *flow.topics, HEARTBEATS))
    return list(
        dict.fromkeys(_Copy(flow.source.alias, name) for flow, pattern in patterns for name in names_like(pattern))
    )


def _rules(flows: Sequence[FlowConfig]) -> Iterator[tuple[str, TopicRules]]:
    for flow in flows:
        if not flow.copies:
            continue
        try:
            yield flow.name, topic_rules(flow)
        except SparkMirrorError:
            continue  # another check reports this error


def turn_pairs(flows: Sequence[FlowConfig]) -> dict[str, str]:
    """Map each flow of a migration there and back to its opposite flow.

    One is `first` and the other `second`: each topic is live in one direction only (M1), so no copy goes back.
    """
    turns = {(flow.source.alias, flow.target.alias): flow for flow in flows if flow.turn}
    return {
        flow.name: turns[target, source].name
        for (source, target), flow in turns.items()
        if (target, source) in turns and turns[target, source].turn != flow.turn
    }


def _echo_of(first: _Copy, rules: Mapping[str, TopicRules], opposites: Mapping[str, str]) -> Echo | None:
    """Follow a topic; return its endless circle, else its first return to a cluster.

    A circle is endless if a topic comes back under a name it had, or to one cluster under ever new names. From a copy
    no way leads back by the opposite flow of a migration.
    """
    ways: deque[_Way] = deque([(first,)])
    back: _Way = ()
    for _ in range(_MOST_STEPS):
        if not ways:
            break
        way = ways.popleft()
        here = way[-1]
        if _before(way) is not None or sum(step.cluster == here.cluster for step in way) == _ENDLESS:
            return _echo(way, rules, endless=True)
        for flow, rule in rules.items():
            goes_back = here.flow != "" and opposites.get(here.flow) == flow
            if rule.source_alias == here.cluster and not goes_back and rule.wanted(here.name):
                copy = _Copy(rule.target_alias, rule.remote_name(here.name), flow)
                comes_back = any(step.cluster == copy.cluster for step in way)
                back = back or ((*way, copy) if comes_back else ())
                (ways.appendleft if comes_back else ways.append)((*way, copy))
    return _echo(back, rules, endless=False) if back else None


def _before(way: _Way) -> int | None:
    """Return the index of the earlier copy with the last one's cluster and name."""
    last = way[-1]
    places = ((index, step) for index, step in enumerate(way[:-1]))
    return next((index for index, step in places if (step.cluster, step.name) == (last.cluster, last.name)), None)


def _echo(way: _Way, rules: Mapping[str, TopicRules], *, endless: bool) -> Echo:
    last = way[-1]
    start = _before(way)
    if start is not None:
        circle = way[start:]
        words = f"{last.name} goes {' -> '.join(step.cluster for step in circle)}"
    else:
        circle = way[next(index for index, step in enumerate(way) if step.cluster == last.cluster) :]
        names = list(dict.fromkeys(step.name for step in circle if step.cluster == last.cluster))
        if endless:
            words = f"at {last.cluster} {', '.join(names[:3])} and so on are copies of one topic"
        else:
            words = f"{names[0]} of {last.cluster} comes back to it as {names[-1]}"
    flows = tuple(dict.fromkeys(step.flow for step in circle[1:]))
    apart, separator = _not_told(flows, rules)
    return Echo(flows=flows, words=words, endless=endless, apart=apart, separator=separator)


def _not_told(flows: Sequence[str], rules: Mapping[str, TopicRules]) -> tuple[tuple[str, ...], str]:
    """Return aliases that a policy can't read from its topics, and the separator."""
    aliases: list[str] = []
    separator = ""
    for rule in (rules[flow] for flow in flows):
        policy, alias = rule.policy, rule.source_alias
        if not isinstance(policy, DefaultReplicationPolicy) or not policy.separator or policy.separator not in alias:
            continue
        if policy.topic_source(rule.remote_name("orders")) != alias:  # name-keeping policies still know the source
            aliases.append(alias)
            separator = policy.separator
    return tuple(dict.fromkeys(aliases)), separator
