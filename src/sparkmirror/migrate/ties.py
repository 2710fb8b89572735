"""Ties among topics, groups and transactional ids, joined into atomic sets.

Pure. A set must move at once: a transaction writes all its topics and commits all its groups' offsets, or nothing; a
Kafka Streams application restores state from topics that no other application writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from sparkmirror.migrate.coordinator_records import CONSUMER_OFFSETS, TRANSACTION_STATE

INTERNAL_SUFFIXES = "-changelog", "-repartition"
"""Ends of names that Kafka Streams gives to an application's own topics."""
_BROKERS_OWN = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})

Item = TypeVar("Item", bound=Hashable)


class UnionFind(Generic[Item]):
    """Items that are joined into disjoint sets."""

    def __init__(self) -> None:
        self._parents: dict[Item, Item] = {}

    def join(self, items: Iterable[Item]) -> None:
        """Put these items into one set, with all items joined before."""
        first: Item | None = None
        for item in items:
            root = self._root(item)
            if first is None:
                first = root
            self._parents[root] = first

    def sets(self) -> list[set[Item]]:
        """Return all joined items in disjoint sets."""
        by_root: dict[Item, set[Item]] = defaultdict(set)
        for item in list(self._parents):
            by_root[self._root(item)].add(item)
        return list(by_root.values())

    def _root(self, item: Item) -> Item:
        root = self._parents.setdefault(item, item)
        while root != self._parents[root]:
            root = self._parents[root]
        while item != root:
            self._parents[item], item = root, self._parents[item]
        return root


class TieVerdict(StrEnum):
    """Statement about the ties of topics and groups.

    No verdict says that all ties are known.
    """

    FOUND = "found"
    NOT_SEEN = "not seen"
    UNKNOWN = "unknown"
    """No tie was seen, but not all sources could be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomicSet:
    """Topics and groups that must move at once."""

    topics: frozenset[str]
    groups: frozenset[str]
    transactional_ids: frozenset[str]
    streams: frozenset[str]
    """Groups in the set that are Kafka Streams applications."""


@dataclass(slots=True, kw_only=True)
class Ties:
    """Ties in a cluster's records and answers."""

    written: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Topics that transactions wrote to, by transactional id."""
    producers: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Transactional ids by producer id."""
    committed: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Groups whose offsets were committed in transactions, by producer id."""
    written_by_producer: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Topics with a producer's state, by producer id."""
    read: dict[str, Set[str]] = field(default_factory=dict)
    """Topics that groups read, by group."""
    streams: dict[str, Set[str]] = field(default_factory=dict)
    """Kafka Streams applications' own topics, by group."""

    @property
    def transactional(self) -> frozenset[int]:
        """Producer ids that wrote or committed in transactions."""
        return frozenset(self.producers.keys() | self.committed.keys())

    def sets(self) -> tuple[AtomicSet, ...]:
        """Return the atomic sets, in the order of topic names."""
        joined: UnionFind[tuple[str, str]] = UnionFind()
        for edge in self._edges():
            joined.join(edge)
        tied = [_atomic_set(items, self.streams.keys()) for items in joined.sets()]
        return tuple(
            sorted(
                (each for each in tied if each.topics or each.groups),
                key=lambda each: (sorted(each.topics), sorted(each.groups)),
            )
        )

    def _edges(self) -> Iterator[list[tuple[str, str]]]:
        """Yield tied items, each with a kind."""
        for name, topics in self.written.items():
            yield [("id", name), *_topics(topics)]
        for producer in self.transactional:
            yield [
                ("producer", str(producer)),
                *(("id", name) for name in self.producers.get(producer, ())),
                *(("group", group) for group in self.committed.get(producer, ())),
                *_topics(self.written_by_producer.get(producer, ())),
            ]
        tied = {group for groups in self.committed.values() for group in groups} | self.streams.keys()
        for group in tied:
            yield [("group", group), *_topics(self.read.get(group, ())), *_topics(self.streams.get(group, ()))]


def own_topics_of_streams(groups: Iterable[str], topics: Iterable[str]) -> dict[str, set[str]]:
    """Return Kafka Streams' changelog and repartition topics, by group.

    The names are `<group>-<name>-changelog` and `<group>-<name>-repartition`; among several groups that begin a topic's
    name the longest group counts. Groups without such topics are left out.
    """
    known = set(groups)
    owned: dict[str, set[str]] = defaultdict(set)
    for topic in topics:
        if not topic.endswith(INTERNAL_SUFFIXES):
            continue
        stem = topic.rpartition("-")[0]
        while stem := stem.rpartition("-")[0]:
            if stem in known:
                owned[stem].add(topic)
                break
    return dict(owned)


def beyond(sets: Iterable[AtomicSet], topics: Set[str], groups: Set[str]) -> list[AtomicSet]:
    """Return the sets that are only in part within these topics and groups."""
    return [
        each for each in sets if touches(each, topics, groups) and not (each.topics <= topics and each.groups <= groups)
    ]


def touches(each: AtomicSet, topics: Set[str], groups: Set[str]) -> bool:
    """Tell whether a set has any of these topics or groups."""
    return not (each.topics.isdisjoint(topics) and each.groups.isdisjoint(groups))


def _topics(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    return (("topic", name) for name in names if name not in _BROKERS_OWN)


def _atomic_set(items: Iterable[tuple[str, str]], streams: Set[str]) -> AtomicSet:
    kinds: Mapping[str, set[str]] = defaultdict(set)
    for kind, name in items:
        kinds[kind].add(name)
    groups = frozenset(kinds["group"])
    return AtomicSet(
        topics=frozenset(kinds["topic"]),
        groups=groups,
        transactional_ids=frozenset(kinds["id"]),
        streams=groups & streams,
    )
