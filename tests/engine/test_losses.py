"""The loss sentinel's states between real clusters: the ledger, the offsets, and every record's bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_observer import flow_of
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp
from tests.support.in_process import sparkmirror
from tests.support.mirror_thread import is_paused, run_mirror

from conftest import StartMirror
from sparkmirror.cli import flow_lines
from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.demo.proof import compare_topics
from sparkmirror.errors import CopyIncomplete
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.exact.durable.noted_progress import ProgressLog, ReportedProgress
from sparkmirror.frames import Options, run_verification
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.mirror.engine import forecast, lag_monitor
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.pump.messages.control import Control, control_topic
from sparkmirror.snapshot.loss_counts import summed_up

pytestmark = [pytest.mark.broker, pytest.mark.spark]


PAIRS = 9
"""Tests that begin with a copied topic."""


class Pair:
    """Both clusters, and one topic with two partitions of fifty records that was copied."""

    def __init__(
        self, source: KafkaCluster, target: KafkaCluster, topic: str, tmp_path: Path, spark: SparkSession
    ) -> None:
        self.source, self.target, self.topic, self.remote = source, target, topic, f"A.{topic}"
        self._path = tmp_path / "mm2.properties"
        self.spark = spark
        self.before = [lt.records(target, self.remote, partition) for partition in (0, 1)]

    def write(self, settings: Mapping[str, str]) -> Path:
        return mp.write_properties(
            self._path, self.source.bootstrap_servers, self.target.bootstrap_servers, self.topic, settings
        )

    def copy(self, **policy: str) -> Mirror:
        settings = {f"sparkmirror.on.{what}": action for what, action in policy.items()}
        return lt.copy_once(self.write(settings), self.spark)

    def produce(self, count: int, partitions: int = 2) -> None:
        mp.produce(self.source.bootstrap_servers, self.topic, partitions, count)

    def copies(self) -> list[int]:
        """Records in each partition of the copy."""
        return [len(lt.records(self.target, self.remote, partition)) for partition in (0, 1)]

    def ledger(self) -> list[tuple[str, int, int, int, int, str]]:
        return lt.gist(lt.ledger(self.target, self.topic))

    def assert_continued(self, partition: int, seam: int, upstream: int) -> None:
        """At the target: what was there before, then all that the source has from an offset on."""
        copied = lt.records(self.target, self.remote, partition)
        theirs = lt.records(self.source, self.topic, partition)
        kept = {offset: one for offset, one in self.before[partition].items() if offset < seam}
        fresh = [one for offset, one in sorted(theirs.items()) if offset >= upstream]
        assert fresh, "the source has nothing to compare with"
        assert copied == kept | dict(enumerate(fresh, seam))

    def assert_identical(self, partition: int) -> None:
        proofs = compare_topics(self.source.bootstrap_servers, self.target.bootstrap_servers, {self.topic: self.remote})
        assert proofs[partition].difference is None
        assert proofs[partition].records > 0


@pytest.fixture(scope="module")
def copied_topics(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    tmp_path_factory: pytest.TempPathFactory,
    spark: SparkSession,
) -> Iterator[str]:
    """One topic a test, all copied at once."""
    topics = [f"losses-{letter}" for letter in ascii_lowercase[:PAIRS]]
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    for topic in topics:
        mp.create_topic(servers[0], topic, 2)
        mp.produce(servers[0], topic, 2, 100)
    file = tmp_path_factory.mktemp("copied") / "mm2.properties"
    lt.copy_once(mp.write_properties(file, *servers, "losses-[a-z]", {}), spark)
    return iter(topics)


@pytest.fixture
def pair(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    copied_topics: Iterator[str],
    tmp_path: Path,
    spark: SparkSession,
) -> Pair:
    return Pair(source_cluster, target_cluster, next(copied_topics), tmp_path, spark)


def test_expired_halts_or_continues(pair: Pair, tmp_path: Path) -> None:
    pair.produce(100)
    lt.delete_records(pair.source, pair.topic, 0, before=70)
    with pytest.raises(CopyIncomplete, match=r"-0 is halted \(expired\): offsets 50 to 69 .*on\.expired=continue"):
        pair.copy(expired="halt")
    assert pair.ledger() == [("expired", 0, 50, 70, 50, "halted")]
    assert lt.records(pair.target, pair.remote, 0) == pair.before[0]
    pair.assert_identical(1)

    lt.delete_records(pair.source, pair.topic, 0, before=75)
    with pytest.raises(CopyIncomplete, match=r"expired: offsets 50 to 74 of source .* the copy continues after them"):
        pair.copy(expired="continue")
    assert pair.ledger() == [("expired", 0, 50, 75, 50, "continued")]
    pair.assert_continued(0, seam=50, upstream=75)

    pair.produce(20)
    (driver,) = pair.copy().drivers  # complete again
    assert driver.reports.loss_watch.added == []
    assert [row.offsets for row in driver.reports.loss_watch.rows if row.topic == pair.topic] == [25]
    assert pair.ledger() == [("expired", 0, 50, 75, 50, "continued")]
    pair.assert_continued(0, seam=50, upstream=75)

    listed = losses_command(pair.write({}), "-o", "json")
    (mine,) = [one for one in json.loads(listed) if one["source_topic"] == pair.topic]
    assert (mine["flow"], mine["kind"], mine["first"], mine["end"]) == ("A->B", "expired", 50, 75)
    (line,) = [one for one in losses_command(pair.write({})).splitlines() if f"{pair.topic}-0 " in one]
    assert "50-74" in line
    assert "continued" in line


def losses_command(path: Path, *options: str) -> str:
    said = sparkmirror("losses", str(path), *options)
    assert said.returncode == 0, said.stderr
    return said.stdout


def test_expired_while_it_runs(
    pair: Pair, start_mirror: StartMirror, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Paused, so that retention overtakes; the forecast says so before, and the topic goes for good at the end."""
    monkeypatch.setattr(lag_monitor, "LOOK_S", 0.3)
    monkeypatch.setattr(forecast, "SHORTEST_S", 1.0)
    mp.alter_topic(pair.source.bootstrap_servers, pair.topic, {"retention.ms": str(30 * 60_000)})
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(pair.target.bootstrap_servers,)), "test")
    words = Control(TopicLog(client, control_topic("A")))
    try:
        with start_mirror(f"{pair.topic}.*", {}) as mirror:
            (driver,) = mirror.drivers
            mp.wait_for(lambda: len(driver.view.partitions) == 2, 180, "it runs")
            before = expired(driver)
            words.pause([pair.topic])
            mp.wait_for(lambda: is_paused(mirror), 180, "the pause is heard")
            pair.produce(100)
            mp.wait_for(lambda: driver.view.forecast is not None, 180, "a forecast")
            assert driver.view.forecast is not None
            assert driver.view.forecast.topic == pair.topic
            assert 25 < driver.view.forecast.minutes < 30
            assert f"uncopied records of {pair.topic}-" in flow_lines.forecast(flow_of(mirror))
            lt.delete_records(pair.source, pair.topic, 0, before=77)
            words.pause([])
            mp.wait_for(lambda: copied(pair, 0) == 73 and copied(pair, 1) == 100, 180, "what is left copied")
            mp.wait_for(lambda: len(driver.reports.loss_watch.added) == 1, 180, "the loss counted")
            mp.wait_for(lambda: driver.view.forecast is None, 180, "the forecast withdrawn")
            entries, offsets = expired(driver)
            assert (entries, offsets) == (before[0] + 1, before[1] + 27)
            assert f"{entries} expired ({offsets} offsets)" in summed_up(flow_of(mirror).losses)
            pair.assert_continued(0, seam=50, upstream=77)
            pair.assert_identical(1)

            lt.delete_topic(pair.source, pair.topic)
            mp.wait_for(lambda: driver.view.gone == (pair.topic,), 180, "its source is gone")
            assert flow_lines.gone(flow_of(mirror)) == [pair.topic]
            assert copied(pair, 0) == 73
            lt.delete_topic(pair.target, pair.remote)
            mp.wait_for(lambda: driver.view.gone == (), 180, "it is forgotten")
    finally:
        words.pause([])
        client.close()
    assert pair.ledger() == [("expired", 0, 50, 77, 50, "continued")]
    assert "the source deletes uncopied records of" in caplog.text
    assert "expired: offsets 50 to 76" in caplog.text


def expired(driver: FlowDriver) -> tuple[int, int]:
    """Open entries and offsets in the ledger, other tests' included."""
    counts = [count for count in driver.reports.loss_watch.counts if count.kind == "expired" and count.is_open_loss]
    return sum(count.entries for count in counts), sum(count.offsets for count in counts)


def copied(pair: Pair, partition: int) -> int:
    return mp.end_offsets(pair.target.bootstrap_servers, pair.remote, 2)[partition]


def test_truncated_halts_or_continues(pair: Pair) -> None:
    """A claim says that twenty records more were copied than the source has, as after an election that lost them.

    Real elections: `test_unclean_elections.py`.
    """
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(pair.target.bootstrap_servers,)), "test")
    claim_log = ClaimLog(TopicLog(client, segments_topic("A")))
    topic_id = client.metadata([pair.remote])[pair.remote].topic_id
    claim_log.refresh([(topic_id, 0)])
    (claim,) = claim_log.claims(topic_id, 0)
    claim_log.claim([replace(claim.between(40, 50, 40), runs=(Run(60, 10),))])
    client.close()

    with pytest.raises(CopyIncomplete, match=r"-0 is halted \(truncated\): .* was cut at offset 50"):
        pair.copy()
    assert pair.ledger() == [("truncated", 0, 50, 70, 50, "halted")]
    assert lt.records(pair.target, pair.remote, 0) == pair.before[0]
    with pytest.raises(CopyIncomplete, match=r"truncated: .* the source's present records there are copied after them"):
        pair.copy(truncated="continue")
    assert pair.ledger() == [("truncated", 0, 50, 70, 50, "continued")]


def test_a_loss_at_the_target_is_noticed_by_the_next_process(pair: Pair) -> None:
    """What was written down of partition 0, and a confirmed claim on partition 1, say that more was copied.

    Real elections: `test_unclean_elections.py`.
    """
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(pair.target.bootstrap_servers,)), "test")
    claim_log = ClaimLog(TopicLog(client, segments_topic("A")))
    standing = ProgressLog(TopicLog(client, losses_topic("A")))
    topic_id = client.metadata([pair.remote])[pair.remote].topic_id
    assert standing.known[pair.remote].standing_of == topic_id.hex()
    assert standing.known[pair.remote].partitions == dict.fromkeys((0, 1), ReportedProgress(50, 50, 50, topic_id.hex()))
    standing.learn([standing.known[pair.remote].model_copy(update={"partitions": {0: ReportedProgress(70, 70, 70)}})])
    claim_log.refresh([(topic_id, 1)])
    (claim,) = claim_log.claims(topic_id, 1)
    claim_log.claim([replace(claim.between(45, 60, 45), runs=(Run(45, 7), Run(60, 8)))])
    pair.produce(60)
    pair.copy()
    pair.produce(20)
    pair.copy()
    assert pair.ledger() == [
        ("target-truncated", 0, 50, 70, 50, "healed"),
        ("target-truncated", 1, 50, 60, 50, "healed"),
    ]
    for partition in (0, 1):
        pair.assert_identical(partition)
    claims = claim_log.whole(topic_id, 1)
    assert {one.upstream_of(sequence) - sequence for one in claims for sequence in range(one.sequence, 90)} == {0}
    client.close()


def test_recreated_halts_or_restarts(pair: Pair) -> None:
    lt.recreate_topic(pair.source, pair.topic, 2)
    pair.produce(60)
    with pytest.raises(CopyIncomplete, match=r"-0 is halted \(recreated\): source topic .* deleted and created again"):
        pair.copy(recreated="halt")
    halted = [("recreated", partition, 50, 50, 50, "halted") for partition in (0, 1)]
    assert pair.ledger() == halted
    for partition in (0, 1):
        assert lt.records(pair.target, pair.remote, partition) == pair.before[partition]

    pair.copy()
    assert pair.ledger() == [(*one[:-1], "restarted") for one in halted]
    for partition in (0, 1):
        pair.assert_continued(partition, seam=50, upstream=0)
    found = run_verification(pair.spark, load_mm2_properties(str(pair.write({}))), Options())
    assert not found.differs
    assert [(one.records, one.expired) for one in found.partitions] == [(30, 0)] * 2

    lt.recreate_topic(pair.source, pair.topic, 2)
    pair.produce(20)
    pair.copy()
    again = lt.ledger(pair.target, pair.topic)
    assert [loss.downstream for loss in again] == [50, 80, 50, 80]
    assert [loss.first for loss in again] == [50, 30, 50, 30]


def test_shrunk(pair: Pair) -> None:
    lt.recreate_topic(pair.source, pair.topic, 1)
    pair.produce(60, partitions=1)
    for _ in range(2):  # the second process has nothing to add
        pair.copy()
        found = lt.ledger(pair.target, pair.topic)
        assert lt.gist(found) == [("recreated", 0, 50, 50, 50, "restarted"), ("shrunk", 1, 50, 50, 50, "halted")]
    assert "created again without partition 1, which was copied up to offset 50" in found[1].words
    pair.assert_continued(0, seam=50, upstream=0)
    assert lt.records(pair.target, pair.remote, 1) == pair.before[1]


def test_what_began_at_the_end_begins_there_again_in_a_new_target(pair: Pair) -> None:
    """Not at the end of today: what was copied is gone."""
    lt.delete_topic(pair.target, pair.remote)
    pair.before = [{}, {}]
    pair.produce(100)
    latest = pair.write({"A.consumer.auto.offset.reset": "latest"})
    lt.copy_once(latest, pair.spark)
    for partition in (0, 1):
        pair.assert_identical(partition)
    assert [one[0] for one in lt.gist(lt.ledger(pair.target, pair.topic))] == ["target-recreated"] * 2
    pair.produce(10)
    lt.copy_once(latest, pair.spark)
    for partition in (0, 1):
        pair.assert_identical(partition)


def test_target_recreated_is_copied_again(pair: Pair) -> None:
    lt.delete_records(pair.source, pair.topic, 0, before=20)
    lt.delete_topic(pair.target, pair.remote)
    pair.before = [{}, {}]
    for _ in range(2):
        pair.copy()
        found = lt.ledger(pair.target, pair.topic)
        assert lt.gist(found) == [
            ("target-recreated", 0, 0, 20, 0, "healed"),
            ("target-recreated", 1, 0, 0, 0, "healed"),
        ]
    assert "but for offsets 0 to 19, which it has no more" in found[0].words
    pair.assert_continued(0, seam=0, upstream=20)
    pair.assert_identical(1)


def test_an_idle_partition_is_copied_again_by_a_mirror_that_runs(pair: Pair) -> None:
    """Its pump has nothing to send, so that no broker tells it that the target topic is another one."""
    with run_mirror(pair.write({"refresh.topics.interval.seconds": "1"}), pair.spark) as mirror:
        mp.wait_for(lambda: _reached(mirror) == [50, 50], 60, "both pumps idle")
        lt.delete_topic(pair.target, pair.remote)
        mp.wait_for(lambda: len(lt.ledger(pair.target, pair.topic)) == 2, 60, "the new topic noticed")
        mp.wait_for(lambda: pair.copies() == [50, 50], 60, "both copied again")
    for partition in (0, 1):
        pair.assert_identical(partition)
    assert {entry[0] for entry in pair.ledger()} == {"target-recreated"}


def _reached(mirror: Mirror) -> list[int]:
    (driver,) = mirror.drivers
    receipts = [view.receipt for view in list(driver.view.partitions.values())]
    return [receipt.upstream for receipt in receipts if receipt is not None and receipt.state == "running"]
