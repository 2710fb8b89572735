"""Each earlier release and this one hand a flow over to each other under load, with every record once and in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.loaded_flow import LoadedFlow

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SPARK_S = 240.0
"""Patience with a process whose Spark begins at its takeover, as that of 0.1 does, on a busy machine."""


@pytest.fixture
def flow(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> LoadedFlow:
    """A flow between the session's clusters."""
    return LoadedFlow(source_cluster, target_cluster, topic_name, tmp_path)


def start_old(flow: LoadedFlow, source: Path, log: str) -> mp.MirrorProcess:
    """One process of an earlier release on the flow's file."""
    command = ("env", f"PYTHONPATH={source}", mp.COMMAND, "run")
    return mp.MirrorProcess(flow.properties, flow.directory / f"{log}.log", command=command)


def stands_by(mirror: mp.MirrorProcess) -> bool:
    """True once the process has said that it stands by."""
    return "standing by" in mirror.log.read_text()


def test_both_ways(flow: LoadedFlow, earlier_source: Path) -> None:
    """Stopped in order and killed, old to new and new to old: the one that stands by continues."""
    with flow.load(), start_old(flow, earlier_source, "old-1") as first:
        flow.wait_for_progress(SPARK_S)
        with flow.start(log="new-1") as second:
            mp.wait_for(lambda: stands_by(second), SPARK_S, "the new release stands by")
            assert first.terminate(60) == 0
            flow.wait_for_progress(SPARK_S)
            with start_old(flow, earlier_source, "old-2") as third:
                mp.wait_for(lambda: stands_by(third), SPARK_S, "the old release stands by")
                second.kill_all()
                flow.wait_for_progress(SPARK_S)
                with flow.start(log="new-2") as fourth:
                    mp.wait_for(lambda: stands_by(fourth), SPARK_S, "the new release stands by again")
                    third.kill_all()
                    flow.wait_for_progress(SPARK_S)
                    assert fourth.terminate(60) == 0
    flow.finish()


def test_at_once_without_a_lease(flow: LoadedFlow, earlier_source: Path) -> None:
    """Both append to the same partitions; the leader lets one in each time."""
    with flow.load(), start_old(flow, earlier_source, "old") as first, flow.start("--no-lease", log="new") as second:
        flow.wait_for_progress(SPARK_S)
        mp.wait_for(lambda: bool(first.workers() and second.workers()), SPARK_S, "both work")
        flow.wait_for_progress(SPARK_S)
    flow.finish()
