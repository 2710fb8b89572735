"""States that come about on real clusters: wrong clocks, no leader, records that a policy refuses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_observer import flow_of
from tests.support import mirror_process as mp
from tests.support.mirror_thread import run_mirror

from conftest import StartMirror
from sparkmirror.look.doctor.findings import Finding, diagnose
from sparkmirror.look.doctor.flow_status import line
from sparkmirror.look.metrics.collector import MirrorCollector
from sparkmirror.look.page.sentences import Tone, headline
from sparkmirror.mirror.engine.flow_health import is_healthy
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.snapshot.snapshot import Cause

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

COUNT = 50


def found(mirror: Mirror) -> dict[str, Finding]:
    return {finding.rule: finding for finding in diagnose(mirror.observer.snapshot())}


def assert_parked(mirror: Mirror, cause: Cause, *words: str) -> None:
    """Whoever looks is told so, and why."""
    flow = flow_of(mirror)
    assert not is_healthy(flow)
    assert all(word in line(flow, 0.0) for word in words), line(flow, 0.0)
    said = headline(flow, flow.at_ms, diagnose(mirror.observer.snapshot()))
    assert said.tone is Tone.BAD
    assert "1 partition is parked" in said.what
    metrics = MirrorCollector(mirror.observer.snapshot).text().decode()
    assert f'sparkmirror_partitions{{flow="A->B",state="parked",cause="{cause}"}} 1\n' in metrics, "PartitionsParked"


def test_a_clock_that_is_ahead_and_seconds_for_milliseconds(
    start_mirror: StartMirror, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """They are copied, and the flow is well; once the producers are right nothing is left to say."""
    here, there = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    early, absurd = f"{topic_name}-early", f"{topic_name}-absurd"
    moments = {early: (time.time() + 1_800) * 1000, absurd: time.time()}
    for topic in moments:
        mp.create_topic(here, topic, 1, {"retention.ms": "-1"})  # else what is so old is deleted at once
    with start_mirror(f"{topic_name}-.*", {}) as mirror:
        for topic, at_ms in moments.items():
            mp.produce(here, topic, 1, COUNT, timestamp_ms=int(at_ms))
        try:
            for topic in moments:
                mp.wait_for(lambda: mp.end_offsets(there, f"A.{topic}", 1) == [COUNT], 90, "copied")  # noqa: B023
        finally:
            print(line(flow_of(mirror), 0.0), found(mirror))
        mp.wait_for(lambda: {"clock-ahead", "timestamps-absurd"} <= found(mirror).keys(), 30, "both are told")
        ahead, old = found(mirror)["clock-ahead"], found(mirror)["timestamps-absurd"]
        assert (ahead.subject, old.subject) == (f"{early}-0", f"{absurd}-0")
        assert "1,7" in ahead.evidence or "1,8" in ahead.evidence, "half an hour"
        assert is_healthy(flow_of(mirror))

        def right() -> bool:
            for topic in moments:
                mp.produce(here, topic, 1, COUNT)
            time.sleep(1)
            return not {"clock-ahead", "timestamps-absurd"} & found(mirror).keys()

        mp.wait_for(right, 60, "nothing is left to say")


@pytest.fixture
def three_brokers(tmp_path: Path) -> Iterator[KafkaCluster]:
    """A source in which a broker may die: two controllers are left."""
    with KafkaCluster(tmp_path / "three", brokers=3) as made:
        yield made


def test_a_partition_without_a_leader(
    three_brokers: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    """Its only broker dies; the others continue, and it continues once the broker is back."""
    here, there = three_brokers.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(here, topic_name, 3)
    mp.produce(here, topic_name, 3, 3 * COUNT)
    path = mp.write_properties(tmp_path / "mm2.properties", here, there, topic_name)
    told = {"parked-no-leader"}

    def rules(mirror: Mirror) -> set[str]:
        before = mirror.observer.snapshot()
        time.sleep(6)
        return {finding.rule for finding in diagnose(mirror.observer.snapshot(), [before])}

    with run_mirror(path, spark) as mirror:
        mp.wait_for(lambda: mp.end_offsets(there, f"A.{topic_name}", 3) == [COUNT] * 3, 120, "all is copied")
        third = three_brokers.brokers[2]
        third.kill()
        mp.wait_for(lambda: bool(told & rules(mirror)), 120, "it is told")
        flow = flow_of(mirror)
        print(line(flow, 0.0), rules(mirror))
        assert headline(flow, flow.at_ms, diagnose(mirror.observer.snapshot())).tone is not Tone.GOOD
        third.start()
        mp.wait_for(lambda: not told & rules(mirror), 120, "it is over")
        mp.produce(here, topic_name, 3, 3 * COUNT)
        mp.wait_for(lambda: mp.end_offsets(there, f"A.{topic_name}", 3) == [2 * COUNT] * 3, 120, "all is copied")


def test_records_without_a_key_and_a_copy_that_is_compacted(
    start_mirror: StartMirror, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """The target refuses them by its topic's policy; once that is another, they are copied."""
    here, there = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(here, topic_name, 1)
    mp.create_topic(there, f"A.{topic_name}", 1, {"cleanup.policy": "compact"})
    mp.produce(here, topic_name, 1, COUNT)
    with start_mirror(topic_name, {"sync.topic.configs.enabled": "false"}) as mirror:
        mp.wait_for(lambda: "parked-refused" in found(mirror), 90, "it is told")
        print(line(flow_of(mirror), 0.0))
        assert_parked(mirror, Cause.REFUSED, topic_name, "INVALID_RECORD")
        mp.alter_topic(there, f"A.{topic_name}", {"cleanup.policy": "delete"})
        mp.wait_for(lambda: mp.end_offsets(there, f"A.{topic_name}", 1) == [COUNT], 120, "they are copied")
        mp.wait_for(lambda: "parked-refused" not in found(mirror), 30, "nothing is left to say")
