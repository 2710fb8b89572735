"""Typed model that every configuration format is read into.

Names are Kafka's keys with dots and dashes as underscores; units are in Kafka's names.
Defaults: `mm2.md` section 1, and Kafka's own consumer and producer defaults.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, SecretStr, SerializationInfo

from sparkmirror.config.jaas import ELSEWHERE, jaas_has_secrets

REVEAL = {"secrets": "revealed"}
"""Serialization context that writes secrets out; without it secrets are stars."""

DEFAULT_POLICY = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
IDENTITY_POLICY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"

POLICIES = (
    DEFAULT_POLICY,
    IDENTITY_POLICY,
    "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
    "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
)
"""Java classes that `replication.policy.class` may name.

The classes are MirrorMaker 2's, and two others that keep topic names.
"""

MIRROR = "org.apache.kafka.connect.mirror."
DEFAULT_TOPIC_FILTER = MIRROR + "DefaultTopicFilter"
DEFAULT_GROUP_FILTER = MIRROR + "DefaultGroupFilter"
DEFAULT_CONFIG_FILTER = MIRROR + "DefaultConfigPropertyFilter"
DEFAULT_CONFIG_EXCLUDE = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms",
    "message.timestamp.type",
    "unclean.leader.election.enable",
    "min.insync.replicas",
)
"""Default for `config.properties.exclude` (`mm2.md` 1.2).

Each item is a regular expression for a whole name.
"""


class Model(BaseModel):
    """Frozen value; an unknown field is sparkmirror's bug, not the user's."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _write_secret(secret: SecretStr, info: SerializationInfo) -> str:
    return secret.get_secret_value() if info.context == REVEAL else str(secret)


Secret = Annotated[SecretStr, PlainSerializer(_write_secret, when_used="json")]
"""Text that prints and dumps as stars, except in the context `REVEAL`."""

NO_SECRET = SecretStr("")

REFERENCE = re.compile(r"\$\{([^}:]*):(([^}:]*):)?([^}]*)\}")
"""Pattern for a reference `${provider:path:name}`; the path is optional.

Kafka's `ConfigTransformer` recognises references in the same way.
"""


class SslConfig(Model):
    """TLS with a cluster: Kafka's `ssl.` settings.

    The defaults are Kafka 4.3.1's.
    """

    truststore_location: str = ""
    """File with the trusted certificates; empty: the system's certificates."""
    truststore_type: str = "JKS"
    truststore_password: Secret = NO_SECRET
    truststore_certificates: str = ""
    """Trusted certificates themselves, PEM."""
    keystore_location: str = ""
    """File with the client's key and certificate, for brokers that ask for them."""
    keystore_type: str = "JKS"
    keystore_password: Secret = NO_SECRET
    keystore_key: Secret = NO_SECRET
    """Client's key itself, PEM."""
    keystore_certificate_chain: str = ""
    key_password: Secret = NO_SECRET
    endpoint_identification_algorithm: str = "https"
    """`https`: the certificate must name the broker's host; empty: any name will do."""
    enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    protocol: str = "TLSv1.3"
    """Newest version that is offered, whatever `enabled_protocols` says."""


class SaslConfig(Model):
    """Sign-in to a cluster: Kafka's `sasl.` settings (`config.login`).

    The defaults are Kafka 4.3.1's.
    """

    mechanism: str = "GSSAPI"
    jaas_config: Secret = NO_SECRET
    """Login module with its options, as Java writes them (`config.jaas`)."""
    login_callback_handler_class: str = ""
    client_callback_handler_class: str = ""
    kerberos_service_name: str = ""
    """Service in the brokers' principals; empty: as the JAAS line says."""
    oauthbearer_token_endpoint_url: str = ""
    """URL for the OIDC server, or for a file with a token: `file:///…`."""
    oauthbearer_jwt_retriever_class: str = ""
    """Class that gets the token; empty: the URL decides."""
    oauthbearer_scope: str = ""
    oauthbearer_client_credentials_client_id: str = ""
    oauthbearer_client_credentials_client_secret: Secret = NO_SECRET
    oauthbearer_header_urlencode: bool = False
    login_connect_timeout_ms: int = 10_000
    login_read_timeout_ms: int = 10_000
    """Timeout for the OIDC server's answer; Kafka waits without end."""


class ProviderConfig(Model):
    """A file's config provider; `config/providers.py` explains the term."""

    name: str
    kind: str
    """Java class, without its package."""
    allowlist_pattern: str = ".*"
    """Regex for the environment variables that may be read; it matches whole names."""
    allowed_paths: tuple[str, ...] | None = None
    """Files and directories that may be read; None: all."""


class ClusterConfig(Model):
    """Cluster as a flow sees it: its brokers, and its clients' settings."""

    alias: str
    bootstrap_servers: tuple[str, ...]
    """Brokers as `host:port`; only a heartbeat pair's source may have none."""
    security_protocol: str = "PLAINTEXT"
    """`PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`."""
    ssl: SslConfig = SslConfig()
    sasl: SaslConfig = SaslConfig()
    client_id: str = ""
    """Client id, as written; empty: one for each role."""
    request_timeout_ms: int = 30_000
    providers: tuple[ProviderConfig, ...] = ()
    """Config providers that the secrets in `ssl` and `sasl` refer to.

    The process that connects to the cluster resolves the references.
    """
    copier: ClusterConfig | None = None
    """Settings for the source's consumer or the target's producer.

    None: the copying client connects like the other clients.
    """

    @property
    def for_copying(self) -> ClusterConfig:
        """Cluster with the settings for the client that fetches from or produces to it."""
        return self.copier or self

    @property
    def encrypted(self) -> bool:
        """True if clients speak TLS with this cluster."""
        return self.security_protocol.endswith("SSL")

    @property
    def signs_in(self) -> bool:
        """True if clients sign in to this cluster by SASL."""
        return self.security_protocol.startswith("SASL")

    @property
    def has_secrets(self) -> bool:
        """True if the settings hold a secret value; a mere reference is no secret."""
        names = {provider.name for provider in self.providers}

        def without_references(text: str, instead: str) -> str:
            return REFERENCE.sub(lambda match: instead if match[1] in names else match[0], text)

        if self.copier is not None and self.copier.has_secrets:
            return True
        jaas = self.sasl.jaas_config
        others = [
            value.get_secret_value()
            for part in (self.ssl, self.sasl)
            for _, value in part
            if isinstance(value, SecretStr) and value is not jaas
        ]
        return any(without_references(text, "") for text in others) or jaas_has_secrets(
            without_references(jaas.get_secret_value(), ELSEWHERE)
        )


class FetchConfig(Model):
    """A pump's fetches: the consumer's settings that matter to a pump."""

    auto_offset_reset: str = "earliest"
    """`earliest` or `latest`: where to start a partition that this flow never copied."""
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1_048_576
    receive_buffer_bytes: int = -1
    """Socket buffer; -1: the operating system's size.

    The operating system's size grows with the distance; Kafka's default of 64 KiB would limit the growth.
    """
    isolation_level: str = "read_uncommitted"
    client_id: str = ""
    """Client id for the connections that fetch; empty: the cluster's."""
    request_timeout_ms: int = 30_000
    client_rack: str = ""


class ProduceConfig(Model):
    """A pump's writes: the producer's settings that matter to a pump."""

    max_request_size: int = 1_048_576
    """Most bytes in a request; a single larger batch still goes, alone."""
    max_in_flight_requests_per_connection: int = Field(default=5, ge=1)
    """Requests without an answer so far; if more than five, five are used.

    Brokers recognise repeats among the last five batches only.
    """
    send_buffer_bytes: int = -1
    """Socket buffer; -1: the operating system's size."""
    client_id: str = ""
    """Client id for the connections that write records; empty: the cluster's."""
    request_timeout_ms: int = 30_000
    compression_type: str = "none"
    """Codec at the target; `none`: every batch keeps its codec from the source."""
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3

    @property
    def compression_level(self) -> int | None:
        """Level for `compression_type`, in Kafka's count; None: it has none."""
        levels = {
            "gzip": self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type)


class LossPolicy(Model):
    """Reaction to each loss kind; `docs/losses.md` gives the defaults' reasons."""

    expired: Literal["halt", "continue"] = "continue"
    truncated: Literal["halt", "continue"] = "halt"
    recreated: Literal["halt", "restart"] = "restart"


class TopicSyncConfig(Model):
    """Upkeep of remote topics' configuration and ACLs, like the source's.

    See `mm2.md` 1.2 and 3.2.
    """

    config_property_filter_class: str = DEFAULT_CONFIG_FILTER
    config_properties_exclude: tuple[str, ...] = DEFAULT_CONFIG_EXCLUDE
    use_defaults_from: str = "target"
    sync_topic_configs_enabled: bool = True
    sync_topic_configs_interval_seconds: int = 600
    sync_topic_acls_enabled: bool = True
    sync_topic_acls_interval_seconds: int = 600
    acl_patterns_enabled: bool = False
    acl_removals_enabled: bool = False
    sync_group_acls_enabled: bool = False
    sync_transactional_id_acls_enabled: bool = False
    sync_client_quotas_enabled: bool = False

    @property
    def syncs_acls(self) -> bool:
        """True if ACLs of any kind are copied."""
        return self.sync_topic_acls_enabled or self.sync_group_acls_enabled or self.sync_transactional_id_acls_enabled


class GroupConfig(Model):
    """Consumer groups to translate, and how their positions are used (`mm2.md` 1.3)."""

    groups: tuple[str, ...] = (".*",)
    groups_exclude: tuple[str, ...] = ("console-consumer-.*", "connect-.*", "__.*")
    group_filter_class: str = DEFAULT_GROUP_FILTER
    refresh_groups_enabled: bool = True
    refresh_groups_interval_seconds: int = 600
    emit_checkpoints_enabled: bool = True
    emit_checkpoints_interval_seconds: int = 60
    checkpoints_topic_replication_factor: int = 3
    sync_group_offsets_enabled: bool = False
    sync_group_offsets_interval_seconds: int = 60


class OffsetSyncConfig(Model):
    """Settings for MirrorMaker 2's offset syncs (`mm2.md` 1.2, 3.5)."""

    emit_offset_syncs_enabled: bool = True
    offset_syncs_topic_location: str = "source"
    offset_syncs_topic_replication_factor: int = 3
    offset_lag_max: int = 100


class HeartbeatConfig(Model):
    """Settings for heartbeats into the target (`mm2.md` 1.4)."""

    emit_heartbeats_enabled: bool = True
    emit_heartbeats_interval_seconds: int = 1
    heartbeats_topic_replication_factor: int = 3


class ConnectStorage(Model):
    """Storage of the flow's offsets by MirrorMaker 2's Connect workers.

    See `mm2.md` 1.6 and 2.2.
    """

    offset_storage_topic: str = ""
    """Offsets topic; empty: `mm2-offsets.<source>.internal`."""
    offset_storage_partitions: int = 25
    offset_storage_replication_factor: int = 3
    offset_flush_interval_ms: int = 60_000
    connector: str = "MirrorSourceConnector"
    """The source connector's name in the stored offsets.

    The default is the dedicated driver's name; in Connect the connector has another name.
    """


class LegacyConfig(Model):
    """A flow's settings that come from MirrorMaker 1 (`docs/cli.md`)."""

    group_id: str
    """Consumer group at the source under which MirrorMaker 1 committed its progress."""
    offset_commit_interval_ms: int = 60_000
    abort_on_send_failure: bool = True
    """True if a partition that can't be copied ends the run."""


class TransformQuery(Model):
    """Spark query that copies some of a flow's topics, with changed records."""

    name: str
    topics: tuple[str, ...]
    """Regexes of source topics; one of them must match the whole name."""
    sql: str = ""
    """Spark SQL over the view `records`; empty: the query is a function in Python."""
    is_connect: bool = False
    """True if the query runs the flow's Connect transforms.

    Transforms that send records to other topics run in a query.
    """


class FlowConfig(Model):
    """Flow: an ordered pair of clusters, `source->target`, with all its settings."""

    source: ClusterConfig
    target: ClusterConfig
    tasks_max: int = Field(default=1, ge=1)
    topics: tuple[str, ...] = (".*",)
    topics_exclude: tuple[str, ...] = (r"mm2.*\.internal", r".*\.replica", r"__.*")
    topic_filter_class: str = DEFAULT_TOPIC_FILTER
    heartbeats_replication_enabled: bool = True
    replication_policy_class: str = DEFAULT_POLICY
    replication_policy_separator: str = "."
    internal_topic_separator_enabled: bool = True
    replication_factor: int = 2
    """Replication factor for topics created at the target; -1: the broker's default."""
    refresh_topics_enabled: bool = True
    refresh_topics_interval_seconds: int = 600
    admin_timeout_ms: int = 60_000
    group_session_timeout_ms: int = 10_000
    """The lease's session timeout.

    A process is replaced so long after its death (`mm2.md` 1.6, session.timeout.ms).
    """
    fetch: FetchConfig = FetchConfig()
    produce: ProduceConfig = ProduceConfig()
    loss: LossPolicy = LossPolicy()
    topic_sync: TopicSyncConfig = TopicSyncConfig()
    group: GroupConfig = GroupConfig()
    offset_sync: OffsetSyncConfig = OffsetSyncConfig()
    heartbeat: HeartbeatConfig = HeartbeatConfig()
    connect: ConnectStorage = ConnectStorage()
    merge_tiny_batches: bool = True
    """True if small batches, and batches with gaps, become larger under a backlog."""
    turn: Literal["", "first", "second"] = ""
    """Place in a migration there and back: two opposite flows that keep names.

    Each topic is copied by the flow whose turn it is; `first` begins. Empty: no migration.
    """
    objective_seconds: int = 0
    """Promised lag, which metrics, page and doctor compare with; 0: no promise."""
    copies: bool = True
    """True if records are copied.

    Without the copy, only groups, heartbeats and other duties at the target continue.
    """
    source_cluster_alias: str | None = None
    """The source's empty alias in MirrorMaker 2's data; None: `source.alias`."""
    target_cluster_alias: str | None = None
    """The target's empty alias in MirrorMaker 2's data; None: `target.alias`."""
    legacy: LegacyConfig | None = None
    """Settings from MirrorMaker 1; None: a MirrorMaker 2 flow."""
    connect_transforms: dict[str, str] = {}
    """Kafka Connect's keys for transforms and predicates, without prefix."""
    transform_queries: tuple[TransformQuery, ...] = ()
    originals: dict[str, str] = {}
    """Keys for filters and policies in Python, without secrets.

    MirrorMaker 2 would give the same keys to its own filters and policies.
    """

    @property
    def name(self) -> str:
        """Name `source->target`, as Kafka writes it."""
        return f"{self.source.alias}->{self.target.alias}"

    @property
    def mm2_source(self) -> str:
        """Source in MirrorMaker 2's stored offsets and topic names (`config.aliases`)."""
        return self.source.alias if self.source_cluster_alias is None else self.source_cluster_alias

    @property
    def mm2_target(self) -> str:
        """Target in MirrorMaker 2's stored offsets and topic names (`config.aliases`)."""
        return self.target.alias if self.target_cluster_alias is None else self.target_cluster_alias

    @property
    def transform_keys(self) -> dict[str, str]:
        """Keys of transforms and queries with their values, without prefix."""
        queries = {
            f"transform.{query.name}.{part}": text
            for query in self.transform_queries
            if query.sql
            for part, text in (("topics", ",".join(query.topics)), ("sql", query.sql))
        }
        return self.connect_transforms | queries

    @property
    def has_secrets(self) -> bool:
        """True if an order for this flow holds a secret value."""
        return self.source.has_secrets or self.target.has_secrets


class MetricsConfig(Model):
    """A running mirror's metrics: addresses, and clients that may ask."""

    listeners: tuple[str, ...] = ()
    """`http://host:port` or `https://host:port`; without a host: all addresses."""
    https: SslConfig = SslConfig()
    """TLS settings for the https listeners."""
    client_auth: str = "none"
    """Certificates from https clients: `none`, `requested` or `required`."""
    jaas_file: str = ""
    """File with the users that may ask; empty: all clients may.

    The file is the JAAS file for Connect's basic authentication.
    """
    hosts: tuple[str, ...] = ()
    """Names by which browsers may ask, besides those that only this network has."""


class RegistryConfig(Model):
    """Schema registry with Confluent's API, and its access (`docs/schemas.md`)."""

    url: str = ""
    """The registry's address; empty: the file has no address."""
    basic_auth_user_info: Secret = NO_SECRET
    """`user:password`."""
    bearer_auth_token: Secret = NO_SECRET
    ssl: SslConfig = SslConfig()
    providers: tuple[ProviderConfig, ...] = ()
    """Config providers that the secrets refer to.

    The process that asks the registry resolves the references.
    """


class SchemasConfig(Model):
    """Schema registries that clients at a flow's source and target use."""

    source: RegistryConfig = RegistryConfig()
    target: RegistryConfig = RegistryConfig()


class MirrorConfig(Model):
    """All flows in a file, to be run as a single Spark application."""

    path: str
    flows: tuple[FlowConfig, ...]
    spark: dict[str, str] = {}
    """The file's `spark.*` keys."""
    log_format: str = "text"
    """Log format for a process that runs this file: `text` or `json`."""
    warnings: tuple[str, ...] = ()
    """Lines about ignored, corrected or guessed entries, each with file and key."""
    metrics: MetricsConfig = MetricsConfig()
    beats: tuple[FlowConfig, ...] = ()
    """Pairs that copy nothing and still send heartbeats into their target.

    See `mm2.md` 1.4 and 1.6.
    """
    schemas: dict[str, SchemasConfig] = {}
    """Registries by flow name, apart from the flows.

    No order to Spark's workers needs the registries.
    """
