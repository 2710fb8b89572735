"""Requests that wait in a broker's socket while it mutes a throttled client (KIP-219), and come after its end (R5).

The target checks for expired state every second; the bulk of one partition exceeds the quota, and the old records of
the other one are sent at the same moment.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer
from lab import KafkaCluster
from lab.quotas import set_quota
from test_every_batch import contents, read
from test_old_records import TWO_DAYS_MS
from test_rival_views import SteppedPump, driver_of
from tests.support import mirror_process as mp
from tests.support.loaded_flow import running

pytestmark = [pytest.mark.broker, pytest.mark.full]

BULK_BYTES, BYTES_PER_S = 900_000, 30_000
CLIENT_ID = "A->B|sparkmirror-produce"


@pytest.fixture(scope="module")
def throttling_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    cluster = KafkaCluster(
        tmp_path_factory.mktemp("throttling", numbered=False),
        properties={"producer.id.expiration.check.interval.ms": "1000"},
    )
    with running(cluster):
        yield cluster


class Source:
    """A topic whose partition 0 has fresh records, and partition 1 old ones."""

    def __init__(self, cluster: KafkaCluster, topic: str) -> None:
        self.topic = topic
        mp.create_topic(cluster.bootstrap_servers, topic, 2)
        self._producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, max_request_size=2 << 20)

    def write(self, partition: int, size: int, count: int = 1) -> None:
        at_ms = int(time.time() * 1000) - (TWO_DAYS_MS if partition else 0)
        for number in range(count):
            value = b"%d" % number + bytes(size)
            self._producer.send(self.topic, value=value, partition=partition, timestamp_ms=at_ms)
            self._producer.flush()


def test_what_a_muted_connection_brings_late_is_not_there_twice(
    source_cluster: KafkaCluster, throttling_target: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    source = Source(source_cluster, topic_name)
    source.write(0, 10)
    source.write(1, 10, count=10)
    mp.create_topic(throttling_target.bootstrap_servers, f"A.{topic_name}", 2)
    settings = {"sparkmirror.merge.tiny.batches": "false", "B.producer.max.request.size": str(BULK_BYTES // 2)}
    with driver_of(source_cluster, throttling_target, topic_name, tmp_path, settings) as driver:
        order = driver.orders.order(driver.partitions())
        first = SteppedPump(order)
        bulk, old = first.copies
        first.turn_until(lambda: (bulk.progress.upstream, old.progress.upstream) == (1, 10))
        set_quota(throttling_target, "producer_byte_rate", BYTES_PER_S, CLIENT_ID)
        first.allowed = 0
        source.write(0, BULK_BYTES)
        source.write(1, 10)
        first.turn_until(lambda: bool(bulk.queue and old.queue))
        first.allowed = 1_000_000
        connection = first._targets.of(bulk)  # noqa: SLF001 - the order in which both go decides
        assert connection is not None
        connection.withdraw(old)
        first._begin_work(bulk)  # noqa: SLF001
        first._begin_work(old)  # noqa: SLF001
        connection.pump()
        sent = [[copy.route.partition for copy in request.copies.values()] for request in connection._requests]  # noqa: SLF001
        first.turn_until(lambda: not bulk.in_flight)
        muted_s = connection.throttled_s
        print(f"in flight: {sent}; the broker mutes the connection for {muted_s:.1f} s, and the pump is gone")
        assert muted_s > 15, "else nothing is late"
        gone_at = time.monotonic()
        first.close()
        set_quota(throttling_target, "producer_byte_rate", None, CLIENT_ID)
        second = SteppedPump(order.model_copy(update={"unclean": True}))
        second.turn_until(lambda: [copy.progress.upstream for copy in second.copies] == [2, 11])
        print(f"{time.monotonic() - gone_at:.1f} s: the next pump has copied both")
        time.sleep(max(muted_s + 3 - (time.monotonic() - gone_at), 0))
        ends = mp.end_offsets(throttling_target.bootstrap_servers, f"A.{topic_name}", 2)
        print(f"{time.monotonic() - gone_at:.1f} s: the mute is over; the copies end at {ends}")
        second.close()
    assert ends == [2, 11]
    assert contents(read(throttling_target, f"A.{topic_name}")) == contents(read(source_cluster, topic_name))
