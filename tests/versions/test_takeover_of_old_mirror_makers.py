"""From a MirrorMaker 2 as old as its source to us: killed under load, and each record is at the target once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cluster_of import cluster_of
from tests.support import mirror_process as mp
from tests.support.handover import PARTITIONS, Handover

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

RECORDS = 4_000
LONGEST_S = 300


@pytest.mark.parametrize(("version", "target_version"), [("2.7.2", "2.8.2"), ("2.8.2", "2.8.2"), ("3.6.2", "3.9.1")])
def test_killed_and_taken_over(version: str, target_version: str, topic_name: str, tmp_path: Path) -> None:
    """Its stored offsets are older than what it has copied.

    A MirrorMaker 2 of 2.x creates no topics at Kafka 4, which refuses `message.format.version`.
    """
    with cluster_of(version, tmp_path / "source") as source, cluster_of(target_version, tmp_path / "target") as target:
        handover = Handover(source, target, topic_name, tmp_path, mirror_maker_version=version)
        with mp.load(source.bootstrap_servers, topic_name, PARTITIONS):
            handover.mirror_maker.start()
            handover.wait_for_more(RECORDS, f"MirrorMaker 2 {version}")
            handover.wait_for_syncs()
            handover.mirror_maker.kill()
            written = handover.written()
            mp.wait_for(lambda: handover.written() > written, 60, "records that MirrorMaker 2 has not seen")
        handover.wait_until_forgotten()
        copied = handover.copied()
        assert copied < handover.written(), "nothing is left for us"
        command = [mp.COMMAND, "run", str(handover.properties), "--once"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        print(f"MirrorMaker 2 {version} copied {copied} records, we {handover.copied() - copied}")
        assert not any(handover.repeated().values())
    source.cleanup()
    target.cleanup()
