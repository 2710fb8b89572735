"""A Strimzi resource that is changed under a running mirror: taken over by the same process, or refused in one line."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from lab import KafkaCluster
from test_strimzi_examples import RECORDS, addressed, assert_copied, fill, status_of
from tests.support import mirror_process as mp

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


def test_a_stopped_source_connector_copies_nothing_and_its_groups_are_translated(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """The cut-over step of Strimzi's users; once the connector runs again, it continues where it ended."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, RECORDS)
    servers = {"west": source_cluster.bootstrap_servers, "east": target_cluster.bootstrap_servers}
    path = addressed(tmp_path, "basic", servers, topic_name)
    intervals = ("emit.checkpoints", "sync.group.offsets", "refresh.groups")
    groups = "".join(f"          {name}.interval.seconds: 2\n" for name in intervals)
    groups += '          sync.group.offsets.enabled: "true"\n'
    running = path.read_text().replace("          checkpoints.topic", f"{groups}          checkpoints.topic")
    stopped = running.replace("      sourceConnector:\n", "      sourceConnector:\n        state: stopped\n")
    path.write_text(running)
    status = tmp_path / "status.yaml"

    def copied() -> int:
        return sum(mp.end_offsets(target_cluster.bootstrap_servers, f"west.{topic_name}", 1))

    def states() -> list[str]:
        return [connector["connector"]["state"] for connector in status_of(status)["connectors"]]

    def committed() -> int | None:
        with closing(KafkaConsumer(bootstrap_servers=target_cluster.bootstrap_servers, group_id=topic_name)) as reader:
            offset: int | None = reader.committed(TopicPartition(f"west.{topic_name}", 0))
            return offset

    with mp.MirrorProcess(path, tmp_path / "log", "--status-file", str(status)) as mirror:
        mp.wait_for(lambda: copied() == RECORDS, 120, "the first records")
        path.write_text(stopped)
        mp.wait_for(lambda: states() == ["STOPPED", "RUNNING"], 60, "the source connector is stopped")
        assert f"{path} has changed: flow west->east: no records are copied" in (tmp_path / "log").read_text()
        mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 7)
        with closing(KafkaConsumer(bootstrap_servers=source_cluster.bootstrap_servers, group_id=topic_name)) as reader:
            reader.assign([TopicPartition(topic_name, 0)])
            reader.commit({TopicPartition(topic_name, 0): OffsetAndMetadata(77, "", -1)})
        mp.wait_for(lambda: committed() == 77, 120, "the group is translated while nothing is copied")
        assert copied() == RECORDS
        assert status_of(status)["conditions"][0]["type"] == "Ready"
        path.write_text(running)
        mp.wait_for(lambda: copied() == RECORDS + 7, 120, "the records of the meantime")
        assert mirror.terminate(90) == 0
