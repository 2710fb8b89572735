"""Offset syncs written to real clusters: where, when, and again after a failure."""

from __future__ import annotations

import time

import pytest
from lab import KafkaCluster
from tests.support import mirror_process as mp

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.config.model import ConnectStorage, OffsetSyncConfig
from sparkmirror.exact.mm2.record_formats import OffsetSync
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.sync.offset_syncs import CopiedTo, OffsetSyncEmitter
from sparkmirror.policy import DefaultReplicationPolicy

pytestmark = pytest.mark.broker
POLICY = DefaultReplicationPolicy()


class Flow:
    """A flow between the clusters whose aliases no other test uses, and what its pumps say."""

    def __init__(self, source: KafkaCluster, target: KafkaCluster, name: str, location: str) -> None:
        self.copied: list[CopiedTo] = []
        self.config = FlowConfig(
            source=ClusterConfig(alias=f"{name}-A", bootstrap_servers=(source.bootstrap_servers,)),
            target=ClusterConfig(alias=f"{name}-B", bootstrap_servers=(target.bootstrap_servers,)),
            offset_sync=OffsetSyncConfig(
                offset_syncs_topic_location=location, offset_syncs_topic_replication_factor=1, offset_lag_max=100
            ),
            connect=ConnectStorage(offset_flush_interval_ms=3_600_000),
            admin_timeout_ms=15_000,
        )

    def duty(self, config: FlowConfig | None = None) -> OffsetSyncEmitter:
        return OffsetSyncEmitter(config or self.config, POLICY, lambda: self.copied)


def test_copies_are_looked_at_only_after_a_report(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """Looking at thousands of partitions each second, of which none moves, costs more than all else of the duty."""
    flow = Flow(source_cluster, target_cluster, topic_name, "target")
    flow.copied = [CopiedTo("t", 0, 10, 20)]
    reports, looks = [1], [0]

    def copied() -> list[CopiedTo]:
        looks[0] += 1
        return flow.copied

    duty = OffsetSyncEmitter(flow.config, POLICY, copied, lambda: reports[0])
    for _ in range(3):
        duty.run()
    assert looks == [1]
    flow.copied, reports[0] = [CopiedTo("t", 0, 50, 60)], 2
    duty.finish()
    assert looks == [2]
    topic = f"mm2-offset-syncs.{flow.config.source.alias}.internal"
    assert written(flow.config.target, topic) == [OffsetSync("t", 0, 10, 20), OffsetSync("t", 0, 50, 60)]
    duty.close()


def written(cluster: ClusterConfig, topic: str) -> list[OffsetSync]:
    client = ClusterClient(cluster, "test")
    try:
        entries, _ = TopicLog(client, topic).read(0, 0)
        return [OffsetSync.read(entry.key, entry.value) for entry in entries]
    finally:
        client.close()


def has_topic(cluster: ClusterConfig, topic: str) -> bool:
    client = ClusterClient(cluster, "test")
    try:
        return not client.metadata([topic])[topic].error
    finally:
        client.close()


@pytest.mark.parametrize("location", ["source", "target"])
def test_the_topic_is_where_it_is_asked_for(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, location: str
) -> None:
    flow = Flow(source_cluster, target_cluster, topic_name, location)
    source, target = flow.config.source, flow.config.target
    here, there, other = (source, target, target) if location == "source" else (target, source, source)
    topic = f"mm2-offset-syncs.{other.alias}.internal"
    duty = flow.duty()
    duty.run()
    mp.wait_for(lambda: has_topic(here, topic), 60, "the topic, also before there is anything to write")
    assert not has_topic(there, topic)
    flow.copied = [CopiedTo("t", 0, 10, 20), CopiedTo("u", 3, -1, -1)]
    duty.run()
    duty.run()
    flow.copied = [CopiedTo("t", 0, 50, 60), CopiedTo("u", 3, 0, 0)]
    duty.run()
    assert written(here, topic) == [OffsetSync("t", 0, 10, 20), OffsetSync("u", 3, 0, 0)]
    flow.copied = [CopiedTo("t", 0, 110, 120), CopiedTo("u", 3, 5, 4)]
    duty.run()
    assert written(here, topic)[2:] == [OffsetSync("u", 3, 5, 4)], "99 records are less than the lag"
    duty.finish()
    assert written(here, topic)[3:] == [OffsetSync("t", 0, 110, 120)]
    duty.close()


def test_what_was_delayed_is_written_at_the_flush_interval(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    flow = Flow(source_cluster, target_cluster, topic_name, "source")
    config = flow.config.model_copy(update={"connect": ConnectStorage(offset_flush_interval_ms=1)})
    duty = flow.duty(config)
    for upstream in (10, 11, 12):
        flow.copied = [CopiedTo("t", 0, upstream, upstream)]
        time.sleep(0.01)  # longer than the interval
        duty.run()
    topic = POLICY.offset_syncs_topic(config.target.alias)
    assert [sync.upstream for sync in written(config.source, topic)] == [10, 11, 12]
    duty.close()


def test_what_could_not_be_written_is_written_later(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow = Flow(source_cluster, target_cluster, topic_name, "target")
    duty = flow.duty()
    flow.copied = [CopiedTo("t", 0, 10, 20)]

    def unreachable(*_: object, **__: object) -> int:
        raise ConnectionError("the broker is gone")

    with monkeypatch.context() as broken:
        broken.setattr(TopicLog, "append", unreachable)
        with pytest.raises(ConnectionError):
            duty.run()
    duty.run()
    topic = POLICY.offset_syncs_topic(flow.config.source.alias)
    assert written(flow.config.target, topic) == [OffsetSync("t", 0, 10, 20)]
    duty.close()
