"""A mirror on a real Spark standalone cluster, whose executors are killed under it."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import mirror_process as mp
import psutil
import pytest
from test_kills import PARTITIONS, Progress, assert_identical, finish

from sparkmirror.demo import KafkaCluster
from sparkmirror.demo.spark_cluster import standalone_cluster

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]


def executors() -> list[psutil.Process]:
    """Executor JVMs of the clusters that this process started."""
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if "CoarseGrainedExecutorBackend" in mp.command_line(process)
    ]


def test_executors_killed_under_load(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, PARTITIONS)
    progress = Progress(target_cluster, topic_name)
    with standalone_cluster(tmp_path) as settings:
        properties = mp.write_properties(
            tmp_path / "mm2.properties",
            source_cluster.bootstrap_servers,
            target_cluster.bootstrap_servers,
            topic_name,
            settings,
        )
        with (
            mp.load(source_cluster.bootstrap_servers, topic_name, PARTITIONS),
            mp.MirrorProcess(properties, tmp_path / "mirror.log") as mirror,
        ):
            for _ in range(3):
                progress.wait(90)
                random.choice(executors()).send_signal(signal.SIGKILL)
                time.sleep(2)
            progress.wait(90)
            assert mirror.terminate() == 0
        local = mp.write_properties(
            tmp_path / "local.properties",
            source_cluster.bootstrap_servers,
            target_cluster.bootstrap_servers,
            topic_name,
        )
        finish(local, tmp_path / "mirror.log")
    assert_identical(source_cluster, target_cluster, topic_name)
