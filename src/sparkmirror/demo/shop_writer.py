"""Writing the shop's events: a backlog as fast as possible, then a steady stream.

Kafka-python builds the batches, and sparkmirror's own wire code sends them: several times as fast as kafka-python's
producer.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from kafka.record.default_records import DefaultRecordBatchBuilder

from sparkmirror.config import ClusterConfig
from sparkmirror.demo.shop import SHOP, ShopEvent, ShopTopic, events
from sparkmirror.errors import SetupError
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.batches import CODECS

LIVE_TICK_S = 0.05

_TIMEOUT_MS = 10_000
_PATIENCE_S = 30.0
_PAUSE_S = 0.2
_LINGER_MS = 50
_NO_LIMIT = 1 << 30

Batches = dict[int, memoryview]


class ShopWriter:
    """One shop, whose events are each written once.

    This holds for any mix of `fill` and `live`.
    """

    def __init__(self, bootstrap_servers: str, seed: int = 1) -> None:
        self._client = _client(bootstrap_servers)
        self._events = {topic.name: events(topic, seed) for topic in SHOP}
        self._leaders: dict[str, dict[int, int]] = {}
        self._topic_ids: dict[str, bytes] = {}
        self.records = 0
        self.bytes = 0
        """Bytes written so far, as the brokers store them."""

    def fill(self, records: int, on_count: Callable[[int], None]) -> None:
        """Write `records` events at once, in large batches.

        Tells `on_count` the number of records written so far. Raises SetupError.
        """
        left = {topic.name: int(records * topic.share) for topic in SHOP}
        left[SHOP[0].name] += records - sum(left.values())
        while any(left.values()):
            for topic in SHOP:
                count = min(left[topic.name], topic.batch_records * topic.partitions)
                left[topic.name] -= count
                self._write(topic, count)
            on_count(self.records)

    def live(self, records_per_s: float, stop: threading.Event) -> None:
        """Write `records_per_s` in small batches until `stop` is set.

        Raises SetupError.
        """
        due = dict.fromkeys(self._events, 0.0)
        before = time.monotonic()
        while not stop.wait(LIVE_TICK_S):
            now = time.monotonic()
            for topic in SHOP:
                due[topic.name] += records_per_s * topic.share * (now - before)
                count = min(int(due[topic.name]), topic.batch_records * topic.partitions)
                due[topic.name] -= count
                self._write(topic, count)
            before = now

    def move(self, bootstrap_servers: str) -> None:
        """Write to another cluster from now on."""
        self._client.close()
        self._client = _client(bootstrap_servers)
        self._leaders.clear()

    def close(self) -> None:
        self._client.close()

    def _write(self, topic: ShopTopic, count: int) -> None:
        """Write a topic's next `count` events.

        Each partition gets one batch.
        """
        by_partition: dict[int, list[ShopEvent]] = defaultdict(list)
        for event in islice(self._events[topic.name], count):
            by_partition[event.partition].append(event)
        waiting: Batches = {
            partition: memoryview(_batch(records, CODECS.index(topic.codec)))
            for partition, records in by_partition.items()
        }
        self.records += count
        self.bytes += sum(map(len, waiting.values()))
        deadline = time.monotonic() + _PATIENCE_S
        while waiting:
            trouble = self._send(topic.name, waiting)
            if waiting:
                if time.monotonic() > deadline:
                    raise SetupError(f"topic {topic.name} takes no records for {_PATIENCE_S:.0f} s: {trouble}")
                self._client.hang_up()
                self._leaders.pop(topic.name, None)
                time.sleep(_PAUSE_S)

    def _send(self, topic: str, waiting: Batches) -> str:
        """Try once to send `waiting`; return the reason of a failure, or nothing.

        Removes the accepted batches from `waiting`.
        """
        trouble = ""
        try:
            for leader, batches in self._by_leader(topic, waiting):
                for ack in self._exchange(topic, leader, batches):
                    if ack.error:
                        trouble = f"partition {ack.key[1]}: error {ack.error} {ack.message}"
                    else:
                        del waiting[ack.key[1]]
        except ConnectionError as error:
            trouble = str(error)
        return trouble

    def _by_leader(self, topic: str, waiting: Batches) -> Iterator[tuple[int, Batches]]:
        if topic not in self._leaders:
            metadata = self._client.metadata([topic])[topic]
            self._topic_ids[topic] = metadata.topic_id
            self._leaders[topic] = {partition: place.leader for partition, place in metadata.partitions.items()}
        groups: dict[int, Batches] = defaultdict(dict)
        for partition, batch in waiting.items():
            groups[self._leaders[topic].get(partition, -1)][partition] = batch
        yield from groups.items()

    def _exchange(self, topic: str, leader: int, batches: Batches) -> Sequence[produce.Ack]:
        connection = self._client.broker(leader)
        version = connection.version(produce.API_KEY, produce.VERSIONS, "Produce")
        field = produce.topic_field(version, topic, self._topic_ids[topic])
        request = produce.produce_request(version, 0, self._client.client_id.encode(), _TIMEOUT_MS, {field: batches})
        return produce.read_answer(version, connection.exchange_raw(request))[1]


def _client(bootstrap_servers: str) -> ClusterClient:
    config = ClusterConfig(alias="shop", bootstrap_servers=tuple(bootstrap_servers.split(",")))
    return ClusterClient(config, "sparkmirror-shop")


def _batch(records: Sequence[ShopEvent], codec: int) -> bytearray:
    """Build a record batch as a producer with a linger time would send it.

    The timestamps span `_LINGER_MS`.
    """
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=_NO_LIMIT,
    )
    first_ms = int(time.time() * 1000) - _LINGER_MS
    for offset, event in enumerate(records):
        timestamp_ms = first_ms + offset * _LINGER_MS // len(records)
        builder.append(offset, timestamp_ms, event.key, event.value, event.headers)
    batch: bytearray = builder.build()
    return batch
