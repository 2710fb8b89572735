"""Connectors as people write them: the three of the mm2-demo, and those of the AWS kit (its plain-text variant)."""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config import Entry
from sparkmirror.connect.model import ConnectorSpec, TargetState
from sparkmirror.formats.connect import PACKAGE, Worker

CUSTOM_POLICY = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"


def worker_file(settings: Mapping[str, str] | None = None) -> Worker:
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
    return Worker({key: Entry(key, value, path) for key, value in given.items()}, path)


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
        name: ConnectorSpec(name, config, states.get(name.replace("-", "_"), TargetState.STARTED))
        for name, config in connectors.items()
    }
