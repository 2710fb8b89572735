"""Records of the coordinators' topics decoded, and the sets that ties make; without brokers."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.kafka.wire.primitives import INT8, INT16, INT32, INT64, Garbled, compact_string, string, uvarint
from sparkmirror.migrate.coordinator_records import (
    CommitKey,
    TransactionRecord,
    TransactionStatus,
    commit_key,
    transaction,
    transactional_id,
)
from sparkmirror.migrate.ties import AtomicSet, Ties, UnionFind, beyond, own_topics_of_streams

names = st.text(max_size=12)
topics = st.none() | st.dictionaries(names, st.lists(st.integers(0, 2**31 - 1), max_size=3), max_size=3)
producers = st.integers(0, 2**63 - 1)
optional = st.none() | producers


def encoded(
    version: int, written: dict[str, list[int]] | None, producer: int, status: int, tags: dict[int, bytes]
) -> bytes:
    """As a coordinator writes it; a null array is an ended transaction's."""
    flexible = version == 1
    value = INT16.pack(version) + INT64.pack(producer) + INT16.pack(3) + INT32.pack(60_000) + INT8.pack(status)
    if written is None:
        value += uvarint(0) if flexible else INT32.pack(-1)
    else:
        value += uvarint(len(written) + 1) if flexible else INT32.pack(len(written))
        for topic, indexes in written.items():
            value += compact_string(topic) if flexible else string(topic)
            value += uvarint(len(indexes) + 1) if flexible else INT32.pack(len(indexes))
            value += b"".join(map(INT32.pack, indexes)) + (uvarint(0) if flexible else b"")
    value += INT64.pack(1) + INT64.pack(2)
    if flexible:
        value += uvarint(len(tags)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in tags.items())
    return value


@given(st.integers(0, 1), topics, producers, st.sampled_from(TransactionStatus), optional, optional)
def test_a_transactions_record(
    version: int,
    written: dict[str, list[int]] | None,
    producer: int,
    status: TransactionStatus,
    previous: int | None,
    following: int | None,
) -> None:
    """Both versions; the producer ids before and after the present one come as tags."""
    told = {0: previous, 1: following}
    tags = {tag: INT64.pack(value) for tag, value in told.items() if value is not None}
    tags |= {2: INT16.pack(2), 99: b"of a later day"}
    value = encoded(version, written, producer, status, tags)
    more = {each for each in told.values() if each is not None} if version else set()
    assert transaction(value) == TransactionRecord(
        producers=frozenset({producer, *more}), status=status, topics=frozenset(written or ())
    )
    with pytest.raises(Garbled):
        transaction(value[: len(value) // 2])


def test_producer_ids_that_are_none() -> None:
    value = encoded(1, None, 7, 4, {0: INT64.pack(-1), 1: INT64.pack(-1)})
    assert transaction(value) == TransactionRecord(producers=frozenset({7}), status=4, topics=frozenset())


def test_records_of_other_kinds() -> None:
    assert transaction(None) is transaction(struct.pack(">h", 2)) is None
    assert transactional_id(None) is transactional_id(struct.pack(">h", 1)) is None
    assert commit_key(None) is commit_key(INT16.pack(2) + string("group")) is None


@given(names, names, st.integers(0, 2**31 - 1), st.sampled_from([0, 1]))
def test_keys(group: str, topic: str, partition: int, version: int) -> None:
    key = INT16.pack(version) + string(group) + string(topic) + INT32.pack(partition)
    assert commit_key(key) == CommitKey(group, topic, partition)
    assert transactional_id(INT16.pack(0) + string(group)) == group
    for cut in (key[:-1], key[:3]):
        with pytest.raises(Garbled):
            commit_key(cut)


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=3), max_size=12))
def test_joined_sets(edges: list[list[int]]) -> None:
    """The same as by spreading through the neighbours."""
    union: UnionFind[int] = UnionFind()
    for edge in edges:
        union.join(edge)
    left = {item for edge in edges for item in edge}
    expected = []
    while left:
        reached = {left.pop()}
        while more := {item for edge in edges if reached & set(edge) for item in edge} - reached:
            reached |= more
        left -= reached
        expected.append(reached)
    assert sorted(map(sorted, union.sets())) == sorted(map(sorted, expected))


def test_owners_of_streams_topics() -> None:
    """The longest group counts; names may have hyphens, and a group's own name may end like a topic."""
    topics = ["app-s-changelog", "app-2-a-b-repartition", "app-2-changelog", "x-changelog", "changelog", "app-s-log"]
    assert own_topics_of_streams(["app", "app-2", "app-2-a", "other"], topics) == {
        "app": {"app-s-changelog", "app-2-changelog"},
        "app-2-a": {"app-2-a-b-repartition"},
    }


def atomic(topics: str, groups: str = "", ids: str = "", streams: str = "") -> AtomicSet:
    of = [frozenset(names.split()) for names in (topics, groups, ids, streams)]
    return AtomicSet(topics=of[0], groups=of[1], transactional_ids=of[2], streams=of[3])


def ties(**values: dict[object, Iterable[str]]) -> Ties:
    made = Ties()
    for name, value in values.items():
        for key, items in value.items():
            getattr(made, name)[key] = set(items)
    return made


def test_what_transactions_tie() -> None:
    """Two ids that share a topic; a group and what it reads; the brokers' own topics and other groups tie nothing."""
    made = ties(
        written={"a": ["orders", "__consumer_offsets"], "b": ["orders", "bills"], "c": ["clicks"], "idle": []},
        producers={1: ["a"], 2: ["b"], 3: ["c"], 4: ["idle"]},
        committed={2: ["billing"], 9: ["gone"]},
        read={"billing": {"carts", "__transaction_state"}, "gone": {"old"}, "reader": {"orders", "clicks"}},
    )
    assert made.sets() == (
        atomic("bills carts orders", "billing", "a b"),
        atomic("clicks", "", "c"),
        atomic("old", "gone"),
    )


def test_a_completed_transactions_topics_are_known_by_the_producer() -> None:
    """Its record has none; leaders still know who wrote. Producers without transactions tie nothing."""
    made = ties(
        written={"a": []},
        producers={1: ["a"]},
        committed={1: ["g"], 2: ["h"]},
        written_by_producer={1: ["t", "u"], 2: ["v"], 3: ["t", "v"]},
        read={"g": {"in"}, "h": {"in-2"}},
    )
    assert made.sets() == (atomic("in t u", "g", "a"), atomic("in-2 v", "h"))


def test_streams_without_transactions() -> None:
    made = ties(streams={"app": ["app-s-changelog"]}, read={"app": {"in"}, "other": {"in"}})
    assert made.sets() == (atomic("app-s-changelog in", "app", "", "app"),)


def test_sets_that_cross_a_border() -> None:
    inside, across, outside = atomic("a b", "g"), atomic("b c", "g"), atomic("x", "h")
    assert beyond([inside, across, outside], {"a", "b"}, {"g"}) == [across]
    assert beyond([inside, across, outside], {"a", "b"}, set()) == [inside, across]
