"""A migration's end: a topic's writers move to the copy of the same name, while the mirror runs."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_observer import flow_of
from test_verify import IDENTITY, plain, write
from tests.support import mirror_process as mp
from tests.support.loss_tools import ledger
from tests.support.mirror_thread import run_mirror
from typer.testing import CliRunner

from conftest import VerifyVerb
from sparkmirror.cli import flow_lines
from sparkmirror.cli.app import app
from sparkmirror.config import load_mm2_properties
from sparkmirror.errors import ConfigError
from sparkmirror.exact.durable.loss_kinds import LossKind, LossOutcome
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.engine import lag_monitor, report_watch
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.pump.messages.control import ControlState, control_topic
from sparkmirror.snapshot.loss_counts import LossRow

pytestmark = [pytest.mark.broker, pytest.mark.spark]

COUNT = 300


@pytest.fixture(autouse=True)
def _hears_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_watch, "TICK_S", 0.3)
    monkeypatch.setattr(lag_monitor, "LOOK_S", 0.5)


@pytest.fixture
def file(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> Path:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    write(source_cluster, topic_name, plain(range(COUNT)))
    return mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        topic_name,
        IDENTITY,
    )


def late(mirror: Mirror) -> list[str]:
    return flow_lines.late(flow_of(mirror))


def is_released(mirror: Mirror, topic: str) -> bool:
    return bool(mirror.drivers) and topic in flow_lines.released(flow_of(mirror))


def unexpected(mirror: Mirror, topic: str) -> list[LossRow]:
    """Entries of the topic that the mirror knows, but for those that are to be expected."""
    rows = mirror.drivers[0].reports.loss_watch.rows
    return [row for row in rows if row.topic in (topic, f"A.{topic}") and row.outcome is not LossOutcome.EXPECTED]


def end(cluster: KafkaCluster, topic: str) -> int:
    return mp.end_offsets(cluster.bootstrap_servers, topic, 2)[0]


def say(verb: str, file: Path, topic: str) -> str:
    said = CliRunner().invoke(app, ["topics", verb, str(file), "--topics", topic])
    assert said.exit_code == 0, said.output
    return said.stdout


def test_writers_that_have_moved_are_no_accident(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    file: Path,
    verify_verb: VerifyVerb,
) -> None:
    with run_mirror(file, spark) as mirror:
        mp.wait_for(lambda: end(target_cluster, topic_name) == COUNT, 90, "copied")
        assert f"{topic_name} is copied up to its end" in say("done", file, topic_name)
        mp.wait_for(lambda: is_released(mirror, topic_name), 30, "the topic is released")
        write(target_cluster, topic_name, plain(range(50)))
        assert flow_of(mirror).state == "caught up"
    with run_mirror(file, spark) as mirror:  # it reads no position of what it has released
        mp.wait_for(lambda: is_released(mirror, topic_name), 30, "it is still released")
        mp.wait_for(lambda: flow_of(mirror).state == "caught up", 30, "nothing is left to do")
        assert not mirror.drivers[0].view.partitions
        assert unexpected(mirror, topic_name) == []
    assert ledger(target_cluster, topic_name) == []
    said = verify_verb(str(file), "-o", "json")
    assert (said.returncode, json.loads(said.stdout.splitlines()[-1])["verdict"]) == (0, "equal"), said.stdout


def test_who_was_killed_before_it_wrote_down_what_it_had_released(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    file: Path,
    verify_verb: VerifyVerb,
) -> None:
    """The next process finds out again that all is copied, though others have written to the copy since."""
    with run_mirror(file, spark):
        mp.wait_for(lambda: end(target_cluster, topic_name) == COUNT, 90, "copied")
    say("done", file, topic_name)
    write(target_cluster, topic_name, plain(range(50)))
    with run_mirror(file, spark) as mirror:
        mp.wait_for(lambda: is_released(mirror, topic_name), 60, "it is released")
        assert unexpected(mirror, topic_name) == []
    (flow,) = load_mm2_properties(str(file)).flows
    with closing(ClusterClient(flow.target, "test")) as client:
        state = ControlState()
        state.apply(TopicLog(client, control_topic("A")).read(0, 0)[0])
        assert state.done[topic_name].reached.keys() == {0, 1}, (
            "it was written down at the latest when the process ended"
        )
    assert [loss for loss in ledger(target_cluster, topic_name) if loss.outcome is not LossOutcome.EXPECTED] == []
    said = verify_verb(str(file), "-o", "json")
    assert (said.returncode, json.loads(said.stdout.splitlines()[-1])["verdict"]) == (0, "equal"), said.stdout


def test_a_late_record_is_named_and_copied_when_that_is_taken_back(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, file: Path
) -> None:
    with run_mirror(file, spark) as mirror:
        mp.wait_for(lambda: end(target_cluster, topic_name) == COUNT, 90, "copied")
        say("done", file, topic_name)
        mp.wait_for(lambda: is_released(mirror, topic_name), 30, "the topic is released")
        write(source_cluster, topic_name, plain([COUNT]))
        mp.wait_for(lambda: len(late(mirror)) == 1, 30, "the late record is named")
        assert flow_of(mirror).state == "held up"
        assert f"{topic_name}-0: 1 offsets came to the source" in late(mirror)[0]
        assert end(target_cluster, topic_name) == COUNT
        assert "is copied on" in say("undo", file, topic_name)
        mp.wait_for(lambda: end(target_cluster, topic_name) == COUNT + 1, 30, "the late record is copied")
        mp.wait_for(lambda: not late(mirror), 30, "nothing is late any more")


def test_late_records_are_accepted_when_that_is_said_again(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    file: Path,
    verify_verb: VerifyVerb,
) -> None:
    """They stay at the source, as the copy has the new writers' records by now."""
    with run_mirror(file, spark) as mirror:
        mp.wait_for(lambda: end(target_cluster, topic_name) == COUNT, 90, "copied")
        say("done", file, topic_name)
        mp.wait_for(lambda: is_released(mirror, topic_name), 30, "the topic is released")
        write(target_cluster, topic_name, plain(range(50)))
        write(source_cluster, topic_name, plain([COUNT]))
        mp.wait_for(lambda: len(late(mirror)) == 1, 30, "the late record is named")
        assert f"stays at the source (partition: offset 0: {COUNT + 1})" in say("done", file, topic_name)
        mp.wait_for(lambda: not late(mirror), 30, "the late record is accepted")
        assert is_released(mirror, topic_name)
        write(source_cluster, topic_name, plain([COUNT + 1]))
        mp.wait_for(lambda: len(late(mirror)) == 1, 30, "the next one is late")
        assert f"{topic_name}-0: 1 offsets came to the source" in late(mirror)[0]
        assert end(target_cluster, topic_name) == COUNT + 50, "nothing came behind the new writers' records"
    said = verify_verb(str(file), "-o", "json")
    assert (said.returncode, json.loads(said.stdout.splitlines()[-1])["verdict"]) == (0, "equal"), said.stdout
    say("undo", file, topic_name)  # late records hold up the other tests' flows, too


@pytest.mark.full
def test_a_record_in_a_partition_that_came_later_is_late_too(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, file: Path
) -> None:
    """A forgotten writer's; the topic has got the partition after the release."""
    there = target_cluster.bootstrap_servers

    with run_mirror(file, spark) as mirror:
        mp.wait_for(lambda: end(target_cluster, topic_name) == COUNT, 90, "copied")
        say("done", file, topic_name)
        mp.wait_for(lambda: is_released(mirror, topic_name), 30, "the topic is released")
        with ClusterAdmin.connect(mirror.drivers[0].flow.source, "test") as admin:
            admin.create_partitions({topic_name: 3})
        mp.produce(source_cluster.bootstrap_servers, topic_name, 3, 9)
        mp.wait_for(lambda: len(late(mirror)) == 3, 30, "the late records are named")
        assert f"{topic_name}-2: 3 offsets came to the source" in late(mirror)[2]
        assert flow_of(mirror).state == "held up"
        say("undo", file, topic_name)
        mp.wait_for(
            lambda: mp.end_offsets(there, topic_name, 3) == [COUNT + 3, 3, 3], 60, "the late records are copied"
        )
        mp.wait_for(lambda: not late(mirror), 30, "nothing is late any more")


@pytest.mark.full
def test_who_says_it_late_is_asked_and_believed(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    file: Path,
    verify_verb: VerifyVerb,
) -> None:
    """The producer has moved, and nobody has said so: the warning asks, and gives the command."""
    with run_mirror(file, spark):
        mp.wait_for(lambda: end(target_cluster, topic_name) == COUNT, 90, "copied")
    write(target_cluster, topic_name, plain(range(50)))
    with run_mirror(file, spark):
        mp.wait_for(lambda: len(ledger(target_cluster, topic_name)) == 1, 60, "the foreign records are noted")
    (loss,) = ledger(target_cluster, topic_name)
    assert (loss.kind, loss.action) == (LossKind.FOREIGN, "continued")
    assert "has the topic's producer moved there?" in loss.words
    assert "sparkmirror topics done FILE --topics " in loss.words
    assert verify_verb(str(file)).returncode == 1
    assert "1 entries of the loss ledger are expected now" in say("done", file, topic_name)
    assert [one.outcome for one in ledger(target_cluster, topic_name)] == [LossOutcome.EXPECTED]
    with run_mirror(file, spark) as mirror:
        mp.wait_for(lambda: is_released(mirror, topic_name), 60, "the topic is released")
        assert unexpected(mirror, topic_name) == []
    assert [one.outcome for one in ledger(target_cluster, topic_name)] == [LossOutcome.EXPECTED]
    assert verify_verb(str(file)).returncode == 0


@pytest.mark.full
def test_writers_that_moved_before_all_was_copied(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    file: Path,
    verify_verb: VerifyVerb,
) -> None:
    """Their records lie between ours: the ledger expects them, and verify passes over them and over no other."""
    with run_mirror(file, spark):
        mp.wait_for(lambda: end(target_cluster, topic_name) == COUNT, 90, "copied")
    write(source_cluster, topic_name, plain(range(COUNT, 2 * COUNT)))
    say("done", file, topic_name)
    write(target_cluster, topic_name, plain(range(50)))
    with run_mirror(file, spark) as mirror:
        mp.wait_for(lambda: is_released(mirror, topic_name), 60, "the topic is released")
    (loss,) = ledger(target_cluster, topic_name)
    assert (loss.kind, loss.action, loss.first, loss.end) == (LossKind.FOREIGN, "expected", COUNT, COUNT + 50)
    write(target_cluster, topic_name, plain(range(7)))
    assert end(target_cluster, topic_name) == 2 * COUNT + 57
    said = verify_verb(str(file), "-o", "json")
    assert (said.returncode, json.loads(said.stdout.splitlines()[-1])["verdict"]) == (0, "equal"), said.stdout
    rows = [row["partition"] for row in map(json.loads, said.stdout.splitlines()) if "partition" in row]
    (told,) = [row for row in rows if (row["topic"], row["partition"]) == (topic_name, 0)]
    assert told["not_compared"] == {"written by the topic's writers, which have moved": 50}
    say("undo", file, topic_name)  # whoever wrote them now, they are no copies
    assert json.loads(verify_verb(str(file), "-o", "json").stdout.splitlines()[-1])["verdict"] == "different"


def test_a_topic_that_is_not_copied_cant_be_done(file: Path) -> None:
    said = CliRunner().invoke(app, ["topics", "done", str(file), "--topics", "no-such-topic"])
    assert isinstance(said.exception, ConfigError)
    assert str(said.exception) == "--topics: no-such-topic: no topic that is copied matches"
