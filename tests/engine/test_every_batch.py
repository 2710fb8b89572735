"""Logs that are not clean: compacted, transactional, stamped, tiny batches, another codec, too large, cut inside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp

from conftest import StartMirror
from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.demo.proof import LogReader
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim, segments_topic
from sparkmirror.exact.position.arbitration import arbitrate
from sparkmirror.exact.position.log_probe import LogProbe
from sparkmirror.exact.position.matching import TargetLog
from sparkmirror.exact.position.questioned_claims import questioned
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.batches import HEADER_SIZE, BatchHeader
from sparkmirror.kafka.wire.codecs import ZSTD, Codec, compress
from sparkmirror.kafka.wire.records import section
from sparkmirror.mirror.engine.mirror import Mirror

pytestmark = [pytest.mark.broker, pytest.mark.spark]

COMMITTED = {"A.consumer.isolation.level": "read_committed"}


def read(cluster: KafkaCluster, topic: str, *, committed: bool = False, partition: int = 0) -> list[Any]:
    """Every record of a partition, as a consumer sees it."""
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers,
        isolation_level="read_committed" if committed else "read_uncommitted",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    where = TopicPartition(topic, partition)
    try:
        consumer.assign([where])
        end = consumer.end_offsets([where])[where]
        consumer.seek_to_beginning(where)
        found: list[Any] = []
        deadline = time.monotonic() + 60
        while consumer.position(where) < end:
            assert time.monotonic() < deadline, f"{topic}: stuck at {consumer.position(where)} of {end}"
            for records in consumer.poll(timeout_ms=500).values():
                found += records
        return found
    finally:
        consumer.close()


def headers(cluster: KafkaCluster, topic: str) -> list[BatchHeader]:
    """Of every batch of partition 0, as it is stored."""
    reader = LogReader(cluster.bootstrap_servers)
    try:
        return [header for header, _ in reader.batches(topic, 0)]
    finally:
        reader.close()


def contents(records: list[Any], *, timestamps: bool = True) -> list[tuple[object, ...]]:
    return [(one.key, one.value, tuple(one.headers), one.timestamp if timestamps else None) for one in records]


def transactional(cluster: KafkaCluster, topic: str, transactions: int, *, abort_every: int = 3) -> Iterator[int]:
    """Transactions of five records each; yields after each one."""
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        transactional_id=f"{topic}-writer",
        retry_backoff_ms=10,
        enable_idempotence=True,
    )
    producer.init_transactions()
    for number in range(transactions):
        producer.begin_transaction()
        for index in range(5):
            producer.send(topic, key=b"%d" % number, value=b"record-%d-%d" % (number, index), partition=0)
        producer.flush()
        if number % abort_every == 0:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
        yield number
    producer.close()


def tiny(cluster: KafkaCluster, topic: str, records: int, codec: str | None = None) -> None:
    """One record a batch."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, batch_size=1, compression_type=codec)
    for number in range(records):
        producer.send(topic, key=b"key-%d" % number, value=b"value-%d" % number, partition=0)
    producer.flush()
    producer.close()


def compacted(cluster: KafkaCluster, topic: str) -> None:
    """Few keys, written over and over, until the cleaner has been there."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=2, batch_size=2000)
    for number in range(3000):
        key = b"key-%d" % (number * 7919 % 150) if number % 50 else b"only-%d" % number
        producer.send(topic, key=key, value=None if number % 13 == 0 else b"value-%d" % number, partition=0)
    producer.flush()
    time.sleep(1.2)  # past segment.ms: what was written so far may be cleaned
    for number in range(10):
        producer.send(topic, key=b"last-%d" % number, value=b"last", partition=0)
    producer.flush()
    producer.close()
    mp.wait_for(lambda: len(read(cluster, topic)) < 1000, 90, f"{topic} compacted")


def offset_map(target: KafkaCluster, topic: str) -> list[Claim]:
    """The true claims of partition 0 of a remote topic, as any reader settles them."""
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(target.bootstrap_servers,)), "test")
    log = ClaimLog(TopicLog(client, segments_topic("A")))
    try:
        found = client.metadata([topic])[topic]
        identity = log.agree(client.cluster_id, None)
        assert identity is not None
        claims = log.whole(found.topic_id, 0)
        probe = LogProbe(client, found.partitions[0].leader, {topic: found.topic_id}, identity)
        evidence = probe.evidence({(topic, 0): questioned(claims)}, {(topic, 0): 0})[topic, 0]
        return list(arbitrate(claims, evidence, TargetLog(0, 0, None)).true)
    finally:
        client.close()


def assert_mapped(target: KafkaCluster, topic: str, expected: list[Any], copies: list[Any]) -> None:
    """Every record's upstream and downstream offset is what the segments say."""
    claims = offset_map(target, topic)
    for sequence, (record, copy) in enumerate(zip(expected, copies, strict=True)):
        claim = max((one for one in claims if one.sequence <= sequence), key=lambda one: one.sequence)
        assert claim.upstream_of(sequence) == record.offset
        assert claim.downstream + sequence - claim.sequence == copy.offset


STAMPED = {"message.timestamp.type": "LogAppendTime"}
SHORT = {"max.message.bytes": "5000"}
COMPACT = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100",
}


def test_every_kind_of_log_at_once(
    start_mirror: StartMirror, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """One flow, a topic for each kind; records, timestamps and the offset map are compared one by one."""
    here, there = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    kinds: dict[str, tuple[Callable[[str], None], Mapping[str, str], Mapping[str, str]]] = {
        "compacted": (lambda topic: compacted(source_cluster, topic), COMPACT, {}),
        "tiny": (lambda topic: tiny(source_cluster, topic, 2000), {}, {}),
        "tiny-lz4": (lambda topic: tiny(source_cluster, topic, 500, "lz4"), {}, {}),
        "stamped": (lambda topic: mp.produce(here, topic, 1, 1000), STAMPED, {}),
        "stamping": (lambda topic: mp.produce(here, topic, 1, 1000), {}, STAMPED),
        "too-large": (lambda topic: mp.produce(here, topic, 1, 300, size=2000, codec=None), {}, SHORT),
        "other-codec": (lambda topic: mp.produce(here, topic, 1, 1000), {}, {"compression.type": "gzip"}),
        "cut-inside": (lambda topic: cut(source_cluster, topic), {}, {}),
        "empty": (lambda topic: None, {}, {}),
    }
    for kind, (fill, configs, target_configs) in kinds.items():
        mp.create_topic(here, f"{topic_name}-{kind}", 1, configs)
        mp.create_topic(there, f"A.{topic_name}-{kind}", 1, target_configs)
        fill(f"{topic_name}-{kind}")
    expected = {kind: read(source_cluster, f"{topic_name}-{kind}") for kind in kinds}
    assert len(expected["compacted"]) < 1000
    assert len(expected["cut-inside"]) == 1000 - 123
    limit = int(SHORT["max.message.bytes"])
    assert max(header.size for header in headers(source_cluster, f"{topic_name}-too-large")) > limit
    # A client leaves a batch of one or two records as it is.
    assert "lz4" in {header.codec for header in headers(source_cluster, f"{topic_name}-other-codec")}
    settings = {
        "sparkmirror.merge.tiny.batches": "true",
        "sync.topic.configs.enabled": "false",  # it would take the target's overrides away, as the source has none
    }
    with start_mirror(f"{topic_name}-.*", settings):
        for kind, records in expected.items():
            remote = f"A.{topic_name}-{kind}"
            wait_until_copied(target_cluster, remote, len(records))
    for kind, records in expected.items():
        copies = read(target_cluster, f"A.{topic_name}-{kind}")
        timestamps = kind != "stamping"
        assert contents(copies, timestamps=timestamps) == contents(records, timestamps=timestamps), kind
        if records:
            assert_mapped(target_cluster, f"A.{topic_name}-{kind}", records, copies)
    assert len(headers(target_cluster, f"A.{topic_name}-tiny")) < 200, "tiny batches of a backlog are merged"
    split = headers(target_cluster, f"A.{topic_name}-too-large")
    assert max(header.size for header in split) <= limit
    assert len(split) > len(headers(source_cluster, f"{topic_name}-too-large"))
    assert {header.codec for header in headers(target_cluster, f"A.{topic_name}-other-codec")} == {"gzip"}


def wait_until_copied(target: KafkaCluster, topic: str, records: int) -> None:
    mp.wait_for(lambda: mp.end_offsets(target.bootstrap_servers, topic, 1)[0] >= records, 180, f"{topic} copied")


def cut(cluster: KafkaCluster, topic: str) -> None:
    """The log starts inside a batch."""
    mp.produce(cluster.bootstrap_servers, topic, 1, 1000)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    admin.delete_records({TopicPartition(topic, 0): 123})
    admin.close()


def test_another_codec_if_asked(
    start_mirror: StartMirror, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 1000, codec="lz4")
    with start_mirror(topic_name, {"B.producer.compression.type": "zstd", "B.producer.compression.zstd.level": "-99"}):
        wait_until_copied(target_cluster, f"A.{topic_name}", 1000)
    assert contents(read(target_cluster, f"A.{topic_name}")) == contents(read(source_cluster, topic_name))
    copies = LogReader(target_cluster.bootstrap_servers).batches(f"A.{topic_name}", 0)
    for header, batch in copies:
        assert header.codec == "zstd"
        plain = section(header, batch)
        assert batch[HEADER_SIZE:] == compress(Codec(ZSTD, -99), plain) != compress(Codec(ZSTD), plain)


@pytest.mark.parametrize("committed", [True, False])
def test_transactions(
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    committed: bool,
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    writing = transactional(source_cluster, topic_name, 30)
    for number in writing:
        if number == 14:
            break
    with start_mirror(topic_name, COMMITTED if committed else {}):
        for _ in writing:  # on a live tail too
            time.sleep(0.02)
        # The last commit is answered before its marker is written.
        count = 100 if committed else 150
        mp.wait_for(lambda: len(read(source_cluster, topic_name, committed=committed)) == count, 180, "all is written")
        expected = read(source_cluster, topic_name, committed=committed)
        wait_until_copied(target_cluster, f"A.{topic_name}", len(expected))
    copies = read(target_cluster, f"A.{topic_name}")
    assert contents(copies) == contents(expected)
    assert_mapped(target_cluster, f"A.{topic_name}", expected, copies)


def writer(cluster: KafkaCluster, topic: str, name: str) -> KafkaProducer:
    """A transactional producer; what it leaves open stays open longer than a test takes."""
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        transactional_id=f"{topic}-{name}",
        retry_backoff_ms=10,
        enable_idempotence=True,
        transaction_timeout_ms=600_000,
    )
    producer.init_transactions()
    return producer


def send(producer: KafkaProducer, topic: str, values: list[bytes]) -> None:
    """As a batch of its own."""
    for value in values:
        producer.send(topic, key=value[:5], value=value, headers=[("of", value)], partition=0)
    producer.flush()


def values_of(name: str, first: int, count: int = 5) -> list[bytes]:
    return [b"%s-%d" % (name.encode(), number) for number in range(first, first + count)]


def wait_until_ended(cluster: KafkaCluster, topic: str, records: int) -> None:
    """A commit is answered before its marker is written; an open transaction hides what is behind it."""
    mp.wait_for(lambda: len(read(cluster, topic, committed=True)) == records, 180, "all is written")


def test_transactions_that_overlap(
    start_mirror: StartMirror, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """Two producers, batch by batch in turns, and one without transactions; one aborts, the other one commits.

    Now this one ends first, now that one; after its abort a producer continues with a transaction that is committed.
    """
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    lost, kept = writer(source_cluster, topic_name, "lost"), writer(source_cluster, topic_name, "kept")
    plain = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers)
    committed: list[bytes] = []
    try:
        for turn in range(6):
            lost.begin_transaction()
            kept.begin_transaction()
            for part in range(3):
                at = 100 * turn + 10 * part
                send(lost, topic_name, values_of("lost", at))
                send(kept, topic_name, values_of("kept", at))
                send(plain, topic_name, values_of("plain", at, 2))
                committed += values_of("kept", at) + values_of("plain", at, 2)
            at = 100 * turn + 50
            if turn % 2:
                kept.commit_transaction()
                send(lost, topic_name, values_of("lost", at))
                lost.abort_transaction()
            else:
                lost.abort_transaction()
                lost.begin_transaction()  # its next one counts
                send(lost, topic_name, values_of("found", at))
                send(kept, topic_name, values_of("kept", at))
                committed += values_of("found", at) + values_of("kept", at)
                kept.commit_transaction()
                lost.commit_transaction()
    finally:
        for producer in (lost, kept, plain):
            producer.close(timeout=10)
    wait_until_ended(source_cluster, topic_name, len(committed))
    expected = read(source_cluster, topic_name, committed=True)
    assert [one.value for one in expected] == committed
    assert len(read(source_cluster, topic_name)) > len(committed), "the aborted records are in the source's log"
    with start_mirror(topic_name, COMMITTED):
        wait_until_copied(target_cluster, f"A.{topic_name}", len(committed))
    copies = read(target_cluster, f"A.{topic_name}")
    assert contents(copies) == contents(expected)
    assert_mapped(target_cluster, f"A.{topic_name}", expected, copies)


def test_once_ends_where_a_transaction_is_open(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """At the last stable offset: what was committed behind the open one's first record waits for its end, too."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        topic_name,
        COMMITTED,
    )
    remote = f"A.{topic_name}"

    def copy_once() -> list[Any]:
        Mirror(load_mm2_properties(str(path)), once=True, use_lease=False, spark=spark).run()
        return read(target_cluster, remote)

    done, left_open = writer(source_cluster, topic_name, "done"), writer(source_cluster, topic_name, "open")
    try:
        done.begin_transaction()
        send(done, topic_name, values_of("before", 0, 20))
        done.commit_transaction()
        wait_until_ended(source_cluster, topic_name, 20)
        stable = mp.end_offsets(source_cluster.bootstrap_servers, topic_name, 1)[0]
        left_open.begin_transaction()
        send(left_open, topic_name, values_of("open", 0))
        done.begin_transaction()
        send(done, topic_name, values_of("behind", 0))
        done.commit_transaction()
        send(left_open, topic_name, values_of("open", 5))
        seen = read(source_cluster, topic_name)
        assert [one.value for one in seen if one.offset >= stable] == (
            values_of("open", 0) + values_of("behind", 0) + values_of("open", 5)
        )
        expected = read(source_cluster, topic_name, committed=True)
        assert [one.value for one in expected] == values_of("before", 0, 20)
        copies = copy_once()
        assert contents(copies) == contents(expected)
        assert_mapped(target_cluster, remote, expected, copies)
        assert contents(copy_once()) == contents(expected), "nothing is new"
        left_open.abort_transaction()
        wait_until_ended(source_cluster, topic_name, 25)
        expected = read(source_cluster, topic_name, committed=True)
        assert [one.value for one in expected] == values_of("before", 0, 20) + values_of("behind", 0)
        copies = copy_once()
        assert contents(copies) == contents(expected)
        assert_mapped(target_cluster, remote, expected, copies)
    finally:
        for producer in (done, left_open):
            producer.close(timeout=10)
