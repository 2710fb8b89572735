"""The typed model that every configuration format is read into.

Names are Kafka's keys with dots and dashes as underscores; units are in Kafka's names.
Defaults: `mm2.md` sections 1.1 and 1.2, and Kafka's own consumer and producer defaults.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, SecretStr, SerializationInfo

from sparkmirror.config.jaas import ELSEWHERE, jaas_has_secrets

REVEAL = {"secrets": "revealed"}
"""The serialization context in which secrets are written out; in every other they are stars."""

DEFAULT_POLICY = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
IDENTITY_POLICY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"

POLICIES = (
    DEFAULT_POLICY,
    IDENTITY_POLICY,
    "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
    "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
)
"""The Java classes that `replication.policy.class` may name: MirrorMaker 2's, and two that keep topics' names."""

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
"""Of `config.properties.exclude` (`mm2.md` 1.2): regular expressions that match a whole name."""


class Model(BaseModel):
    """A frozen value; an unknown field is a bug of ours, not of the user's."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _write_secret(secret: SecretStr, info: SerializationInfo) -> str:
    return secret.get_secret_value() if info.context == REVEAL else str(secret)


Secret = Annotated[SecretStr, PlainSerializer(_write_secret, when_used="json")]
"""Text that shows as stars wherever it is printed or dumped, but in the context `REVEAL`."""

NO_SECRET = SecretStr("")

REFERENCE = re.compile(r"\$\{([^}:]*):(([^}:]*):)?([^}]*)\}")
"""`${provider:path:name}`, the path being optional: as Kafka's `ConfigTransformer` finds them."""


class SslConfig(Model):
    """How TLS is spoken with one cluster: Kafka's `ssl.` settings, with the defaults of Kafka 4.3.1."""

    truststore_location: str = ""
    """A file of the certificates that are trusted; without one the system's own are."""
    truststore_type: str = "JKS"
    truststore_password: Secret = NO_SECRET
    truststore_certificates: str = ""
    """The certificates themselves, PEM."""
    keystore_location: str = ""
    """A file with our own key and certificate, for brokers that ask for one."""
    keystore_type: str = "JKS"
    keystore_password: Secret = NO_SECRET
    keystore_key: Secret = NO_SECRET
    """The key itself, PEM."""
    keystore_certificate_chain: str = ""
    key_password: Secret = NO_SECRET
    endpoint_identification_algorithm: str = "https"
    """`https`: the certificate must name the broker's host; nothing: any will do."""
    enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    protocol: str = "TLSv1.3"
    """The newest that is offered, whatever `enabled_protocols` says."""


class SaslConfig(Model):
    """How we sign in to one cluster: Kafka's `sasl.` settings, with the defaults of Kafka 4.3.1 (`config.login`)."""

    mechanism: str = "GSSAPI"
    jaas_config: Secret = NO_SECRET
    """One login module with its options, as Java writes them (`config.jaas`)."""
    login_callback_handler_class: str = ""
    client_callback_handler_class: str = ""
    kerberos_service_name: str = ""
    """Empty: as the JAAS line says."""
    oauthbearer_token_endpoint_url: str = ""
    """Of the OIDC server, or a file with a token: `file:///…`."""
    oauthbearer_jwt_retriever_class: str = ""
    """Empty: as the URL says."""
    oauthbearer_scope: str = ""
    oauthbearer_client_credentials_client_id: str = ""
    oauthbearer_client_credentials_client_secret: Secret = NO_SECRET
    oauthbearer_header_urlencode: bool = False
    login_connect_timeout_ms: int = 10_000
    login_read_timeout_ms: int = 10_000
    """Of the OIDC server; Kafka waits without end."""


class ProviderConfig(Model):
    """One of the file's config providers; what it is: `config/providers.py`."""

    name: str
    kind: str
    """The Java class, without its package."""
    allowlist_pattern: str = ".*"
    """Of environment variables: whole names that may be read."""
    allowed_paths: tuple[str, ...] | None = None
    """Files and directories that may be read; None: all."""


class ClusterConfig(Model):
    """One cluster as a flow sees it: where it is and how its clients connect."""

    alias: str
    bootstrap_servers: tuple[str, ...]
    """`host:port`, at least one."""
    security_protocol: str = "PLAINTEXT"
    """`PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`."""
    ssl: SslConfig = SslConfig()
    sasl: SaslConfig = SaslConfig()
    client_id: str = ""
    """What client ids begin with; empty: nothing."""
    request_timeout_ms: int = 30_000
    providers: tuple[ProviderConfig, ...] = ()
    """Where secrets of `ssl` and `sasl` are references to: they are resolved where a connection is made."""
    copier: ClusterConfig | None = None
    """How the source's consumer or the target's producer connects, if otherwise than the rest."""

    @property
    def for_copying(self) -> ClusterConfig:
        """How this cluster is spoken with by what fetches from it or produces to it."""
        return self.copier or self

    @property
    def encrypted(self) -> bool:
        """Whether TLS is spoken with this cluster."""
        return self.security_protocol.endswith("SSL")

    @property
    def signs_in(self) -> bool:
        """Whether this cluster is signed in to by SASL."""
        return self.security_protocol.startswith("SASL")

    @property
    def has_secrets(self) -> bool:
        """Whether anything in here must not be read by others; a mere reference may be."""
        names = {provider.name for provider in self.providers}

        def without_references(text: str, instead: str) -> str:
            return REFERENCE.sub(lambda found: instead if found[1] in names else found[0], text)

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
    """What a pump asks the source for: the consumer's settings that matter to it."""

    auto_offset_reset: str = "earliest"
    """`earliest` or `latest`: where a partition starts that this flow has never copied."""
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1_048_576
    receive_buffer_bytes: int = -1
    """-1: the operating system's own, which grows with the way; Kafka's default of 64 KiB would hold it down."""
    isolation_level: str = "read_uncommitted"
    client_id: str = ""
    """Empty: the cluster's."""
    request_timeout_ms: int = 30_000
    client_rack: str = ""


class ProduceConfig(Model):
    """How a pump writes to the target: the producer's settings that matter to it."""

    max_request_size: int = 1_048_576
    """A request is closed before it grows over this; a single larger batch still goes, alone."""
    max_in_flight_requests_per_connection: int = Field(default=5, ge=1)
    """Of more than five, five are used: brokers recognise repeats among the last five batches only."""
    send_buffer_bytes: int = -1
    """-1: the operating system's own."""
    client_id: str = ""
    """Empty: the cluster's."""
    request_timeout_ms: int = 30_000
    compression_type: str = "none"
    """`none`: every batch keeps the codec it has at the source."""


class LossPolicy(Model):
    """What to do about a loss; why these are the defaults: `docs/losses.md`."""

    expired: Literal["halt", "continue"] = "continue"
    truncated: Literal["halt", "continue"] = "halt"
    recreated: Literal["halt", "restart"] = "restart"


class TopicSyncConfig(Model):
    """How remote topics are kept like the source's: configuration and ACLs (`mm2.md` 1.2, 3.2)."""

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
        """Whether ACLs of any kind are copied."""
        return self.sync_topic_acls_enabled or self.sync_group_acls_enabled or self.sync_transactional_id_acls_enabled


class GroupConfig(Model):
    """Which consumer groups' positions are translated, and what is done with them (`mm2.md` 1.3)."""

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
    """MirrorMaker 2's offset syncs (`mm2.md` 1.2, 3.5)."""

    emit_offset_syncs_enabled: bool = True
    offset_syncs_topic_location: str = "source"
    offset_syncs_topic_replication_factor: int = 3
    offset_lag_max: int = 100


class HeartbeatConfig(Model):
    """Heartbeats into the target (`mm2.md` 1.4)."""

    emit_heartbeats_enabled: bool = True
    emit_heartbeats_interval_seconds: int = 1
    heartbeats_topic_replication_factor: int = 3


class ConnectStorage(Model):
    """Where MirrorMaker 2's Connect workers keep the offsets of this flow (`mm2.md` 1.6, 2.2)."""

    offset_storage_topic: str = ""
    """Empty: `mm2-offsets.<source>.internal`."""
    offset_storage_partitions: int = 25
    offset_storage_replication_factor: int = 3
    offset_flush_interval_ms: int = 60_000
    connector: str = "MirrorSourceConnector"
    """What the source connector is called in there: so by the dedicated driver, otherwise in Connect."""


class LegacyConfig(Model):
    """What a flow has of MirrorMaker 1 (`docs/legacy.md`)."""

    group_id: str
    """The consumer group at the source under which it committed what it had copied."""
    offset_commit_interval_ms: int = 60_000
    abort_on_send_failure: bool = True
    """Whether a partition that can't be copied ends the run."""


class FlowConfig(Model):
    """One ordered pair of clusters, `source->target`, and what goes along it."""

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
    """Of topics that we create at the target; -1 is the broker's default."""
    refresh_topics_enabled: bool = True
    refresh_topics_interval_seconds: int = 600
    admin_timeout_ms: int = 60_000
    group_session_timeout_ms: int = 10_000
    """Of the lease: how long after its death a process is replaced (`mm2.md` 1.6, session.timeout.ms)."""
    fetch: FetchConfig = FetchConfig()
    produce: ProduceConfig = ProduceConfig()
    loss: LossPolicy = LossPolicy()
    topic_sync: TopicSyncConfig = TopicSyncConfig()
    group: GroupConfig = GroupConfig()
    offset_sync: OffsetSyncConfig = OffsetSyncConfig()
    heartbeat: HeartbeatConfig = HeartbeatConfig()
    connect: ConnectStorage = ConnectStorage()
    merge_tiny_batches: bool = True
    """Under a backlog, batches of less than 4 KiB become larger ones."""
    objective_seconds: int = 0
    """The lag that people were promised, which metrics, page and doctor compare with; 0: none was."""
    copies: bool = True
    """Whether records are copied. Without, only groups, heartbeats and what else concerns the target go on."""
    source_cluster_alias: str | None = None
    """What MirrorMaker 2 calls the source where it stores something, if it isn't the alias: nothing."""
    target_cluster_alias: str | None = None
    """The same of the target."""
    legacy: LegacyConfig | None = None
    """None: the flow is one of MirrorMaker 2's kind."""
    originals: dict[str, str] = {}
    """For filters and policies in Python: the keys that MirrorMaker 2 would give to its own, without secrets."""

    @property
    def name(self) -> str:
        """`source->target`, as Kafka writes it."""
        return f"{self.source.alias}->{self.target.alias}"

    @property
    def mm2_source(self) -> str:
        """The source in MirrorMaker 2's stored offsets and in its topics' names (`config.aliases`)."""
        return self.source.alias if self.source_cluster_alias is None else self.source_cluster_alias

    @property
    def mm2_target(self) -> str:
        """The target in the same."""
        return self.target.alias if self.target_cluster_alias is None else self.target_cluster_alias

    @property
    def has_secrets(self) -> bool:
        """Whether an order for this flow holds anything that must not be read by others."""
        return self.source.has_secrets or self.target.has_secrets


class MetricsConfig(Model):
    """Where metrics are answered while the mirror runs, and to whom."""

    listeners: tuple[str, ...] = ()
    """`http://host:port` or `https://host:port`; without a host on all addresses."""
    https: SslConfig = SslConfig()
    """Of the https listeners."""
    client_auth: str = "none"
    """`none`, `requested` or `required`: whether clients of https show a certificate."""
    jaas_file: str = ""
    """Names the users that may ask, as for Connect's basic authentication; empty: all may."""


class RegistryConfig(Model):
    """A schema registry with Confluent's API, and how it is asked (`docs/schemas.md`)."""

    url: str = ""
    """Empty: nobody said where it is."""
    basic_auth_user_info: Secret = NO_SECRET
    """`user:password`."""
    bearer_auth_token: Secret = NO_SECRET
    ssl: SslConfig = SslConfig()
    providers: tuple[ProviderConfig, ...] = ()
    """Where secrets are references to: they are resolved when it is asked."""


class SchemasConfig(Model):
    """The schema registries that clients of a flow's source and target use."""

    source: RegistryConfig = RegistryConfig()
    target: RegistryConfig = RegistryConfig()


class MirrorConfig(Model):
    """All flows of one file, to be run as one Spark application."""

    path: str
    flows: tuple[FlowConfig, ...]
    spark: dict[str, str] = {}
    """`spark.*` keys of the file."""
    log_format: str = "text"
    """Or `json`: how a process logs that runs it."""
    warnings: tuple[str, ...] = ()
    """One line each: what was ignored, corrected or guessed, naming file and key."""
    metrics: MetricsConfig = MetricsConfig()
    beats: tuple[FlowConfig, ...] = ()
    """Pairs that copy nothing and still send heartbeats into their target (`mm2.md` 1.4, 1.6)."""
    schemas: dict[str, SchemasConfig] = {}
    """By flow: no order to Spark's workers needs them."""
