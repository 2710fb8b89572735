"""A flow whose logs are written as a pump writes them, on real clusters, and read by a `PositionReader`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.protocol.producer import InitProducerIdRequest
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.structs import TopicPartition
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig, LossPolicy
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import AnnouncedBatch, Claim, joined
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.losses import Loss, LossLedger
from sparkmirror.exact.durable.noted_progress import NOTHING_REPORTED, ReportedProgress
from sparkmirror.exact.position.reader import PositionReader
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import LATEST, list_offsets
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.batches import CODEC_MASK, batch_headers
from sparkmirror.kafka.wire.splice import Run

DAY_MS = 86_400_000
COPIED, FIRST_UPSTREAM, AT_SOURCE = 30, 0, 50
NO_PRODUCER = (-1, -1, -1)
COORDINATOR_IS_COMING = (14, 15, 16)
LEADER_IS_COMING = (3, 6, 100)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not in 60 s"
        time.sleep(0.05)


class Side:
    """One cluster as the tests change it."""

    def __init__(self, alias: str, cluster: KafkaCluster) -> None:
        self.config = ClusterConfig(alias=alias, bootstrap_servers=tuple(cluster.bootstrap_servers.split(",")))
        self.client = ClusterClient(self.config, "test")
        self.admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)

    def close(self) -> None:
        self.client.close()
        self.admin.close()

    def topic_id(self, topic: str) -> bytes:
        """The id of a topic that has a leader; no bytes if it hasn't."""
        found = self.client.metadata([topic])[topic]
        return b"" if found.error or any(one.leader < 0 for one in found.partitions.values()) else found.topic_id

    def serves(self, topic: str) -> bool:
        """Whether the topic's leader (of one broker) knows that it is."""
        found = self.client.metadata([topic])[topic]
        if found.error or any(one.leader < 0 for one in found.partitions.values()):
            return False
        listed = list_offsets(self.client, found.partitions[0].leader, {topic: list(found.partitions)}, LATEST)
        return not any(one.error for one in listed.values())

    def create(self, topic: str, partitions: int = 2, **settings: str) -> None:
        self.create_all(NewTopic(topic, partitions, 1, topic_configs=settings))

    def create_all(self, *topics: NewTopic) -> None:
        self.admin.create_topics(list(topics))
        for topic in topics:
            wait_for(partial(self.serves, topic.name), f"{topic.name} is created")

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])
        wait_for(lambda: self.client.metadata([topic])[topic].error == 3, f"{topic} is deleted")

    def delete_records(self, topic: str, before: int) -> None:
        self.admin.delete_records({TopicPartition(topic, 0): before})

    def producer_id(self) -> int:
        """A new one; a fresh broker isn't ready to give any for a moment (R13)."""
        while True:
            answer = self.client.ask_any(
                lambda: InitProducerIdRequest(
                    transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
                )
            )
            if answer.error_code not in COORDINATOR_IS_COMING:
                assert answer.error_code == 0
                return int(answer.producer_id)
            time.sleep(0.1)

    def append(
        self, topic: str, count: int, producer: tuple[int, int, int] = NO_PRODUCER, *, age_ms: int = 0
    ) -> produce.Ack:
        """One batch to partition 0."""
        return self.send(topic, built([b"record"] * count, producer, age_ms=age_ms))

    def send(self, topic: str, batch: bytes, partition: int = 0) -> produce.Ack:
        """By the wire's own request; a leader of a new topic needs a moment."""
        while True:
            found = self.client.metadata([topic])[topic]
            connection = self.client.broker(found.partitions[partition].leader)
            version = connection.version(produce.API_KEY, produce.VERSIONS, "Produce")
            field = produce.topic_field(version, topic, found.topic_id)
            frame = connection.exchange_raw(
                produce.produce_request(version, 1, b"test", 10_000, {field: {partition: memoryview(batch)}})
            )
            _, (ack,), _ = produce.read_answer(version, frame)
            if ack.error not in LEADER_IS_COMING:
                assert ack.error == 0, ack
                return ack
            time.sleep(0.1)


def built(
    values: list[bytes],
    producer: tuple[int, int, int] = NO_PRODUCER,
    *,
    age_ms: int = 0,
    first_ms: int | None = None,
    header: str = "",
) -> bytes:
    """A batch with records a millisecond apart, from `first_ms` on or up to now; each has a `header` with its value."""
    producer_id, epoch, sequence = producer
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        batch_size=1 << 20,
    )
    first = int(time.time() * 1000) - age_ms - len(values) if first_ms is None else first_ms
    for delta, value in enumerate(values):
        builder.append(delta, first + delta, None, value, [(header, value)] if header else [])
    return bytes(builder.build())


def announced(batch: bytes) -> AnnouncedBatch:
    """As a pump announces it."""
    ((_, header),) = batch_headers(memoryview(batch))
    codec = header.attributes & CODEC_MASK
    return AnnouncedBatch(header.records, codec, header.crc, header.base_timestamp, header.max_timestamp)


class Flow:
    """A flow with one partition, of which its target may have copied something."""

    def __init__(self, source: Side, target: Side, topic: str) -> None:
        self.source, self.target = source, target
        self.topic, self.target_topic = topic, f"us.{topic}"
        self.segments_topic, self.losses_topic = f"segments.{topic}", f"losses.{topic}"
        self.policy = LossPolicy()
        self.route = PartitionPair(self.topic, self.target_topic, 0)
        # The copies have times of their own: stamped by the source's broker, a record is compared without them.
        source.create_all(NewTopic(topic, 2, 1, topic_configs={"message.timestamp.type": "LogAppendTime"}))
        internal = (self.segments_topic, self.losses_topic)
        target.create_all(
            NewTopic(self.target_topic, 2, 1),
            *(NewTopic(topic, 2, 1, topic_configs={"cleanup.policy": "compact"}) for topic in internal),
        )
        self.identity = Identity(target.client.cluster_id, target.producer_id(), 0)
        source.append(self.topic, AT_SOURCE)

    def producer(self, sequence: int) -> tuple[int, int, int]:
        return self.identity.producer_id, self.identity.producer_epoch, sequence

    def a_claim(self, sequence: int = 0, upstream: int = FIRST_UPSTREAM, incarnation: int = 1) -> Claim:
        """A claim that continues from there without end, confirmed."""
        return Claim(
            target_topic_id=self.target.topic_id(self.target_topic),
            partition=0,
            sequence=sequence,
            incarnation=incarnation,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            source_topic_id=self.source.topic_id(self.topic),
            source_leader_epoch=0,
            downstream=sequence,
            runs=(Run(upstream, 0),),
            confirmed=True,
        )

    def announce(self, sequence: int, incarnation: int, *batches: tuple[bytes, tuple[Run, ...]]) -> Claim:
        """A claim for these batches, each with the source offsets of its records."""
        runs = joined(run for _, some in batches for run in some)
        return replace(
            self.a_claim(sequence, incarnation=incarnation),
            runs=runs,
            batches=tuple(announced(batch) for batch, _ in batches),
            confirmed=False,
        )

    def claims(self) -> list[Claim]:
        """All that is claimed now."""
        log = ClaimLog(TopicLog(self.target.client, self.segments_topic))
        return list(log.whole(self.target.topic_id(self.target_topic), 0))

    def losses(self) -> list[Loss]:
        """What the ledger says."""
        return LossLedger(TopicLog(self.target.client, self.losses_topic)).read()

    def claim(self, *claims: Claim) -> None:
        ClaimLog(TopicLog(self.target.client, self.segments_topic)).claim(claims)

    def copy(self, *, age_ms: int = 0) -> Claim:
        """A claim, and three batches after it."""
        claim = self.a_claim()
        self.claim(claim)
        for sequence in range(0, COPIED, 10):
            self.target.append(self.target_topic, 10, self.producer(sequence), age_ms=age_ms)
        return claim

    def reader(
        self,
        identity: Identity | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        read_committed: bool = False,
    ) -> PositionReader:
        source, target = (ClusterClient(side.config, "test") for side in (self.source, self.target))
        log = ClaimLog(TopicLog(target, self.segments_topic))
        ledger = LossLedger(TopicLog(target, self.losses_topic))
        return PositionReader(
            source, target, log, ledger, self.policy, identity or self.identity, clock, read_committed=read_committed
        )

    def read(
        self, identity: Identity | None = None, reported: ReportedProgress = NOTHING_REPORTED
    ) -> PartitionReading | Refusal:
        return read_all(self.reader(identity), [self.route], reported)[self.route]

    def partition_reading(self, reported: ReportedProgress = NOTHING_REPORTED) -> PartitionReading:
        found = self.read(reported=reported)
        assert isinstance(found, PartitionReading), found
        return found

    def refusal(self, identity: Identity | None = None) -> Refusal:
        found = self.read(identity)
        assert isinstance(found, Refusal), found
        return found


def read_all(
    reader: PositionReader, routes: list[PartitionPair], reported: ReportedProgress = NOTHING_REPORTED
) -> dict[PartitionPair, PartitionReading | Refusal]:
    """What is handed out in groups, together."""
    found: dict[PartitionPair, PartitionReading | Refusal] = {}
    reader.read(dict.fromkeys(routes, reported), found.update)
    return found


@contextmanager
def flow_between(source: KafkaCluster, target: KafkaCluster, topic: str) -> Iterator[Flow]:
    """A flow with topics of its own."""
    sides = Side("us", source), Side("eu", target)
    yield Flow(*sides, topic)
    for side in sides:
        side.close()
