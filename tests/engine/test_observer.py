"""The snapshot of a mirror at work."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import mirror_process as mp
import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata
from mirror_thread import run_config
from pyspark.sql import SparkSession
from test_verify import IDENTITY, plain, write

from sparkmirror.config import load_mm2_properties
from sparkmirror.demo import KafkaCluster
from sparkmirror.engine import flow_duties, lag_monitor, publishing
from sparkmirror.engine.mirror import Mirror
from sparkmirror.engine.snapshot import Flow, FlowState, PartitionState, Role, Topic
from sparkmirror.engine.status_topic import read_status
from sparkmirror.sync.group_standing import GroupState

pytestmark = [pytest.mark.broker, pytest.mark.spark]

COUNT = 300
FAST = {
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
}


def commit(cluster: KafkaCluster, group: str, topic: str, offset: int) -> None:
    with closing(KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, group_id=group)) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)})


def flow_of(mirror: Mirror) -> Flow:
    (flow,) = mirror.observer.snapshot().flows
    return flow


def admin_connections(mirror: Mirror) -> int:
    flow = flow_of(mirror)
    return min(flow.source.admin_connections, flow.target.admin_connections)


def topic_of(mirror: Mirror, name: str) -> Topic:
    return next(topic for topic in flow_of(mirror).topics if topic.topic == name)


def test_it_tells_what_is_so(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module, name in ((flow_duties, "GROUP_WATCH_S"), (publishing, "INTERVAL_S"), (lag_monitor, "LOOK_S")):
        monkeypatch.setattr(module, name, 1.0)
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    write(source_cluster, topic_name, plain(range(COUNT)))
    commit(source_cluster, topic_name, topic_name, 200)
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    settings = {**IDENTITY, **FAST, "groups": topic_name}
    config = load_mm2_properties(str(mp.write_properties(tmp_path / "mm2.properties", *servers, topic_name, settings)))
    with run_config(config, spark) as mirror:
        mp.wait_for(
            lambda: bool(flow_of(mirror).groups and flow_of(mirror).groups[0].partitions), 90, "a group is seen"
        )
        mp.wait_for(lambda: flow_of(mirror).state is FlowState.CAUGHT_UP, 30, "it has caught up")
        flow = flow_of(mirror)
        assert (flow.role, flow.lag, flow.lag_s, flow.unknown, flow.records) == (Role.LEADER, 0, 0.0, 0, COUNT)
        assert sum(flow.latency.counts) + sum(flow.heartbeat_latency.counts) == COUNT
        assert flow.source.bytes >= flow.target.bytes == flow.bytes > 0
        mp.wait_for(lambda: admin_connections(mirror) >= 1, 30, "the connections that ask are counted")
        first, second = topic_of(mirror, topic_name).partitions
        assert (first.position, first.end, first.downstream, first.records) == (COUNT, COUNT, COUNT, COUNT)
        assert first.latency_ms is not None
        assert first.latency_ms.least <= first.latency_ms.mean <= first.latency_ms.most
        assert (second.position, second.end, second.lag, second.records) == (0, 0, 0, 0)
        assert first.state is second.state is PartitionState.RUNNING
        assert sum(pump.records for pump in flow.pumps) == COUNT
        checkpoints = next(duty for duty in flow.duties if duty.duty == "checkpoints")
        assert checkpoints.succeeded_ms is not None
        assert time.time() * 1000 - checkpoints.succeeded_ms < 60_000
        (driver,) = mirror.drivers

        def is_seen_refused() -> bool:
            """Also if the topic duty has just looked again."""
            refused = {topic_name: "it can't be given more partitions"}
            driver.topics.newest = replace(driver.topics.newest, refused=refused)
            return bool(topic_of(mirror, topic_name).refused)

        mp.wait_for(is_seen_refused, 5, "it is refused, though it is copied")
        assert len(topic_of(mirror, topic_name).partitions) == 2
        mp.wait_for(lambda: flow_of(mirror).groups[0].reread == 0, 30, "the group is at the target")
        (group,) = flow_of(mirror).groups
        (at,) = group.partitions
        assert (group.state, at.source_offset, at.target_offset) == (GroupState.SYNCED, 200, 200)
        assert (at.source_lag, at.target_lag) == (COUNT - 200, COUNT - 200)
        # A new driver of the same flow goes on counting.
        mirror.change(config, restart=[flow.flow])
        seen = [flow.records]

        def counts(records: int) -> bool:
            flows = mirror.observer.snapshot().flows
            seen.extend(one.records for one in flows)
            return seen[-1] == records and any(one.epochs.get("settings") == 1 for one in flows)

        mp.wait_for(lambda: counts(COUNT), 30, "the round has ended for the sake of the settings")
        write(source_cluster, topic_name, plain(range(COUNT, COUNT + 50)))
        mp.wait_for(lambda: counts(COUNT + 50), 60, "what has come since is copied")
        assert seen == sorted(seen)
        (flow_config,) = config.flows

        def published() -> int:
            status = read_status(flow_config)
            return status.flow.records if status.flow is not None else 0

        mp.wait_for(lambda: published() == COUNT + 50, 30, "it is published at the target")
        status = read_status(flow_config)
        assert status.flow is not None
        assert [topic.topic for topic in status.flow.topics] == [topic.topic for topic in flow_of(mirror).topics]
        assert [one.group for one in status.flow.groups] == [topic_name]
        age_s = status.age_s()
        assert age_s is not None
        assert age_s < 15
    process = mirror.observer.snapshot().process
    assert process.spark_version
    assert process.jvm_memory_bytes > 0
