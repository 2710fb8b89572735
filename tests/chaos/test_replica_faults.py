"""Faults that take more than a signal do what they say, to a cluster of three under load."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from chaos.arena import Arena, wait_in_sync
from chaos.expiry import ExpiryWatch, met
from chaos.full_disk import FullDisk
from chaos.leaders import LeaderMove, elect, turned
from chaos.load import Load
from chaos.meter import Meter, Watermarks
from chaos.mirror import Deployment
from chaos.records import ID_HEADER, read_topic
from chaos.replicas import ask, configure, leaders_log_end, log_end, place, replicas, wait_for
from chaos.scribe import Scribe
from chaos.unclean import UncleanElectionAtTarget
from chaos.world import World
from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from lab import KafkaCluster
from lab.proxy import Proxy

TOPIC = "A.copied"
PARTITIONS = 2
TWO_DAYS_MS = 2 * 86_400_000


def test_the_next_in_line_is_to_lead() -> None:
    assert turned((1, 2, 3), 1) == (2, 3, 1)
    assert turned((1, 2, 3), 3) == (1, 2, 3)
    assert turned((2, 3), 1) == (2, 3), "nobody leads"


def test_what_was_forgotten_near_a_fault_counts_for_it() -> None:
    assert not met([], 10, 20)
    assert not met([7.0, 23.0], 10, 20)
    assert met([8.5], 10, 20)
    assert met([15.0], 10, 20)
    assert met([21.5], 10, 20)


@pytest.fixture(scope="module")
def arena_of_three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """An arena of three brokers, of which only the target runs."""
    arena = Arena(tmp_path_factory.mktemp("trio", numbered=False), brokers=3, keep_logs=True)
    try:
        arena.target.start()
        arena.create_topic(arena.target, TOPIC, PARTITIONS)
        yield arena
    finally:
        arena.close()


@pytest.fixture
def trio(arena_of_three: Arena) -> KafkaCluster:
    return arena_of_three.target


class Written:
    """Writes to every partition, until the end of a `with`; knows which records were acknowledged."""

    def __init__(self, cluster: KafkaCluster, name: str, age_ms: int = 0) -> None:
        self.acknowledged: set[str] = set()
        self._cluster = cluster
        self._name = name
        self._age_ms = age_ms
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> Written:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._cluster.direct_servers, enable_idempotence=False, acks="all")
        number = 0
        while not self._ended.wait(0.02):
            for partition in range(PARTITIONS):
                number += 1
                name = f"{self._name}-{partition}-{number}"
                producer.send(
                    TOPIC,
                    b"x" * 300,
                    partition=partition,
                    headers=[(ID_HEADER, name.encode())],
                    timestamp_ms=int(time.time() * 1000) - self._age_ms,
                ).add_callback(lambda _, name=name: self.acknowledged.add(name))
        with contextlib.suppress(KafkaError):
            producer.flush(20)
        producer.close(5)


def kept(cluster: KafkaCluster) -> set[str]:
    logs = read_topic(cluster.direct_servers, TOPIC, PARTITIONS, "read_uncommitted")
    return {record.id for log in logs.values() for record in log}


@pytest.mark.broker
@pytest.mark.full
def test_an_unclean_election_loses_what_was_acknowledged(
    arena_of_three: Arena, trio: KafkaCluster, tmp_path: Path
) -> None:
    meter = Meter(*(Watermarks([broker.port for broker in trio.brokers], [TOPIC], PARTITIONS) for _ in range(2)))
    nobody = Deployment(tmp_path / "mm2.properties", tmp_path / "mirror.log")
    world = World(
        *(arena_of_three, nobody, meter, {"orders": "copied"}, PARTITIONS, "read_uncommitted"),
        *(tmp_path / "mm2.properties", Scribe("", tmp_path / "history"), cast(Load, SimpleNamespace(busy=PARTITIONS))),
    )
    fault = UncleanElectionAtTarget(world, random.Random(3))
    where = replicas(trio, [TOPIC])
    with meter, Written(trio, "unclean") as load:
        fault.begin()
        time.sleep(2)
        promised = set(load.acknowledged)
        fault.end()
        fault.settle()
        assert sum(meter.latest().target) <= len(load.acknowledged), "the meter knows that they are gone"
    missing = promised - kept(trio)
    assert fault.lost >= len(missing) >= 20
    assert len({name.split("-")[1] for name in missing}) == 1, "of one partition"
    assert f"{fault.lost} acknowledged records lost" in fault.victim
    assert {part: it.brokers for part, it in replicas(trio, [TOPIC]).items()} == {
        part: it.brokers for part, it in where.items()
    }


@pytest.mark.broker
@pytest.mark.full
def test_a_full_disk_takes_a_directory_out_of_service_and_loses_nothing(trio: KafkaCluster) -> None:
    fault = FullDisk(trio, random.Random(1))
    with Written(trio, "full") as load:
        time.sleep(1)
        fault.begin()
        assert fault.out_of_service()
        time.sleep(1)
        fault.end()
        fault.settle()
        assert not fault.out_of_service()
        time.sleep(1)
    log = fault.broker.log.read_text()
    assert "java.io.IOException: File too large" in log
    assert load.acknowledged
    assert load.acknowledged <= kept(trio)


@pytest.mark.broker
@pytest.mark.full
def test_leaders_move_and_nothing_is_lost(trio: KafkaCluster) -> None:
    with Written(trio, "move") as load:
        before = replicas(trio, [TOPIC])
        fault = LeaderMove(trio, random.Random(1))
        fault.begin()
        fault.settle()
        assert all(it.leader != before[part].leader for part, it in replicas(trio, [TOPIC]).items())
        time.sleep(1)
    assert load.acknowledged
    assert load.acknowledged <= kept(trio)


@pytest.mark.broker
@pytest.mark.full
def test_the_target_forgets_who_wrote_old_records_and_nobody_else(trio: KafkaCluster) -> None:
    wait_in_sync(trio)
    for age_ms in (TWO_DAYS_MS, 0):  # a state that is known stays for a day
        with ExpiryWatch(trio.direct_servers, TOPIC, PARTITIONS) as watch:
            producer = KafkaProducer(bootstrap_servers=trio.direct_servers)
            for partition in range(PARTITIONS):
                stamp = int(time.time() * 1000) - age_ms
                producer.send(TOPIC, b"x", partition=partition, timestamp_ms=stamp).get(20)
            watch.forgotten.clear()
            time.sleep(4)
            producer.close()
        assert bool(watch.forgotten) == bool(age_ms)


@pytest.mark.broker
@pytest.mark.full
def test_a_follower_that_gets_nothing_stays_in_sync_and_is_elected_without(
    arena_of_three: Arena, trio: KafkaCluster
) -> None:
    cluster, part = arena_of_three.target, TopicPartition(TOPIC, 0)
    leader, heir = cluster.brokers[0], cluster.brokers[1]
    where = replicas(trio, [TOPIC])[part]
    with Proxy(cluster.inner_port(leader)) as proxy:
        try:
            cluster.put_behind(leader, proxy)
            wait_in_sync(trio)
            configure(trio, TOPIC, {"min.insync.replicas": "1"})
            place(trio, {part: (leader.node_id, heir.node_id)})
            wait_for("two", lambda: replicas(trio, [TOPIC])[part].in_sync == {leader.node_id, heir.node_id})
            ask(trio, lambda admin: elect(admin, {part: (leader.node_id,)}))
            before = log_end(trio, part)
            proxy.stall()
            producer = KafkaProducer(
                bootstrap_servers=f"127.0.0.1:{leader.port}", enable_idempotence=False, acks=0, max_block_ms=20_000
            )
            for _ in range(10):
                producer.send(TOPIC, b"only the leader has it", partition=0)
            wait_for("ten at the leader", lambda: leaders_log_end(leader, part) == before + 10)
            time.sleep(8)  # longer than a paused broker's session and the other brokers' replica.lag.time.max.ms
            assert leaders_log_end(leader, part, acknowledged=True) == before
            producer.close(1)
            leader.kill()  # what it has sent waits in the proxy: a follower that still follows would append it
            wait_for("the follower leads", lambda: replicas(trio, [TOPIC])[part].leader == heir.node_id)
            assert log_end(trio, part) == before
        finally:
            proxy.heal()
            cluster.put_back(leader)
            place(trio, {part: where.brokers})
            wait_for("as it was", lambda: replicas(trio, [TOPIC])[part].in_sync == set(where.brokers))
            configure(trio, TOPIC, {"min.insync.replicas": None})
    assert leaders_log_end(heir, part) <= before, "nowhere is any of them"
