"""Source topics on which translating offsets is easy, and such on which it is not. One partition each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from bench.producing import ProducingFailed

TRANSACTION = 50
"""Records of a transaction; one transaction in four is aborted."""

_VALUE = b"x" * 100
_COMPACTED_TIMEOUT_S = 180.0

Fill = Callable[[str, str, int], None]
"""Of the cluster (bootstrap servers), the topic, and the records to write."""


@dataclass(frozen=True, slots=True)
class OffsetTopic:
    """A topic and how it is filled."""

    name: str
    fill: Fill
    share: float = 1.0
    """Of the records asked for: some ways to write are slow."""
    configs: Mapping[str, str] = field(default_factory=dict)


def make(servers: str, topic: OffsetTopic, records: int) -> None:
    """Create and fill it."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        admin.create_topics([NewTopic(topic.name, 1, 1, topic_configs=dict(topic.configs))])
    finally:
        admin.close()
    topic.fill(servers, topic.name, int(records * topic.share))


def read(servers: str, topic: str, *, committed: bool = False) -> list[Any]:
    """Every record, as a consumer sees it."""
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        isolation_level="read_committed" if committed else "read_uncommitted",
        enable_auto_commit=False,
    )
    where = TopicPartition(topic, 0)
    try:
        consumer.assign([where])
        end = consumer.end_offsets([where])[where]
        consumer.seek_to_beginning(where)
        found: list[Any] = []
        while consumer.position(where) < end:
            for some in consumer.poll(timeout_ms=500).values():
                found += some
        return found
    finally:
        consumer.close()


def bounds(servers: str, topic: str) -> tuple[int, int]:
    """Log start and log end."""
    consumer = KafkaConsumer(bootstrap_servers=servers)
    where = TopicPartition(topic, 0)
    try:
        return consumer.beginning_offsets([where])[where], consumer.end_offsets([where])[where]
    finally:
        consumer.close()


def _dense(servers: str, topic: str, records: int) -> None:
    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=5)
    for number in range(records):
        producer.send(topic, key=b"key-%d" % number, value=_VALUE, partition=0)
    producer.close()


def _tiny(servers: str, topic: str, records: int) -> None:
    producer = KafkaProducer(bootstrap_servers=servers, batch_size=1)
    for number in range(records):
        producer.send(topic, key=b"key-%d" % number, value=_VALUE, partition=0)
    producer.close()


def _truncated(servers: str, topic: str, records: int) -> None:
    """The log starts inside a batch."""
    _dense(servers, topic, records)
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        admin.delete_records({TopicPartition(topic, 0): records // 3 + 7})
    finally:
        admin.close()


def _compacted(servers: str, topic: str, records: int) -> None:
    """Keys are written twice or more, all over the log, and then cleaned; the cleaner comes no second time."""
    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=2, batch_size=2000)
    for number in range(records):
        key = b"key-%d" % (number * 7919 % (records // 3)) if number % 5 else b"only-%d" % number
        producer.send(topic, key=key, value=_VALUE, partition=0)
    producer.flush()
    time.sleep(1.2)  # past segment.ms: what was written so far may be cleaned
    for number in range(10):
        producer.send(topic, key=b"last-%d" % number, value=_VALUE, partition=0)
    producer.close()
    deadline = time.monotonic() + _COMPACTED_TIMEOUT_S
    while len(read(servers, topic)) > records * 0.7:
        if time.monotonic() > deadline:
            raise ProducingFailed(f"the cleaner has not been over {topic} after {_COMPACTED_TIMEOUT_S:.0f} s")
        time.sleep(1)
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        changed = {"cleanup.policy": "delete"}
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, changed)], incremental=True)
    finally:
        admin.close()
    time.sleep(2)  # a cleaning under way ends


def _transactional(servers: str, topic: str, records: int) -> None:
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id=f"{topic}-writer", enable_idempotence=True)
    producer.init_transactions()
    for number in range(0, records, TRANSACTION):
        producer.begin_transaction()
        for index in range(TRANSACTION):
            producer.send(topic, key=b"key-%d" % (number + index), value=_VALUE, partition=0)
        producer.flush()
        if number // TRANSACTION % 4 == 1:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()


DENSE = OffsetTopic("dense", _dense)
COMPACTED = OffsetTopic(
    "compacted",
    _compacted,
    configs={
        "cleanup.policy": "compact",
        "segment.ms": "1000",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "100",
    },
)
TRANSACTIONAL = OffsetTopic("transactional", _transactional, share=0.5)
TINY = OffsetTopic("tiny", _tiny, share=0.4)
TRUNCATED = OffsetTopic("truncated", _truncated)


class Case(NamedTuple):
    """One topic copied by one flow of ours and one of MirrorMaker 2's."""

    title: str
    topic: OffsetTopic
    committed: bool
    ours: str
    """The source's alias in our flow."""
    theirs: str


CASES = (
    Case("dense", DENSE, False, "S", "M"),
    Case("compacted", COMPACTED, False, "S", "M"),
    Case("transactional, read_committed", TRANSACTIONAL, True, "SC", "MC"),
    Case("transactional, read_uncommitted", TRANSACTIONAL, False, "S", "M"),
    Case("tiny batches, merged", TINY, False, "S", "M"),
    Case("log starts inside a batch", TRUNCATED, False, "S", "M"),
)


def remote(case: Case, alias: str) -> str:
    """The name by DefaultReplicationPolicy."""
    return f"{alias}.{case.topic.name}"
