"""Share groups of a real cluster: where they start, read and set; the two messages; brokers that lack them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster import coordinators as coordinators_module
from sparkmirror.kafka.cluster import share_groups as share_groups_module
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Committed, Groups
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.cluster.share_groups import (
    NOT_KNOWN,
    ShareGroups,
    StartOffsets,
    read_altered,
    read_described,
)
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.primitives import INT16, INT32, INT64, NO_TAGS, Reader, compact_string, uvarint
from sparkmirror.kafka.wire.rpc import RpcConnection, UnsupportedBroker

UNKNOWN_TOPIC, NOT_COORDINATOR, NOT_AUTHORIZED, NOT_FOUND = 3, 16, 30, 69


# --- messages ------------------------------------------------------------------------------------


Part = tuple[int, int, int, str | None]
"""Index, start offset, error, message."""

names = st.text(max_size=200)
messages = st.none() | st.text(max_size=20)
parts = st.lists(
    st.tuples(
        st.integers(0, 2**31 - 1), st.integers(-1, 2**63 - 1), st.sampled_from([0, 0, 0, UNKNOWN_TOPIC]), messages
    ),
    max_size=4,
    unique_by=lambda part: part[0],
)
topics = st.dictionaries(names, parts, max_size=4)


def text(value: str | None) -> bytes:
    return uvarint(0) if value is None else compact_string(value)


def topics_field(named: Mapping[str, list[Part]], *, starts: bool) -> bytes:
    out = uvarint(len(named) + 1)
    for name, some in named.items():
        out += text(name) + bytes(range(16)) + uvarint(len(some) + 1)
        for index, offset, error, message in some:
            start = INT64.pack(offset) + INT32.pack(5) if starts else b""
            out += INT32.pack(index) + start + INT16.pack(error) + text(message) + NO_TAGS
        out += uvarint(1) + uvarint(300) + uvarint(2) + b"??"  # a tag of a later day
    return out


@given(st.dictionaries(names, st.tuples(topics, st.sampled_from([0, NOT_FOUND]), messages), max_size=3))
def test_what_describe_answers(groups: dict[str, tuple[dict[str, list[Part]], int, str | None]]) -> None:
    answer = INT32.pack(7) + uvarint(len(groups) + 1)
    for group, (named, error, message) in groups.items():
        answer += text(group) + topics_field(named, starts=True) + INT16.pack(error) + text(message) + NO_TAGS
    reader = Reader(memoryview(answer + NO_TAGS))
    assert read_described(reader) == {
        group: (
            error,
            {
                (name, index): offset
                for name, some in named.items()
                for index, offset, code, _ in some
                if not code and offset >= 0
            },
        )
        for group, (named, error, _) in groups.items()
    }
    assert reader.at == len(answer)


@given(st.sampled_from([0, NOT_FOUND]), messages, topics)
def test_what_alter_answers(error: int, message: str | None, named: dict[str, list[Part]]) -> None:
    answer = INT32.pack(7) + INT16.pack(error) + text(message) + topics_field(named, starts=False)
    reader = Reader(memoryview(answer + NO_TAGS))
    assert read_altered(reader) == (
        error,
        {(name, index): code for name, some in named.items() for index, _, code, _ in some},
    )
    assert reader.at == len(answer)


# --- a real broker -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def config(source_cluster: KafkaCluster) -> ClusterConfig:
    return ClusterConfig(alias="A", bootstrap_servers=(source_cluster.bootstrap_servers,))


@pytest.fixture
def client(config: ClusterConfig) -> Iterator[ClusterClient]:
    client = ClusterClient(config, "test")
    yield client
    client.close()


@pytest.fixture(scope="module")
def topic(config: ClusterConfig) -> str:
    admin = ClusterAdmin.connect(config, "test", 20.0)
    for name in ("share-groups", "share-groups-2"):
        assert admin.create_topics([NewTopicSpec(name, 3, 1)]) == {name: None}
    admin.close()
    with closing(ClusterClient(config, "test")) as client:
        wanted: dict[str, StartOffsets] = {"ready": {("share-groups", 2): 0, ("share-groups-2", 2): 0}}
        while any(ShareGroups(client).set_starts(wanted)["ready"].values()):
            time.sleep(0.1)  # the coordinator has not heard of the topics yet
    return "share-groups"


@pytest.mark.broker
def test_many_groups_are_set_and_read(
    client: ClusterClient, topic: str, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinators_module, "GROUPS_PER_REQUEST", 2)
    groups = ShareGroups(client)
    wanted: dict[str, StartOffsets] = {
        f"{topic_name}-{number}": {(topic, 0): number, (topic, 2): 2**40 + number, (f"{topic}-2", 1): 0}
        for number in range(3)
    }
    assert groups.set_starts(wanted) == {group: dict.fromkeys(starts, 0) for group, starts in wanted.items()}
    found = groups.starts([*wanted, f"{topic_name}-none"])
    assert found.offsets == {**wanted, f"{topic_name}-none": {}}
    assert found.refused == {}
    listed = Groups(client).listed()
    assert {listed[group][1:] for group in wanted} == {("share", "Empty", "share")}


@pytest.mark.broker
def test_partitions_that_are_missing_and_groups_of_other_kinds(
    client: ClusterClient, topic: str, topic_name: str
) -> None:
    groups = ShareGroups(client)
    outcome = groups.set_starts({topic_name: {(topic, 0): 7, (topic, 9): 1, ("none", 0): 1}})
    assert outcome == {topic_name: {(topic, 0): 0, (topic, 9): UNKNOWN_TOPIC, ("none", 0): UNKNOWN_TOPIC}}
    assert groups.starts([topic_name]).offsets == {topic_name: {(topic, 0): 7}}
    other = f"{topic_name}-consumers"
    Groups(client).commit({other: {(topic, 0): Committed(1)}})
    assert groups.set_starts({other: {(topic, 0): 7, (topic, 1): 7}}) == {
        other: {(topic, 0): NOT_FOUND, (topic, 1): NOT_FOUND}
    }
    assert groups.starts([other]).offsets == {other: {}}


def answer_first(monkeypatch: pytest.MonkeyPatch, code: int, times: int) -> list[int]:
    """What the broker says of a group, and then of an offset set, is `code` at first; the numbers left are returned."""
    left = [times, times]
    real_described, real_altered = read_described, read_altered

    def described(answer: Reader) -> dict[str, tuple[int, StartOffsets]]:
        left[0] -= 1
        found = real_described(answer)
        return {group: (code, {}) for group in found} if left[0] >= 0 else found

    def altered(answer: Reader) -> tuple[int, dict[tuple[str, int], int]]:
        left[1] -= 1
        found = real_altered(answer)
        return (code, {}) if left[1] >= 0 else found

    monkeypatch.setattr(share_groups_module, "read_described", described)
    monkeypatch.setattr(share_groups_module, "read_altered", altered)
    return left


@pytest.mark.broker
@pytest.mark.parametrize("code", [14, 15, 16])
def test_coordinators_that_move_are_looked_for_again(
    client: ClusterClient, topic: str, topic_name: str, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(coordinators_module, "PAUSE_S", 0.01)
    left = answer_first(monkeypatch, code, 3)
    groups = ShareGroups(client)
    assert groups.set_starts({topic_name: {(topic, 0): 4}}) == {topic_name: {(topic, 0): 0}}
    assert groups.starts([topic_name]).offsets == {topic_name: {(topic, 0): 4}}
    assert left == [-1, -1]


@pytest.mark.broker
def test_one_that_stays_away_is_an_error_and_no_empty_answer(
    client: ClusterClient, topic: str, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinators_module, "PATIENCE_S", 0.5)
    answer_first(monkeypatch, NOT_COORDINATOR, 1000)
    groups = ShareGroups(client)
    with pytest.raises(ClusterUnreachable, match=r"cluster A: reading where .* failed: NOT_COORDINATOR"):
        groups.starts([topic_name])
    with pytest.raises(ClusterUnreachable, match=r"cluster A: setting where .* failed: NOT_COORDINATOR"):
        groups.set_starts({topic_name: {(topic, 0): 4}})


@pytest.mark.broker
def test_a_group_that_may_not_be_read_is_named(
    client: ClusterClient, topic: str, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_first(monkeypatch, NOT_AUTHORIZED, 1)
    groups = ShareGroups(client)
    found = groups.starts([topic_name])
    assert found.offsets == {}
    assert "GROUP_AUTHORIZATION_FAILED" in found.refused[topic_name]
    assert groups.set_starts({topic_name: {(topic, 0): 4}}) == {topic_name: {(topic, 0): NOT_AUTHORIZED}}


@pytest.mark.broker
def test_brokers_that_dont_know_share_groups(
    client: ClusterClient, topic: str, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = RpcConnection.version

    def version(self: RpcConnection, key: int, ours: tuple[int, int], name: str) -> int:
        if key in (90, 91):
            raise UnsupportedBroker(name)
        return real(self, key, ours, name)

    monkeypatch.setattr(RpcConnection, "version", version)
    groups = ShareGroups(client)
    assert groups.starts([topic_name]) == ({}, {topic_name: NOT_KNOWN})
    assert groups.set_starts({topic_name: {(topic, 0): 4}}) == {topic_name: {(topic, 0): ErrorCode.UNSUPPORTED_VERSION}}
