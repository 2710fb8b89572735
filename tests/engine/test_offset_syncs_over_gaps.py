"""A pump without Spark over logs with gaps: each offset sync written meanwhile is true, record by record."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.protocol.producer import InitProducerIdRequest
from lab import KafkaCluster
from tests.support import mirror_process as mp

from sparkmirror.config import ClusterConfig, FetchConfig, FlowConfig
from sparkmirror.config.model import OffsetSyncConfig
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.exact.mm2.record_formats import OffsetSync
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.sync.offset_syncs import CopiedTo, OffsetSyncEmitter
from sparkmirror.policy import DefaultReplicationPolicy
from sparkmirror.pump.messages.control import Control, Round, control_topic
from sparkmirror.pump.messages.orders import FlowOrder, PumpOrder, Receipt, RouteOrder
from sparkmirror.pump.messages.receipts import read_reports, receipts_topic
from sparkmirror.pump.pump import pump

pytestmark = pytest.mark.broker

SECONDS = 120.0
WRITTEN_S = 3.0
CLEANED = {
    "cleanup.policy": "compact",
    "segment.ms": "500",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}


class PumpedFlow:
    """A flow whose alias no other test uses, ready to be pumped; `heard` is what the pump reported last."""

    def __init__(self, source: KafkaCluster, target: KafkaCluster, name: str, topics: tuple[str, ...]) -> None:
        self.topics = topics
        self.config = FlowConfig(
            source=ClusterConfig(alias=name, bootstrap_servers=(source.bootstrap_servers,)),
            target=ClusterConfig(alias=f"{name}-B", bootstrap_servers=(target.bootstrap_servers,)),
            fetch=FetchConfig(isolation_level="read_committed"),
            offset_sync=OffsetSyncConfig(offset_syncs_topic_replication_factor=1, offset_lag_max=0),
        )
        self.heard: dict[str, CopiedTo] = {}
        self.reached: dict[str, int] = {}
        """Source offsets below which nothing is left, by topic."""
        self._client = ClusterClient(self.config.target, "test")
        with ClusterAdmin.connect(self.config.target, "test") as admin:
            for internal in (segments_topic, control_topic, receipts_topic, losses_topic):
                admin.create_compacted_topic(internal(name), 1, 1)
        self._claim_log = ClaimLog(TopicLog(self._client, segments_topic(name)))
        self._receipts = TopicLog(self._client, receipts_topic(name))
        self._offset = 0
        self._control = Control(TopicLog(self._client, control_topic(name)))

    def say(self, phase: Literal["running", "ending"]) -> None:
        """As a driver does all the time: a pump that hears nothing ends."""
        self._control.round(Round(incarnation="test", number=1, phase=phase))

    def order(self) -> PumpOrder:
        self._client.metadata([])
        answer = self._client.ask_any(
            lambda: InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
            )
        )
        identity = Identity(self._client.cluster_id, answer.producer_id, answer.producer_epoch)
        agreed = self._claim_log.agree(self._client.cluster_id, identity)
        assert agreed is not None
        routes = tuple(
            RouteOrder(source_topic=topic, target_topic=self.remote(topic), partition=0) for topic in self.topics
        )
        flow = FlowOrder(
            flow=self.config,
            cluster_id=agreed.cluster_id,
            producer_id=agreed.producer_id,
            producer_epoch=agreed.producer_epoch,
            routes=routes,
        )
        return PumpOrder(epoch=1, task=0, incarnation="test", seconds=SECONDS, flows=(flow,))

    def remote(self, topic: str) -> str:
        return f"{self.config.source.alias}.{topic}"

    def last_copied(self) -> list[CopiedTo]:
        """As a driver learns it from the receipts topic."""
        entries, self._offset = self._receipts.read(0, self._offset)
        for report in read_reports(entries):
            for receipt in report.receipts:
                self.hear(receipt)
        return list(self.heard.values())

    def hear(self, receipt: Receipt) -> None:
        self.reached[receipt.source_topic] = receipt.upstream
        self.heard[receipt.source_topic] = CopiedTo(
            receipt.source_topic, receipt.partition, receipt.last_upstream, receipt.last_downstream
        )

    def syncs(self) -> list[OffsetSync]:
        client = ClusterClient(self.config.source, "test")
        topic = DefaultReplicationPolicy().offset_syncs_topic(self.config.target.alias)
        entries, _ = TopicLog(client, topic).read(0, 0)
        client.close()
        return [OffsetSync.read(entry.key, entry.value) for entry in entries]

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def flow(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str) -> Iterator[PumpedFlow]:
    here, there = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    topics = (f"{topic_name}-transactions", f"{topic_name}-compacted")
    flow = PumpedFlow(source_cluster, target_cluster, topic_name, topics)
    for topic, settings in zip(topics, ({}, CLEANED), strict=True):
        mp.create_topic(here, topic, 1, settings)
        mp.create_topic(there, flow.remote(topic), 1, {})
    yield flow
    flow.close()


def values(cluster: KafkaCluster, topic: str) -> dict[int, bytes]:
    """Every record by its offset, as a consumer sees it."""
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers, isolation_level="read_committed", enable_auto_commit=False
    )
    where = TopicPartition(topic, 0)
    consumer.assign([where])
    end = consumer.end_offsets([where])[where]
    consumer.seek_to_beginning(where)
    found: dict[int, bytes] = {}
    deadline = time.monotonic() + 60
    while consumer.position(where) < end:
        assert time.monotonic() < deadline
        for records in consumer.poll(timeout_ms=200).values():
            found |= {record.offset: record.value for record in records}
    consumer.close()
    return found


def compact(cluster: KafkaCluster, topic: str) -> None:
    """Write a few keys over and over; return when the cleaner has been there."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=5, batch_size=2000)
    for number in range(600):
        producer.send(topic, key=b"%d" % (number * 7 % 90), value=b"value-%d" % number, partition=0)
    producer.flush()
    time.sleep(0.7)  # past segment.ms: what was written so far may be cleaned
    producer.send(topic, key=b"last", value=b"last", partition=0)
    producer.close()
    mp.wait_for(lambda: len(values(cluster, topic)) < 150, 180, f"{topic} compacted")


def write_transactions(cluster: KafkaCluster, topic: str, begun: threading.Event, enough: threading.Event) -> None:
    """Three records each, every third one aborted, until there are enough; the last of all is aborted."""
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, transactional_id=f"{topic}-writer", enable_idempotence=True
    )
    producer.init_transactions()
    number = 0
    while not enough.is_set() or number % 3:
        number += 1
        producer.begin_transaction()
        for index in range(3):
            producer.send(topic, value=b"%d-%d" % (number, index), partition=0)
        producer.flush()
        if number % 3 == 0:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
        begun.set()
        time.sleep(0.02)
    producer.close()


def is_through(source: KafkaCluster, flow: PumpedFlow) -> bool:
    """Whether the pump has said that it has passed the newest marker."""
    ends = {topic: mp.end_offsets(source.bootstrap_servers, topic, 1)[0] for topic in flow.topics}
    return all(flow.reached.get(topic, -1) >= end for topic, end in ends.items())


def test_each_sync_is_true(flow: PumpedFlow, source_cluster: KafkaCluster, target_cluster: KafkaCluster) -> None:
    """Behind the last record there are a marker and aborted ones; or in front of it what the cleaner has left out."""
    transactions, compacted = flow.topics
    compact(source_cluster, compacted)
    emitter = OffsetSyncEmitter(flow.config, DefaultReplicationPolicy(), flow.last_copied)
    begun, enough = threading.Event(), threading.Event()

    def told_of(topic: str) -> list[tuple[int, int]]:
        return [(sync.upstream, sync.downstream) for sync in flow.syncs() if sync.topic == topic]

    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(write_transactions, source_cluster, transactions, begun, enough)
        assert begun.wait(60)
        flow.say("running")
        pumping = pool.submit(pump, flow.order())
        least = time.monotonic() + WRITTEN_S
        while not pumping.done():
            emitter.run()
            waited_s = time.monotonic() - least
            if waited_s > 60 or (waited_s > 0 and len(set(told_of(transactions))) >= 3):
                enough.set()
            flow.say("ending" if writing.done() and is_through(source_cluster, flow) else "running")
            time.sleep(0.1)
        writing.result()
        receipts = [receipt for end in pumping.result() for receipt in end.receipts]
    for receipt in receipts:
        flow.hear(receipt)
    emitter.finish()
    emitter.close()
    for topic in flow.topics:
        ours, copies = values(source_cluster, topic), values(target_cluster, flow.remote(topic))
        assert list(ours.values()) == list(copies.values())
        told = told_of(topic)
        assert all(ours[upstream] == copies[downstream] for upstream, downstream in told)
        assert told[-1] == (max(ours), max(copies))
    assert len(set(told_of(transactions))) >= 3
    upstream = {receipt.source_topic: receipt.upstream for receipt in receipts}
    assert upstream[transactions] > flow.heard[transactions].upstream + 3, (
        "a marker and aborted records were passed over"
    )
