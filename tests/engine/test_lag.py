"""The lag of a partition: what is at the source and not copied, whatever brokers have deleted, cleaned or aborted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_every_batch import transactional
from test_observer import flow_of, topic_of
from test_verify import IDENTITY, plain, write
from tests.support import mirror_process as mp
from tests.support.loss_tools import delete_records
from tests.support.mirror_thread import run_mirror

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.engine.catching_up import PartitionLag
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.pump.messages.control import Control, control_topic
from sparkmirror.snapshot.snapshot import FlowState, Partition, PartitionState


@given(position=st.integers(0, 100), end=st.integers(0, 100), start=st.integers(0, 100))
def test_it_is_never_negative_and_never_more_than_the_log_holds(position: int, end: int, start: int) -> None:
    lag = PartitionLag(key="t-0", position=position, end=end, parked=False, start=start).lag
    assert lag is not None
    assert 0 <= lag <= max(end - start, 0)
    assert lag <= max(end - position, 0)


@pytest.fixture
def control(target_cluster: KafkaCluster) -> Iterator[Control]:
    config = ClusterConfig(alias="B", bootstrap_servers=(target_cluster.bootstrap_servers,))
    with closing(ClusterClient(config, "test-lag")) as client:
        yield Control(TopicLog(client, control_topic("A")))


def first(mirror: Mirror, topic: str) -> Partition:
    return topic_of(mirror, topic).partitions[0]


@pytest.mark.full
@pytest.mark.broker
@pytest.mark.spark
def test_behind_a_log_start_and_aborted_transactions(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    control: Control,
    tmp_path: Path,
) -> None:
    """What is deleted before it was copied is no lag; what was aborted is none once it was passed over."""
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    aborted = f"{topic_name}-aborted"
    for topic in (topic_name, aborted):
        mp.create_topic(servers[0], topic, 1)
    settings = {**IDENTITY, "isolation.level": "read_committed"}
    path = mp.write_properties(tmp_path / "mm2.properties", *servers, f"{topic_name}.*", settings)
    write(source_cluster, topic_name, plain(range(100)))
    list(transactional(source_cluster, aborted, 6))
    with run_mirror(path, spark) as mirror:
        mp.wait_for(lambda: bool(mirror.observer.snapshot().flows) and flow_of(mirror).lag is not None, 90, "known")
        mp.wait_for(lambda: flow_of(mirror).state is FlowState.CAUGHT_UP, 60, "caught up")
        mp.wait_for(lambda: (first(mirror, aborted).lag, first(mirror, aborted).lag_s) == (0, 0.0), 30, "no lag")
        control.pause([topic_name])
        mp.wait_for(lambda: first(mirror, topic_name).state is PartitionState.PAUSED, 60, "paused")
        write(source_cluster, topic_name, plain(range(100, 200)))
        mp.wait_for(lambda: first(mirror, topic_name).lag == 100, 30, "all of it is lag")
        lag_s = first(mirror, topic_name).lag_s
        assert lag_s is not None
        assert 0.0 <= lag_s < 60.0
        delete_records(source_cluster, topic_name, 0, before=160)
        mp.wait_for(lambda: first(mirror, topic_name).lag == 40, 30, "what was deleted is no lag")
        assert flow_of(mirror).lag == 40
        delete_records(source_cluster, topic_name, 0, before=200)
        mp.wait_for(lambda: first(mirror, topic_name).lag == 0, 30, "nothing is left to be copied")
        control.pause([])
