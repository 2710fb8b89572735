"""Connector files of the kinds that migration kits hold: the AWS kit's twelve and the three of the Confluent demo.

Keys and values are those that `reference/seeds.md` 2.2 and 2.13 list; addresses are placeholders, as in the kits.
"""

from __future__ import annotations

_CLASS = "org.apache.kafka.connect.mirror.Mirror{}Connector"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_AWS_POLICY = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"
SECRET = "never-shown"

_AUTH: dict[str, dict[str, str]] = {
    "iam": {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    },
    "mtls": {
        "security.protocol": "SSL",
        "ssl.truststore.location": "/tmp/kafka.client.truststore.jks",
        "ssl.truststore.password": SECRET,
        "ssl.keystore.location": "/tmp/kafka.client.keystore.jks",
        "ssl.keystore.password": SECRET,
        "ssl.key.password": SECRET,
    },
    "sasl": {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule  required "
        f'username="mirror"  password="{SECRET}";',
    },
    "no": {},
}
_SIZES = {
    "receive.buffer.bytes": "33554432",
    "send.buffer.bytes": "33554432",
    "max.partition.fetch.bytes": "33554432",
    "message.max.bytes": "37755000",
    "compression.type": "gzip",
    "max.request.size": "26214400",
    "buffer.memory": "524288000",
}


def _common(kind: str, name: str, auth: str) -> dict[str, str]:
    both = {
        f"{side}.cluster.{key}": value
        for side in ("source", "target")
        for key, value in {"bootstrap.servers": f"{side}.example:9092", **_AUTH[auth]}.items()
    }
    return {
        "connector.class": _CLASS.format(kind),
        "name": name,
        "clusters": "msksource,mskdest",
        "source.cluster.alias": "msksource",
        "target.cluster.alias": "mskdest",
        **both,
        "key.converter": f" {_BYTES}",
        "value.converter": _BYTES,
        "replication.factor": "3",
    }


def _source(auth: str) -> dict[str, str]:
    sizes = {
        f"{who}.{key}": value
        for who in ("source.cluster", "target.cluster", "producer.override")
        for key, value in _SIZES.items()
    }
    return {
        **_common("Source", "mm2-msc", auth),
        "replication.policy.class": _AWS_POLICY,
        "topics": r"^ExampleTopic[\w]*",
        "tasks.max": "4",
        "offset-syncs.topic.replication.factor": "1" if auth == "sasl" else "3",
        "sync.topic.acls.interval.seconds": "600",
        "sync.topic.configs.interval.seconds": "600",
        "refresh.topics.interval.seconds": "300",
        "refresh.groups.interval.seconds": "20",
        **({} if auth == "sasl" else {"producer.enable.idempotence": "true"}),
        "consumer.group.id": "mm2-msc",
        "source.cluster.max.poll.records": "50000",
        "target.cluster.max.poll.records": "20000",
        "producer.override.max.poll.records": "20000",
        **sizes,
        "source.cluster.batch.size": "524288",
        "target.cluster.batch.size": "52428",
        "producer.override.batch.size": "52428",
    }


def _checkpoint(auth: str) -> dict[str, str]:
    scram = auth == "sasl"
    return {
        **_common("Checkpoint", "mm2-cpc", auth),
        **({} if auth == "no" else {"replication.policy.class": _AWS_POLICY}),
        "tasks.max": "2" if scram else "1",
        "checkpoints.topic.replication.factor": "2" if scram else "3",
        "emit.checkpoints.interval.seconds": "20",
        **({"sync.group.offsets.enabled": "true"} if auth in ("iam", "sasl") else {}),
        **({"emit.checkpoints.enabled": "true", "sync.group.offsets.interval.seconds": "10"} if scram else {}),
    }


def _heartbeat(auth: str) -> dict[str, str]:
    return {
        **_common("Heartbeat", "mm2-hbc", auth),
        "tasks.max": "1",
        "heartbeats.topic.replication.factor": "2" if auth == "sasl" else "3",
        "emit.heartbeats.interval.seconds": "20",
        **({"replication.policy.class": _AWS_POLICY} if auth == "sasl" else {}),
    }


def aws_kit() -> dict[str, dict[str, str]]:
    """The twelve, by their files' names."""
    made = {"msc": _source, "cpc": _checkpoint, "hbc": _heartbeat}
    return {f"mm2-{short}-{auth}-auth": make(auth) for auth in _AUTH for short, make in made.items()}


def confluent_demo() -> dict[str, dict[str, str]]:
    """The three, which have no names: the path gives them."""
    bytes_converter = "io.confluent.connect.replicator.util.ByteArrayConverter"
    common = {
        **{f"{what}.converter": bytes_converter for what in ("key", "value", "header")},
        "source.cluster.alias": "msk",
        "source.cluster.bootstrap.servers": "broker:9092",
        "target.cluster.bootstrap.servers": "confluent.cloud:9092",
        "target.kafka.security.protocol": "SASL_SSL",
        "target.kafka.sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="${API_KEY}" password="${API_SECRET}";',
        "topics": "test-topic",
        "consumer.group.id": "mm2-msc-cons",
    }
    every = {f"{what}.interval.seconds": "20" for what in ("sync.topic.acls", "sync.topic.configs", "refresh.topics")}
    checkpoints = {"checkpoints.topic.replication.factor": "3", "emit.checkpoints.interval.seconds": "20"}
    heartbeats = {"heartbeats.topic.replication.factor": "3", "emit.heartbeats.interval.seconds": "20"}
    return {
        "mm2-src": {"connector.class": _CLASS.format("Source"), **common, **every},
        "mm2-chk": {"connector.class": _CLASS.format("Checkpoint"), **common, **checkpoints},
        "mm2-hbt": {"connector.class": _CLASS.format("Checkpoint"), **common, **heartbeats},
    }
