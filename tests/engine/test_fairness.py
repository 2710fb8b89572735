"""Who waits for whom in one pump: the live tail, topics far behind, hot partitions; and the caps while it runs."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.loaded_flow import assert_copied

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.pump.messages.control import Control, control_topic

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

MB = 1_000_000
LIVE_PER_S = 20
MEMORY_LIMIT = 256 << 20
BACKLOG_PARTITIONS = 8
BACKLOG = 60_000


class Flow(NamedTuple):
    """A backlog and a live topic in one pump, under one alias for the test alone, so that control is its own."""

    source: KafkaCluster
    target: KafkaCluster
    alias: str
    backlog: str
    live: str
    properties: Path

    def remote(self, topic: str) -> str:
        return f"{self.alias}.{topic}"

    def copied(self, topic: str, partitions: int) -> list[int]:
        return mp.end_offsets(self.target.bootstrap_servers, self.remote(topic), partitions)

    def assert_identical(self, records: int) -> None:
        topics = {topic: self.remote(topic) for topic in (self.backlog, self.live)}
        assert_copied(self.source, self.target, topics, records)

    @contextlib.contextmanager
    def control(self) -> Iterator[Control]:
        servers = (self.target.bootstrap_servers,)
        client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=servers), "test")
        try:
            yield Control(TopicLog(client, control_topic(self.alias)))
        finally:
            client.close()


@pytest.fixture
def flow(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> Flow:
    backlog, live = f"{topic_name}-backlog", f"{topic_name}-live"
    alias = f"F{topic_name.rpartition('-')[2]}"
    mp.create_topic(source_cluster.bootstrap_servers, backlog, BACKLOG_PARTITIONS)
    mp.create_topic(source_cluster.bootstrap_servers, live, 1)
    settings = {
        "clusters": f"{alias}, B",
        f"{alias}.bootstrap.servers": source_cluster.bootstrap_servers,
        "B.bootstrap.servers": target_cluster.bootstrap_servers,
        f"{alias}->B.enabled": "true",
        f"{alias}->B.topics": f"{topic_name}-.*",
        "replication.factor": "1",
        "tasks.max": "1",
        "heartbeats.replication.enabled": "false",
    }
    path = tmp_path / "mm2.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    return Flow(source_cluster, target_cluster, alias, backlog, live, path)


def write_backlog(flow: Flow, records: int, *, size: int = MB, partitions: int = BACKLOG_PARTITIONS) -> None:
    mp.produce(flow.source.bootstrap_servers, flow.backlog, partitions, records, codec=None, size=size)


class LiveTail:
    """As a context writes records to the live topic, and notes how late each one is at the target, in seconds."""

    def __init__(self, flow: Flow, *, size: int = 100, per_s: float = LIVE_PER_S) -> None:
        self._flow = flow
        self._value = b"z" * size
        self._pause_s = 1 / per_s
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._write, self._read)]
        self.written = 0
        self.delays_s: list[float] = []

    def __enter__(self) -> LiveTail:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def p99_s(self, since: int = 0) -> float:
        """Of the records from number `since` on that have arrived."""
        delays = sorted(self.delays_s[since:])
        return delays[len(delays) * 99 // 100]

    def _write(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._flow.source.bootstrap_servers, max_request_size=4 << 20)
        while not self._stop.wait(self._pause_s):
            producer.send(self._flow.live, value=self._value, partition=0)
            self.written += 1
        producer.close()

    def _read(self) -> None:
        where = TopicPartition(self._flow.remote(self._flow.live), 0)
        mp.wait_for(lambda: self._flow.copied(self._flow.live, 1) > [0] or self._stop.is_set(), 120, "live records")
        consumer = KafkaConsumer(bootstrap_servers=self._flow.target.bootstrap_servers)
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        while not self._stop.is_set():
            for records in consumer.poll(timeout_ms=200).values():
                now_s = time.time()
                self.delays_s += [now_s - record.timestamp / 1000 for record in records]
        consumer.close()


@pytest.mark.parametrize("cap", [2 * MB, None])
def test_a_backlog_does_not_delay_the_live_tail(flow: Flow, tmp_path: Path, cap: int | None) -> None:
    """300 MB in eight partitions; with the cap they take minutes, and each fetch a quarter of a second's bytes."""
    with flow.control() as control, mp.MirrorProcess(flow.properties, tmp_path / "mirror.log") as mirror:
        mp.wait_for(lambda: control_is_there(flow), 90, "the control topic")
        control.pause([flow.backlog])
        mp.produce(flow.source.bootstrap_servers, flow.live, 1, 1)
        mp.wait_for(lambda: flow.copied(flow.live, 1) == [1], 90, "the first live record")
        write_backlog(flow, BACKLOG, size=300 * MB // BACKLOG)
        control.throttle(cap)
        with LiveTail(flow) as live:
            mp.wait_for(lambda: len(live.delays_s) > 10 * LIVE_PER_S, 180, "live records at the target")
            quiet, before = live.p99_s(5 * LIVE_PER_S), len(live.delays_s)
            control.pause([])
            began = time.monotonic()
            while sum(flow.copied(flow.backlog, BACKLOG_PARTITIONS)) < BACKLOG and time.monotonic() < began + 20:
                time.sleep(0.5)
            done = sum(flow.copied(flow.backlog, BACKLOG_PARTITIONS))
            busy = live.p99_s(before)
            print(f"p99 of the live tail: {quiet * 1e3:.0f} ms, next to a backlog {busy * 1e3:.0f} ms; {done} copied")
            if cap:
                assert 20 * cap * 0.5 < done * 300 * MB / BACKLOG < 20 * cap * 1.5
            control.throttle(None)
            mp.wait_for(lambda: sum(flow.copied(flow.backlog, BACKLOG_PARTITIONS)) == BACKLOG, 180, "backlog copied")
        mp.wait_for(lambda: flow.copied(flow.live, 1) == [live.written + 1], 180, "live tail copied")
        assert mirror.terminate(60) == 0
    assert busy < 1.0
    flow.assert_identical(BACKLOG + live.written + 1)


def test_caps_change_while_it_runs(flow: Flow, tmp_path: Path) -> None:
    write_backlog(flow, 4000, size=100_000)

    def rate(seconds: float) -> float:
        """Bytes of the backlog in a second, roughly."""
        began, before = time.monotonic(), sum(flow.copied(flow.backlog, BACKLOG_PARTITIONS))
        time.sleep(seconds)
        after = sum(flow.copied(flow.backlog, BACKLOG_PARTITIONS))
        return (after - before) * 100_000 / (time.monotonic() - began)

    with flow.control() as control, mp.MirrorProcess(flow.properties, tmp_path / "mirror.log") as mirror:
        mp.wait_for(lambda: control_is_there(flow), 90, "the control topic")
        control.throttle(1 * MB)
        mp.wait_for(lambda: sum(flow.copied(flow.backlog, BACKLOG_PARTITIONS)) > 0, 90, "it runs")
        for all_of_it, backfill, expected in (
            (1 * MB, None, 1 * MB),
            (4 * MB, None, 4 * MB),
            (4 * MB, 2 * MB, 2 * MB),
            (None, 6 * MB, 6 * MB),
            (3 * MB, 6 * MB, 3 * MB),
        ):
            control.throttle(all_of_it, backfill)
            time.sleep(1.5)
            measured = rate(8)
            print(f"caps {all_of_it} and {backfill}: {measured / MB:.1f} MB/s")
            assert 0.6 * expected < measured < 1.4 * expected
        control.throttle(None)
        mp.wait_for(lambda: sum(flow.copied(flow.backlog, BACKLOG_PARTITIONS)) == 4000, 120, "the rest")
        assert mirror.terminate(60) == 0
    flow.assert_identical(4000)


def control_is_there(flow: Flow) -> bool:
    return sum(mp.end_offsets(flow.target.bootstrap_servers, control_topic(flow.alias), 1)) > 0


def test_a_hot_partition_does_not_starve_the_others(flow: Flow, tmp_path: Path) -> None:
    """One partition of a topic has a hundred times as much: the others are done long before it."""
    producer = KafkaProducer(bootstrap_servers=flow.source.bootstrap_servers, max_request_size=4 << 20)
    for number in range(3000):
        producer.send(flow.backlog, value=b"%d-" % number + b"h" * 100_000, partition=0)
    for number in range(30 * (BACKLOG_PARTITIONS - 1)):
        partition = 1 + number % (BACKLOG_PARTITIONS - 1)
        producer.send(flow.backlog, value=b"%d-" % number + b"c" * 100_000, partition=partition)
    producer.close()
    with flow.control() as control, mp.MirrorProcess(flow.properties, tmp_path / "mirror.log") as mirror:
        mp.wait_for(lambda: control_is_there(flow), 90, "the control topic")
        control.throttle(5 * MB)
        cool = [30] * (BACKLOG_PARTITIONS - 1)
        mp.wait_for(lambda: flow.copied(flow.backlog, BACKLOG_PARTITIONS)[1:] == cool, 90, "the others are copied")
        hot = flow.copied(flow.backlog, BACKLOG_PARTITIONS)[0]
        print(f"when the others had their 30 records, the hot partition had {hot} of 3000")
        assert hot < 600
        control.throttle(None)
        mp.wait_for(lambda: flow.copied(flow.backlog, 1) == [3000], 120, "the hot one too")
        assert mirror.terminate(60) == 0
    flow.assert_identical(3000 + len(cool) * 30)


def test_memory_with_records_of_a_megabyte_in_both_lanes(flow: Flow, tmp_path: Path) -> None:
    write_backlog(flow, 400)
    largest = 0
    with mp.MirrorProcess(flow.properties, tmp_path / "mirror.log") as mirror:
        with LiveTail(flow, size=MB, per_s=10) as live:
            deadline = time.monotonic() + 180
            while sum(flow.copied(flow.backlog, BACKLOG_PARTITIONS)) < 400 or len(live.delays_s) < 60:
                assert time.monotonic() < deadline
                for worker in mirror.workers():
                    with contextlib.suppress(psutil.NoSuchProcess):
                        largest = max(largest, worker.memory_info().rss)
        mp.wait_for(lambda: flow.copied(flow.live, 1) == [live.written], 180, "live tail copied")
        assert mirror.terminate(60) == 0
    print(f"largest pump: {largest / 2**20:.0f} MB")
    assert 0 < largest < MEMORY_LIMIT
    flow.assert_identical(400 + live.written)
