"""States of real mirrors: a source that goes away, an open transaction, patterns that match nothing, a quota."""

from __future__ import annotations

import dataclasses
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.protocol.admin import AlterClientQuotasRequest
from lab import Authority, KafkaCluster
from lab.listeners import scram
from pyspark.sql import SparkSession
from test_observer import commit, flow_of, topic_of
from test_verify import IDENTITY, plain, write
from tests.support import mirror_process as mp
from tests.support.kafka_scripts import write_scripts
from tests.support.loaded_flow import running
from tests.support.mirror_thread import run_mirror
from tests.support.secure_clusters import of_cluster, scram_settings, scram_user

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.look.doctor.flow_status import line
from sparkmirror.look.metrics.collector import MirrorCollector
from sparkmirror.look.page.cut_over import CutOverVerdict, cut_over
from sparkmirror.look.page.sentences import Tone, headline
from sparkmirror.mirror.engine import lag_monitor, transaction_watch
from sparkmirror.mirror.engine.flow_health import is_healthy
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.snapshot.snapshot import Cause, Flow, FlowState, PartitionState

pytestmark = [pytest.mark.broker, pytest.mark.spark]

COUNT = 300


def rules(mirror: Mirror) -> set[str]:
    return {finding.rule for finding in diagnose(mirror.observer.snapshot())}


def is_well(flow: Flow) -> bool:
    return flow.state is FlowState.CAUGHT_UP and flow.lag == 0 and is_healthy(flow)


def assert_a_problem(flow: Flow) -> None:
    assert not is_healthy(flow)
    assert headline(flow, flow.at_ms).tone is Tone.BAD
    assert cut_over(flow, flow.at_ms).verdict is CutOverVerdict.NOT_YET


# --- a source that is away ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_pair(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    """A source that a test may stop, whose clients sign in again after each three seconds, and a target."""
    listeners = {"SCRAM": scram(reauth_ms=3000)}
    source = KafkaCluster(tmp_path_factory.mktemp("away"), tls=authority, listeners=listeners)
    target = KafkaCluster(tmp_path_factory.mktemp("there"))
    with running(source), running(target):
        scram_user(source, "mirror", "hunter2")
        yield source, target


@contextmanager
def paused(cluster: KafkaCluster, restart: Callable[[], None]) -> Iterator[None]:
    (broker,) = cluster.brokers
    broker.pause()
    try:
        yield
    finally:
        broker.resume()


@contextmanager
def killed(cluster: KafkaCluster, restart: Callable[[], None]) -> Iterator[None]:
    (broker,) = cluster.brokers
    broker.kill()
    yield
    restart()


@contextmanager
def refused(cluster: KafkaCluster, restart: Callable[[], None]) -> Iterator[None]:
    scram_user(cluster, "mirror", "another")
    try:
        yield
    finally:
        scram_user(cluster, "mirror", "hunter2")


WAYS = {paused: "no answer", killed: "Connection refused", refused: "sign-in by SCRAM-SHA-512 as mirror is refused"}


@pytest.mark.full
def test_a_source_that_goes_away_in_three_ways(
    own_pair: tuple[KafkaCluster, KafkaCluster],
    authority: Authority,
    topic_name: str,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    """A problem within seconds each time, and nothing is said of lag; it ends by itself."""
    own_source, own_target = own_pair
    here = own_source.bootstrap_servers
    mp.create_topic(here, topic_name, 1)
    write(own_source, topic_name, plain(range(COUNT)))
    settings = {**IDENTITY, **of_cluster("A", scram_settings(authority, "mirror", "hunter2"))}
    servers = own_source.servers("SCRAM"), own_target.bootstrap_servers
    path = mp.write_properties(tmp_path / "mm2.properties", *servers, topic_name, settings)
    (broker,) = own_source.brokers
    with run_mirror(path, spark) as mirror:
        mp.wait_for(lambda: bool(mirror.observer.snapshot().flows) and is_well(flow_of(mirror)), 120, "caught up")
        for way, why in WAYS.items():
            with way(own_source, broker.restart):
                began = time.monotonic()
                mp.wait_for(lambda: flow_of(mirror).state is FlowState.UNREACHABLE, 60, f"{way.__name__}: noticed")
                print(way.__name__, f"{time.monotonic() - began:.1f} s")
                flow = flow_of(mirror)
                assert_a_problem(flow)
                assert why in flow.source.away, way.__name__
                assert (flow.lag, flow.target.away) == (None, "")
                assert "done" not in line(flow, 0.0)
                assert "source-unreachable" in rules(mirror)
            mp.wait_for(lambda: is_well(flow_of(mirror)), 180, f"{way.__name__}: it continues")
            assert flow_of(mirror).source.away == ""


# --- an open transaction --------------------------------------------------------------------------


@pytest.mark.full
def test_a_transaction_that_nobody_ends(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It holds a partition back, until the command that is told ends it."""
    monkeypatch.setattr(transaction_watch, "LONG_S", 4.0)
    monkeypatch.setattr(lag_monitor, "LOOK_S", 1.0)
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(servers[0], topic_name, 2)
    write(source_cluster, topic_name, plain(range(3)))
    producer = KafkaProducer(bootstrap_servers=servers[0], transactional_id=topic_name, transaction_timeout_ms=600_000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic_name, b"open", partition=0).get(30)
    producer.close(timeout=0)
    write(source_cluster, topic_name, plain(range(3, 8)))
    settings = {**IDENTITY, "A.consumer.isolation.level": "read_committed"}
    path = mp.write_properties(tmp_path / "mm2.properties", *servers, topic_name, settings)
    with run_mirror(path, spark) as mirror:
        mp.wait_for(lambda: bool(mirror.observer.snapshot().flows), 90, "begun")
        mp.wait_for(lambda: bool(flow_of(mirror).open_transactions), 90, "it is told")
        mp.wait_for(lambda: flow_of(mirror).state is FlowState.HELD_UP, 30, "all that may be read is copied")
        flow = flow_of(mirror)
        first, second = topic_of(mirror, topic_name).partitions
        assert_a_problem(flow)
        assert (flow.lag, first.lag, first.held_back, first.position) == (6, 6, 6, 3)
        assert (first.state, first.cause) == (PartitionState.WAITING, Cause.OPEN_TRANSACTION)
        assert f"transactional id {topic_name}, which is open from source offset 3 on" in first.reason
        assert second.state is PartitionState.RUNNING
        assert "open-transaction" in rules(mirror)
        assert mp.end_offsets(servers[1], topic_name, 2) == [3, 0]
        scripts = write_scripts(tmp_path / "bin")
        script, *words = first.remedy.split()
        subprocess.run([scripts / script, *words], check=True, timeout=90)
        mp.wait_for(lambda: is_well(flow_of(mirror)), 60, "the rest is copied")
        assert topic_of(mirror, topic_name).partitions[0].held_back == 0
        assert mp.end_offsets(servers[1], topic_name, 2)[0] == 8


# --- patterns -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topics", "exclude", "says"),
    [
        ("{}-slip", "", "did you mean {}"),
        ('"{}"', "", "the quotes are part"),
        ("{}.*", ".*", "topics.exclude leaves out"),
    ],
    ids=["slip", "quotes", "all-excluded"],
)
def test_a_flow_that_matches_nothing_says_so(
    topics: str,
    exclude: str,
    says: str,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    spark: SparkSession,
    lines: Callable[[], list[str]],
) -> None:
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(servers[0], topic_name, 1)
    commit(source_cluster, topic_name, topic_name, 0)
    settings = {"groups": "no-such-group"} | ({"topics.exclude": exclude} if exclude else {})
    path = mp.write_properties(tmp_path / "mm2.properties", *servers, topics.format(topic_name), settings)
    lines()
    with run_mirror(path, spark) as mirror:
        mp.wait_for(lambda: bool(mirror.observer.snapshot().flows), 60, "begun")
        mp.wait_for(lambda: flow_of(mirror).state is FlowState.NOTHING, 60, "it has looked")
        mp.wait_for(lambda: bool(flow_of(mirror).no_group), 60, "it has looked for groups")
        flow = flow_of(mirror)
        assert_a_problem(flow)
        assert says.format(topic_name) in flow.reason
        assert "groups = no-such-group" in flow.no_group
        assert flow.no_group in line(flow, 0.0)
        assert rules(mirror) >= {"nothing-to-copy", "no-group"}
        metrics = MirrorCollector(mirror.observer.snapshot).text().decode()
        assert 'sparkmirror_flow_state{flow="A->B",state="nothing to copy"} 1\n' in metrics, "NothingToCopy looks at it"
    logged = lines()
    assert sum(says.format(topic_name) in one for one in logged) == 1
    assert sum("groups = no-such-group" in one for one in logged) == 1


# --- a quota --------------------------------------------------------------------------------------


def limit_creations(cluster: KafkaCluster, client_id: str, per_s: float | None) -> None:
    """Limit the partitions that a client may create each second."""
    entry = AlterClientQuotasRequest.EntryData
    whose = entry.EntityData(entity_type="client-id", entity_name=client_id)
    change = entry.OpData(key="controller_mutation_rate", value=per_s or 0.0, remove=per_s is None)
    request = AlterClientQuotasRequest(entries=[entry(entity=[whose], ops=[change])], validate_only=False)
    config = ClusterConfig(alias="B", bootstrap_servers=(cluster.bootstrap_servers,))
    with closing(ClusterClient(config, "quotas")) as client:
        assert not client.ask_any(lambda: request).entries[0].error_code


@pytest.mark.full
def test_a_target_that_limits_creations(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    spark: SparkSession,
    lines: Callable[[], list[str]],
) -> None:
    """All topics are there after what the quota takes, though the topics are looked at each ten minutes."""
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    names = [f"{topic_name}-{number:02d}" for number in range(15)]
    for name in names:
        mp.create_topic(servers[0], name, 4)
    settings = {**IDENTITY, "refresh.topics.interval.seconds": "600"}
    path = mp.write_properties(tmp_path / "mm2.properties", *servers, f"{topic_name}-.*", settings)
    limit_creations(target_cluster, "A->B|driver", 2.0)
    try:
        with run_mirror(path, spark) as mirror:
            mp.wait_for(lambda: bool(mirror.observer.snapshot().flows), 60, "begun")
            mp.wait_for(lambda: any(topic.refused for topic in flow_of(mirror).topics), 60, "some must wait")
            waits = [topic.refused for topic in flow_of(mirror).topics if topic.refused]
            assert all("controller_mutation_rate" in why for why in waits)
            mp.wait_for(lambda: is_well(flow_of(mirror)), 180, "all are copied")
            flow = dataclasses.replace(flow_of(mirror))
            assert sorted(topic.topic for topic in flow.topics) == names
    finally:
        limit_creations(target_cluster, "A->B|driver", None)
    logged = lines()
    assert not [one for one in logged if "not replicated" in one]
    assert 1 <= sum("topics wait" in one for one in logged) < 40
