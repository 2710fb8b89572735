"""Keys for MirrorMaker 2, Connect and Kafka's clients without an effect here.

Each key has the reason. Source: `mm2.md` sections 1.1 to 1.6 and Kafka 4.3.1's configuration classes. Settings with an
effect are in `settings` and `duty_settings`. A name may be here and there, since its meaning depends on its place.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IdleKey:
    """Key without effect: its default in Kafka (`-`: none), and the reason."""

    name: str
    default: str
    reason: str


def _table(text: str) -> dict[str, IdleKey]:
    """Parse a table with reasons, each followed by indented key names.

    A name may have ` = default` behind it.
    """
    keys: dict[str, IdleKey] = {}
    reason = ""
    for line in filter(None, map(str.rstrip, text.splitlines())):
        if not line.startswith(" "):
            reason = line
            continue
        name, _, default = line.strip().partition(" = ")
        keys[name] = IdleKey(name, default or "-", reason)
    return keys


CONNECTOR = _table("""
pumps wait for records as consumer.fetch.max.wait.ms says
    consumer.poll.timeout.ms = 1000
topics are created by Kafka's own admin requests, without a class of yours
    forwarding.admin.class = org.apache.kafka.clients.admin.ForwardingAdmin
there is no JMX; Prometheus scrapes --metrics-port or sparkmirror.metrics.listeners (docs/metrics.md)
    metric.names.formats = legacy
    metric.reporters = org.apache.kafka.common.metrics.JmxReporter
aliases come from the flow's own name: another one stops the run; docs/topics.md has the empty one
    source.cluster.alias
    target.cluster.alias = target
""")
"""Keys for MirrorMaker 2's three connectors.

Included are keys that are refused unless they ask for something that is done anyway.
"""

CONNECTOR_BASE = _table("""
there are no connectors to be named
    name
    connector.class
    connector.plugin.version
tasks.max is never exceeded
    tasks.max.enforce = true
records are copied as bytes, without converters
    key.converter
    value.converter
    header.converter
    key.converter.plugin.version
    value.converter.plugin.version
    header.converter.plugin.version
an empty list changes nothing; docs/transforms.md has the others
    transforms
    predicates
secrets from config providers are read again with each connection, all other values when a run starts
    config.action.reload = restart
a partition that can't be copied is parked with the reason and tried again, and the others continue
    errors.retry.timeout = 0
    errors.retry.delay.max.ms = 60000
no record is ever skipped: a partition that can't be copied is parked with the reason
    errors.tolerance = none
failures are always logged, the contents of records never
    errors.log.enable = false
    errors.log.include.messages = false
""")
"""Keys for every Kafka Connect connector."""

CONNECT = _table("""
each record is copied exactly once, whatever this key says
    exactly.once.source.support = disabled
    exactly.once.support = requested
exactly once needs no transactions here
    transaction.boundary = poll
    transaction.boundary.interval.ms
a flow's offsets are in one topic: write <target>.offset.storage.topic
    offsets.storage.topic
topics are created as they are at the source, with replication.factor
    topic.creation.enable = true
    topic.creation.groups
a write of Connect's offsets may take 10 s
    offset.flush.timeout.ms = 5000
a pump may be stopped at any moment
    task.shutdown.graceful.timeout.ms = 5000
processes on the same file agree through the target cluster, without REST
    dedicated.mode.enable.internal.rest = false
    inter.worker.key.generation.algorithm = HmacSHA256
    inter.worker.key.size
    inter.worker.key.ttl.ms = 3600000
    inter.worker.signature.algorithm = HmacSHA256
    inter.worker.verification.algorithms = HmacSHA256
a dedicated mirror has no REST interface; `sparkmirror serve` has one
    access.control.allow.methods
    access.control.allow.origin
    admin.listeners
    listeners = http://:8083
    response.http.headers.config
    rest.advertised.host.name
    rest.advertised.listener
    rest.advertised.port
    rest.extension.classes
each process reads the file itself, so that no configuration is stored
    config.storage.topic = mm2-configs.<source>.internal
    config.storage.replication.factor = 3
no connectors' states are stored
    status.storage.topic = mm2-status.<source>.internal
    status.storage.partitions = 5
    status.storage.replication.factor = 3
work is dealt out by load, not by Connect's rebalancing
    connect.protocol = sessioned
    rebalance.timeout.ms = 60000
    scheduled.rebalance.max.delay.ms = 300000
    worker.sync.timeout.ms = 3000
    worker.unsync.backoff.ms = 300000
Java plug-ins can't be loaded; Python ones are found on PYTHONPATH
    plugin.path
    plugin.discovery = hybrid_warn
a flow's own producer.override settings are always obeyed
    connector.client.config.override.policy = All
sparkmirror always knows which topics are copied
    topic.tracking.enable = true
    topic.tracking.allow.reset = true
""")
"""Keys for Kafka Connect's workers and source connectors, which don't exist here."""

CONNECT_FAMILIES = {
    "config.storage.": CONNECT["config.storage.topic"].reason,
    "header.converter.": CONNECTOR_BASE["header.converter"].reason,
    "key.converter.": CONNECTOR_BASE["key.converter"].reason,
    "value.converter.": CONNECTOR_BASE["value.converter"].reason,
    "listeners.https.": CONNECT["listeners"].reason,
    "metrics.context.": CONNECTOR["metric.reporters"].reason,
    "offset.storage.": "its topic is compacted, and otherwise as the broker makes it",
    "predicates.": "no transform is named by `transforms`",
    "status.storage.": CONNECT["status.storage.topic"].reason,
    "topic.creation.": CONNECT["topic.creation.enable"].reason,
    "transforms.": "no transform is named by `transforms`",
}
"""Prefixes for Kafka Connect's further keys, with the reasons."""

CLIENT = _table("""
a batch counts as written when all in-sync replicas have it, and exactly once
    acks = all
    enable.idempotence = true
    transactional.id
    transaction.timeout.ms = 60000
    transaction.two.phase.commit.enable = false
a failed request is tried again until it succeeds
    delivery.timeout.ms = 120000
    max.block.ms = 60000
    retries = 2147483647
batches are copied as they are at the source
    batch.size = 16384
    buffer.memory = 33554432
    linger.ms = 5
    partitioner.adaptive.partitioning.enable = true
    partitioner.availability.timeout.ms = 0
    partitioner.class
    partitioner.ignore.keys = false
    key.deserializer
    key.serializer
    value.deserializer
    value.serializer
    max.poll.records = 500
    check.crcs = true
copying needs no consumer group, and the lease of a flow has its own
    auto.commit.interval.ms = 5000
    enable.auto.commit = true
    group.id
    group.instance.id
    group.protocol = classic
    group.remote.assignor
    heartbeat.interval.ms = 3000
    max.poll.interval.ms = 300000
    partition.assignment.strategy
    session.timeout.ms = 45000
a topic's partitions are known from the topics' refresh
    allow.auto.create.topics = true
    exclude.internal.topics = true
Java classes can't be loaded
    interceptor.classes
    metric.reporters
    security.providers
there is no JMX; Prometheus scrapes --metrics-port or sparkmirror.metrics.listeners (docs/metrics.md)
    enable.metrics.push = true
    metrics.num.samples = 2
    metrics.recording.level = INFO
    metrics.sample.window.ms = 30000
config providers are declared once for the whole file: write it without a prefix
    config.providers
clusters are reached through their brokers: write <cluster>.bootstrap.servers
    bootstrap.controllers
every address of a name is tried
    client.dns.lookup = use_all_dns_ips
new tickets are got after four fifths of their lives, or by the program that fills the ticket cache
    sasl.kerberos.kinit.cmd = /usr/bin/kinit
    sasl.kerberos.min.time.before.relogin = 60000
    sasl.kerberos.ticket.renew.jitter = 0.05
    sasl.kerberos.ticket.renew.window.factor = 0.8
it is for the brokers: they tell users by principals
    sasl.kerberos.principal.to.local.rules = DEFAULT
say for which client, with <cluster>.admin., <source>.consumer. or <target>.producer. before it
    client.id
    request.timeout.ms = 30000
MirrorMaker 2's own topics hold few bytes, and are written uncompressed
    compression.type = none
a connection is kept until its broker closes it
    connections.max.idle.ms = 540000
a request to a cluster may take admin.timeout.ms
    default.api.timeout.ms = 60000
topics are looked up as refresh.topics.interval.seconds says, leaders as soon as one has moved
    metadata.max.age.ms = 300000
    metadata.max.idle.ms = 300000
bootstrap.servers are asked again as soon as no broker that is known answers
    metadata.recovery.rebootstrap.trigger.ms = 300000
    metadata.recovery.strategy = rebootstrap
the operating system chooses the size, except where data is fetched or written
    receive.buffer.bytes = 65536
    send.buffer.bytes = 131072
pauses before another try are sparkmirror's own
    reconnect.backoff.max.ms = 1000
    reconnect.backoff.ms = 50
    retry.backoff.max.ms = 1000
    retry.backoff.ms = 100
all clients of a cluster use one protocol: write <cluster>.security.protocol
    security.protocol = PLAINTEXT
connecting may take as long as an answer, and 10 s at most
    socket.connection.setup.timeout.max.ms = 30000
    socket.connection.setup.timeout.ms = 10000
""")
"""Keys for consumers, producers and admin clients."""

DONE_ANYWAY: dict[str, tuple[str, ...]] = {
    "acks": ("all", "-1"),
    "check.crcs": ("true",),
    "client.dns.lookup": ("use_all_dns_ips",),
    "compression.type": ("none",),
    "enable.idempotence": ("true",),
    "errors.tolerance": ("none",),
    "exactly.once.source.support": ("enabled",),
    "exactly.once.support": ("required", "requested"),
    "metadata.recovery.strategy": ("rebootstrap",),
    "metric.reporters": ("",),
    "tasks.max.enforce": ("true",),
    "topic.creation.enable": ("true",),
}
"""Values of keys without effect that ask for what is done anyway.

Such a key needs no warning.
"""

REMOVED = {
    "topics.whitelist": "4.0, so all topics are copied unless topics chooses some; write {}topics",
    "add.source.alias.to.metrics": "4.0",
    "auto.include.jmx.reporter": "4.0",
    "use.incremental.alter.configs": "4.0",
    "internal.key.converter": "3.0: take it out",
    "internal.key.converter.schemas.enable": "3.0: take it out",
    "internal.value.converter": "3.0: take it out",
    "internal.value.converter.schemas.enable": "3.0: take it out",
    "rest.host.name": "3.0: a worker's address is listeners = http://HOST:8083",
    "rest.port": "3.0: a worker's port is listeners = http://:8083",
}
"""Keys that Kafka dropped: the release, and what to do.

`{}` stands for the prefix.
"""

SLIPS = {
    "group.blacklist": "groups.exclude",
    "group.whitelist": "groups",
    "groups.include": "groups",
    "groups.whitelist": "groups",
    "max.tasks": "tasks.max",
    "topic.blacklist": "topics.exclude",
    "topic.exclude": "topics.exclude",
    "topic.include": "topics",
    "topic.whitelist": "topics",
    "topics.include": "topics",
}
"""Names that Kafka never had, and that resemble the right ones too little."""

OURS_REMOVED = {
    "sparkmirror.takeover.fence": "raise producer.id.expiration.ms at the target instead (docs/running.md)",
}
"""sparkmirror 0.1 keys that were removed, and what to do instead."""

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
"""Roles that may stand before a client's key, behind the alias or the flow."""
