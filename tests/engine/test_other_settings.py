"""A second deployment of a flow with another file: what differs is said at once, wherever it is looked at."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from lab import KafkaCluster
from tests.support import mirror_process as mp

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]


def test_a_process_that_stands_by_and_each_verb_tell_what_differs(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    source, target = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(source, topic_name, 1)
    policy = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
    at_work = mp.write_properties(tmp_path / "work.properties", source, target, topic_name, policy)
    other = mp.write_properties(tmp_path / "other.properties", source, target, f"{topic_name}-bills")

    def verb(*words: object) -> tuple[int, str]:
        run = subprocess.run([mp.COMMAND, *map(str, words)], capture_output=True, text=True, timeout=120)
        return run.returncode, run.stdout + run.stderr

    log = tmp_path / "standby.log"
    with mp.MirrorProcess(at_work, tmp_path / "work.log", "-o", "json") as mirror:
        mp.wait_for(lambda: any(line["state"] == "caught up" for line in mirror.printed()), 120, "the mirror")
        with mp.MirrorProcess(other, log):
            mp.wait_for(lambda: log.exists() and "[other-settings]" in log.read_text(), 60, "the warning")
        (warning,) = (line for line in log.read_text().splitlines() if "[other-settings]" in line)
        for difference in (
            f"topics: `{topic_name}` there, `{topic_name}-bills` here",
            "replication.policy.class: `org",
        ):
            assert difference in warning
        code, words = verb("status", other, "--check")
        assert (code, f"topics: `{topic_name}` there" in words) == (0, True), words
        code, words = verb("status", at_work, "-o", "json")
        assert (code, json.loads(words)[0]["differs"]) == (0, [])
        code, words = verb("doctor", other, "-o", "json", "--wait", "0")
        (finding,) = (each for each in json.loads(words) if each["rule"] == "other-settings")
        assert (code, finding["severity"]) == (1, "warning")
        assert f"topics: `{topic_name}` there, `{topic_name}-bills` here" in finding["cause"]
        assert "other-settings" not in verb("doctor", at_work, "-o", "json", "--wait", "0")[1]
        assert mirror.terminate() == 0
