"""What a run logs as JSON, its tasks and its JVM too, and levels that are set while it runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from lab import KafkaCluster
from tests.support import mirror_process as mp

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

LEVEL_S = 30.0


def test_json_and_levels(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 100)
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        topic_name,
        {"sparkmirror.log.format": "json", "A->B.consumer.strange": "1"},
    )

    def set_level(level: str) -> None:
        words = [mp.COMMAND, "log-level", str(path), "sparkmirror", level]
        subprocess.run(words, check=True, timeout=60, capture_output=True)

    with mp.MirrorProcess(path, tmp_path / "mirror.log") as mirror:

        def messages(event: str) -> list[str]:
            return [line["message"] for line in mirror.printed() if line.get("event") == event]

        mp.wait_for(
            lambda: sum(mp.end_offsets(target_cluster.direct_servers, f"A.{topic_name}", 2)) >= 100, 90, "the copy"
        )
        set_level("debug")
        # The driver says it, and each of the two tasks, whose lines come through the JVM.
        mp.wait_for(lambda: len(messages("log-level-changed")) == 3, LEVEL_S, "DEBUG in all processes")
        set_level("default")
        mp.wait_for(lambda: len(messages("log-level-changed")) == 4, LEVEL_S, "the driver's level as before")
        assert messages("log-level-changed") == [
            *["log level of sparkmirror: DEBUG"] * 3,
            "log level of sparkmirror: as before",
        ]
        assert mirror.terminate() == 0
        lines = mirror.log.read_text().splitlines()
    assert {"lease-held", "epoch-started", "topic-created", "progress"} <= {
        json.loads(line).get("event") for line in lines
    }
    assert not [line for line in lines if "value-" in line or "key-" in line]
