"""What groups would skip and read again at the target, as everything that tells it tells it, and set right as told."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata
from lab import KafkaCluster
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession
from test_mirror import control
from tests.support import mirror_process as mp
from tests.support.kafka_scripts import write_scripts
from tests.support.loss_tools import acknowledge_all
from tests.support.mirror_thread import run_mirror
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.look.metrics.collector import MirrorCollector
from sparkmirror.look.page.cut_over import CutOverVerdict, cut_over
from sparkmirror.mirror.engine import flow_duties, lag_monitor, publishing
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.snapshot.snapshot import FlowState, Group

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

COUNT, MORE = 100, 60
SETTINGS = {
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "sync.topic.configs.enabled": "false",
}


@dataclass
class Stage:
    """A mirror of one topic of three partitions, with groups that have read all of it, and all that tells of them."""

    source: KafkaCluster
    target: KafkaCluster
    topic: str
    directory: Path
    mirror: Mirror

    @property
    def file(self) -> str:
        return str(self.directory / "mm2.properties")

    def commit(self, group: str, offsets: Mapping[int, int], topic: str = "") -> None:
        """Commit as the group, at the source, without joining it."""
        commits = {
            TopicPartition(topic or self.topic, partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in offsets.items()
        }
        servers = self.source.bootstrap_servers
        with closing(KafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False)) as consumer:
            consumer.assign(list(commits))
            consumer.commit(commits)

    def group(self, name: str) -> Group:
        (flow,) = self.mirror.observer.snapshot().flows
        return next(group for group in flow.groups if group.group == name)

    def costs(self, name: str) -> list[tuple[int | None, int | None]]:
        """What the group would skip and read again, by partition, as of the last look."""
        (flow,) = self.mirror.observer.snapshot().flows
        return [
            (place.skipped, place.reread) for group in flow.groups if group.group == name for place in group.partitions
        ]

    def wait_for(self, name: str, *costs: tuple[int | None, int | None], what: str) -> None:
        mp.wait_for(lambda: self.costs(name) == list(costs), 60, f"{name} {what}")

    def say(self, verb: str, *words: str) -> tuple[int, Any]:
        """Exit code of a verb, and its JSON; what it reads is published each second."""
        done = CliRunner().invoke(app, [*verb.split(), self.file, *words, "-o", "json"])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, json.loads(done.stdout)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """Of each partition of a group, as `sparkmirror groups` has it."""
        keys = ("partition", "source_offset", "target_offset", "skipped", "reread", "state")
        return [tuple(row[key] for key in keys) for row in self.say("groups")[1] if row["group"] == name]

    def wait_until_published(self, name: str, *rows: tuple[Any, ...]) -> None:
        mp.wait_for(lambda: self.rows(name) == list(rows), 30, f"{name} is published")

    def explained(self, name: str) -> tuple[bool, str | None, str, list[str]]:
        """Whether it is mirrored, reason and words of its state, and what to do."""
        _, (told,) = self.say("explain", name)
        (state,) = [check for check in told["checks"] if check["check"] == "state"]
        return told["mirrored"], state["reason"], state["words"], told["changes"]

    def findings(self) -> dict[str, dict[str, str]]:
        """The doctor's on groups, by group."""
        rules = ("group-would-skip", "group-beyond-end", "group-would-reread", "group-not-synced", "group-sync-late")
        return {row["subject"]: row for row in self.say("doctor", "--wait", "0")[1] if row["rule"] in rules}

    def metric(self, name: str) -> dict[str, float]:
        """A series of each group."""
        text = MirrorCollector(self.mirror.observer.snapshot).text().decode()
        families = text_string_to_metric_families(text)
        samples = [sample for family in families for sample in family.samples if sample.name == name]
        return {sample.labels.get("group", ""): sample.value for sample in samples}

    def reasons(self) -> tuple[CutOverVerdict, tuple[str, ...]]:
        """The page's verdict on a cut-over."""
        snapshot = self.mirror.observer.snapshot()
        (flow,) = snapshot.flows
        board = cut_over(flow, snapshot.at_ms)
        return board.verdict, board.reasons

    def run(self, told: str) -> None:
        """Run the command that a text has, as it stands there."""
        (command,) = re.findall(r"`(kafka-[^`]+)`", told)
        script, *words = shlex.split(command)
        path = write_scripts(self.directory / "bin") / script
        done = subprocess.run([path, *words], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Error" not in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.fixture
def stage(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Stage]:
    for module, name in ((flow_duties, "GROUP_WATCH_S"), (publishing, "INTERVAL_S"), (lag_monitor, "LOOK_S")):
        monkeypatch.setattr(module, name, 1.0)
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    acknowledge_all(target_cluster)
    mp.create_topic(servers[0], topic_name, 3)
    mp.create_topic(servers[0], f"{topic_name}-held", 1)
    mp.produce(servers[0], topic_name, 3, 3 * COUNT)
    mp.produce(servers[0], f"{topic_name}-held", 1, COUNT)
    settings = {**SETTINGS, "groups": f"{topic_name}.*"}
    mp.write_properties(tmp_path / "mm2.properties", *servers, f"{topic_name}.*", settings)
    with run_mirror(tmp_path / "mm2.properties", spark) as mirror:
        yield Stage(source_cluster, target_cluster, topic_name, tmp_path, mirror)


def test_groups_that_would_skip_or_read_again_or_are_beyond_the_end(stage: Stage) -> None:
    level, back, partly, ahead, beyond = (
        f"{stage.topic}-{name}" for name in ("level", "back", "partly", "ahead", "beyond")
    )
    held = f"{stage.topic}-held"
    exact, all_read = (0, 0), dict.fromkeys(range(3), COUNT)
    for group in (level, back, partly):
        stage.commit(group, all_read)
    stage.commit(ahead, {0: 40}, held)
    stage.commit(beyond, {1: 30})
    for group, count in ((level, 3), (back, 3), (partly, 3), (ahead, 1), (beyond, 1)):
        stage.wait_for(group, *[exact] * count, what="is at the target")
    mp.wait_for(lambda: stage.mirror.observer.snapshot().flows[0].state is FlowState.CAUGHT_UP, 30, "all is copied")
    assert stage.reasons() == (CutOverVerdict.READY, ())
    for group in (level, back, partly):
        stage.wait_until_published(group, *[(partition, COUNT, COUNT, 0, 0, "synced") for partition in range(3)])
    assert stage.findings() == {}
    words = "its offsets are at the target, 0 records would be skipped, 0 records would be read again"
    assert stage.explained(level) == (True, None, words, [])

    # Set back, in all partitions or one; ahead of a copy that stands still; beyond the end.
    control(stage.target).pause([held])
    mp.wait_for(lambda: held in stage.mirror.observer.snapshot().flows[0].paused, 30, "it is paused")
    mp.produce(stage.source.bootstrap_servers, held, 1, MORE)
    stage.commit(back, {0: 10, 1: 20, 2: 30})
    stage.commit(partly, {**all_read, 1: 1})
    stage.commit(ahead, {0: COUNT + 50}, held)
    stage.commit(beyond, {1: 999_999})
    stage.wait_for(back, (90, 0), (80, 0), (70, 0), what="was set back")
    stage.wait_for(partly, exact, (99, 0), exact, what="was set back in one partition")
    stage.wait_for(ahead, (0, 50), what="is ahead")
    stage.wait_for(beyond, (None, None), what="is beyond the end")
    stage.wait_for(level, *[exact] * 3, what="is where it was")

    mp.wait_for(lambda: stage.group(beyond).state == "beyond the end", 30, "the duty has seen it")
    stage.wait_until_published(beyond, (1, 999_999, 30, None, None, "beyond the end"))
    stage.wait_until_published(ahead, (0, COUNT + 50, COUNT, 0, 50, "catching up"))
    stage.wait_until_published(
        back, (0, 10, COUNT, 90, 0, "synced"), (1, 20, COUNT, 80, 0, "synced"), (2, 30, COUNT, 70, 0, "synced")
    )
    stage.wait_until_published(
        partly, (0, COUNT, COUNT, 0, 0, "synced"), (1, 1, COUNT, 99, 0, "synced"), (2, COUNT, COUNT, 0, 0, "synced")
    )

    verdict, reasons = stage.reasons()
    assert verdict is CutOverVerdict.NOT_YET
    assert reasons[1:] == (
        "1 partition is paused",
        f"{beyond} is beyond the end of the source's log",
        f"2 groups would skip 339 records ({back} 240 and {partly} 99)",
        f"{ahead} would read 50 records again",
        "1 group has read what isn't copied yet",
    )
    mirrored, reason, words, (change,) = stage.explained(back)
    assert (mirrored, reason) == (True, "would_skip")
    assert words == "its offsets are translated, 240 records would be skipped, 0 records would be read again"
    assert f"--group {back} --delete-offsets --topic A.{stage.topic}`" in change
    mirrored, reason, words, (change,) = stage.explained(beyond)
    assert (mirrored, reason) == (False, "beyond_end")
    assert words == f"{stage.topic}-1: at 999999, and the source ends at {COUNT}"
    assert f"--topic {stage.topic}:1 --execute`" in change
    mirrored, reason, words, _ = stage.explained(ahead)
    assert (mirrored, reason) == (True, "catching_up")
    assert words.endswith(", 0 records would be skipped, 50 records would be read again")
    findings = stage.findings()
    assert {group: row["rule"] for group, row in findings.items()} == {
        back: "group-would-skip",
        partly: "group-would-skip",
        beyond: "group-beyond-end",
    }
    assert findings[partly]["evidence"] == f"99 records: {stage.topic}-1 99"
    skipped = stage.metric("sparkmirror_group_skipped_records")
    assert skipped == {level: 0, back: 240, partly: 99, ahead: 0}
    assert stage.metric("sparkmirror_group_reread_records") == {level: 0, back: 0, partly: 0, ahead: 50}
    text = MirrorCollector(stage.mirror.observer.snapshot).text().decode()
    assert f'sparkmirror_group_state{{flow="A->B",group="{beyond}",state="beyond the end"}} 1' in text

    # As the doctor says.
    for group in (back, partly, beyond):
        stage.run(findings[group]["action"])
    control(stage.target).pause([])
    for group, count in ((back, 3), (partly, 3), (ahead, 1), (beyond, 1)):
        stage.wait_for(group, *[exact] * count, what="is right again")
    stage.wait_until_published(back, *[(at, 10 * at + 10, 10 * at + 10, 0, 0, "synced") for at in range(3)])
    stage.wait_until_published(beyond, (1, COUNT, COUNT, 0, 0, "synced"))
    mp.wait_for(lambda: stage.reasons() == (CutOverVerdict.READY, ()), 30, "all groups can move")
    mp.wait_for(lambda: stage.findings() == {}, 30, "nothing is wrong any more")
    assert set(stage.metric("sparkmirror_group_skipped_records").values()) == {0}


def test_a_group_that_has_moved_skips_nothing(stage: Stage) -> None:
    """It reads on at the target, while its offset at the source stays; once it rests there, that is told."""
    group, remote = f"{stage.topic}-moved", f"A.{stage.topic}"
    stage.commit(group, dict.fromkeys(range(3), 10))
    stage.wait_for(group, *[(0, 0)] * 3, what="is at the target")
    servers = stage.target.bootstrap_servers
    with closing(KafkaConsumer(remote, bootstrap_servers=servers, group_id=group, enable_auto_commit=False)) as member:
        read = 0
        while read < 3 * (COUNT - 10):
            read += sum(map(len, member.poll(timeout_ms=500).values()))
        member.commit()
        mp.wait_for(
            lambda: [place.target_offset for place in stage.group(group).partitions] == [COUNT] * 3, 30, "it was seen"
        )
        assert stage.costs(group) == [(0, 0)] * 3
        mp.wait_for(lambda: "it has members at B" in stage.group(group).reason, 30, "the duty has seen it")
        assert stage.reasons() == (CutOverVerdict.NOT_YET, ("1 group can't move",))
        mp.wait_for(lambda: group in stage.findings(), 30, "it is published")
        assert stage.findings()[group]["rule"] == "group-not-synced"
    stage.wait_for(group, *[(90, 0)] * 3, what="rests at the target")
    assert stage.reasons()[1] == (f"{group} would skip 270 records",)
