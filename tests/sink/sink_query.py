"""A query of the sink, with a topic of its own."""

from __future__ import annotations

import uuid
from collections import Counter

from kafka import KafkaConsumer, TopicPartition
from lab import KafkaCluster
from tests.sink.attempts import PARTITIONS
from tests.support import mirror_process as mp

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.sink.agreement import MicroBatch, SinkAgreement, create_control_topic
from sparkmirror.sink.order import AppendOrder

LZ4 = Codec(3)


class Query:
    """A query that writes to a topic of its own."""

    def __init__(self, cluster: KafkaCluster, topic: str, **configs: str) -> None:
        self.config = ClusterConfig(alias="B", bootstrap_servers=tuple(cluster.bootstrap_servers.split(",")))
        self.topic, self.name = topic, uuid.uuid4().hex
        self.client = ClusterClient(self.config, "test-sink")
        with ClusterAdmin.connect(self.config, "test-sink", 30) as admin:
            create_control_topic(admin)
            assert admin.create_topics([NewTopicSpec(topic, PARTITIONS, 1, configs)]) == {topic: None}
        mp.wait_for(lambda: len(self.client.metadata([topic])[topic].partitions) == PARTITIONS, 30, "it is known")

    def order(self, number: int) -> AppendOrder:
        batch = MicroBatch(self.name, number)
        producer = SinkAgreement(self.client, self.name, batch.generation).producer()
        return AppendOrder(
            self.config, batch, producer.producer_id, LZ4, self.topic, first_attempt_ms=producer.created_ms
        )

    def values(self, *of_partitions: int) -> Counter[bytes]:
        """All values in the topic, or in these partitions, whoever wrote them."""
        consumer = KafkaConsumer(bootstrap_servers=list(self.config.bootstrap_servers), enable_auto_commit=False)
        partitions = [TopicPartition(self.topic, number) for number in of_partitions or range(PARTITIONS)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        seen: Counter[bytes] = Counter()
        while any(consumer.position(at) < ends[at] for at in partitions):
            for records in consumer.poll(1000).values():
                seen.update(record.value for record in records)
        consumer.close()
        return seen
