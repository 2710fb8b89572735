"""A topic that MirrorMaker 2 has copied a part of, on real brokers; and what it would have written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from kafka import KafkaProducer
from kafka.admin import NewTopic
from tests.support.copied_flow import Side, read_all

from sparkmirror.config import FlowConfig, LossPolicy
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.losses import LossLedger, losses_topic
from sparkmirror.exact.mm2.connect_offsets import SourcePartition, java_partition, offset_value
from sparkmirror.exact.mm2.record_formats import OffsetSync
from sparkmirror.exact.position.reader import PositionReader
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.takeover.from_mm2 import Takeover

AT_SOURCE = 60
BEGAN_MS = int(time.time() * 1000) - 3_600_000
"""Time of the record 0; records much older would be deleted by retention, at a broker's first look after 30 s."""


@dataclass
class Mirrored:
    """A topic of one partition that MirrorMaker 2 has copied a part of."""

    source: Side
    target: Side
    topic: str
    alias: str

    def __post_init__(self) -> None:
        self.flow = FlowConfig(
            source=self.source.config.model_copy(update={"alias": self.alias}),
            target=self.target.config,
            replication_factor=1,
        )
        self.flow = self.flow.model_copy(
            update={"connect": self.flow.connect.model_copy(update={"offset_storage_replication_factor": 1})}
        )
        self.route = PartitionPair(self.topic, f"{self.alias}.{self.topic}", 0)
        self.offsets_topic = f"mm2-offsets.{self.alias}.internal"
        self.syncs_topic = f"mm2-offset-syncs.{self.flow.target.alias}.internal"
        self.source.create(self.topic, 1)
        topics = {self.route.target_topic: 1, self.offsets_topic: 3, self.segments: 2, losses_topic(self.alias): 1}
        self.target.create_all(*(NewTopic(topic, partitions, 1) for topic, partitions in topics.items()))
        self.target.client.metadata([])
        self.identity = Identity(self.target.client.cluster_id, self.target.producer_id(), 0)
        self.takeover = Takeover(self.flow)
        self._stored_ms = 0

    @property
    def segments(self) -> str:
        return segments_topic(self.alias)

    def is_named(self, connector: str) -> None:
        """As a connector's file says."""
        connect = self.flow.connect.model_copy(update={"connector": connector})
        self.flow = self.flow.model_copy(update={"connect": connect})
        self.takeover.close()
        self.takeover = Takeover(self.flow)

    def produce(self, side: Side, topic: str, values: Sequence[int]) -> None:
        """Records that both sides write alike."""
        producer = KafkaProducer(bootstrap_servers=list(side.config.bootstrap_servers), linger_ms=5)
        for value in values:
            producer.send(
                topic, b"%d" % value, headers=[("n", b"%d" % value)], timestamp_ms=BEGAN_MS + value, partition=0
            )
        producer.close()

    def copy(self, first: int, end: int) -> None:
        """As MirrorMaker 2 appends."""
        self.produce(self.target, self.route.target_topic, range(first, end))

    def store(
        self, upstream: int, connector: str = "MirrorSourceConnector", topic: str = "", *, at_ms: int | None = None
    ) -> None:
        """As Connect stores an offset, at least a millisecond after the last one, or at a time."""
        key = SourcePartition(connector, self.alias, self.topic, 0).key()
        log = TopicLog(self.target.client, topic or self.offsets_topic)
        self._stored_ms = max(self._stored_ms + 1, int(time.time() * 1000))
        entries = [(key, offset_value(upstream))]
        log.append(java_partition(key, log.partitions), entries, timestamp_ms=at_ms or self._stored_ms)

    def sync(self, *pins: tuple[int, int]) -> None:
        """As MirrorMaker 2 writes offset syncs."""
        if not self.source.topic_id(self.syncs_topic):
            self.source.create(self.syncs_topic, 1)
        syncs = [OffsetSync(self.topic, 0, *pin) for pin in pins]
        TopicLog(self.source.client, self.syncs_topic).append(0, [(sync.key(), sync.value()) for sync in syncs])

    def look(self) -> str:
        """Why it is not taken over; nothing: it is, or need not be."""
        self.takeover.look(self.identity, [self.route])
        return self.takeover.refused.get(self.route, "")

    def read(self) -> PartitionReading | Refusal:
        """Where a pump would begin."""
        client = ClusterClient(self.target.config, "test")
        claim_log = ClaimLog(TopicLog(client, self.segments))
        ledger = LossLedger(TopicLog(client, losses_topic(self.alias)))
        reader = PositionReader(
            self.source.client, client, claim_log, ledger, LossPolicy(), self.identity, time.monotonic
        )
        found = read_all(reader, [self.route])[self.route]
        client.close()
        return found

    def begins_at(self) -> tuple[int, int | None, int]:
        """Sequence, upstream and downstream of what a pump would send next."""
        found = self.read()
        assert isinstance(found, PartitionReading), found
        return found.position.sequence, found.resume_at, found.position.downstream
