"""Two pumps over one log that was compacted between their fetches, step by step: the log decides (R2, R14, R15)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType
from lab import KafkaCluster
from test_every_batch import assert_mapped, contents, read
from tests.support import mirror_process as mp

from sparkmirror.config import load_mm2_properties
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.pump.flow_pump import FlowPump
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.control import ControlState
from sparkmirror.pump.messages.orders import FlowOrder
from sparkmirror.pump.stage import Stage

pytestmark = pytest.mark.broker

NOW_MS = int(time.time() * 1000)
COMPACT = {"cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.001"}
BATCH = 5


class SteppedPump(FlowPump):
    """A pump that sends a given number of batches only, and is turned by the test."""

    allowed = 1_000_000

    def __init__(self, order: FlowOrder) -> None:
        self.loop = Loop()
        super().__init__(order, self.loop, memory_bytes=8 << 20)
        self.control(ControlState())
        self.copy = self.copies[0]
        self.fetching = self.sources.fetching

    def _may_send(self) -> bool:
        if not self.allowed:
            return False
        self.allowed -= 1
        return super()._may_send()

    def turn_until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60 * mp.PATIENCE
        while not reached():
            copy = self.copy
            at = f"{copy.stage} at {copy.progress.upstream} (target {copy.progress.downstream}): {copy.trouble.reason}"
            assert time.monotonic() < deadline, at
            self.flush()
            self.loop.turn(0.05)


@contextlib.contextmanager
def driver_of(
    source: KafkaCluster,
    target: KafkaCluster,
    topic: str,
    tmp_path: Path,
    settings: Mapping[str, str] | None = None,
) -> Iterator[FlowDriver]:
    path = mp.write_properties(
        tmp_path / "mm2.properties", source.bootstrap_servers, target.bootstrap_servers, topic, settings
    )
    driver = FlowDriver(load_mm2_properties(str(path)).flows[0], topic, use_lease=False, once=False)
    driver.open()
    try:
        driver.become_active()
        driver.sync_topics()
        yield driver
    finally:
        driver.close()


def write(producer: KafkaProducer, topic: str, round_number: int) -> None:
    """One batch: the same keys in every round, so that the cleaner leaves only the last round's records.

    Four rounds are a segment, however long they take: the times are what rolls it.
    """
    at_ms = NOW_MS + round_number // 4 * 1000
    for key in range(BATCH):
        producer.send(topic, key=b"key-%d" % key, value=b"round-%d" % round_number, partition=0, timestamp_ms=at_ms)
    producer.flush()


@pytest.mark.parametrize("sent_before", [0, 1])
def test_a_held_pump_and_a_rival_that_sees_less(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sent_before: int,
) -> None:
    """The first has fetched and claimed, and sent some; then the log is compacted, the rival copies it; then the first
    continues with a batch of the same sequences and other records, which the leader calls a success."""
    monkeypatch.setattr("sparkmirror.pump.trust.MAX_CONFIRMATION_AGE_S", 1e9)  # it would look again by itself
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1, COMPACT)
    mp.create_topic(target_cluster.bootstrap_servers, f"A.{topic_name}", 1)
    producer = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers, linger_ms=10_000)
    for round_number in range(4):
        write(producer, topic_name, round_number)
    with driver_of(source_cluster, target_cluster, topic_name, tmp_path) as driver:
        order = driver.orders.order(driver.partitions()).model_copy(update={"flow": unmerged(driver)})
        first, rival = SteppedPump(order), SteppedPump(order)
        first.loop.on_suspended.clear()
        first.allowed = sent_before
        first.turn_until(lambda: len(first.copy.queue) == 4 - sent_before and not first.copy.in_flight)
        before = read(source_cluster, topic_name)
        write(producer, topic_name, 4)  # a new segment: the old one may be cleaned
        mp.wait_for(lambda: len(read(source_cluster, topic_name)) <= 2 * BATCH, 180, "compacted")
        after = read(source_cluster, topic_name)
        rival.turn_until(lambda: rival.copy.progress.upstream == after[-1].offset + 1)
        first.allowed = 1_000_000
        first.turn_until(lambda: first.copy.progress.upstream == after[-1].offset + 1)
        write(producer, topic_name, 5)
        first.turn_until(lambda: first.copy.progress.upstream == after[-1].offset + 1 + BATCH)
        assert first.copy.stage is Stage.RUNNING
        first.close()
        rival.close()
    expected = before[: sent_before * BATCH] + after + read(source_cluster, topic_name)[-BATCH:]
    copies = read(target_cluster, f"A.{topic_name}")
    assert contents(copies) == contents(expected)
    assert_mapped(target_cluster, f"A.{topic_name}", expected, copies)


def test_answers_that_take_many_turns_to_make_ready(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As compressed small records do: here a turn has no time for more than one batch."""
    monkeypatch.setattr("sparkmirror.pump.preparation.PREPARE_S", 0.0)
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    mp.create_topic(target_cluster.bootstrap_servers, f"A.{topic_name}", 2)
    producer = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers)
    for number in range(60):
        producer.send(topic_name, value=b"value-%d" % number, partition=number % 2)
        producer.flush()
    with driver_of(source_cluster, target_cluster, topic_name, tmp_path) as driver:
        pump = SteppedPump(driver.orders.order(driver.partitions()).model_copy(update={"flow": unmerged(driver)}))
        waiting = 0

        def copied() -> bool:
            nonlocal waiting
            unprepared = [copy for copy in pump.copies if copy.backlog.unprepared]
            waiting += len(unprepared)
            for copy in unprepared:
                assert copy.route.source in pump.fetching[copy].held_back, "a long poll would begin without it"
            return all(copy.progress.upstream == 30 for copy in pump.copies)

        pump.turn_until(copied)
        assert waiting > 10, "nothing was left for another turn"
        pump.close()
    assert contents(read(target_cluster, f"A.{topic_name}")) == contents(read(source_cluster, topic_name))


def test_a_topic_that_becomes_compacted_is_noticed_while_it_is_copied(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sparkmirror.pump.readings.POLICIES_S", 0.2)
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.create_topic(target_cluster.bootstrap_servers, f"A.{topic_name}", 1)
    with driver_of(source_cluster, target_cluster, topic_name, tmp_path) as driver:
        pump = SteppedPump(driver.orders.order(driver.partitions()))
        pump.turn_until(lambda: pump.copy.stage is Stage.RUNNING)
        assert pump.copy.reading is not None
        assert not pump.copy.reading.compacted
        admin = KafkaAdminClient(bootstrap_servers=source_cluster.bootstrap_servers)
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic_name, {"cleanup.policy": "compact"})])
        admin.close()

        def noticed() -> bool:
            pump.check()
            return pump.copy.reading is not None and pump.copy.reading.compacted

        pump.turn_until(noticed)
        pump.close()


def unmerged(driver: FlowDriver) -> object:
    return driver.flow.model_copy(update={"merge_tiny_batches": False})
