"""From a real MirrorMaker 2 that keeps names by an empty alias and separator to us, and back: every record once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.handover import PARTITIONS, Handover, read

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

EMPTY = {"source.cluster.alias": "", "replication.policy.separator": ""}


class SameNames(Handover):
    @property
    def remote(self) -> str:
        return self.topic


def test_on_from_where_it_stopped_and_back(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    handover = SameNames(source_cluster, target_cluster, topic_name, tmp_path, EMPTY)
    mp.produce(source_cluster.bootstrap_servers, topic_name, PARTITIONS, 4_000)
    with handover.mirror_maker:
        handover.wait_for_all()
    assert len(handover.stored()) == PARTITIONS
    mp.produce(source_cluster.bootstrap_servers, topic_name, PARTITIONS, 4_000)
    mirror = handover.finish(spark)
    assert mirror.drivers[0].topics.takeover.taken == PARTITIONS
    clusters = {json.loads(record.key)[1]["cluster"] for _, record in read(target_cluster, handover.offsets_topic, 25)}
    assert clusters == {""}
    mp.produce(source_cluster.bootstrap_servers, topic_name, PARTITIONS, 4_000)
    with handover.mirror_maker:
        handover.wait_for_all()
    assert not any(handover.repeated().values())
