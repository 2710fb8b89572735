"""A pump between real brokers at the ends of lines of 100 ms: everything arrives once, in joined batches."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import KafkaCluster
from lab.distance import Distance
from tests.support.copied_flow import Side, built, wait_for

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.demo.proof import LogReader
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.records import Records
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.pump.memory_budget import FETCH_BYTES
from sparkmirror.pump.messages.figures import LineFigures
from sparkmirror.pump.messages.orders import PumpOrder, Receipt
from sparkmirror.pump.messages.receipts import read_reports, receipts_topic
from sparkmirror.pump.pump import MEMORY_BYTES, pump

pytestmark = [pytest.mark.broker, pytest.mark.full]

ROUND_TRIP_MS = 100.0
PARTITIONS, BATCHES, RECORDS = 6, 150, 64
"""Of 1 kB, in batches of 64 kB."""
BYTES = PARTITIONS * BATCHES * RECORDS * 1000


@pytest.fixture
def far(tmp_path: Path) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    """Two clusters, each with a line before it that has no length yet."""
    clusters = [KafkaCluster(tmp_path / name, distance=Distance()) for name in ("source", "target")]
    for cluster in clusters:
        cluster.start()
    yield clusters[0], clusters[1]
    for cluster in clusters:
        cluster.cleanup()


def flow_of(source: KafkaCluster, target: KafkaCluster, topic: str) -> FlowConfig:
    a, b = (
        ClusterConfig(alias=alias, bootstrap_servers=tuple(cluster.far_servers.split(",")))
        for alias, cluster in (("A", source), ("B", target))
    )
    return FlowConfig(source=a, target=b, topics=(topic,), replication_factor=1)


def copied(flow: FlowConfig) -> list[Receipt]:
    """Everything that is at the source, by one pump in this process."""
    driver = FlowDriver(flow, "test", use_lease=False, once=True)
    driver.open()
    try:
        driver.start()
        driver.become_active()
        driver.sync_topics()
        driver.control.say(1, "running")
        order = driver.orders.order(driver.partitions())
        (end,) = pump(PumpOrder(epoch=1, task=0, incarnation="test", seconds=200, flows=(order,)))
        return [*end.receipts]
    finally:
        driver.close(60.0)


def values(cluster: KafkaCluster, topic: str, partition: int) -> tuple[list[bytes], int]:
    """The records of a partition as stored, offsets and timestamps with them, and the number of their batches."""
    reader = LogReader(cluster.bootstrap_servers)
    records, batches = Records(), 0
    for header, batch in reader.batches(topic, partition):
        records.add(header, batch)
        batches += 1
    reader.close()
    stored = zip(records.offsets, records.timestamps, records.bodies, strict=True)
    return [b"%d %d %s" % each for each in stored], batches


def lines(cluster: KafkaCluster) -> list[LineFigures]:
    """Of all reports."""
    config = ClusterConfig(alias="B", bootstrap_servers=tuple(cluster.bootstrap_servers.split(",")))
    client = ClusterClient(config, "test")
    log = TopicLog(client, receipts_topic("A"))
    try:
        return [line for report in read_reports(log.read(0, 0)[0]) for line in report.lines]
    finally:
        client.close()


def break_both(source: KafkaCluster, target: KafkaCluster) -> None:
    """Lose all connections several times, from when a quarter has passed."""
    before = source.line.traffic().passed
    wait_for(lambda: source.line.traffic().passed - before > BYTES / 4, "a quarter has passed")
    for cluster in (target, source, target):
        cluster.line.lose_connections()
        time.sleep(0.7)


@pytest.mark.parametrize("breaks", [False, True])
def test_what_is_in_flight_follows_both_lines(
    far: tuple[KafkaCluster, KafkaCluster], topic_name: str, breaks: bool
) -> None:
    source, target = far
    side = Side("A", source)
    side.create(topic_name, PARTITIONS)
    randomness = random.Random(7)
    now_ms = int(time.time() * 1000)
    for number in range(BATCHES):
        batch = built([randomness.randbytes(1000) for _ in range(RECORDS)], first_ms=now_ms + number)
        for partition in range(PARTITIONS):
            side.send(topic_name, batch, partition)
    side.close()
    for cluster in far:
        cluster.line.become(Distance(ROUND_TRIP_MS))
    breaking = threading.Thread(target=break_both, args=far)
    if breaks:
        breaking.start()
    receipts = copied(flow_of(source, target, topic_name))
    if breaks:
        breaking.join()
    assert {(receipt.state, receipt.records >= BATCHES * RECORDS) for receipt in receipts} == {("done", True)}
    for partition in range(PARTITIONS):
        before, batches_before = values(source, topic_name, partition)
        after, batches_after = values(target, f"A.{topic_name}", partition)
        assert after == before
        assert len(after) == BATCHES * RECORDS
        assert batches_after < batches_before, "some were joined"
    chosen = lines(target)
    for name in ("source", "target"):
        of_side = [line for line in chosen if line.side == name]
        assert min(line.round_trip_ms for line in of_side) >= ROUND_TRIP_MS
        assert max(line.window_bytes for line in of_side) > FETCH_BYTES
        assert max(line.window_bytes for line in of_side) <= MEMORY_BYTES // 2
    assert max(line.connections for line in chosen if line.side == "source") > 1
    assert max(line.batch_bytes for line in chosen) > 64 << 10
