"""Doctor's remedies for a flow that copies too slowly, followed on real clusters: the finding goes."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from contextlib import closing

import pytest
from kafka import KafkaProducer
from lab import KafkaCluster
from lab.distance import Distance
from remedy_case import APART_S, Case, wait_for_finding, wait_until_gone
from tests.support import mirror_process as mp
from tests.support.mirror_thread import is_paused
from tests.support.started import started

from sparkmirror.look.doctor import latency
from sparkmirror.look.doctor.findings import Finding, diagnose
from sparkmirror.mirror.engine import round_runner
from sparkmirror.mirror.engine.mirror import Mirror

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

MANY = 12_000
"""Records that wait are many above 10,000."""
NEAR, FAR = Distance(round_trip_ms=1), Distance(round_trip_ms=1_200)


def write(cluster: KafkaCluster, topic: str, partitions: Iterable[int], records: int, *, size: int = 1_000) -> None:
    """Write records that no codec makes much smaller, the same number to each partition."""
    noise = random.Random(1)
    servers = cluster.bootstrap_servers
    with closing(KafkaProducer(bootstrap_servers=servers, linger_ms=5, batch_size=65_536)) as producer:
        for _ in range(records):
            for partition in partitions:
                producer.send(topic, noise.randbytes(size // 2).hex().encode(), partition=partition)
        producer.flush()


def task_of(mirror: Mirror, partition: int) -> int | None:
    (topic,) = mirror.observer.snapshot().flows[0].topics
    return topic.partitions[partition].task


def waiting(mirror: Mirror) -> int:
    return mirror.observer.snapshot().flows[0].lag or 0


def test_a_quota_that_lets_far_more_be_fetched_than_written(remedy_case: Case) -> None:
    """The command shows the quota; the finding on it says how it is raised."""
    partitions = 12
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, partitions)
    remedy_case.write()
    servers = remedy_case.target.bootstrap_servers
    quota = f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type users --entity-name ANONYMOUS"
    rate = "producer_byte_rate"
    try:
        with remedy_case.running() as mirror:
            write(remedy_case.source, remedy_case.topic, range(partitions), 10)
            mp.wait_for(lambda: remedy_case.copied(partitions=partitions) == 10 * partitions, 90, "it copies")
            remedy_case.run(f"{quota} --add-config {rate}=50000")
            before = mirror.observer.snapshot()
            write(remedy_case.source, remedy_case.topic, range(partitions), 2_500)
            seen: dict[str, Finding] = {}

            def is_found() -> bool:
                seen.update({one.rule: one for one in diagnose(mirror.observer.snapshot(), [before])})
                return "fetched-not-written" in seen and "throttled-target" in seen

            mp.wait_for(is_found, 60, "far more is fetched than written")
            shown = remedy_case.run(seen["fetched-not-written"].action)
            assert f"'ANONYMOUS' are {rate}=50000.0" in shown
            remedy_case.run(seen["throttled-target"].action, PRINCIPAL="ANONYMOUS", N="1000000000")
            copied = 2_510 * partitions
            mp.wait_for(lambda: remedy_case.copied(partitions=partitions) == copied, 120, "all is copied")
            wait_until_gone(mirror, "fetched-not-written")
    finally:
        remedy_case.run(f"{quota} --delete-config {rate}")


def test_writers_spread_their_keys(remedy_case: Case) -> None:
    servers = remedy_case.source.bootstrap_servers
    mp.create_topic(servers, remedy_case.topic, 4)
    mp.produce(servers, remedy_case.topic, 4, 40)
    remedy_case.write()
    with remedy_case.running() as mirror:
        mp.wait_for(lambda: remedy_case.copied(partitions=4) == 40, 90, "it copies")
        remedy_case.say("throttle", "20K")
        write(remedy_case.source, remedy_case.topic, [2], MANY)
        finding = wait_for_finding(mirror, "hot-partition")
        assert finding.subject == f"{remedy_case.topic}-2"
        shown = remedy_case.run(finding.action)
        assert "Partition: 2\tLeader: 1" in shown
        write(remedy_case.source, remedy_case.topic, [0, 1, 3], MANY)
        wait_until_gone(mirror, "hot-partition")
        assert waiting(mirror) > MANY, "it is spread, not copied"
        remedy_case.say("throttle", "off")
        mp.wait_for(lambda: remedy_case.copied(partitions=4) == 40 + 4 * MANY, 90, "all is copied")


def test_the_plan_evens_out_what_one_task_carries(remedy_case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planner looks at the load each half minute here, and not each five minutes."""
    monkeypatch.setattr(round_runner, "REPLAN_S", 30.0)
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 4)
    mp.produce(remedy_case.source.bootstrap_servers, remedy_case.topic, 4, 40)
    remedy_case.write()
    with remedy_case.running() as mirror:
        mp.wait_for(lambda: remedy_case.copied(partitions=4) == 40, 90, "it copies")
        remedy_case.say("throttle", "5M")
        busy = [partition for partition in range(4) if task_of(mirror, partition) == task_of(mirror, 0)]
        assert len(busy) == 2
        write(remedy_case.source, remedy_case.topic, busy, 30_000, size=4_000)
        wait_for_finding(mirror, "task-skew")
        wait_until_gone(mirror, "task-skew")
        assert waiting(mirror) > MANY, "it is spread, not copied"
        assert len({task_of(mirror, partition) for partition in busy}) == 2
        remedy_case.say("throttle", "off")
        mp.wait_for(lambda: remedy_case.copied(partitions=4) == 40 + 60_000, 90, "all is copied")


def test_recompression_is_taken_out(remedy_case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the highest level, so that one task can't keep up with what waits in several partitions.

    A fifth of a core is much here: other tests leave a pump less than the rule's 70 %.
    """
    monkeypatch.setattr(latency, "CPU_SHARE", 0.2)
    partitions, key = 6, "B.producer.compression.type"
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, partitions)
    write(remedy_case.source, remedy_case.topic, range(partitions), MANY, size=2_000)
    others = {"tasks.max": "1", "B.producer.compression.zstd.level": "22"}
    remedy_case.write(**{key: "zstd"}, **others)
    with remedy_case.running() as mirror:
        finding = wait_for_finding(mirror, "pump-cpu")
        assert key.removeprefix("B.") in finding.action
    remedy_case.write(**others)
    with remedy_case.running() as mirror:
        copied = partitions * MANY
        mp.wait_for(lambda: remedy_case.copied(partitions=partitions) == copied, 60, "all is copied")
        wait_until_gone(mirror, "pump-cpu")


@pytest.fixture(scope="module")
def far_source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A source behind a line that tests make long."""
    cluster = KafkaCluster(tmp_path_factory.mktemp("far", numbered=False), distance=NEAR)
    with started(cluster):
        yield cluster


@pytest.mark.parametrize("ends", ["raised", "taken out"])
def test_more_is_fetched_at_once_over_a_long_line(ends: str, remedy_case: Case, far_source: KafkaCluster) -> None:
    """Without the keys the pumps ask for as much as the line needs."""
    keys = {"A.consumer.max.partition.fetch.bytes": "32768", "A.consumer.receive.buffer.bytes": "32768"}
    mp.create_topic(far_source.bootstrap_servers, remedy_case.topic, 1)
    remedy_case.source = far_source
    write(far_source, remedy_case.topic, [0], 2 * MANY)
    servers = {"A.bootstrap.servers": far_source.far_servers}
    try:
        remedy_case.write(**servers, **keys)
        with remedy_case.running() as mirror:
            mp.wait_for(lambda: remedy_case.copied() > 0, 90, "it copies")
            far_source.line.become(FAR)
            finding = wait_for_finding(mirror, "slow-fetches")
            assert all(key.removeprefix("A.consumer.") in finding.action for key in keys)
            before, at = remedy_case.copied(), time.monotonic()
            time.sleep(APART_S)
            per_s = (remedy_case.copied() - before) / (time.monotonic() - at)
            assert per_s * 120 < waiting(mirror), "it would take far longer than below"
            far_source.line.become(NEAR)  # a start over the long line would take minutes of round trips
            remedy_case.say("pause")
        remedy_case.write(**servers, **(dict.fromkeys(keys, "4194304") if ends == "raised" else {}))
        with remedy_case.running() as mirror:
            mp.wait_for(lambda: is_paused(mirror), 60, "it waits")
            far_source.line.become(FAR)
            assert waiting(mirror) > MANY
            remedy_case.say("resume")
            mp.wait_for(lambda: remedy_case.copied() == 2 * MANY, 60, "all is copied")
            wait_until_gone(mirror, "slow-fetches")
            far_source.line.become(NEAR)
    finally:
        far_source.line.become(NEAR)
