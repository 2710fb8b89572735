"""Properties that a cluster's brokers don't know, and topics that are created without them.

Brokers refuse a topic as a whole for one of them, with the same code as for a value that they don't take. Which names
they know is what they list of any topic of theirs; where none may be read, their words name one unknown at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice

from sparkmirror.cluster.admin import INVALID_CONFIG, ClusterAdmin, NewTopicSpec

_TOPICS_ASKED = 20
"""To find one whose properties may be read."""
_MOST_NAMED = 3
_UNKNOWN = re.compile(r"Unknown topic config name: (\S+?)\.?$")
"""The words of Kafka's `LogConfig.validateNames`."""

_Answers = dict[str, tuple[int, str]]


def create_as_known(
    specs: Iterable[NewTopicSpec],
    create: Callable[[list[NewTopicSpec]], _Answers],
    known: Callable[[], frozenset[str]],
) -> tuple[_Answers, dict[str, tuple[str, ...]]]:
    """Create topics, and those that are refused for their properties again without the ones that nobody knows there.

    Returns the last code and words for each topic, and what the created ones lack. `create` says Kafka's code and words
    by name, `known` the names of all properties that the brokers have, or nothing if they can't be read.
    """
    answers: _Answers = {}
    missing: dict[str, set[str]] = {}
    names: frozenset[str] | None = None
    due = list(specs)
    while due:
        answers |= create(due)
        refused = [spec for spec in due if answers.get(spec.name, (0, ""))[0] == INVALID_CONFIG]
        if refused and names is None:
            names = known()
        due = []
        for spec in refused:
            unknown = _unknown(spec, answers[spec.name][1], names or frozenset())
            if unknown:
                missing.setdefault(spec.name, set()).update(unknown)
                configs = {name: value for name, value in spec.configs.items() if name not in unknown}
                due.append(replace(spec, configs=configs))
    created = {name: tuple(sorted(lacks)) for name, lacks in missing.items() if answers[name][0] == 0}
    return answers, created


def known_properties(admin: ClusterAdmin, topics: Iterable[str]) -> frozenset[str]:
    """The names of all properties that topics of this cluster have; none if the first of `topics` can't be read."""
    described = admin.topic_configs(islice(topics, _TOPICS_ASKED))
    return frozenset(entry.name for entries in described.values() for entry in entries)


def by_property(unknown: Mapping[str, Iterable[str]]) -> str:
    """Topics' properties as a few words: each property once, with some of the topics that lack it."""
    return ", ".join(f"{name} ({_some(topics)})" for name, topics in lacking(unknown).items())


def lacking(unknown: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """The topics that lack a property, by property."""
    topics: dict[str, list[str]] = {}
    for topic, names in sorted(unknown.items()):
        for name in names:
            topics.setdefault(name, []).append(topic)
    return dict(sorted(topics.items()))


def _unknown(spec: NewTopicSpec, words: str, known: frozenset[str]) -> set[str]:
    """Those of its properties that the brokers don't know: not that whose value they refuse, listed or not."""
    told = _UNKNOWN.search(words)
    named = {told[1]} & spec.configs.keys() if told else set()
    unlisted = spec.configs.keys() - known if known else set()
    return named | {name for name in unlisted if f" for configuration {name}:" not in words}


def _some(topics: list[str]) -> str:
    more = len(topics) - _MOST_NAMED
    return ", ".join(topics[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
