"""Remedies of flows that don't begin to copy, followed on real clusters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from remedy_case import Case, wait_for_finding, wait_until_gone
from tests.support import mirror_process as mp
from tests.support.in_process import sparkmirror
from tests.support.mirror_thread import run_config

from sparkmirror.config import load_mm2_properties
from sparkmirror.look.doctor import lease, states
from sparkmirror.mirror.engine import lag_monitor

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SOON_S = 3.0


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said after five minutes is said after seconds."""
    monkeypatch.setattr(lag_monitor, "LOOK_S", 1.0)
    for module in (lease, states):
        monkeypatch.setattr(module, "LONG_S", SOON_S)


@pytest.fixture
def three_brokers(tmp_path: Path) -> Iterator[KafkaCluster]:
    """A source in which a broker may be away: two controllers are left."""
    with KafkaCluster(tmp_path / "three", brokers=3) as made:
        yield made


def test_a_killed_process_keeps_the_next_one_from_joining(remedy_case: Case) -> None:
    """The command shows it among the members; once its session is over, the next one works."""
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 1)
    mp.produce(remedy_case.source.bootstrap_servers, remedy_case.topic, 1, 10)
    remedy_case.write(**{"B.session.timeout.ms": "40000"})
    with mp.MirrorProcess(remedy_case.file, remedy_case.directory / "killed.log") as killed:
        mp.wait_for(lambda: remedy_case.copied() == 10, 120, "all is copied")
        killed.kill_all()
    mp.produce(remedy_case.source.bootstrap_servers, remedy_case.topic, 1, 10)
    with run_config(load_mm2_properties(str(remedy_case.file)), remedy_case.spark, use_lease=True) as mirror:
        finding = wait_for_finding(mirror, "long-joining")
        members = remedy_case.run(finding.action)
        assert members.count("A-mm2") >= 2, members
        mp.wait_for(lambda: remedy_case.copied() == 20, 150, "all is copied")
        wait_until_gone(mirror, "long-joining")


def test_partitions_without_a_leader_at_the_start(
    three_brokers: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    """The broker that has one is away: the commands name partition and broker, and it is started."""
    case = Case(three_brokers, target_cluster, topic_name, tmp_path, spark)
    mp.create_topic(three_brokers.bootstrap_servers, topic_name, 3)
    mp.produce(three_brokers.bootstrap_servers, topic_name, 3, 30)
    case.write()
    third = three_brokers.brokers[2]
    third.kill()
    with case.running() as mirror:
        finding = wait_for_finding(mirror, "long-finding-out")
        (partition,) = re.findall(rf"Topic: {topic_name}\s+Partition: (\d)", case.run(finding.action))
        listed = sparkmirror("topics", "list", str(case.file)).stdout
        assert f"A: {topic_name}-{partition} has no leader now" in listed
        assert case.copied(partitions=3) == 20, "the others are copied"
        third.start()
        mp.wait_for(lambda: case.copied(partitions=3) == 30, 90, "all is copied")
        wait_until_gone(mirror, "long-finding-out")
