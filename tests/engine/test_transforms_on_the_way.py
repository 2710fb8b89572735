"""Connect's transforms in a mirror at work: records change on their way, and the rest of the promise holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp

import sparkmirror as sm
from sparkmirror.snapshot.snapshot import Cause, Partition

pytestmark = [pytest.mark.broker, pytest.mark.spark]

CONNECT = "org.apache.kafka.connect.transforms."
COUNT = 300


class Seen(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def records_of(cluster: KafkaCluster, topic: str, partition: int = 0) -> list[Seen]:
    """All records of a partition, as a consumer gets them."""
    place = TopicPartition(topic, partition)
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest")
    consumer.assign([place])
    end = consumer.end_offsets([place])[place]
    seen: list[Seen] = []
    while consumer.position(place) < end:
        for records in consumer.poll(500).values():
            seen += [Seen(each.offset, each.timestamp, each.key, each.value, tuple(each.headers)) for each in records]
    consumer.close()
    return seen


def produce(cluster: KafkaCluster, topic: str, first: int, count: int) -> None:
    """JSON with a secret; every third is somebody's test, every tenth a tombstone."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, compression_type="lz4", linger_ms=20)
    for number in range(first, first + count):
        value = json.dumps({"n": number, "card": f"4711-{number}"}, separators=(",", ":")).encode()
        headers = [("n", b"%d" % number)] + ([("test", b"")] if number % 3 == 0 else [])
        producer.send(topic, None if number % 10 == 0 else value, key=b"%d" % number, headers=headers, partition=0)
    producer.close()


def mirror_of(
    source: KafkaCluster,
    target: KafkaCluster,
    topics: str,
    spark: SparkSession,
    transforms: Mapping[str, object],
    *,
    once: bool = False,
) -> sm.Mirror:
    properties = {**mp.ONE_REPLICA, "refresh.topics.interval.seconds": 1} | {
        f"source->target.{key}": value for key, value in transforms.items()
    }
    return sm.Mirror(
        source=source.bootstrap_servers,
        target=target.bootstrap_servers,
        topics=topics,
        properties=properties,
        spark=spark,
        once=once,
    )


MASKED = {
    "transforms": "tests, mask, stamp",
    "transforms.tests.type": f"{CONNECT}Filter",
    "transforms.tests.predicate": "isTest",
    "transforms.mask.type": f"{CONNECT}MaskField$Value",
    "transforms.mask.fields": "card",
    "transforms.mask.predicate": "isTombstone",
    "transforms.mask.negate": "true",
    "transforms.stamp.type": f"{CONNECT}InsertHeader",
    "transforms.stamp.header": "origin",
    "transforms.stamp.value.literal": "dc1",
    "predicates": "isTest, isTombstone",
    "predicates.isTest.type": f"{CONNECT}predicates.HasHeaderKey",
    "predicates.isTest.name": "test",
    "predicates.isTombstone.type": f"{CONNECT}predicates.RecordIsTombstone",
}


def test_records_are_filtered_and_masked_and_each_offset_translates(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """Stopped and started again amid the records: none is lost, none comes twice."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    remote = f"source.{topic_name}"
    for first in (COUNT, 2 * COUNT):
        with mirror_of(source_cluster, target_cluster, topic_name, spark, MASKED) as mirror:
            mirror.await_caught_up(timeout=120)
            produce(source_cluster, topic_name, first, COUNT)
            mirror.await_caught_up(timeout=60)
            mp.wait_for(lambda: mirror.status()["source->target"].flow.lag == 0, 60, "heartbeats are copied, too")
    original, copied = records_of(source_cluster, topic_name), records_of(target_cluster, remote)
    kept = [each for each in original if each.offset % 3]
    masked = [
        each.value and json.dumps({"n": each.offset, "card": ""}, separators=(",", ":")).encode() for each in kept
    ]
    assert [each.value for each in copied] == masked
    assert [(each.key, each.timestamp) for each in copied] == [(each.key, each.timestamp) for each in kept]
    assert [each.headers for each in copied] == [(*each.headers, ("origin", b"dc1")) for each in kept]
    assert [each.offset for each in copied] == [*range(len(kept))]
    verified = mirror.verify(topics=(topic_name,))
    assert verified, "compared with what the transforms make of the source"
    assert (verified.records, verified.differences.count()) == (len(kept), 0)
    other = {**MASKED, "transforms.mask.replacement": "?"}
    different = mirror_of(source_cluster, target_cluster, topic_name, spark, other).verify(topics=(topic_name,))
    assert not different
    for each in original[:-3:7]:
        translated = mirror.translate(topic_name, 0, each.offset)
        assert translated.offset == sum(other.offset < each.offset for other in kept), translated


def test_a_topic_that_no_transform_touches_goes_in_whole_batches(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    touched, plain = f"{topic_name}-touched", f"{topic_name}-plain"
    for topic in (touched, plain):
        mp.create_topic(source_cluster.bootstrap_servers, topic, 1)
        produce(source_cluster, topic, 0, COUNT)
    transforms = {
        "transforms": "mask",
        "transforms.mask.type": f"{CONNECT}MaskField$Value",
        "transforms.mask.fields": "card",
        "transforms.mask.replacement": "****",
        "transforms.mask.predicate": "isTouched",
        "predicates": "isTouched",
        "predicates.isTouched.type": f"{CONNECT}predicates.TopicNameMatches",
        "predicates.isTouched.pattern": ".*-touched",
    }
    with mirror_of(source_cluster, target_cluster, f"{touched},{plain}", spark, transforms) as mirror:
        mp.wait_for(lambda: bool(parked_of(mirror, touched)), 60, "a tombstone has no field to mask, as in Java")
        mp.wait_for(lambda: len(records_of(target_cluster, f"source.{plain}")) == COUNT, 60, "the other is copied")
    assert records_of(target_cluster, f"source.{plain}") == records_of(source_cluster, plain)


def parked_of(mirror: sm.Mirror, topic: str) -> list[Partition]:
    topics = mirror.status()["source->target"].flow.topics
    return [part for each in topics if each.topic == topic for part in each.partitions if part.cause != Cause.NONE]


def test_a_record_that_a_transform_can_not_take_parks_its_partition(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 1, 9)
    producer = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers)
    producer.send(topic_name, b"4711, in clear", partition=0)
    producer.close()
    produce(source_cluster, topic_name, 11, 9)
    transforms = {
        "transforms": "mask",
        "transforms.mask.type": f"{CONNECT}MaskField$Value",
        "transforms.mask.fields": "card",
    }
    remote = f"source.{topic_name}"
    with mirror_of(source_cluster, target_cluster, topic_name, spark, transforms) as mirror:
        mp.wait_for(lambda: bool(parked_of(mirror, topic_name)), 60, "the partition is parked")
        (parked,) = parked_of(mirror, topic_name)
        assert parked.cause is Cause.TRANSFORM
        assert "the record at source offset 9 can't be transformed by mask: " in parked.reason
        assert "4711" not in parked.reason, "no part of a record is shown"
        assert len(records_of(target_cluster, remote)) == 9, "all before it is copied"
    with mirror_of(source_cluster, target_cluster, topic_name, spark, {}) as mirror:
        mirror.await_caught_up(timeout=120)
    values = [each.value or b"" for each in records_of(target_cluster, remote)]
    assert values[9] == b"4711, in clear"
    assert [json.loads(value)["card"] for value in (*values[:9], *values[10:])] == [""] * 9 + [
        f"4711-{number}" for number in range(11, 20)
    ]
