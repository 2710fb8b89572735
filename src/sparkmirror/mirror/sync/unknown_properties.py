"""Properties unknown to a cluster's brokers, and topics created without them.

A broker refuses a whole topic for one unknown property, with the same error code as for a refused value. The brokers
list all known properties with any topic's properties. If no topic's properties can be read, a refusal's words name one
unknown property at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice

from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.wire.error_codes import ErrorCode

_TOPICS_ASKED = 20
"""Most topics to ask until a topic's properties can be read."""
_MOST_NAMED = 3
_UNKNOWN = re.compile(r"Unknown topic config name: (\S+?)\.?$")
"""Words of Kafka's `LogConfig.validateNames`."""

_Answers = dict[str, tuple[int, str]]


def create_as_known(
    specs: Iterable[NewTopicSpec],
    create: Callable[[list[NewTopicSpec]], _Answers],
    known: Callable[[], frozenset[str]],
) -> tuple[_Answers, dict[str, tuple[str, ...]]]:
    """Create topics, and refused topics again without unknown properties.

    Unknown properties are those that the target's brokers don't know. Returns the last error code and words for each
    topic, and created topics' left-out properties. `create` returns Kafka's code and words by topic. `known` returns
    all properties that the brokers know, by name, empty if unreadable.
    """
    answers: _Answers = {}
    missing: dict[str, set[str]] = {}
    names: frozenset[str] | None = None
    due = list(specs)
    while due:
        answers |= create(due)
        refused = [spec for spec in due if answers.get(spec.name, (0, ""))[0] == ErrorCode.INVALID_CONFIG]
        if refused and names is None:
            names = known()
        due = []
        for spec in refused:
            unknown = _unknown(spec, answers[spec.name][1], names or frozenset())
            if unknown:
                missing.setdefault(spec.name, set()).update(unknown)
                configs = {name: value for name, value in spec.configs.items() if name not in unknown}
                due.append(replace(spec, configs=configs))
    created = {name: tuple(sorted(lacks)) for name, lacks in missing.items() if answers[name][0] == ErrorCode.NONE}
    return answers, created


def known_properties(admin: ClusterAdmin, topics: Iterable[str]) -> frozenset[str]:
    """Return all topic properties that the cluster's brokers know.

    Empty if none of the first 20 `topics` lets its properties be read.
    """
    described = admin.topic_configs(islice(topics, _TOPICS_ASKED))
    return frozenset(entry.name for entries in described.values() for entry in entries)


def by_property(unknown: Mapping[str, Iterable[str]]) -> str:
    """Return a few words: each property once, with some topics that lack it."""
    return ", ".join(f"{name} ({_some(topics)})" for name, topics in lacking(unknown).items())


def lacking(unknown: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Map each property to the topics that lack it."""
    topics: dict[str, list[str]] = {}
    for topic, names in sorted(unknown.items()):
        for name in names:
            topics.setdefault(name, []).append(topic)
    return dict(sorted(topics.items()))


def _unknown(spec: NewTopicSpec, words: str, known: frozenset[str]) -> set[str]:
    """Return the topic's properties that the brokers don't know.

    A property whose value the brokers refuse counts as known, even if unlisted.
    """
    told = _UNKNOWN.search(words)
    named = {told[1]} & spec.configs.keys() if told else set()
    unlisted = spec.configs.keys() - known if known else set()
    return named | {name for name in unlisted if f" for configuration {name}:" not in words}


def _some(topics: list[str]) -> str:
    more = len(topics) - _MOST_NAMED
    return ", ".join(topics[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
