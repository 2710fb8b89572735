"""A mirror on a real Spark standalone cluster, whose executors are killed under it."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from lab import Authority, KafkaCluster
from lab.spark_cluster import standalone_cluster
from tests.support import mirror_process as mp
from tests.support.loaded_flow import PARTITIONS, LoadedFlow, assert_copied
from tests.support.secure_clusters import of_cluster, scram_settings, scram_user

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]


def executors() -> list[psutil.Process]:
    """Executor JVMs of the clusters that this process started."""
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if "CoarseGrainedExecutorBackend" in mp.command_line(process)
    ]


def test_executors_killed_under_load(flow: LoadedFlow, tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as settings:
        properties = flow.write_properties("standalone.properties", flow.target.bootstrap_servers, settings)
        with flow.load(), flow.start(properties=properties) as mirror:
            for _ in range(3):
                flow.wait_for_progress(90)
                random.choice(executors()).send_signal(signal.SIGKILL)
                time.sleep(2)
            flow.wait_for_progress(90)
            assert mirror.terminate() == 0
        flow.finish()


def test_passwords_on_a_cluster_that_keeps_them(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    """One travels to the executors inside their orders, of the other only where to find it."""
    here, literal, referred, sparks = source_cluster.bootstrap_servers, "hunter2-a", "hunter2-b", "hunter2-spark"
    for cluster, password in ((source_cluster, literal), (target_cluster, referred)):
        scram_user(cluster, f"{topic_name}-user", password)
    passwords = tmp_path / "passwords.properties"
    passwords.write_text(f"b={referred}\n")
    mp.create_topic(here, topic_name, PARTITIONS)
    mp.produce(here, topic_name, PARTITIONS, 2_000)
    (tmp_path / "spark").mkdir()
    with standalone_cluster(tmp_path / "spark", secret=sparks) as spark:
        path = mp.write_properties(
            tmp_path / "mm2.properties",
            source_cluster.servers("SCRAM"),
            target_cluster.servers("SCRAM"),
            topic_name,
            {
                **of_cluster("A", scram_settings(authority, f"{topic_name}-user", literal)),
                **of_cluster("B", scram_settings(authority, f"{topic_name}-user", f"${{file:{passwords}:b}}")),
                "config.providers": "file",
                "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
                **spark,
            },
        )
        shown: set[str] = set()
        with mp.MirrorProcess(path, tmp_path / "mirror.log") as mirror:
            mp.wait_for(
                lambda: sum(mp.end_offsets(target_cluster.bootstrap_servers, f"A.{topic_name}", PARTITIONS)) == 2_000,
                120,
                "all of it",
            )
            assert executors()
            shown |= {mp.command_line(one) for one in psutil.Process().children(recursive=True)}
            assert mirror.terminate() == 0
        verified = subprocess.run([mp.COMMAND, "verify", str(path)], capture_output=True, text=True, timeout=120)
        assert verified.returncode == 0, verified.stdout + verified.stderr
    shown.add((tmp_path / "mirror.log").read_text())
    for text in shown:
        for secret in (literal, referred, sparks):
            assert secret not in text
    assert_copied(source_cluster, target_cluster, {topic_name: f"A.{topic_name}"})
