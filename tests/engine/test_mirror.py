"""Flows through real clusters and a real Spark session: what a mirror does while nothing is broken."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import loaded_flow
from tests.support import mirror_process as mp
from tests.support.loss_tools import copy_once
from tests.support.mirror_thread import is_paused, run_config, run_mirror

from conftest import StartMirror
from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.demo.proof import compare_topics
from sparkmirror.errors import ConfigError, CopyIncomplete, SparkMirrorError
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.mirror.engine.progress_display import OnProgress
from sparkmirror.pump.messages.control import Control, ControlState, Leader, control_topic
from sparkmirror.snapshot.snapshot import Flow

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def assert_identical(source: KafkaCluster, target: KafkaCluster, topics: dict[str, str], records: int) -> None:
    proofs = compare_topics(source.bootstrap_servers, target.bootstrap_servers, topics)
    assert [proof.difference for proof in proofs] == [None] * len(proofs)
    assert sum(proof.records for proof in proofs) == records


def copied(target: KafkaCluster, topic: str, partitions: int) -> int:
    return sum(mp.end_offsets(target.bootstrap_servers, topic, partitions))


def control_log(target: KafkaCluster) -> TopicLog:
    config = ClusterConfig(alias="B", bootstrap_servers=(target.bootstrap_servers,))
    return TopicLog(ClusterClient(config, "test"), control_topic("A"))


def control(target: KafkaCluster) -> Control:
    return Control(control_log(target))


def leader(target: KafkaCluster) -> str:
    """The incarnation that announced itself last."""
    state = ControlState()
    state.apply(control_log(target).read(0, 0)[0])
    assert state.leader is not None
    return state.leader.incarnation


CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture(scope="module")
def topic_of_each_codec(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str | None, str]:
    """A topic of 3,000 records by its codec; a mirror has copied all of them."""
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    topics = {codec: f"of-codec-{codec}" for codec in CODECS}
    for codec, topic in topics.items():
        mp.create_topic(servers[0], topic, 3)
        mp.produce(servers[0], topic, 3, 3_000, codec=codec)
    file = tmp_path_factory.mktemp("codecs") / "mm2.properties"
    with run_mirror(mp.write_properties(file, *servers, "of-codec-.*", {}), spark):
        mp.wait_for(
            lambda: all(copied(target_cluster, f"A.{topic}", 3) == 3_000 for topic in topics.values()),
            90,
            "3,000 records of each copied",
        )
    return topics


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_stays_as_it_is(
    topic_of_each_codec: dict[str | None, str],
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    codec: str | None,
) -> None:
    topic = topic_of_each_codec[codec]
    assert_identical(source_cluster, target_cluster, {topic: f"A.{topic}"}, 3_000)


def test_identity_policy_keeps_names(
    start_mirror: StartMirror, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 500)
    policy = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
    with start_mirror(topic_name, policy):
        mp.wait_for(lambda: copied(target_cluster, topic_name, 1) == 500, 90, "500 records copied")
    assert_identical(source_cluster, target_cluster, {topic_name: topic_name}, 500)


def test_new_topics_and_partitions_are_found(
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    later = f"{topic_name}-later"
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 100)
    with start_mirror(f"{topic_name}.*", {}) as mirror:
        mp.wait_for(lambda: copied(target_cluster, f"A.{topic_name}", 1) == 100, 90, "the first topic copied")
        mp.create_topic(source_cluster.bootstrap_servers, later, 2)
        mp.produce(source_cluster.bootstrap_servers, later, 2, 100)
        mp.wait_for(lambda: copied(target_cluster, f"A.{later}", 2) == 100, 90, "the new topic copied")
        mp.wait_for(lambda: len(mirror.tasks("A->B")) == 2, 30, "more than twice as much is planned again")
        admin = KafkaAdminClient(bootstrap_servers=source_cluster.bootstrap_servers)
        admin.create_partitions({topic_name: 3})
        admin.close()
        mp.wait_for(
            lambda: mp.end_offsets(source_cluster.bootstrap_servers, topic_name, 3) == [100, 0, 0], 90, "growth"
        )
        mp.produce(source_cluster.bootstrap_servers, topic_name, 3, 300)
        mp.wait_for(lambda: len_partitions(target_cluster, f"A.{topic_name}") == 3, 90, "the target grown")
        mp.wait_for(lambda: copied(target_cluster, f"A.{topic_name}", 3) == 400, 90, "the new partitions copied")
        assert mirror.rounds == 1, "the round was ended for more partitions"
    assert "is cancelled" not in caplog.text
    assert_identical(source_cluster, target_cluster, {topic_name: f"A.{topic_name}", later: f"A.{later}"}, 500)


def len_partitions(cluster: KafkaCluster, topic: str) -> int:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        return len(admin.describe_topics([topic])[0]["partitions"])
    finally:
        admin.close()


def test_pause_and_throttle_take_effect_at_once(
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sparkmirror.mirror.engine.round_runner.REPLAN_S", 1.0)
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 100)
    words = control(target_cluster)
    try:
        with start_mirror(topic_name, {}) as mirror:
            mp.wait_for(lambda: copied(target_cluster, f"A.{topic_name}", 2) == 100, 90, "copied")
            words.pause([topic_name])
            mp.wait_for(lambda: is_paused(mirror), 180, "the pause is heard")
            mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 100)
            time.sleep(2)
            assert copied(target_cluster, f"A.{topic_name}", 2) == 100, "a paused topic was copied"
            words.throttle(100_000)
            words.pause([])
            mp.wait_for(lambda: copied(target_cluster, f"A.{topic_name}", 2) == 200, 90, "resumed")
            mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 8_000, codec=None, size=500)
            began = time.monotonic()
            before = mirror.drivers[0].view.counts.total[1]
            time.sleep(6)
            rate = (mirror.drivers[0].view.counts.total[1] - before) / (time.monotonic() - began)
            assert 30_000 < rate < 250_000, f"{rate:,.0f} bytes/s under a throttle of 100,000"
            words.throttle(None)
            mp.wait_for(lambda: copied(target_cluster, f"A.{topic_name}", 2) == 8_200, 90, "the rest copied")
            assert mirror.rounds == 1, "a round ended though its plan was still the best"
    finally:
        words.throttle(None)
        words.pause([])
    assert "is cancelled" not in caplog.text
    assert_identical(source_cluster, target_cluster, {topic_name: f"A.{topic_name}"}, 8_200)


def noted_flows() -> tuple[list[Flow], OnProgress]:
    """A list, and what adds each flow of a snapshot to it."""
    said: list[Flow] = []
    return said, lambda seen: said.extend(seen.flows)


def test_once_ends_when_caught_up_and_continues_where_it_was(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    path = mp.write_properties(
        tmp_path / "mm2.properties", source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    )
    for total in (1_000, 2_000):
        mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 1_000)
        said, note = noted_flows()
        config = load_mm2_properties(str(path))
        Mirror(config, once=True, use_lease=False, spark=spark, on_progress=note).run()
        assert {one.records for one in said if one.state in ("caught up", "done") or one.lag == 0} == {1_000}
        assert said[-1].state == "done"
        assert copied(target_cluster, f"A.{topic_name}", 2) == total
    assert_identical(source_cluster, target_cluster, {topic_name: f"A.{topic_name}"}, 2_000)


def test_a_batch_that_the_target_refuses_stops_its_successors_and_nobody_else(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """R3: without it the second batch of a new partition would be accepted and the first lost for ever."""
    small, large = f"{topic_name}-fine", f"{topic_name}-refused"
    mp.create_topic(source_cluster.bootstrap_servers, small, 1)
    mp.create_topic(source_cluster.bootstrap_servers, large, 1)
    mp.produce(source_cluster.bootstrap_servers, small, 1, 500)
    mp.produce(source_cluster.bootstrap_servers, large, 1, 1, codec=None, size=5_000)
    mp.produce(source_cluster.bootstrap_servers, large, 1, 3_000, codec=None, size=10)
    mp.create_topic(target_cluster.bootstrap_servers, f"A.{large}", 1, {"max.message.bytes": "1000"})
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        f"{topic_name}.*",
        {"sync.topic.configs.enabled": "false"},  # it would take the limit away, as the source has none
    )
    said, note = noted_flows()
    with pytest.raises(
        CopyIncomplete, match=rf"{large}-0 stopped at offset 0: .*MESSAGE_SIZE_TOO_LARGE.*max.message.bytes"
    ):
        Mirror(
            load_mm2_properties(str(path)),
            once=True,
            use_lease=False,
            spark=spark,
            on_progress=note,
        ).run()
    assert said[-1].state == "incomplete"
    assert not {"caught up", "done"} & {one.state for one in said}
    assert copied(target_cluster, f"A.{large}", 1) == 0
    assert_identical(source_cluster, target_cluster, {small: f"A.{small}"}, 500)


def test_a_backlog_is_never_called_caught_up_and_heartbeats_are_no_backlog(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    records = 20_000
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 2, records)
    trickle = f"{topic_name}-trickle"
    mp.create_topic(source_cluster.bootstrap_servers, trickle, 1)
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        f"{topic_name}.*",
    )
    said, note = noted_flows()

    def state() -> str:
        return said[-1].state if said else ""

    with run_config(load_mm2_properties(str(path)), spark, note):
        mp.wait_for(lambda: state() == "caught up", 90, "it has caught up")
        assert min(one.records for one in said if one.state == "caught up") == records
        assert {one.records for one in said if one.lag == 0} == {records}
        since = len(said)
        for _ in range(8):
            mp.produce(source_cluster.bootstrap_servers, trickle, 1, 1)
            time.sleep(1)
        assert {one.state for one in said[since:]} == {"caught up"}


def test_latest_begins_with_what_comes_after_the_start(
    start_mirror: StartMirror, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 100)
    latest = {"A->B.source.consumer.auto.offset.reset": "latest"}
    for total in (50, 100):  # the second time the mirror starts again, where it was
        with start_mirror(topic_name, latest) as mirror:
            if total == 50:
                mp.wait_for(lambda: running(mirror), 90, "it runs")
            mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 50)
            mp.wait_for(lambda: copied(target_cluster, f"A.{topic_name}", 1) == total, 90, f"{total} copied")  # noqa: B023


def test_what_comes_between_runs_of_once_that_begin_at_the_end_is_copied(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """The first run has nothing to copy, and notes where it began."""
    latest = {"A->B.source.consumer.auto.offset.reset": "latest"}
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    path = mp.write_properties(tmp_path / "mm2.properties", *servers, topic_name, latest)
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    for total in (0, 50, 100):
        mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 50)
        copy_once(path, spark)
        assert copied(target_cluster, f"A.{topic_name}", 1) == total


@pytest.mark.full
def test_a_predecessors_announcement_that_comes_late_is_answered(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """Who was frozen as it announced itself does not have the lease any more; who has it must not be silenced."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    path = mp.write_properties(
        tmp_path / "mm2.properties", source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    )
    mirror = Mirror(load_mm2_properties(str(path)), spark=spark)
    thread = threading.Thread(target=mirror.run, daemon=True)
    thread.start()
    try:
        mp.wait_for(lambda: running(mirror), 180, "it runs")
        control(target_cluster).lead(Leader(incarnation="late"))
        mp.wait_for(lambda: leader(target_cluster) != "late", 90, "the answer")
        mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 100)
        mp.wait_for(lambda: copied(target_cluster, f"A.{topic_name}", 1) == 100, 90, "100 records copied")
    finally:
        mirror.stop()
        thread.join(40)


def running(mirror: Mirror) -> bool:
    known = [view.receipt for view in list(mirror.drivers[0].view.partitions.values())]
    return bool(known) and all(receipt is not None and receipt.state == "running" for receipt in known)


def test_the_migration_guides_own_file_runs(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """Its arrow has spaces around it: the real one copies nothing."""
    text = (Path(__file__).parents[1] / "config" / "migration_example.properties").read_text()
    text = text.replace("apache-kafka-source:9092", source_cluster.bootstrap_servers)
    text = text.replace("apache-kafka-target:9092", target_cluster.bootstrap_servers)
    path = tmp_path / "mm2.properties"
    alone = "\nheartbeats.replication.enabled = false\n"  # those of other tests' MirrorMaker 2 are compacted
    path.write_text(text.replace("topics = .*", f"topics = {topic_name}") + alone)
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 100)
    config = load_mm2_properties(str(path))
    assert any("->" in warning for warning in config.warnings)
    Mirror(config, once=True, use_lease=False, spark=spark).run()
    assert_identical(source_cluster, target_cluster, {topic_name: f"source.{topic_name}"}, 100)


def test_a_topic_that_is_missing_is_one_line(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, f"other-{topic_name}", 1)
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        topic_name,
    )
    with pytest.raises(CopyIncomplete, match=f"no topic of A matches topics = {topic_name}"):
        Mirror(load_mm2_properties(str(path)), once=True, use_lease=False, spark=spark).run()


@pytest.fixture
def guarded_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A target with an authorizer that lets everybody do what no ACL forbids."""
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    cluster = KafkaCluster(tmp_path_factory.mktemp("guarded"), properties=properties)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.cleanup(keep_logs=True)


def test_a_target_that_may_not_be_written_is_one_line(
    spark: SparkSession, source_cluster: KafkaCluster, guarded_target: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 100)
    mp.create_topic(guarded_target.bootstrap_servers, f"A.{topic_name}", 1)
    remote = ResourcePattern(ResourceType.TOPIC, f"A.{topic_name}")
    admin = KafkaAdminClient(bootstrap_servers=guarded_target.bootstrap_servers)
    everybody = {"principal": "User:*", "host": "*", "resource_pattern": remote}
    admin.create_acls(
        [
            ACL(operation=ACLOperation.ALL, permission_type=ACLPermissionType.ALLOW, **everybody),
            ACL(operation=ACLOperation.WRITE, permission_type=ACLPermissionType.DENY, **everybody),
        ]
    )
    admin.close()
    path = mp.write_properties(
        tmp_path / "mm2.properties", source_cluster.bootstrap_servers, guarded_target.bootstrap_servers, topic_name
    )
    with pytest.raises(CopyIncomplete, match=rf"{topic_name}-0 stopped at offset 0: .*not authorized for the topic"):
        Mirror(load_mm2_properties(str(path)), once=True, use_lease=False, spark=spark).run()
    assert copied(guarded_target, f"A.{topic_name}", 1) == 0


def test_more_replicas_than_brokers_is_one_line(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        topic_name,
        {"replication.factor": "3"},
    )
    with pytest.raises(SparkMirrorError, match=r"replication factor|replication\.factor") as caught:
        Mirror(load_mm2_properties(str(path)), once=True, use_lease=False, spark=spark).run()
    assert "\n" not in str(caught.value)


def test_two_aliases_of_one_cluster_are_refused(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        topic_name,
        {"clusters": "A, B, C", "C.bootstrap.servers": source_cluster.bootstrap_servers, "B->C.enabled": "true"},
    )
    with pytest.raises(ConfigError, match=rf"A and C are the same cluster \({source_cluster.cluster_id}\)"):
        Mirror(load_mm2_properties(str(path)), once=True, use_lease=False).run()


@pytest.mark.full
def test_six_flows_on_two_slots_all_make_progress(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """Between three clusters, each to each."""
    third = KafkaCluster(tmp_path / "third")
    with loaded_flow.running(third):
        names = topic_name.replace("-", "")
        clusters = {f"S{names}": source_cluster, f"T{names}": target_cluster, f"U{names}": third}
        flows = list(itertools.permutations(clusters, 2))
        lines = [f"clusters = {', '.join(clusters)}"]
        lines += [f"{alias}.bootstrap.servers = {cluster.bootstrap_servers}" for alias, cluster in clusters.items()]
        lines += [f"{here}->{there}.enabled = true" for here, there in flows]
        lines += [f"topics = {topic_name}", "replication.factor = 1", "tasks.max = 2", "spark.master = local[2]"]
        lines += ["heartbeats.replication.enabled = false"]
        path = tmp_path / "mm2.properties"
        path.write_text("\n".join(lines) + "\n")
        for cluster in clusters.values():
            mp.create_topic(cluster.bootstrap_servers, topic_name, 2)
            mp.produce(cluster.bootstrap_servers, topic_name, 2, 200)
        with mp.MirrorProcess(path, tmp_path / "mirror.log") as mirror:
            for expected in (200, 400):
                for here, there in flows:
                    remote = f"{here}.{topic_name}"
                    mp.wait_for(lambda: copied(clusters[there], remote, 2) == expected, 120, f"{expected} in {remote}")  # noqa: B023
                assert len(mirror.workers()) <= 2
                if expected == 200:
                    for cluster in clusters.values():
                        mp.produce(cluster.bootstrap_servers, topic_name, 2, 200)
            assert mirror.terminate() == 0
        for here, there in flows:
            assert_identical(clusters[here], clusters[there], {topic_name: f"{here}.{topic_name}"}, 400)
