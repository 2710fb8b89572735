"""Both ways with MirrorMaker 2's own classes: its clients and formatters read what we write, and ours what it wrote."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

import pytest
from java_oracle import JavaOracle
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from lab import KafkaCluster
from tests.support.offset_sync_store import OffsetSyncStore

from sparkmirror import client as ours
from sparkmirror.client import MirrorClient
from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.config.model import HeartbeatConfig, OffsetSyncConfig
from sparkmirror.exact.mm2.record_formats import Checkpoint, Heartbeat, OffsetSync
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.sync.heartbeat_duty import Heartbeats
from sparkmirror.mirror.sync.internal_topic import InternalTopic
from sparkmirror.mirror.sync.offset_syncs import CopiedTo, OffsetSyncEmitter
from sparkmirror.policy import DefaultReplicationPolicy, compile_java

pytestmark = [pytest.mark.broker, pytest.mark.full]

TIMEOUT_S = 20
CHECKPOINTS = (
    Checkpoint(group="g", topic="A.t", partition=0, upstream=4, downstream=5),
    Checkpoint(
        group="g", topic="A.t", partition=1, upstream=1_234_567_890_123, downstream=987_654_321, metadata="meta"
    ),
    Checkpoint(group="g-2", topic="A.t", partition=0, upstream=0, downstream=0),
    Checkpoint(group="Größe", topic="A.t", partition=2, upstream=7, downstream=8, metadata="naïve"),
    Checkpoint(group="g", topic="A.t", partition=0, upstream=6, downstream=7),
)
GROUPS = ("g", "g-2", "Größe", "unknown")
PATTERNS = ("g.*", r"\p{Alpha}+-\d", ".*", "nobody")
TOPICS = ("A.t", "B.A.t", "plain", "A.heartbeats", "C.A.heartbeats", "mm2-offset-syncs.B.internal", ".hidden", "t.")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A cluster of the module's own: what is on it is asked for."""
    one = KafkaCluster(tmp_path_factory.mktemp("asked", numbered=False))
    try:
        one.start()
        admin = KafkaAdminClient(bootstrap_servers=one.bootstrap_servers)
        admin.create_topics([NewTopic(topic, 1, 1) for topic in TOPICS])
        admin.close()
        yield one
    finally:
        one.cleanup(keep_logs=True)


@pytest.fixture(scope="module")
def settings(cluster: KafkaCluster) -> dict[str, str]:
    return {"bootstrap.servers": cluster.bootstrap_servers}


@pytest.fixture(scope="module")
def java(settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaOracle]:
    with JavaOracle(tmp_path_factory.mktemp("oracle"), settings) as oracle:
        yield oracle


@pytest.fixture(scope="module")
def flow(cluster: KafkaCluster) -> FlowConfig:
    servers = (cluster.bootstrap_servers,)
    return FlowConfig(
        source=ClusterConfig(alias="A", bootstrap_servers=servers),
        target=ClusterConfig(alias="B", bootstrap_servers=servers),
        heartbeat=HeartbeatConfig(heartbeats_topic_replication_factor=1),
        offset_sync=OffsetSyncConfig(offset_syncs_topic_replication_factor=1, offset_lag_max=0),
    )


@pytest.fixture(scope="module")
def written(flow: FlowConfig) -> FlowConfig:
    """Heartbeats, checkpoints and offset syncs by our code."""
    policy = DefaultReplicationPolicy()
    heartbeats = Heartbeats(flow, policy)
    for _ in range(2):
        heartbeats.run()
    heartbeats.close()
    checkpoints = InternalTopic(
        flow.target,
        policy.checkpoints_topic("A"),
        "test",
        replication_factor=1,
        factor_key="checkpoints.topic.replication.factor",
        timeout_s=TIMEOUT_S,
    )
    checkpoints.append([(one.key(), one.value()) for one in CHECKPOINTS])
    checkpoints.append([(b"what", b"is this")])
    checkpoints.close()
    emitter = OffsetSyncEmitter(flow, policy, lambda: [CopiedTo("t", 2, 3, 4), CopiedTo("Größe", 0, 9, 8)])
    emitter.run()
    emitter.close()
    return flow


def entries(cluster: KafkaCluster, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(cluster.bootstrap_servers,)), "test")
    try:
        return [(entry.key, entry.value) for entry in TopicLog(client, topic).read(0, 0)[0]]
    finally:
        client.close()


def lines(offsets: ours.GroupOffsets, before: str = "") -> list[str]:
    return [f"{before}{topic}\t{index}\t{one.offset}\t{one.metadata}" for (topic, index), one in offsets.items()]


def test_both_clients_say_the_same_about_topics(
    java: JavaOracle, settings: dict[str, str], written: FlowConfig
) -> None:
    with MirrorClient(settings) as client:
        assert client.heartbeat_topics() == {"heartbeats", "A.heartbeats", "C.A.heartbeats"}
        for who in ("client", "utils"):
            assert java.ask(who, "heartbeats") == sorted(client.heartbeat_topics())
            assert java.ask(who, "checkpoints") == sorted(client.checkpoint_topics()) == ["A.checkpoints.internal"]
            assert java.ask(who, "upstreams") == sorted(client.upstream_clusters()) == ["A", "C"]
            for alias in ("A", "B", "C"):
                assert java.ask(who, "hops", alias) == [str(client.replication_hops(alias))]
        assert java.ask("client", "remotes") == sorted(client.remote_topics())
        for alias in ("A", "B", "C", "Z"):
            assert java.ask("client", "remotes", alias) == sorted(client.remote_topics(alias))
    assert ours.replication_hops(settings, "A") == 1
    assert ours.heartbeat_topics(settings) == {"heartbeats", "A.heartbeats", "C.A.heartbeats"}
    assert ours.checkpoint_topics(settings) == {"A.checkpoints.internal"}
    assert ours.upstream_clusters(settings) == {"A", "C"}


def test_both_clients_read_our_checkpoints_alike(
    java: JavaOracle, settings: dict[str, str], written: FlowConfig
) -> None:
    assert lines(ours.translate_offsets(settings, "A", "g", TIMEOUT_S)) == ["A.t\t0\t7\t", "A.t\t1\t987654321\tmeta"]
    for who in ("client", "utils"):
        for group in GROUPS:
            found = ours.translate_offsets(settings, "A", group, TIMEOUT_S)
            assert sorted(java.ask(who, "offsets", "A", group)) == sorted(lines(found))
        for pattern in PATTERNS:
            groups = ours.translate_offsets(settings, "A", compile_java(pattern), TIMEOUT_S)
            expected = [line for group, offsets in groups.items() for line in lines(offsets, f"{group}\t")]
            assert sorted(java.ask(who, "matching", "A", pattern)) == sorted(expected)


def test_the_formatters_print_our_records(java: JavaOracle, cluster: KafkaCluster, written: FlowConfig) -> None:
    beats = [Heartbeat.read(*one) for one in entries(cluster, "heartbeats")]
    assert len(beats) == 2
    assert java.ask("format", "Heartbeat", "heartbeats") == [
        f"{at}\tHeartbeat{{sourceClusterAlias=A, targetClusterAlias=B, timestamp={at}}}"
        for at in (beat.timestamp_ms for beat in beats)
    ]
    assert untimed(java.ask("format", "OffsetSync", "mm2-offset-syncs.B.internal")) == [
        "OffsetSync{topicPartition=t-2, upstreamOffset=3, downstreamOffset=4}",
        "OffsetSync{topicPartition=Größe-0, upstreamOffset=9, downstreamOffset=8}",
    ]


def test_the_formatter_prints_our_checkpoints(java: JavaOracle, flow: FlowConfig, topic_name: str) -> None:
    topic = InternalTopic(flow.target, topic_name, "test", replication_factor=1, factor_key="", timeout_s=TIMEOUT_S)
    topic.append([(one.key(), one.value()) for one in CHECKPOINTS])
    topic.close()
    assert untimed(java.ask("format", "Checkpoint", topic_name)) == [
        f"Checkpoint{{consumerGroupId={one.group}, topicPartition={one.topic}-{one.partition}, "
        f"upstreamOffset={one.upstream}, downstreamOffset={one.downstream}, metadata={one.metadata}}}"
        for one in CHECKPOINTS
    ]


def untimed(printed: Sequence[str]) -> list[str]:
    return [re.sub(r"^\d+\t", "", line) for line in printed]


def test_we_read_what_java_wrote(java: JavaOracle, cluster: KafkaCluster, settings: dict[str, str]) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    admin.create_topics([NewTopic(name, 1, 1) for name in ("Z.checkpoints.internal", "javas-beats", "javas-syncs")])
    admin.close()
    beats = [Heartbeat("Größe", "B", 1_700_000_000_000), Heartbeat("A", "", 0)]
    syncs = [OffsetSync("topic-1", 2, 3, 4), OffsetSync("Größe", 0, 2**63 - 1, -1)]
    for one in CHECKPOINTS:
        fields = (one.group, one.topic, one.partition, one.upstream, one.downstream, one.metadata)
        java.ask("write", "Z.checkpoints.internal", "checkpoint", *fields)
    for beat in beats:
        java.ask("write", "javas-beats", "heartbeat", beat.source_alias, beat.target_alias, beat.timestamp_ms)
    for sync in syncs:
        java.ask("write", "javas-syncs", "sync", sync.topic, sync.partition, sync.upstream, sync.downstream)
    assert entries(cluster, "Z.checkpoints.internal") == [(one.key(), one.value()) for one in CHECKPOINTS]
    assert entries(cluster, "javas-beats") == [(one.key(), one.value()) for one in beats]
    assert entries(cluster, "javas-syncs") == [(one.key(), one.value()) for one in syncs]
    for group in GROUPS:
        found = ours.translate_offsets(settings, "Z", group, TIMEOUT_S)
        assert sorted(java.ask("client", "offsets", "Z", group)) == sorted(lines(found))
    assert lines(ours.translate_offsets(settings, "Z", "Größe", TIMEOUT_S)) == ["A.t\t2\t8\tnaïve"]


def test_the_checkpoint_connectors_store_reads_our_syncs(java: JavaOracle, flow: FlowConfig) -> None:
    """From the topic itself: what we write at its end, MirrorMaker 2's checkpoint connector translates with."""
    config = flow.model_copy(update={"target": flow.target.model_copy(update={"alias": "D"})})
    copied: list[CopiedTo] = []
    emitter = OffsetSyncEmitter(config, DefaultReplicationPolicy(), lambda: copied)
    store = OffsetSyncStore(keep_history=True)
    for turn in range(60):
        copied[:] = [CopiedTo("t", 1, turn * 10, turn * 9), CopiedTo("u", 0, 10**12, turn)]
        emitter.run()
        store.add(OffsetSync("t", 1, turn * 10, turn * 9))
    emitter.close()
    store.started()
    asked = range(0, 650, 7)
    expected = " ".join(str(store.translate("t", 1, upstream)) for upstream in asked)
    assert java.ask("translate", "A", "D", "t", 1, " ".join(map(str, asked))) == [expected]
    assert java.ask("translate", "A", "D", "u", 0, f"{10**12 - 1} {10**12}") == ["-1 59"]
    assert java.ask("translate", "A", "D", "none", 0, "5") == ["None"]


@pytest.mark.parametrize("seed", range(40))
def test_our_store_of_offset_syncs_is_javas(java: JavaOracle, seed: int) -> None:
    """Random syncs with gaps and steps back, before and after the start: all 64 slots, and translations."""
    chance = random.Random(seed)
    upstream = downstream = 0
    syncs: list[OffsetSync] = []
    for _ in range(chance.randrange(1, 400)):
        stride = 1 + chance.randrange(1 << chance.randrange(1, 4 + seed))
        upstream, downstream = upstream + stride, downstream + chance.randrange(1, stride + 1)
        if chance.random() < 0.01:
            upstream = chance.randrange(upstream)
        if upstream >= 2**62:
            break
        syncs.append(OffsetSync("t", 0, upstream, downstream))
    at_start = chance.randrange(len(syncs))
    keep_history = bool(seed % 2)
    store = OffsetSyncStore(keep_history=keep_history)
    for sync in syncs[:at_start]:
        store.add(sync)
    store.started()
    for sync in syncs[at_start:]:
        store.add(sync)
    asked = [chance.randrange(upstream + 10) for _ in range(50)] + [sync.upstream for sync in syncs[-20:]]
    slots, translated = java.ask(
        "store",
        str(not keep_history).lower(),
        " ".join(f"{sync.upstream}:{sync.downstream}" for sync in syncs[:at_start]),
        " ".join(f"{sync.upstream}:{sync.downstream}" for sync in syncs[at_start:]),
        " ".join(map(str, asked)),
    )
    assert slots == " ".join(f"{sync.upstream}:{sync.downstream}" for sync in store.slots("t", 0))
    assert translated == " ".join(str(store.translate("t", 0, offset)) for offset in asked)
