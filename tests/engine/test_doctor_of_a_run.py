"""The doctor over a real mirror: what is paused and what is parked is told, and of what is well nothing."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from lab import KafkaCluster
from test_mirror import control
from tests.support import mirror_process as mp
from tests.support.loss_tools import acknowledge_all
from tests.support.mirror_thread import receipt
from typer.testing import CliRunner

from conftest import StartMirror
from sparkmirror.cli.app import app
from sparkmirror.look.doctor.findings import Finding, Severity, diagnose
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.snapshot.snapshot import PartitionState, Topic

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

MACHINE = ("tasks-max-useless", "slots-short", "duty-slow")
"""Rules on how many tasks there are and how busy this machine is: not what is looked at here."""


def topic_of(mirror: Mirror, name: str) -> Topic | None:
    (flow,) = mirror.observer.snapshot().flows
    return next((topic for topic in flow.topics if topic.topic == name and topic.partitions), None)


def state_of(mirror: Mirror, name: str) -> tuple[PartitionState, int | None] | None:
    topic = topic_of(mirror, name)
    return (topic.partitions[0].state, topic.partitions[0].lag) if topic is not None else None


def about(findings: list[Finding]) -> list[tuple[str, Severity, str]]:
    """Of each its rule, severity and subject."""
    return [(one.rule, one.severity, one.subject) for one in findings if one.rule not in MACHINE]


def test_paused_parked_and_well(
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
) -> None:
    here, there = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    acknowledge_all(target_cluster)
    fine, large, paused = (f"{topic_name}-{kind}" for kind in ("fine", "large", "paused"))
    for topic in (fine, large, paused):
        mp.create_topic(here, topic, 1)
        mp.create_topic(there, f"A.{topic}", 1, {"max.message.bytes": "5000"} if topic == large else {})
        mp.produce(here, topic, 1, 50)
    with start_mirror(f"{topic_name}-.*", {"sync.topic.configs.enabled": "false"}) as mirror:
        mp.wait_for(lambda: mp.end_offsets(there, f"A.{paused}", 1) == [50], 90, "all is copied")
        mp.wait_for(lambda: mp.end_offsets(there, f"A.{fine}", 1) == [50], 90, "all is copied")
        well = mirror.observer.snapshot()
        time.sleep(2)
        assert about(diagnose(mirror.observer.snapshot(), [well])) == []
        control(target_cluster).pause([paused])
        mp.wait_for(lambda: (state_of(mirror, paused) or [None])[0] is PartitionState.PAUSED, 60, "it is paused")
        mp.produce(here, paused, 1, 30)
        mp.produce(here, large, 1, 1, size=20_000, codec=None)
        mp.wait_for(lambda: (state_of(mirror, large) or [None])[0] is PartitionState.PARKED, 90, "it is parked")
        mp.wait_for(lambda: state_of(mirror, paused) == (PartitionState.PAUSED, 30), 60, "its lag is known")
        mp.produce(here, fine, 1, 50)
        mp.wait_for(lambda: mp.end_offsets(there, f"A.{fine}", 1) == [100], 90, "the others continue")
        limit = f"topic A.{large} has max.message.bytes=5000"
        mp.wait_for(lambda: limit in getattr(receipt(mirror, large), "reason", ""), 60, "the limit is named")
        expected = [
            ("parked-too-large", Severity.CRITICAL, f"{large}-0"),
            ("paused", Severity.NOTICE, paused),
        ]
        findings = diagnose(mirror.observer.snapshot(), [well])
        assert about(findings) == expected
        assert limit in findings[0].cause
        assert "30 records wait in 1 partition" in findings[1].evidence
        words = ["doctor", str(tmp_path / "mm2.properties"), "--flow", "A->B", "--wait", "12", "-o", "json"]
        said = CliRunner().invoke(app, words)
        assert said.exit_code == 1, said.output
        rows = [(row["rule"], Severity(row["severity"]), row["subject"]) for row in json.loads(said.stdout)]
        assert [row for row in rows if row[0] not in MACHINE] == expected
        mp.alter_topic(there, f"A.{large}", {"max.message.bytes": "100000"})
        control(target_cluster).pause([])
        mp.wait_for(lambda: mp.end_offsets(there, f"A.{large}", 1) == [51], 120, "the large one is copied")
        mp.wait_for(lambda: mp.end_offsets(there, f"A.{paused}", 1) == [80], 90, "what waited is copied")
        mp.wait_for(lambda: about(diagnose(mirror.observer.snapshot())) == [], 30, "nothing is wrong any more")
