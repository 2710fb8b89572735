"""`verify` of a copy that somebody else began: what they copied is not ours to judge."""

from __future__ import annotations

import json
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import TopicAlreadyExistsError
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_verify import config_of, plain, pytestmark, write
from tests.support import mirror_process as mp

from conftest import StartMirror
from sparkmirror.frames import Options, run_verification

__all__ = ["pytestmark"]

THEIRS, TWICE, ALL = 500, 3, 800
"""Records that they copied, how many of them twice, and how many there are."""


def store_offset(target: KafkaCluster, topic: str, offset: int) -> None:
    """As MirrorMaker 2's source connector does."""
    offsets = "mm2-offsets.A.internal"
    admin = KafkaAdminClient(bootstrap_servers=target.bootstrap_servers)
    try:
        admin.create_topics([NewTopic(offsets, 25, 1, topic_configs={"cleanup.policy": "compact"})])
    except TopicAlreadyExistsError:
        pass
    finally:
        admin.close()
    key = json.dumps(["MirrorSourceConnector", {"cluster": "A", "partition": 0, "topic": topic}], separators=(",", ":"))
    producer = KafkaProducer(bootstrap_servers=target.bootstrap_servers)
    producer.send(offsets, key=key.encode(), value=json.dumps({"offset": offset}).encode()).get(30)
    producer.close()


def test_what_a_mirror_maker_copied_is_left_out_and_said(
    spark: SparkSession,
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
) -> None:
    copied = f"A.{topic_name}"
    for cluster, topic in ((source_cluster, topic_name), (target_cluster, copied)):
        mp.create_topic(cluster.bootstrap_servers, topic, 1)
    write(source_cluster, topic_name, plain(range(ALL)))
    write(target_cluster, copied, [*plain(range(TWICE)), *plain(range(THEIRS))])
    store_offset(target_cluster, topic_name, THEIRS - 1)
    with start_mirror(topic_name, {}):
        mp.wait_for(
            lambda: mp.end_offsets(target_cluster.bootstrap_servers, copied, 1) == [TWICE + ALL], 90, "the rest"
        )
    found = run_verification(spark, config_of(tmp_path, source_cluster, target_cluster, topic_name), Options())
    assert not found.differs, found.differences
    (one,) = found.partitions
    assert (one.records, one.expired) == (ALL - THEIRS, THEIRS)
    assert one.not_compared == found.not_compared == {"another mirror's": TWICE + THEIRS}
