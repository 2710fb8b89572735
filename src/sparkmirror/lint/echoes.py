"""Topics that flows send in a circle: names are followed from flow to flow, by the flows' own policies and filters."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.lint.sample_names import names_like
from sparkmirror.sync.topic_rules import TopicRules, topic_rules

_MOST_STEPS = 300
"""Copies that are looked at for one name: meshes of many clusters have more than anybody waits for."""
_ENDLESS = 4
"""Of topics at one cluster, made of each other: filters end it sooner, if they do."""


@dataclass(frozen=True, slots=True)
class Echo:
    """Flows, by their names, that send a topic round for ever."""

    flows: tuple[str, ...]
    words: str
    """How it goes round."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """A topic at a cluster, and the flow that made it; none made the first."""

    cluster: str
    name: str
    flow: str = ""


_Way = tuple[_Copy, ...]


def echoes(flows: Sequence[FlowConfig]) -> list[Echo]:
    """One for each set of flows that do it."""
    rules = dict(_rules(flows))
    found: dict[frozenset[str], Echo] = {}
    for first in _firsts(flows):
        try:
            way = _endless(first, rules)
        except SparkMirrorError:
            continue  # a policy of the user's own that can't tell
        if way:
            echo = _echo(way)
            found.setdefault(frozenset(echo.flows), echo)
    return list(found.values())


def _firsts(flows: Sequence[FlowConfig]) -> list[_Copy]:
    """Topics to follow: an ordinary one, and what the flows' patterns are meant for."""
    patterns = ((flow, pattern) for flow in flows for pattern in ("orders", *flow.topics))
    return list(dict.fromkeys(_Copy(flow.source.alias, name) for flow, one in patterns for name in names_like(one)))


def _rules(flows: Sequence[FlowConfig]) -> Iterator[tuple[str, TopicRules]]:
    for flow in flows:
        try:
            yield flow.name, topic_rules(flow, flow.originals)
        except SparkMirrorError:
            continue  # another rule tells


def _endless(first: _Copy, rules: Mapping[str, TopicRules]) -> _Way:
    """A way that comes back to where it was, or to one cluster by ever new names; nothing if none does."""
    ways: deque[_Way] = deque([(first,)])
    for _ in range(_MOST_STEPS):
        if not ways:
            break
        way = ways.popleft()
        here = way[-1]
        if _before(way) is not None or sum(one.cluster == here.cluster for one in way) == _ENDLESS:
            return way
        for flow, rule in rules.items():
            if rule.source_alias == here.cluster and rule.wanted(here.name):
                copy = _Copy(rule.target_alias, rule.remote_name(here.name), flow)
                comes_back = any(one.cluster == copy.cluster for one in way)
                (ways.appendleft if comes_back else ways.append)((*way, copy))
    return ()


def _before(way: _Way) -> int | None:
    """Where on its way the last topic was already."""
    last = way[-1]
    places = ((index, one) for index, one in enumerate(way[:-1]))
    return next((index for index, one in places if (one.cluster, one.name) == (last.cluster, last.name)), None)


def _echo(way: _Way) -> Echo:
    last = way[-1]
    start = _before(way)
    if start is not None:
        circle = way[start:]
        words = f"{last.name} goes {' -> '.join(one.cluster for one in circle)}"
    else:
        circle = way[next(index for index, one in enumerate(way) if one.cluster == last.cluster) :]
        names = dict.fromkeys(one.name for one in circle if one.cluster == last.cluster)
        words = f"at {last.cluster} {', '.join(list(names)[:3])} and so on are copies of one topic"
    return Echo(tuple(dict.fromkeys(one.flow for one in circle[1:])), words)
