"""Keys that MirrorMaker 2, Kafka Connect and Kafka's clients know and this release does nothing with.

Source: `mm2.md` sections 1.1 to 1.6 and the configuration classes of Kafka 4.3.1. Settings that have an
effect are in `settings`; a name may be in both, as it can mean different things in different places.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


CONNECTOR = _names(
    """
    checkpoints.topic.replication.factor config.properties.exclude config.property.filter.class
    config.providers consumer.poll.timeout.ms emit.checkpoints.enabled emit.checkpoints.interval.seconds
    emit.heartbeats.enabled emit.heartbeats.interval.seconds emit.offset-syncs.enabled
    forwarding.admin.class group.filter.class groups groups.exclude heartbeats.topic.replication.factor
    metric.names.formats metric.reporters offset-syncs.topic.location
    offset-syncs.topic.replication.factor refresh.groups.enabled refresh.groups.interval.seconds
    security.protocol source.cluster.alias sync.group.offsets.enabled sync.group.offsets.interval.seconds
    sync.topic.acls.enabled sync.topic.acls.interval.seconds sync.topic.configs.enabled
    sync.topic.configs.interval.seconds target.cluster.alias topic.filter.class use.defaults.from
    """
)
"""Of the three connectors and their filters."""

CONNECT = _names(
    """
    access.control.allow.methods access.control.allow.origin admin.listeners config.action.reload
    config.storage.replication.factor config.storage.topic connect.protocol connector.class
    connector.client.config.override.policy connector.plugin.version
    dedicated.mode.enable.internal.rest errors.log.enable errors.log.include.messages
    errors.retry.delay.max.ms errors.retry.timeout errors.tolerance exactly.once.source.support
    exactly.once.support header.converter header.converter.plugin.version
    inter.worker.key.generation.algorithm inter.worker.key.size inter.worker.key.ttl.ms
    inter.worker.signature.algorithm inter.worker.verification.algorithms key.converter
    key.converter.plugin.version listeners name offset.flush.interval.ms offset.flush.timeout.ms
    offset.storage.partitions offset.storage.replication.factor offset.storage.topic plugin.discovery
    plugin.path predicates rebalance.timeout.ms response.http.headers.config rest.advertised.host.name
    rest.advertised.listener rest.advertised.port rest.extension.classes
    scheduled.rebalance.max.delay.ms status.storage.partitions status.storage.replication.factor
    status.storage.topic task.shutdown.graceful.timeout.ms tasks.max.enforce topic.creation.enable
    topic.tracking.allow.reset topic.tracking.enable transforms value.converter
    value.converter.plugin.version worker.sync.timeout.ms worker.unsync.backoff.ms
    """
)
"""Of Kafka Connect, which isn't here: its workers, REST interface, storage topics, error handling."""

CONNECT_FAMILIES = (
    "config.storage.",
    "header.converter.",
    "key.converter.",
    "listeners.https.",
    "metrics.context.",
    "offset.storage.",
    "predicates.",
    "status.storage.",
    "topic.creation.",
    "transforms.",
    "value.converter.",
)

CLIENT = _names(
    """
    acks allow.auto.create.topics auto.commit.interval.ms batch.size bootstrap.controllers buffer.memory
    check.crcs client.dns.lookup client.id compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level config.providers connections.max.idle.ms default.api.timeout.ms
    delivery.timeout.ms enable.auto.commit enable.idempotence enable.metrics.push
    exclude.internal.topics group.id group.instance.id group.protocol group.remote.assignor
    heartbeat.interval.ms interceptor.classes key.deserializer key.serializer linger.ms max.block.ms
    max.poll.interval.ms max.poll.records metadata.max.age.ms metadata.max.idle.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partition.assignment.strategy partitioner.adaptive.partitioning.enable
    partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys receive.buffer.bytes
    reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retries retry.backoff.max.ms
    retry.backoff.ms security.protocol security.providers send.buffer.bytes session.timeout.ms
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms transaction.timeout.ms
    transaction.two.phase.commit.enable transactional.id value.deserializer value.serializer
    """
)
"""Of consumers, producers and admin clients."""

PROVIDER_FAMILY = "config.providers."

REMOVED = {
    "topics.blacklist": "topics.exclude",
    "topics.whitelist": "topics",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
    "add.source.alias.to.metrics": "",
    "auto.include.jmx.reporter": "",
    "use.incremental.alter.configs": "",
}
"""Keys that Kafka 4.0 no longer knows, and what to write instead, if anything."""

ROLES = (
    "source.consumer.",
    "source.producer.",
    "source.admin.",
    "source.cluster.",
    "target.consumer.",
    "target.producer.",
    "target.admin.",
    "target.cluster.",
    "producer.override.",
    "consumer.",
    "producer.",
    "admin.",
)
"""What can stand before a client's key, behind the alias or flow."""
