"""Connectors as people write them: the three of the mm2-demo, and those of the AWS kit (its plain-text variant)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp

from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.connect_files import PACKAGE, WorkerSettings
from sparkmirror.connect.connector_model import ConnectorSpec, TargetState
from sparkmirror.connect.worker import ConnectWorker

CUSTOM_POLICY = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"


def worker_file(settings: Mapping[str, str] | None = None) -> WorkerSettings:
    """A worker's own file, as `connect-distributed.properties` of the AWS kit."""
    given = {
        "bootstrap.servers": "target:9092",
        "group.id": "mm2-worker",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "true",
        "offset.storage.topic": "connect-offsets-mm2-worker",
        "offset.storage.replication.factor": "1",
        "config.storage.topic": "connect-configs-mm2-worker",
        "status.storage.topic": "connect-status-mm2-worker",
        "offset.flush.interval.ms": "10000",
        "connector.client.config.override.policy": "All",
        **(settings or {}),
    }
    path = "connect-distributed.properties"
    return WorkerSettings({key: Entry(key=key, value=value, where=path) for key, value in given.items()}, path)


def demo_connectors(source: str = "broker:9092", target: str = "confluent.cloud:9092") -> dict[str, dict[str, str]]:
    """The three of the mm2-demo, by name: MSK to Confluent Cloud, with the keys that have no effect."""
    common = {
        "key.converter": "io.confluent.connect.replicator.util.ByteArrayConverter",
        "value.converter": "io.confluent.connect.replicator.util.ByteArrayConverter",
        "header.converter": "io.confluent.connect.replicator.util.ByteArrayConverter",
        "source.cluster.alias": "msk",
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "target.kafka.security.protocol": "SASL_SSL",
        "target.kafka.sasl.mechanism": "PLAIN",
    }
    return {
        "mm2-src": {
            **common,
            "connector.class": PACKAGE + "MirrorSourceConnector",
            "topics": "test-topic",
            "tasks.max": "1",
            "consumer.group.id": "mm2-msc-cons",
            "replication.factor": "3",
            "sync.topic.acls.interval.seconds": "20",
            "sync.topic.configs.interval.seconds": "20",
            "refresh.topics.interval.seconds": "20",
            "refresh.groups.interval.seconds": "20",
        },
        "mm2-chk": {
            **common,
            "connector.class": PACKAGE + "MirrorCheckpointConnector",
            "checkpoints.topic.replication.factor": "3",
            "emit.checkpoints.interval.seconds": "20",
        },
        "mm2-hbt": {
            **common,
            "connector.class": PACKAGE + "MirrorCheckpointConnector",
            "heartbeats.topic.replication.factor": "3",
            "emit.heartbeats.interval.seconds": "20",
        },
    }


def aws_connectors(source: str = "source:9092", target: str = "target:9092") -> dict[str, dict[str, str]]:
    """The three of the AWS kit, by name."""
    common = {
        "clusters": "msksource,mskdest",
        "source.cluster.alias": "msksource",
        "target.cluster.alias": "mskdest",
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "key.converter": " org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "replication.factor": "3",
    }
    clients = {
        f"{prefix}.{key}": value
        for prefix in ("source.cluster", "target.cluster", "producer.override")
        for key, value in {
            "receive.buffer.bytes": "33554432",
            "send.buffer.bytes": "33554432",
            "max.partition.fetch.bytes": "33554432",
            "message.max.bytes": "37755000",
            "compression.type": "gzip",
            "max.request.size": "26214400",
            "buffer.memory": "524288000",
        }.items()
    }
    return {
        "mm2-msc": {
            **common,
            **clients,
            "name": "mm2-msc",
            "connector.class": PACKAGE + "MirrorSourceConnector",
            "replication.policy.class": CUSTOM_POLICY,
            "topics": r"^ExampleTopic[\w]*",
            "tasks.max": "4",
            "offset-syncs.topic.replication.factor": "3",
            "sync.topic.acls.interval.seconds": "600",
            "sync.topic.configs.interval.seconds": "600",
            "refresh.topics.interval.seconds": "300",
            "refresh.groups.interval.seconds": "20",
            "producer.enable.idempotence": "true",
            "consumer.group.id": "mm2-msc",
        },
        "mm2-cpc": {
            **common,
            "name": "mm2-cpc",
            "connector.class": PACKAGE + "MirrorCheckpointConnector",
            "tasks.max": "1",
            "checkpoints.topic.replication.factor": "3",
            "emit.checkpoints.interval.seconds": "20",
        },
        "mm2-hbc": {
            **common,
            "name": "mm2-hbc",
            "connector.class": PACKAGE + "MirrorHeartbeatConnector",
            "tasks.max": "1",
            "heartbeats.topic.replication.factor": "3",
            "emit.heartbeats.interval.seconds": "20",
        },
    }


def specs(connectors: Mapping[str, Mapping[str, str]], **states: TargetState) -> dict[str, ConnectorSpec]:
    """All started, but for those of `states`, whose names have underscores for dashes."""
    return {
        name: ConnectorSpec(
            name=name, config=config, target_state=states.get(name.replace("-", "_"), TargetState.STARTED)
        )
        for name, config in connectors.items()
    }


class RunningWorker:
    """A worker between two real clusters, asked as the REST interface asks it.

    Its connectors are those of the AWS kit's kind, with short intervals and one replica.
    """

    def __init__(
        self,
        source: KafkaCluster,
        target: KafkaCluster,
        spark: SparkSession,
        settings: Mapping[str, str] | None = None,
        name: str = "worker:8083",
    ) -> None:
        self.source, self.target = source.bootstrap_servers, target.bootstrap_servers
        quick = {"bootstrap.servers": self.target, "session.timeout.ms": "6000", "offset.flush.interval.ms": "1000"}
        self.file = worker_file({**quick, **(settings or {})})
        self.worker = ConnectWorker(self.file, name, spark=spark)
        self.specs: dict[str, ConnectorSpec] = {}
        self.worker.start()

    def close(self) -> None:
        """End it in order."""
        self.worker.close()

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """`PUT /connectors/{name}/config`."""
        state = self.specs[name].target_state if name in self.specs else TargetState.STARTED
        self._apply(ConnectorSpec(name=name, config={**config, "name": name}, target_state=state))

    def change(self, name: str, **settings: str) -> None:
        """The same with some settings changed, whose names have underscores for dots."""
        changed = {key.replace("_", "."): value for key, value in settings.items()}
        self.put(name, {**self.specs[name].config, **changed})

    def to(self, state: TargetState, *names: str) -> None:
        """Start, pause or stop connectors."""
        for name in names:
            self._apply(ConnectorSpec(name=name, config=self.specs[name].config, target_state=state))

    def delete(self, *names: str) -> None:
        """`DELETE /connectors/{name}`."""
        for name in names:
            del self.specs[name]
        self.worker.apply(dict(self.specs))

    def _apply(self, spec: ConnectorSpec) -> None:
        self.specs[spec.name] = spec
        self.worker.apply(dict(self.specs))

    def state(self, name: str) -> str:
        """Of a connector and its tasks, such as `RUNNING RUNNING`."""
        status = self.worker.status(name)
        return " ".join([status.state, *(task.state for task in status.tasks)])

    def wait_for(self, name: str, state: str, timeout_s: float = 120.0) -> None:
        """Wait until the connector's own state is this."""
        try:
            mp.wait_for(lambda: self.worker.status(name).state == state, timeout_s, f"{name} {state}")
        except AssertionError:
            print(self.worker.status(name))
            raise

    def copied(self, topic: str, partitions: int = 2) -> int:
        """The sum of the target's end offsets."""
        return sum(mp.end_offsets(self.target, topic, partitions))

    def connectors(self, topics: str, alias: str, policy: str = "") -> dict[str, dict[str, str]]:
        """The three of one flow, by name."""
        return quick_connectors(self.source, self.target, topics, alias, policy)


StartWorker = Callable[..., RunningWorker]

_COMMON = {"source.cluster.alias", "topics"}
_OF = {
    "mm2-msc": {
        *_COMMON,
        "replication.factor",
        "offset-syncs.topic.replication.factor",
        "refresh.topics.interval.seconds",
        "heartbeats.replication.enabled",
    },
    "mm2-cpc": {
        *_COMMON,
        "checkpoints.topic.replication.factor",
        "refresh.groups.interval.seconds",
        "emit.checkpoints.interval.seconds",
        "sync.group.offsets.interval.seconds",
    },
    "mm2-hbc": {*_COMMON, "heartbeats.topic.replication.factor", "emit.heartbeats.interval.seconds"},
}


def read(servers: str, topic: str, partition: int) -> list[ConsumerRecord]:
    """All records of a partition, as a consumer sees them."""
    where = TopicPartition(topic, partition)
    consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([where])
    end, found = consumer.end_offsets([where])[where], []
    while consumer.position(where) < end:
        found += consumer.poll(timeout_ms=500).get(where, [])
    consumer.close()
    return found


def quick_connectors(source: str, target: str, topics: str, alias: str, policy: str = "") -> dict[str, dict[str, str]]:
    """The three of one flow, by name, with short intervals and one replica."""
    quick = {
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "refresh.topics.interval.seconds": "2",
        "refresh.groups.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "sync.group.offsets.interval.seconds": "1",
        "emit.heartbeats.interval.seconds": "1",
        "heartbeats.replication.enabled": "false",
        "source.cluster.alias": alias,
        "topics": topics,
    }
    found = {}
    for name, config in aws_connectors(source, target).items():
        common = {key: value for key, value in config.items() if key not in ("replication.policy.class", "name")}
        # Batches stay as they are, so that logs can be compared.
        common = {key: value for key, value in common.items() if not key.endswith("compression.type")}
        policies = {"replication.policy.class": policy} if policy else {}
        found[name] = {**common, **policies, **{key: value for key, value in quick.items() if key in _OF[name]}}
    return found
