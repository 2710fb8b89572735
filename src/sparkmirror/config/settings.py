"""Settings of a flow's copying and of its clusters, each declared once.

All other settings are in `control_settings`.
"""

from __future__ import annotations

from sparkmirror.config.login import CLIENT_HANDLERS, LOGIN_HANDLERS, MECHANISMS
from sparkmirror.config.model import (
    DEFAULT_TOPIC_FILTER,
    POLICIES,
    ClusterConfig,
    FetchConfig,
    FlowConfig,
    LossPolicy,
    MirrorConfig,
    ProduceConfig,
    SaslConfig,
    SslConfig,
)
from sparkmirror.config.oauth_login import RETRIEVERS
from sparkmirror.config.setting import KeyScope, Setting
from sparkmirror.config.values import (
    FACTOR,
    LONG_MAX,
    NAME_CHARACTERS,
    SECONDS,
    Boolean,
    Choice,
    ClassName,
    Endpoints,
    Flag,
    Hidden,
    Integer,
    Names,
    Reset,
    Text,
    TlsVersions,
    ValueKind,
)


def _flow(name: str, kind: ValueKind, doc: str, origin: str, renamed: str = "") -> Setting:
    return Setting(name, kind, KeyScope.CONNECTOR, doc, origin, FlowConfig, renamed)


def _fetch(name: str, kind: ValueKind, doc: str) -> Setting:
    return Setting(name, kind, KeyScope.CONSUMER, doc, "ConsumerConfig", FetchConfig)


def _produce(name: str, kind: ValueKind, doc: str) -> Setting:
    return Setting(name, kind, KeyScope.PRODUCER, doc, "ProducerConfig", ProduceConfig)


def _admin(name: str, kind: ValueKind, doc: str) -> Setting:
    return Setting(name, kind, KeyScope.SOURCE_ADMIN, doc, "AdminClientConfig", ClusterConfig)


def _ssl(name: str, kind: ValueKind, doc: str) -> Setting:
    field = name.removeprefix("ssl.").replace(".", "_")
    return Setting(name, kind, KeyScope.SOURCE, doc, "SslConfigs", SslConfig, field)


def _sasl(name: str, kind: ValueKind, doc: str) -> Setting:
    field = name.removeprefix("sasl.").replace(".", "_")
    return Setting(name, kind, KeyScope.SOURCE, doc, "SaslConfigs", SaslConfig, field)


def _loss(name: str, options: tuple[str, ...], doc: str) -> Setting:
    field = name.rpartition(".")[2]
    return Setting(name, Choice(options), KeyScope.CONNECTOR, doc, "docs/losses.md", LossPolicy, field)


SIZE = Integer(0)
BUFFER = Integer(0, also=-1)

CLUSTERS_KEY = "clusters"
"""Key that is read before all others: it gives the aliases."""

ENABLED = Setting("enabled", Flag(), KeyScope.PAIR, "Whether this flow is run.", "1.6")
SOURCE_ALIAS = Setting("source.cluster.alias", NAME_CHARACTERS, KeyScope.CONNECTOR, "See docs/topics.md.", "1.1")
TARGET_ALIAS = Setting("target.cluster.alias", NAME_CHARACTERS, KeyScope.CONNECTOR, "See docs/topics.md.", "1.1")
SOURCE_SERVERS = Setting("bootstrap.servers", Endpoints(), KeyScope.SOURCE, "Its brokers.", "1.6")
TARGET_SERVERS = Setting("bootstrap.servers", Endpoints(), KeyScope.TARGET, "Its brokers.", "1.6")

SECURITY_PROTOCOL = Setting(
    "security.protocol",
    Choice(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), any_case=True),
    KeyScope.SOURCE,
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
"""TLS settings of either cluster; `for_place` chooses the cluster."""

ADMIN_SETTINGS: tuple[Setting, ...] = (
    _admin("client.id", Text(), "What our clients' ids begin with, in the brokers' logs and quotas."),
    _admin("request.timeout.ms", Integer(1), "How long an answer, or connecting, may take; mostly 10 s at most."),
)
"""Settings of all requests to a cluster; `for_place` chooses the cluster."""


SASL_SETTINGS: tuple[Setting, ...] = (
    _sasl("sasl.mechanism", Choice(MECHANISMS), "How we sign in."),
    _sasl("sasl.jaas.config", Hidden(), "Login module and its options: user, password, client id, keytab, …"),
    _sasl("sasl.login.callback.handler.class", Choice(LOGIN_HANDLERS), "Where an OAUTHBEARER token comes from."),
    _sasl("sasl.client.callback.handler.class", Choice(CLIENT_HANDLERS), "Of AWS_MSK_IAM; says nothing new here."),
    _sasl("sasl.kerberos.service.name", Text(), "What brokers' principals begin with; also in the JAAS line."),
    _sasl("sasl.oauthbearer.token.endpoint.url", Text(), "The OIDC server's, or a file with a token: `file:///…`."),
    _sasl(
        "sasl.oauthbearer.jwt.retriever.class",
        Choice(RETRIEVERS),
        "Whether that URL is a server's or a file's, if it doesn't say itself.",
    ),
    _sasl("sasl.oauthbearer.scope", Text(), "The scope that is asked for; also `scope` in the JAAS line."),
    _sasl("sasl.oauthbearer.client.credentials.client.id", Text(), "Also `clientId` in the JAAS line."),
    _sasl("sasl.oauthbearer.client.credentials.client.secret", Hidden(), "Also `clientSecret` in the JAAS line."),
    _sasl("sasl.oauthbearer.header.urlencode", Boolean(), "Whether id and secret are URL-encoded in the header."),
    _sasl("sasl.login.connect.timeout.ms", Integer(1), "How long connecting to the OIDC server may take."),
    _sasl("sasl.login.read.timeout.ms", Integer(1), "How long its answer may take."),
)
"""Settings of the sign-in to either cluster; `for_place` chooses the cluster."""


POLICY_SETTINGS: tuple[Setting, ...] = (
    _flow("replication.policy.class", ClassName(POLICIES), "How topics are named at the target.", "1.1"),
    _flow("replication.policy.separator", NAME_CHARACTERS, "Between alias and topic.", "1.1"),
    _flow(
        "replication.policy.internal.topic.separator.enabled",
        Boolean(),
        "Whether internal topics' names use the separator, too, or always a dot.",
        "1.1",
        "internal_topic_separator_enabled",
    ),
)

ADMIN_TIMEOUT = _flow(
    "admin.timeout.ms", Integer(1, LONG_MAX), "How long an admin request may take; 15 s at most.", "1.1"
)

SESSION_TIMEOUT = Setting(
    "session.timeout.ms",
    Integer(1),
    KeyScope.WORKER,
    "How long after its death a process is replaced.",
    "1.6",
    FlowConfig,
    "group_session_timeout_ms",
)

BEAT_SETTINGS: tuple[Setting, ...] = (*POLICY_SETTINGS, ADMIN_TIMEOUT, SESSION_TIMEOUT)
"""Settings of pairs that only send heartbeats, beside the heartbeats' own."""

FLOW_SETTINGS: tuple[Setting, ...] = (
    _flow("topics", Names(), "Regexes of topics to copy; a whole name must match one.", "1.2"),
    _flow("topics.exclude", Names(), "Regexes of topics not to copy, though `topics` matches.", "1.2"),
    _flow("topic.filter.class", ClassName((DEFAULT_TOPIC_FILTER,)), "What decides by `topics`.", "1.2"),
    *POLICY_SETTINGS,
    _flow("replication.factor", FACTOR, "Of topics created at the target.", "1.2"),
    _flow("tasks.max", Integer(1), "Most tasks that this flow is spread over.", "1.1"),
    _flow("refresh.topics.enabled", Boolean(), "Whether new topics and partitions are looked for.", "1.2"),
    _flow("refresh.topics.interval.seconds", SECONDS, "How often they are looked for.", "1.2"),
    _flow("heartbeats.replication.enabled", Boolean(), "Whether heartbeats are always copied.", "1.2"),
    ADMIN_TIMEOUT,
    SESSION_TIMEOUT,
    Setting(
        "sparkmirror.merge.tiny.batches",
        Boolean(),
        KeyScope.CONNECTOR,
        "Whether a backlog's batches of less than 4 KiB are made larger ones.",
        "docs/running.md",
        FlowConfig,
        "merge_tiny_batches",
    ),
    Setting(
        "sparkmirror.objective.seconds",
        Integer(0),
        KeyScope.CONNECTOR,
        "The lag that people were promised, which alerts compare with; 0: none was.",
        "docs/metrics.md",
        FlowConfig,
        "objective_seconds",
    ),
)

LOG_FORMAT = Setting(
    "sparkmirror.log.format",
    Choice(("text", "json")),
    KeyScope.ALONE,
    "How `run` and `serve` log, unless `--log-format` says it.",
    "docs/logs.md",
    MirrorConfig,
    "log_format",
)

LOSS_SETTINGS: tuple[Setting, ...] = (
    _loss("sparkmirror.on.expired", ("continue", "halt"), "Records expired before they were copied."),
    _loss("sparkmirror.on.truncated", ("halt", "continue"), "The source's log was cut below what was copied."),
    _loss("sparkmirror.on.recreated", ("restart", "halt"), "The source topic was deleted and created again."),
)
"""Settings of the reactions to losses."""

FETCH_SETTINGS: tuple[Setting, ...] = (
    _fetch("auto.offset.reset", Reset(("earliest", "latest")), "Where a partition starts that was never copied."),
    _fetch("fetch.min.bytes", SIZE, "What the source gathers before it answers."),
    _fetch("fetch.max.bytes", SIZE, "Most bytes in one answer; 4 MB at most."),
    _fetch("fetch.max.wait.ms", Integer(0), "How long the source waits for the minimum."),
    _fetch("max.partition.fetch.bytes", SIZE, "Most bytes of one partition in one answer; 4 MB at most."),
    _fetch("receive.buffer.bytes", BUFFER, "Socket buffer; -1 is the operating system's own."),
    _fetch("isolation.level", Choice(("read_uncommitted", "read_committed")), "Whether aborted data counts."),
    _fetch("client.id", Text(), "What the ids of clients that fetch begin with; else as `A.admin.client.id` says."),
    _fetch("request.timeout.ms", Integer(1), "How long an answer may take, beyond `fetch.max.wait.ms`."),
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
    _produce("client.id", Text(), "What the ids of clients that write begin with; else as `B.admin.client.id` says."),
    _produce("request.timeout.ms", Integer(1), "How long an answer may take."),
    _produce(
        "compression.type",
        Choice(("none", "gzip", "snappy", "lz4", "zstd")),
        "The codec of every batch at the target; with `none` each keeps the source's.",
    ),
)
