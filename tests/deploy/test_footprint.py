"""The small form of the chart: all processes of its one pod, in the memory that its limit allows, under load."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from lab import KafkaCluster
from tests.support import mirror_process as mp

from sparkmirror.demo.ports import free_ports

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SMALL = Path(__file__).parents[2] / "deploy" / "helm" / "sparkmirror" / "values-small.yaml"
BACKLOG, PARTITIONS, LOAD_S = 60_000, 4, 45.0
MB = 1 << 20


def resident(mirror: mp.MirrorProcess) -> int:
    """Of the process and all that it started; what they share counts once."""
    total = 0
    for process in mirror.family():
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total


def test_one_pod_needs_no_more_than_its_limit(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values: dict[str, Any] = yaml.safe_load(SMALL.read_text())
    limit = int(values["resources"]["limits"]["memory"].removesuffix("Mi")) * MB
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, PARTITIONS)
    mp.produce(source_cluster.bootstrap_servers, topic_name, PARTITIONS, BACKLOG, size=1000)
    file = mp.write_properties(
        tmp_path / "mm2.properties", source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    )
    # As Java finds it out in a pod: its heap begins with a 64th of the memory.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-XX:MaxRAM={limit}")
    most = 0
    with (
        mp.MirrorProcess(file, tmp_path / "log", "--metrics-port", str(free_ports(1)[0])) as mirror,
        mp.load(source_cluster.bootstrap_servers, topic_name, PARTITIONS),
    ):
        until = time.monotonic() + LOAD_S
        while time.monotonic() < until or not copied(target_cluster, topic_name):
            most = max(most, resident(mirror))
            assert mirror.process.poll() is None
            assert time.monotonic() < until + 180
            time.sleep(0.5)
    print(f"at most {most / MB:.0f} MB")
    assert most < limit


def copied(target: KafkaCluster, topic: str) -> bool:
    return sum(mp.end_offsets(target.bootstrap_servers, f"A.{topic}", PARTITIONS)) > BACKLOG
