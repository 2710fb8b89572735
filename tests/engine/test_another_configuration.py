"""A running mirror takes another configuration: nothing is lost or repeated, and what stays the same is left alone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.loaded_flow import assert_copied
from tests.support.mirror_thread import run_mirror

from sparkmirror.config import FlowConfig, MirrorConfig, load_mm2_properties
from sparkmirror.mirror.engine.mirror import Mirror

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def with_flows(config: MirrorConfig, *flows: FlowConfig) -> MirrorConfig:
    return config.model_copy(update={"flows": flows})


def back(flow: FlowConfig, topic: str) -> FlowConfig:
    """A flow the other way."""
    return flow.model_copy(update={"source": flow.target, "target": flow.source, "topics": (topic,)})


def unreachable(flow: FlowConfig) -> FlowConfig:
    """The flow from a source that is away, which is given up after a few seconds instead of 15."""
    away = flow.source.model_copy(update={"bootstrap_servers": ("127.0.0.1:1",)})
    return flow.model_copy(update={"source": away, "admin_timeout_ms": 1_500})


def test_flows_come_change_and_go_under_load(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    source, target = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    stays, added = f"{topic_name}-stays", f"{topic_name}-added"
    rev = f"{topic_name}-back"
    for topic in (stays, added):
        mp.create_topic(source, topic, 2)
    mp.create_topic(target, rev, 2)
    mp.produce(target, rev, 2, 100)
    path = mp.write_properties(tmp_path / "mm2.properties", source, target, stays)
    config = load_mm2_properties(str(path))
    (flow,) = config.flows
    both = flow.model_copy(update={"topics": (stays, added)})

    def copied(topic: str) -> int:
        return sum(mp.end_offsets(target, topic, 2))

    def changed_under_load(mirror: Mirror) -> None:
        mp.wait_for(lambda: copied(f"A.{stays}") > 0, 120, "the first topic")
        (first,) = mirror.drivers
        mirror.change(with_flows(config, both))
        mp.wait_for(lambda: copied(f"A.{added}") > 0, 120, "the second topic")
        (second,) = mirror.drivers
        assert second is not first
        # A flow the other way comes, changes, fails and goes; this one is not touched.
        other = back(flow, rev)
        mirror.change(with_flows(config, both, other))
        mp.wait_for(lambda: sum(mp.end_offsets(source, f"B.{rev}", 2)) == 100, 120, "the flow back")
        mirror.change(with_flows(config, both, unreachable(other)))
        mp.wait_for(lambda: other.name in mirror.registry.failed, 120, "the reason why it can't be opened")
        mp.wait_for(lambda: mirror.registry.is_up_to_date, 120, "its end")
        assert mirror.drivers == [second]
        before = copied(f"A.{stays}")
        mp.wait_for(lambda: copied(f"A.{stays}") > before, 120, "the other continues")
        assert mirror.drivers == [second]
        mirror.change(with_flows(config))
        mp.wait_for(lambda: not mirror.drivers, 120, "the end of the flow")
        before = copied(f"A.{stays}")
        time.sleep(1.5)
        assert copied(f"A.{stays}") == before
        mirror.change(with_flows(config, both))
        mp.wait_for(lambda: copied(f"A.{stays}") > before, 120, "the copy continues")
        mirror.change(with_flows(config, both), restart=[both.name])
        mp.wait_for(lambda: mirror.drivers[-1:] != [] and mirror.registry.is_up_to_date, 120, "the restart")
        assert not mirror.registry.is_restarting(both.name)

    with run_mirror(path, spark) as mirror:
        with mp.load(source, stays, 2, per_s=500), mp.load(source, added, 2, per_s=500):
            changed_under_load(mirror)
        ends = [sum(mp.end_offsets(source, topic, 2)) for topic in (stays, added)]
        mp.wait_for(lambda: [copied(f"A.{topic}") for topic in (stays, added)] == ends, 120, "all records")
    assert_copied(source_cluster, target_cluster, {topic: f"A.{topic}" for topic in (stays, added)})
