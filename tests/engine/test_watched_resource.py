"""A Strimzi resource that is changed under a running mirror: taken over by the same process, or refused in one line."""

from __future__ import annotations

from pathlib import Path

import mirror_process as mp
import pytest
from test_strimzi_examples import RECORDS, addressed, assert_copied, fill, status_of

from sparkmirror.demo import KafkaCluster

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]


def test_changes_are_taken_over_while_it_runs(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    first, second = f"{topic_name}-a", f"{topic_name}-b"
    fill(source_cluster, first)
    servers = {"west": source_cluster.bootstrap_servers, "east": target_cluster.bootstrap_servers}
    path = addressed(tmp_path, "basic", servers, first)
    status, log = tmp_path / "status.yaml", tmp_path / "log"

    def copied(topic: str) -> bool:
        return sum(mp.end_offsets(target_cluster.bootstrap_servers, f"west.{topic}", 2)) == RECORDS

    with mp.MirrorProcess(path, log, "--status-file", str(status), "--log-format", "json") as mirror:
        mp.wait_for(lambda: copied(first), 120, "the first topic")
        text = path.read_text()
        path.write_text(text.replace("bootstrapServers: ", "bootstrapServers: ["))
        mp.wait_for(lambda: '"file-not-taken"' in log.read_text(), 30, "it is refused")
        fill(source_cluster, second)
        path.write_text(text.replace(f'"{first}"', f'"{topic_name}-.*"'))
        mp.wait_for(lambda: copied(second), 120, "the second topic")
        changed = [line for line in mirror.printed() if line.get("event") == "file-changed"]
        assert [line["message"].partition("has changed: ")[2] for line in changed] == ["flow west->east: topics"]
        assert mirror.terminate(90) == 0
    assert_copied(source_cluster, target_cluster, {first: f"west.{first}", second: f"west.{second}"})
    assert status_of(status)["replicas"] == 0
