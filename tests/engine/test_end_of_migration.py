"""The end of a migration with real brokers, while writers continue: the words on it are compared with the logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_long_lines import values
from test_moved_writers import is_released, late, say
from test_observer import flow_of
from test_verify import IDENTITY, plain, write
from tests.support import mirror_process as mp
from tests.support.loss_tools import acknowledge_all, ledger, recreate_topic
from tests.support.mirror_thread import run_mirror
from typer.testing import CliRunner

from conftest import VerifyVerb
from sparkmirror.cli.app import app
from sparkmirror.mirror.engine import flow_driver, lag_monitor, publishing, report_watch
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.snapshot.late_offsets import LateOffsets

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

PARTITIONS = 2
LIVE = 70


@pytest.fixture(autouse=True)
def _hears_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (report_watch, "TICK_S"),
        (lag_monitor, "LOOK_S"),
        (publishing, "INTERVAL_S"),
        (flow_driver, "SEE_DONE_S"),
    ):
        monkeypatch.setattr(module, name, 0.5)


@pytest.fixture
def file(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> Path:
    """Of a flow with the topic that moves, and a live one next to it."""
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    acknowledge_all(target_cluster)
    for topic in (topic_name, f"{topic_name}-live"):
        mp.create_topic(servers[0], topic, PARTITIONS)
    write(source_cluster, f"{topic_name}-live", plain(range(LIVE)))
    return mp.write_properties(tmp_path / "mm2.properties", *servers, f"{topic_name}.*", IDENTITY)


def ends(cluster: KafkaCluster, topic: str) -> list[int]:
    return mp.end_offsets(cluster.bootstrap_servers, topic, PARTITIONS)


def late_offsets(mirror: Mirror) -> list[LateOffsets]:
    (driver,) = mirror.drivers
    return driver.topics.done_topics.late_offsets(driver.view.source_ends)


def is_healthy(file: Path) -> int:
    return CliRunner().invoke(app, ["status", str(file), "--check"]).exit_code


def told(mirror: Mirror, what: str) -> None:
    now = flow_of(mirror)
    print(f"{what}: {now.state}, lag {now.lag}, {late(mirror)}")


def test_a_writer_that_is_not_stopped_yet_when_its_topic_is_said_to_be_done(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    file: Path,
    verify_verb: VerifyVerb,
) -> None:
    with run_mirror(file, spark) as mirror:
        with mp.load(source_cluster.bootstrap_servers, topic_name, PARTITIONS, per_s=3000):
            mp.wait_for(lambda: min(ends(target_cluster, topic_name)) > 2000, 90, "it is copied")
            print(say("done", file, topic_name).strip())
            mp.wait_for(lambda: is_released(mirror, topic_name), 60, "the topic is released")
            there = ends(target_cluster, topic_name)
            told(mirror, "released, while the writer continues")
            mp.wait_for(lambda: sum(each.missing for each in late_offsets(mirror)) > 3000, 60, "what comes is named")
        came = ends(source_cluster, topic_name)
        noted = mirror.drivers[0].topics.done_topics
        end = [noted.end_of(topic_name, partition) or 0 for partition in range(PARTITIONS)]
        mp.wait_for(
            lambda: (
                [each.copied + each.missing for each in late_offsets(mirror)]
                == [all_of - last for all_of, last in zip(came, end, strict=True)]
            ),
            30,
            "the last record is counted",
        )
        told(mirror, "the writer has stopped")
        print(f"noted ends {end}, source {came}, target {ends(target_cluster, topic_name)}")
        late = late_offsets(mirror)
        assert ends(target_cluster, topic_name) == there, "nothing is copied after the release"
        assert there == [last + each.copied for last, each in zip(end, late, strict=True)]
        assert [each.missing for each in late] == [all_of - last for all_of, last in zip(came, there, strict=True)]
        mp.wait_for(lambda: flow_of(mirror).state == "held up", 30, "the live topic does not hide it")
        mp.wait_for(lambda: is_healthy(file) == 1, 30, "status --check says so")
        said = verify_verb(str(file))
        assert said.returncode == 0, said.stdout
        assert "is copied on" in say("undo", file, topic_name)
        mp.wait_for(lambda: ends(target_cluster, topic_name) == came, 60, "the rest is copied")
        mp.wait_for(lambda: flow_of(mirror).state == "caught up", 30, "nothing is late any more")
        mp.wait_for(lambda: is_healthy(file) == 0, 30, "status --check says so")
        told(mirror, "taken back")
    for partition in range(PARTITIONS):
        copied, _ = values(target_cluster, topic_name, partition)
        assert copied == values(source_cluster, topic_name, partition)[0], "each record once, in order"
    assert ledger(target_cluster, topic_name) == []
    said = verify_verb(str(file))
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize("again", [120, 400], ids=["shorter", "longer"])
def test_a_done_topic_that_a_forgotten_writer_creates_again(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    file: Path,
    again: int,
) -> None:
    write(source_cluster, topic_name, plain(range(300)))
    with run_mirror(file, spark) as mirror:
        mp.wait_for(lambda: ends(target_cluster, topic_name) == [300, 0], 90, "copied")
        say("done", file, topic_name)
        mp.wait_for(lambda: is_released(mirror, topic_name), 30, "the topic is released")
        mp.wait_for(lambda: is_healthy(file) == 0, 30, "all is well")
        recreate_topic(source_cluster, topic_name, PARTITIONS)
        write(source_cluster, topic_name, plain(range(1000, 1000 + again)))
        words = f"created again at the source after its writers had moved: {again} offsets are not copied"
        mp.wait_for(lambda: any(words in line for line in late(mirror)), 60, "it is named")
        told(mirror, "created again")
        mp.wait_for(lambda: flow_of(mirror).state == "held up", 30, "the flow is held up")
        mp.wait_for(lambda: is_healthy(file) == 1, 30, "status --check says so")
        assert ends(target_cluster, topic_name) == [300, 0]
        diagnosis = CliRunner().invoke(app, ["doctor", str(file)]).output
        assert f"the topic was created again: {again} offsets since" in " ".join(diagnosis.split()), diagnosis
        say("undo", file, topic_name)
        mp.wait_for(lambda: ends(target_cluster, topic_name) == [300 + again, 0], 60, "it is copied after the old one")
        mp.wait_for(lambda: flow_of(mirror).state == "caught up", 30, "nothing is late any more")
        told(mirror, "taken back")
    copied, _ = values(target_cluster, topic_name, 0)
    numbers = [int(one.rpartition(b"value-")[2].rstrip(b"\0")) for one in copied]
    assert numbers == [*range(300), *range(1000, 1000 + again)]
