"""Every setting that has an effect, declared once: name, kind, default, meaning, source, places.

A place is a key's template: `{source}` and `{target}` are aliases, `{name}` is the setting's name.
Where several places count, the strongest comes first (`mm2.md` section 1.6, and tried with
MirrorMaker 2 4.3.1: a cluster's own `consumer.` beats the flow's, because it becomes `source.consumer.`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from pydantic import BaseModel

from sparkmirror.config.model import (
    DEFAULT_POLICY,
    IDENTITY_POLICY,
    ClusterConfig,
    ConnectStorage,
    FetchConfig,
    FlowConfig,
    GroupConfig,
    HeartbeatConfig,
    LossPolicy,
    OffsetSyncConfig,
    ProduceConfig,
    SslConfig,
    TopicSyncConfig,
)
from sparkmirror.config.values import (
    LONG_MAX,
    Boolean,
    Choice,
    Endpoints,
    Hidden,
    Integer,
    Kind,
    Names,
    Text,
    TlsVersions,
)

FLOW = "{source}->{target}."


class Place(Enum):
    """Where a setting can be written, the strongest key first."""

    CONNECTOR = (FLOW + "{name}", "{name}")
    WORKER = ("{target}.{name}",)
    STORAGE = ("{name}", "{target}.{name}")
    CONSUMER = (FLOW + "source.consumer.{name}", "{source}.consumer.{name}", FLOW + "consumer.{name}")
    PRODUCER = (FLOW + "producer.override.{name}", "{target}.producer.{name}")
    PAIR = (FLOW + "{name}",)
    SOURCE = ("{source}.{name}", "{name}")
    TARGET = ("{target}.{name}", "{name}")

    def keys(self, name: str, source: str, target: str) -> list[str]:
        """The keys that set `name` for the flow `source->target`, the strongest first."""
        return [template.format(source=source, target=target, name=name) for template in self.value]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that this release obeys: MirrorMaker 2's, or our own, which start with `sparkmirror.`."""

    name: str
    kind: Kind
    place: Place
    doc: str
    origin: str
    """The section of `mm2.md`, Kafka's own class or the page in `docs` that defines it."""
    model: type[BaseModel] | None = None
    renamed: str = ""
    """The field of `model`, if it isn't the name with underscores."""

    @property
    def field(self) -> str:
        """The model's field that holds this setting."""
        return self.renamed or self.name.replace(".", "_").replace("-", "_")

    @property
    def default(self) -> object:
        """What counts if no key sets it; None if that has no meaning."""
        return self.model.model_fields[self.field].default if self.model else None


def _flow(name: str, kind: Kind, doc: str, origin: str, renamed: str = "") -> Setting:
    return Setting(name, kind, Place.CONNECTOR, doc, origin, FlowConfig, renamed)


def _of(model: type[BaseModel], name: str, kind: Kind, doc: str, origin: str) -> Setting:
    place = Place.PAIR if name == "use.defaults.from" else Place.CONNECTOR
    return Setting(name, kind, place, doc, origin, model)


def _storage(name: str, kind: Kind, doc: str, place: Place) -> Setting:
    return Setting(name, kind, place, doc, "1.6", ConnectStorage)


def _fetch(name: str, kind: Kind, doc: str) -> Setting:
    return Setting(name, kind, Place.CONSUMER, doc, "ConsumerConfig", FetchConfig)


def _produce(name: str, kind: Kind, doc: str) -> Setting:
    return Setting(name, kind, Place.PRODUCER, doc, "ProducerConfig", ProduceConfig)


def _ssl(name: str, kind: Kind, doc: str) -> Setting:
    field = name.removeprefix("ssl.").replace(".", "_")
    return Setting(name, kind, Place.SOURCE, doc, "SslConfigs", SslConfig, field)


def _loss(name: str, options: tuple[str, ...], doc: str) -> Setting:
    field = name.rpartition(".")[2]
    return Setting(name, Choice(options), Place.CONNECTOR, doc, "docs/losses.md", LossPolicy, field)


NAME_CHARACTERS = Text(r"[A-Za-z0-9._-]", "letters, digits, '.', '_' and '-', as a topic's name is")
SECONDS = Integer(1, LONG_MAX // 1000)
SIZE = Integer(0)
BUFFER = Integer(0, also=-1)

CLUSTERS_KEY = "clusters"
"""The one key that is read before the others: it gives the aliases."""

ENABLED = Setting("enabled", Boolean(), Place.PAIR, "Whether this flow is run.", "1.6")
SOURCE_SERVERS = Setting("bootstrap.servers", Endpoints(), Place.SOURCE, "Brokers of the source.", "1.6")
TARGET_SERVERS = Setting("bootstrap.servers", Endpoints(), Place.TARGET, "Brokers of the target.", "1.6")

SECURITY_PROTOCOL = Setting(
    "security.protocol",
    Choice(("PLAINTEXT", "SSL"), any_case=True),
    Place.SOURCE,
    "How a cluster is spoken with.",
    "1.1",
    ClusterConfig,
)

STORE_TYPE = Choice(("JKS", "PKCS12", "PEM"), any_case=True)

SSL_SETTINGS: tuple[Setting, ...] = (
    _ssl("ssl.truststore.location", Text(), "File of the certificates that are trusted."),
    _ssl("ssl.truststore.type", STORE_TYPE, "What kind of file it is."),
    _ssl("ssl.truststore.password", Hidden(), "Opens it."),
    _ssl("ssl.truststore.certificates", Hidden(), "The trusted certificates themselves, PEM."),
    _ssl("ssl.keystore.location", Text(), "File with our own key and certificate."),
    _ssl("ssl.keystore.type", STORE_TYPE, "What kind of file it is."),
    _ssl("ssl.keystore.password", Hidden(), "Opens it."),
    _ssl("ssl.keystore.key", Hidden(), "Our key itself, PEM."),
    _ssl("ssl.keystore.certificate.chain", Hidden(), "Our certificate itself and its issuers', PEM."),
    _ssl("ssl.key.password", Hidden(), "Opens the key in it."),
    _ssl(
        "ssl.endpoint.identification.algorithm",
        Choice(("https", ""), any_case=True),
        "Whether a broker's certificate must name its host.",
    ),
    _ssl("ssl.enabled.protocols", TlsVersions(), "Versions of TLS that may be spoken."),
    _ssl("ssl.protocol", Choice(("TLSv1.3", "TLSv1.2", "TLS")), "The newest version that may be spoken."),
)
"""Of either cluster; `for_place` says of which."""


def for_place(settings: tuple[Setting, ...], place: Place) -> tuple[Setting, ...]:
    """The same settings, of the other cluster."""
    return tuple(replace(setting, place=place) for setting in settings)


FLOW_SETTINGS: tuple[Setting, ...] = (
    _flow("topics", Names(), "Regexes of topics to copy; a whole name must match one.", "1.2"),
    _flow("topics.exclude", Names(), "Regexes of topics not to copy, though `topics` matches.", "1.2"),
    _flow(
        "replication.policy.class",
        Choice((DEFAULT_POLICY, IDENTITY_POLICY)),
        "How topics are named at the target.",
        "1.1",
    ),
    _flow("replication.policy.separator", NAME_CHARACTERS, "Between alias and topic.", "1.1"),
    _flow(
        "replication.policy.internal.topic.separator.enabled",
        Boolean(),
        "Whether internal topics' names use the separator, too, or always a dot.",
        "1.1",
        "internal_topic_separator_enabled",
    ),
    _flow("replication.factor", Integer(1, 32_767, also=-1), "Of topics created at the target.", "1.2"),
    _flow("tasks.max", Integer(1), "Most tasks that this flow is spread over.", "1.1"),
    _flow("refresh.topics.enabled", Boolean(), "Whether new topics and partitions are looked for.", "1.2"),
    _flow("refresh.topics.interval.seconds", SECONDS, "How often they are looked for.", "1.2"),
    _flow("heartbeats.replication.enabled", Boolean(), "Whether heartbeats are always copied.", "1.2"),
    _flow("admin.timeout.ms", Integer(1, LONG_MAX), "How long an administrative duty may take.", "1.1"),
    Setting(
        "session.timeout.ms",
        Integer(1),
        Place.WORKER,
        "How long after its death a process is replaced.",
        "1.6",
        FlowConfig,
        "group_session_timeout_ms",
    ),
    Setting(
        "sparkmirror.merge.tiny.batches",
        Boolean(),
        Place.CONNECTOR,
        "Whether a backlog's batches of less than 4 KiB are made larger ones.",
        "docs/running.md",
        FlowConfig,
        "merge_tiny_batches",
    ),
)

FACTOR = Integer(1, 32_767, also=-1)

TOPIC_SYNC_SETTINGS: tuple[Setting, ...] = (
    _of(TopicSyncConfig, "config.properties.exclude", Names(), "Regexes of properties that are not copied.", "1.2"),
    _of(TopicSyncConfig, "use.defaults.from", Choice(("target", "source")), "Whose defaults a copy has.", "1.5"),
    _of(TopicSyncConfig, "sync.topic.configs.enabled", Boolean(), "Whether topics' properties are kept equal.", "1.2"),
    _of(TopicSyncConfig, "sync.topic.configs.interval.seconds", SECONDS, "How often they are.", "1.2"),
    _of(TopicSyncConfig, "sync.topic.acls.enabled", Boolean(), "Whether topics' ACLs are copied.", "1.2"),
    _of(TopicSyncConfig, "sync.topic.acls.interval.seconds", SECONDS, "How often they are.", "1.2"),
)
"""How remote topics are kept like the source's."""

GROUP_SETTINGS: tuple[Setting, ...] = (
    _of(GroupConfig, "groups", Names(), "Regexes of consumer groups to translate.", "1.3"),
    _of(GroupConfig, "groups.exclude", Names(), "Regexes of groups not to, though `groups` matches.", "1.3"),
    _of(GroupConfig, "refresh.groups.enabled", Boolean(), "Whether new groups are looked for.", "1.3"),
    _of(GroupConfig, "refresh.groups.interval.seconds", SECONDS, "How often they are looked for.", "1.3"),
    _of(GroupConfig, "emit.checkpoints.enabled", Boolean(), "Whether checkpoints are written.", "1.3"),
    _of(GroupConfig, "emit.checkpoints.interval.seconds", SECONDS, "How often they are written.", "1.3"),
    _of(GroupConfig, "checkpoints.topic.replication.factor", FACTOR, "Of the topic of checkpoints.", "1.3"),
    _of(GroupConfig, "sync.group.offsets.enabled", Boolean(), "Whether groups' offsets are set at the target.", "1.3"),
    _of(GroupConfig, "sync.group.offsets.interval.seconds", SECONDS, "How often they are set.", "1.3"),
)
"""Consumer groups and their positions."""

OFFSET_SYNC_SETTINGS: tuple[Setting, ...] = (
    _of(OffsetSyncConfig, "offset.lag.max", Integer(0, LONG_MAX), "How stale a sync may be, in records.", "1.2"),
    _of(OffsetSyncConfig, "emit.offset-syncs.enabled", Boolean(), "Whether offset syncs are written.", "1.2"),
    _of(
        OffsetSyncConfig,
        "offset-syncs.topic.location",
        Choice(("source", "target")),
        "The cluster that they are written to.",
        "1.2",
    ),
    _of(OffsetSyncConfig, "offset-syncs.topic.replication.factor", FACTOR, "Of the topic of offset syncs.", "1.2"),
)
"""MirrorMaker 2's offset syncs."""

HEARTBEAT_SETTINGS: tuple[Setting, ...] = (
    _of(HeartbeatConfig, "emit.heartbeats.enabled", Boolean(), "Whether heartbeats are sent.", "1.4"),
    _of(HeartbeatConfig, "emit.heartbeats.interval.seconds", SECONDS, "How often they are sent.", "1.4"),
    _of(HeartbeatConfig, "heartbeats.topic.replication.factor", FACTOR, "Of the topic of heartbeats.", "1.4"),
)
"""Heartbeats; their topic's factor and the interval count also for pairs that copy nothing."""

STORAGE_SETTINGS: tuple[Setting, ...] = (
    _storage("offset.storage.topic", NAME_CHARACTERS, "Where Kafka Connect keeps its offsets.", Place.STORAGE),
    _storage("offset.storage.partitions", Integer(1, also=-1), "Of that topic.", Place.STORAGE),
    _storage("offset.storage.replication.factor", FACTOR, "Of that topic.", Place.STORAGE),
    _storage("offset.flush.interval.ms", Integer(1, LONG_MAX), "How often they are written.", Place.WORKER),
)
"""The offsets of MirrorMaker 2's Connect workers, which it can be handed back to by."""

CONTROL_SETTINGS: tuple[Setting, ...] = (
    *TOPIC_SYNC_SETTINGS,
    *GROUP_SETTINGS,
    *OFFSET_SYNC_SETTINGS,
    *HEARTBEAT_SETTINGS,
    *STORAGE_SETTINGS,
)
"""All of what is done beside copying."""

LOSS_SETTINGS: tuple[Setting, ...] = (
    _loss("sparkmirror.on.expired", ("continue", "halt"), "Records expired before they were copied."),
    _loss("sparkmirror.on.truncated", ("halt", "continue"), "The source's log was cut below what was copied."),
    _loss("sparkmirror.on.recreated", ("restart", "halt"), "The source topic was deleted and created again."),
)
"""What to do about losses."""

FETCH_SETTINGS: tuple[Setting, ...] = (
    _fetch("auto.offset.reset", Choice(("earliest", "latest")), "Where a partition never copied starts."),
    _fetch("fetch.min.bytes", SIZE, "What the source gathers before it answers."),
    _fetch("fetch.max.bytes", SIZE, "Most bytes in one answer."),
    _fetch("fetch.max.wait.ms", Integer(0), "How long the source waits for the minimum."),
    _fetch("max.partition.fetch.bytes", SIZE, "Most bytes of one partition in one answer."),
    _fetch("receive.buffer.bytes", BUFFER, "Socket buffer; -1 is the operating system's own."),
    _fetch("isolation.level", Choice(("read_uncommitted", "read_committed")), "Whether aborted data counts."),
    _fetch("client.rack", Text(), "Where the mirror runs, to fetch from a follower nearby."),
)

PRODUCE_SETTINGS: tuple[Setting, ...] = (
    _produce("max.request.size", SIZE, "Most bytes in one request; a larger batch goes alone."),
    _produce(
        "max.in.flight.requests.per.connection",
        Integer(1),
        "Requests not yet answered; of more than five, five: brokers recognise repeats among so many only.",
    ),
    _produce("send.buffer.bytes", BUFFER, "Socket buffer; -1 is the operating system's own."),
    _produce("request.timeout.ms", Integer(0), "How long an answer may take."),
    _produce(
        "compression.type",
        Choice(("none", "gzip", "snappy", "lz4", "zstd")),
        "The codec of every batch at the target; with none each keeps the source's.",
    ),
)
