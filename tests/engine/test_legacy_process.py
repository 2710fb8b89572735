"""`sparkmirror legacy` as processes that sign in: one works, another waits, and follows when the first is killed."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from kafka import KafkaConsumer, TopicPartition
from lab import Authority, KafkaCluster
from tests.support import mirror_process as mp
from tests.support.loaded_flow import PARTITIONS, assert_copied
from tests.support.secure_clusters import PASSWORD, plain_settings, scram_settings, scram_user

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]


def write(path: Path, settings: dict[str, str]) -> Path:
    lines = (f"{key} = {value}\n" for key, value in settings.items())
    path.write_text("".join(lines).replace("\\", "\\\\"))
    return path


def committed(cluster: KafkaCluster, group: str, topic: str) -> list[int]:
    consumer: Any = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, group_id=group)
    try:
        return [consumer.committed(TopicPartition(topic, partition)) or 0 for partition in range(PARTITIONS)]
    finally:
        consumer.close()


def test_a_killed_one_is_followed(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    """SCRAM at the source, PLAIN at the target; every record once, and the group is where the copy ends."""
    here, there = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(here, topic_name, PARTITIONS)
    mp.create_topic(there, topic_name, PARTITIONS)
    scram_user(source_cluster, "old, = maker", PASSWORD)
    consumer = write(
        tmp_path / "consumer.properties",
        {
            **scram_settings(authority, "old, = maker", PASSWORD),
            "bootstrap.servers": source_cluster.servers("SCRAM"),
            "group.id": topic_name,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": "6000",
        },
    )
    producer = write(
        tmp_path / "producer.properties",
        {**plain_settings("mirror", "hunter2-plain"), "bootstrap.servers": target_cluster.servers("PLAIN")},
    )

    def start(name: str) -> mp.MirrorProcess:
        flags = ("--include", topic_name, "--num.streams", "2", "--offset.commit.interval.ms", "1000", "-o", "json")
        command = (mp.COMMAND, "legacy", "--consumer.config", str(consumer), *flags, "--producer.config")
        return mp.MirrorProcess(producer, tmp_path / f"{name}.log", command=command)

    def copied() -> int:
        return sum(mp.end_offsets(there, topic_name, PARTITIONS))

    with start("first") as first, mp.load(here, topic_name, PARTITIONS, per_s=400):
        mp.wait_for(lambda: copied() > 400, 120, "the first records")
        with start("second") as second:
            mp.wait_for(lambda: "standing by" in second.log.read_text(), 180, "the second one waits")
            before = copied()
            for one in first.family():
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.send_signal(signal.SIGKILL)
            mp.wait_for(lambda: copied() > before + 400, 120, "fresh records by the second one")
            assert second.process.poll() is None
            mp.wait_for(lambda: sum(committed(source_cluster, topic_name, topic_name)) > before, 180, "its commits")
            assert second.terminate(60) == 0
    with start("last") as last:
        ends = mp.end_offsets(here, topic_name, PARTITIONS)
        mp.wait_for(lambda: mp.end_offsets(there, topic_name, PARTITIONS) == ends, 120, "the rest")
        mp.wait_for(lambda: committed(source_cluster, topic_name, topic_name) == ends, 180, "the last commits")
        assert last.terminate(60) == 0
    assert last.printed()[-1]["lag"] == 0
    assert_copied(source_cluster, target_cluster, {topic_name: topic_name})
    logs = "".join(log.read_text() for log in tmp_path.glob("*.log"))
    assert "Traceback" not in logs
    assert "hunter2" not in logs
