"""Members of groups of every type: the two formats that kafka-python lacks, and real groups of real clients."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from bench.producing import TOOLS
from hypothesis import given
from hypothesis import strategies as st
from lab import Authority, KafkaCluster
from tests.support import mirror_process as mp
from tests.support.members import joined
from tests.support.secure_clusters import of_cluster

from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.demo.jars import class_path
from sparkmirror.demo.java import java
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.coordinators import Coordinators
from sparkmirror.kafka.cluster.group_members import DescribedGroup, GroupMember, describe_groups
from sparkmirror.kafka.cluster.groups import Committed, Groups
from sparkmirror.kafka.wire.answer_bounds import AnswerBound
from sparkmirror.kafka.wire.described_groups import (
    CONSUMER_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
    WireGroup,
    WireMember,
    classic_assignment,
    decode,
)
from sparkmirror.kafka.wire.primitives import (
    INT8,
    INT16,
    INT32,
    INT64,
    Garbled,
    compact_string,
    request_header,
    uvarint,
)
from sparkmirror.kafka.wire.rpc import RpcConnection, UnsupportedBroker

NULL, TAGS = uvarint(0), uvarint(1) + uvarint(300) + uvarint(2) + b"??"  # a tag of a later day
NULL_STRUCT, STRUCT = INT8.pack(-1), INT8.pack(1)


# --- formats -----------------------------------------------------------------------------------------


def text(value: str | None) -> bytes:
    return NULL if value is None else compact_string(value)


def array(items: Sequence[bytes]) -> bytes:
    return uvarint(len(items) + 1) + b"".join(items)


def int32(*values: int) -> bytes:
    return b"".join(map(INT32.pack, values))


words = st.text(max_size=12)
maybe = st.none() | words
indexes = st.lists(st.integers(0, 2**31 - 1), max_size=3, unique=True)
assignments = st.dictionaries(words, indexes, max_size=3)


def assignment_field(assigned: dict[str, list[int]]) -> bytes:
    return (
        array([bytes(16) + text(topic) + array([*map(INT32.pack, its)]) + TAGS for topic, its in assigned.items()])
        + TAGS
    )


def pairs(assigned: dict[str, list[int]]) -> frozenset[tuple[str, int]]:
    return frozenset((topic, index) for topic, its in assigned.items() for index in its)


consumers = st.lists(st.tuples(words, words, words, assignments, assignments, maybe), max_size=3)


@given(st.integers(0, 1), st.lists(st.tuples(words, st.sampled_from([0, 69]), words, maybe, consumers), max_size=3))
def test_what_consumer_group_describe_answers(version: int, groups: list[tuple]) -> None:  # type: ignore[type-arg]
    answer = int32(1) + TAGS + int32(0) + uvarint(len(groups) + 1)
    for group, error, state, null, members in groups:
        answer += INT16.pack(error) + text(null) + text(group) + text(state) + int32(3, 4) + text("uniform")
        answer += array(
            [
                text(member) + text(nothing) * 2 + int32(5) + text(client) + text(host) + array([text("t")])
                + text(nothing) + assignment_field(now) + assignment_field(soon) + INT8.pack(1) * version + TAGS
                for member, client, host, now, soon, nothing in members
            ]
        )  # fmt: skip
        answer += int32(-1) + TAGS
    expected = [
        WireGroup(
            group,
            error,
            state,
            tuple(WireMember(member, client, host, pairs(now)) for member, client, host, now, _, _ in members),
        )
        for group, error, state, _, members in groups
    ]
    assert decode(CONSUMER_GROUP_DESCRIBE, version, memoryview(answer + TAGS)) == expected
    with pytest.raises(Garbled):
        decode(CONSUMER_GROUP_DESCRIBE, version, memoryview(answer)[:-1] if groups else memoryview(answer)[:-2])


def topic_info(name: str) -> bytes:
    return text(name) + int32(2) + INT16.pack(1) + array([text("k") + text("v") + TAGS]) + TAGS


def tasks(active: dict[str, list[int]]) -> bytes:
    others = {name: [99] for name in active}
    return b"".join(
        array([text(name) + array([*map(INT32.pack, its)]) + TAGS for name, its in kind.items()])
        for kind in (active, others, others)
    ) + TAGS  # fmt: skip


subtopologies = st.dictionaries(words, st.tuples(*(st.lists(words, max_size=2) for _ in range(4))), max_size=2)


@given(st.none() | subtopologies, st.lists(st.tuples(words, st.booleans(), indexes), max_size=2))
def test_what_streams_group_describe_answers(
    topology: dict[str, tuple[list[str], ...]] | None, members: list[tuple[str, bool, list[int]]]
) -> None:
    """A task reads its partition of all topics of its subtopology, but not of those that it only writes."""
    named = topology or {}
    answer = int32(1) + TAGS + int32(0) + array([b""])
    answer += INT16.pack(0) + text(None) + text("app") + text("Stable") + int32(3, 4)
    if topology is None:
        answer += NULL_STRUCT
    else:
        answer += STRUCT + int32(5) + array(
            [
                text(name) + array([*map(text, read)]) + array([*map(text, sinks)])
                + array([*map(topic_info, logs)]) + array([*map(topic_info, again)]) + TAGS
                for name, (read, sinks, logs, again) in topology.items()
            ]
        ) + TAGS  # fmt: skip
    task_offset = text("0") + int32(1) + INT64.pack(2) + TAGS
    answer += array(
        [
            text(member) + int32(1) + text(None) * 2 + text("client") + text("/10.0.0.7") + int32(0) + text("process")
            + (STRUCT + text("h") + INT16.pack(80) + TAGS if endpoint else NULL_STRUCT)
            + array([text("k") + text("v") + TAGS]) + array([task_offset]) + array([])
            + tasks(dict.fromkeys(named, its)) + tasks({}) + INT8.pack(0) + TAGS
            for member, endpoint, its in members
        ]
    )  # fmt: skip
    answer += int32(-1) + TAGS + TAGS
    (group,) = decode(STREAMS_GROUP_DESCRIBE, 0, memoryview(answer))
    assert group.internal == {name for _, *internal in named.values() for names in internal for name in names}
    assert group.members == tuple(
        WireMember(
            member,
            "client",
            "/10.0.0.7",
            frozenset(
                (topic, index) for read, _, _, again in named.values() for topic in (*read, *again) for index in its
            ),
        )
        for member, _, its in members
    )


@given(assignments, st.binary(max_size=5))
def test_a_classic_members_assignment(assigned: dict[str, list[int]], more: bytes) -> None:
    data = INT16.pack(3) + int32(len(assigned))
    for topic, its in assigned.items():
        data += INT16.pack(len(topic.encode())) + topic.encode() + int32(len(its), *its)
    assert classic_assignment(data + more) == pairs(assigned)
    assert classic_assignment(b"") == frozenset()
    with pytest.raises(Garbled):
        classic_assignment(b"\0")


# --- real groups -------------------------------------------------------------------------------------


@pytest.fixture
def client(source_cluster: KafkaCluster) -> Iterator[ClusterClient]:
    config = ClusterConfig(alias="A", bootstrap_servers=(source_cluster.bootstrap_servers,))
    with closing(ClusterClient(config, "test")) as client:
        yield client


@pytest.fixture
def topic(source_cluster: KafkaCluster, topic_name: str) -> str:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    return topic_name


def of(client: ClusterClient, group: str) -> DescribedGroup:
    told = describe_groups(client, [group])
    assert told.refused == {}
    return told.groups[group]


@contextmanager
def kip_848_consumer(cluster: KafkaCluster, topic: str, group: str, log: Path) -> Iterator[None]:
    """Java's own."""
    command = [
        *(java(), "-Xmx128m", "-cp", class_path(TOOLS), "org.apache.kafka.tools.consumer.ConsoleConsumer"),
        *("--bootstrap-server", cluster.bootstrap_servers, "--topic", topic, "--group", group),
        *("--command-property", "group.protocol=consumer", "--command-property", "client.id=billing"),
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            yield
        finally:
            process.kill()
            process.wait()


@pytest.mark.broker
def test_groups_of_both_consumer_protocols(
    source_cluster: KafkaCluster, client: ClusterClient, topic: str, tmp_path: Path
) -> None:
    """Asked for together, with a group that only commits, and a missing group."""
    classic, newer, commits = f"{topic}-classic", f"{topic}-newer", f"{topic}-commits"
    Groups(client).commit({commits: {(topic, 0): Committed(0)}})
    wanted = frozenset({(topic, 0), (topic, 1)})
    with (
        closing(joined(source_cluster.bootstrap_servers, classic, topic, client_id="shop")),
        kip_848_consumer(source_cluster, topic, newer, tmp_path / "newer.log"),
    ):
        mp.wait_for(lambda: [one.assigned for one in of(client, newer).members] == [wanted], 60, "newer")
        told = describe_groups(client, [classic, newer, commits, "none"])
        assert told.refused == {}
        assert told.groups["none"] == DescribedGroup()
        assert told.groups[commits].members == ()
        assert (told.groups[classic].type, told.groups[classic].protocol) == ("classic", "range")
        assert (told.groups[newer].type, told.groups[newer].state) == ("consumer", "Stable")
        for group, name in ((classic, "shop"), (newer, "billing")):
            (member,) = told.groups[group].members
            assert member == GroupMember(member_id=member.member_id, client_id=name, host="127.0.0.1", assigned=wanted)
            assert not told.groups[group].is_streams


def joined_streams(client: ClusterClient, group: str, source: str) -> None:
    """Join as a Streams application with one store and one repartition topic, which the broker then knows."""
    nothing = array([])
    changelog = text(f"{group}-store-changelog") + int32(0) + INT16.pack(1) + nothing + uvarint(0)
    first = (
        text("0") + array([text(source)]) + nothing + array([changelog])
        + array([text(f"{group}-by-repartition")]) + nothing + nothing + uvarint(0)
    )  # fmt: skip
    second = (
        text("1") + nothing + nothing + nothing + nothing
        + array([text(f"{group}-by-repartition") + int32(2) + INT16.pack(1) + nothing + uvarint(0)])
        + nothing + uvarint(0)
    )  # fmt: skip
    body = (
        text(group) + text("member-1") + int32(0, 0) + text(None) * 2 + int32(60_000)
        + STRUCT + int32(0) + array([first, second]) + uvarint(0)
        + nothing * 3 + text("process") + NULL_STRUCT + nothing + NULL + NULL + INT8.pack(0) + uvarint(0)
    )  # fmt: skip

    def join(broker: int, _: Sequence[str]) -> dict[str, int]:
        head = request_header(88, 0, 0, b"clicks")
        answer = client.broker(broker).exchange_raw([head, body], AnswerBound("StreamsGroupHeartbeat", 1 << 20))
        code = INT16.unpack_from(answer, 9)[0]
        assert code in (0, 14, 15, 16), bytes(answer)
        return {group: code} if code else {}

    Coordinators(client).ask_each([group], join, {}, "joining")


@pytest.mark.broker
def test_a_streams_group_tells_its_topology(client: ClusterClient, topic: str) -> None:
    group = f"{topic}-app"
    joined_streams(client, group, topic)
    internal = {f"{group}-store-changelog", f"{group}-by-repartition"}
    mp.wait_for(lambda: of(client, group).internal == internal, 30, "the topology is configured")
    told = of(client, group)
    assert (told.type, told.is_streams) == ("streams", True)
    assert [(one.member_id, one.client_id, one.host) for one in told.members] == [("member-1", "clicks", "127.0.0.1")]


@pytest.mark.broker
def test_brokers_without_the_newer_requests(client: ClusterClient, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old ones answer that the group is dead, and that is no group with members."""
    real = RpcConnection.version

    def version(self: RpcConnection, key: int, ours: tuple[int, int], name: str) -> int:
        if key in (CONSUMER_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE):
            raise UnsupportedBroker(name)
        return real(self, key, (ours[0], 5) if key == 15 else ours, name)

    monkeypatch.setattr(RpcConnection, "version", version)
    Groups(client).commit({topic: {(topic, 0): Committed(0)}})
    assert of(client, topic).type == "classic"
    assert of(client, "none") == DescribedGroup()


@pytest.mark.broker
def test_groups_that_may_not_be_read_are_named(guarded: KafkaCluster, authority: Authority, tmp_path: Path) -> None:
    keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(authority.issue(tmp_path / "keys.pem", "x"))}
    settings = of_cluster("A", authority.client_settings() | keys)
    servers = guarded.tls_bootstrap_servers
    file = mp.write_properties(tmp_path / "mm2.properties", servers, servers, "t", settings)
    with closing(ClusterClient(load_mm2_properties(str(file)).flows[0].source, "test")) as client:
        told = describe_groups(client, ["billing"])
    assert told.groups == {}
    assert "GROUP_AUTHORIZATION_FAILED" in told.refused["billing"]
    assert "DESCRIBE on the group" in told.refused["billing"]
