"""Attempts on one partition, and what is there afterwards."""

from __future__ import annotations

import pyarrow as pa
from kafka import KafkaConsumer, TopicPartition
from tests.sink.sink_query import Query

from sparkmirror.sink.agreement import SinkAgreement
from sparkmirror.sink.appender import TaskAppender
from sparkmirror.sink.order import AppendedRange, AppendOrder


def rows(*offsets: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array([b"%d" % offset for offset in offsets], pa.binary()),
            "partition": pa.array([0] * len(offsets), pa.int32()),
        }
    )


def attempt(order: AppendOrder, *offsets: int) -> list[AppendedRange]:
    appender = TaskAppender(order)
    try:
        appender.expect([(order.topic, 0)])
        if offsets:
            appender.take(rows(*offsets))
        return appender.finish()
    finally:
        appender.close()


def begin(order: AppendOrder, *offsets: int) -> None:
    """Append each row in a batch of its own, and end before the result."""
    appender = TaskAppender(order, window_bytes=1)
    try:
        for offset in offsets:
            appender.take(rows(offset))
    finally:
        appender.close()


def control_end(query: Query) -> int:
    agreement = SinkAgreement(query.client, query.name, 0)
    agreement.producer()
    return agreement.read_to


def take_rest(appender: TaskAppender, *offsets: int) -> None:
    try:
        appender.take(rows(*offsets))
        appender.finish()
    finally:
        appender.close()


def in_order(query: Query) -> list[int]:
    consumer = KafkaConsumer(bootstrap_servers=list(query.config.bootstrap_servers), enable_auto_commit=False)
    at = TopicPartition(query.topic, 0)
    consumer.assign([at])
    consumer.seek_to_beginning()
    (end,) = consumer.end_offsets([at]).values()
    seen: list[int] = []
    while consumer.position(at) < end:
        seen += [int(record.value) for records in consumer.poll(1000).values() for record in records]
    consumer.close()
    return seen


def values(query: Query) -> list[int]:
    return sorted(int(value) for value in query.values().elements())
