"""Settings for a flow's copying and its clusters, each declared once.

All other settings are in `duty_settings`.
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
from sparkmirror.values import (
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
    return Setting(
        name=name, kind=kind, place=KeyScope.CONNECTOR, doc=doc, origin=origin, model=FlowConfig, renamed=renamed
    )


def _fetch(name: str, kind: ValueKind, doc: str) -> Setting:
    return Setting(name=name, kind=kind, place=KeyScope.CONSUMER, doc=doc, origin="ConsumerConfig", model=FetchConfig)


def _produce(name: str, kind: ValueKind, doc: str) -> Setting:
    return Setting(name=name, kind=kind, place=KeyScope.PRODUCER, doc=doc, origin="ProducerConfig", model=ProduceConfig)


def _admin(name: str, kind: ValueKind, doc: str) -> Setting:
    return Setting(
        name=name, kind=kind, place=KeyScope.SOURCE_ADMIN, doc=doc, origin="AdminClientConfig", model=ClusterConfig
    )


def _ssl(name: str, kind: ValueKind, doc: str) -> Setting:
    field = name.removeprefix("ssl.").replace(".", "_")
    return Setting(
        name=name, kind=kind, place=KeyScope.SOURCE, doc=doc, origin="SslConfigs", model=SslConfig, renamed=field
    )


def _sasl(name: str, kind: ValueKind, doc: str) -> Setting:
    field = name.removeprefix("sasl.").replace(".", "_")
    return Setting(
        name=name, kind=kind, place=KeyScope.SOURCE, doc=doc, origin="SaslConfigs", model=SaslConfig, renamed=field
    )


def _loss(name: str, options: tuple[str, ...], doc: str) -> Setting:
    field = name.rpartition(".")[2]
    return Setting(
        name=name,
        kind=Choice(options),
        place=KeyScope.CONNECTOR,
        doc=doc,
        origin="docs/losses.md",
        model=LossPolicy,
        renamed=field,
    )


SIZE = Integer(0)
BUFFER = Integer(0, also=-1)

CLUSTERS_KEY = "clusters"
"""Key that is read before all others: it gives the aliases."""

ENABLED = Setting(name="enabled", kind=Flag(), place=KeyScope.PAIR, doc="true: this flow is run.", origin="1.6")
SOURCE_ALIAS = Setting(
    name="source.cluster.alias", kind=NAME_CHARACTERS, place=KeyScope.CONNECTOR, doc="See docs/topics.md.", origin="1.1"
)
TARGET_ALIAS = Setting(
    name="target.cluster.alias", kind=NAME_CHARACTERS, place=KeyScope.CONNECTOR, doc="See docs/topics.md.", origin="1.1"
)
SOURCE_SERVERS = Setting(
    name="bootstrap.servers", kind=Endpoints(), place=KeyScope.SOURCE, doc="The cluster's brokers.", origin="1.6"
)
TARGET_SERVERS = Setting(
    name="bootstrap.servers", kind=Endpoints(), place=KeyScope.TARGET, doc="The cluster's brokers.", origin="1.6"
)

SECURITY_PROTOCOL = Setting(
    name="security.protocol",
    kind=Choice(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), any_case=True),
    place=KeyScope.SOURCE,
    doc="Protocol of the connections to the cluster.",
    origin="1.1",
    model=ClusterConfig,
)

STORE_TYPE = Choice(("JKS", "PKCS12", "PEM"), any_case=True)

SSL_SETTINGS: tuple[Setting, ...] = (
    _ssl("ssl.truststore.location", Text(), "File of the trusted certificates."),
    _ssl("ssl.truststore.type", STORE_TYPE, "Format of the file of trusted certificates."),
    _ssl("ssl.truststore.password", Hidden(), "Password of the file of trusted certificates."),
    _ssl("ssl.truststore.certificates", Hidden(), "The trusted certificates themselves, PEM."),
    _ssl("ssl.keystore.location", Text(), "File with sparkmirror's own key and certificate."),
    _ssl("ssl.keystore.type", STORE_TYPE, "Format of the file with the key."),
    _ssl("ssl.keystore.password", Hidden(), "Password of the file with the key."),
    _ssl("ssl.keystore.key", Hidden(), "sparkmirror's key itself, PEM."),
    _ssl("ssl.keystore.certificate.chain", Hidden(), "sparkmirror's certificate itself and those of its issuers, PEM."),
    _ssl("ssl.key.password", Hidden(), "Password of the key in the file."),
    _ssl(
        "ssl.endpoint.identification.algorithm",
        Choice(("https", ""), any_case=True),
        "`https`: a broker's certificate must name the broker's host; empty: it need not.",
    ),
    _ssl("ssl.enabled.protocols", TlsVersions(), "Allowed versions of TLS."),
    _ssl("ssl.protocol", Choice(("TLSv1.3", "TLSv1.2", "TLS")), "Newest allowed version of TLS."),
)
"""TLS settings for either cluster; `for_place` chooses the cluster."""

ADMIN_SETTINGS: tuple[Setting, ...] = (
    _admin("client.id", Text(), "Client id as written, in the brokers' logs and quotas."),
    _admin("request.timeout.ms", Integer(1), "Timeout of connecting and of an answer; mostly 10 s at most."),
)
"""Settings for all requests to a cluster; `for_place` chooses the cluster."""


SASL_SETTINGS: tuple[Setting, ...] = (
    _sasl("sasl.mechanism", Choice(MECHANISMS), "Mechanism of the sign-in."),
    _sasl("sasl.jaas.config", Hidden(), "Login module and its options: user, password, client id, keytab, …"),
    _sasl("sasl.login.callback.handler.class", Choice(LOGIN_HANDLERS), "Class that gets the OAUTHBEARER token."),
    _sasl(
        "sasl.client.callback.handler.class",
        Choice(CLIENT_HANDLERS),
        "Class for AWS_MSK_IAM; accepted, and changes nothing.",
    ),
    _sasl("sasl.kerberos.service.name", Text(), "Beginning of the brokers' principals; also in the JAAS line."),
    _sasl(
        "sasl.oauthbearer.token.endpoint.url", Text(), "URL of the OIDC server, or of a file with a token: `file:///…`."
    ),
    _sasl(
        "sasl.oauthbearer.jwt.retriever.class",
        Choice(RETRIEVERS),
        "Tells whether the token endpoint URL is a server's or a file's, if its scheme does not.",
    ),
    _sasl("sasl.oauthbearer.scope", Text(), "Requested scope; also `scope` in the JAAS line."),
    _sasl(
        "sasl.oauthbearer.client.credentials.client.id",
        Text(),
        "Client id at the OIDC server; also `clientId` in the JAAS line.",
    ),
    _sasl(
        "sasl.oauthbearer.client.credentials.client.secret",
        Hidden(),
        "Client secret at the OIDC server; also `clientSecret` in the JAAS line.",
    ),
    _sasl("sasl.oauthbearer.header.urlencode", Boolean(), "true: client id and secret are URL-encoded in the header."),
    _sasl("sasl.login.connect.timeout.ms", Integer(1), "Timeout of connecting to the OIDC server."),
    _sasl("sasl.login.read.timeout.ms", Integer(1), "Timeout of the OIDC server's answer."),
)
"""Settings for signing in to either cluster; `for_place` chooses the cluster."""


POLICY_SETTINGS: tuple[Setting, ...] = (
    _flow("replication.policy.class", ClassName(POLICIES), "Class that names the topics at the target.", "1.1"),
    _flow(
        "replication.policy.separator", NAME_CHARACTERS, "Separator between alias and topic in a copy's name.", "1.1"
    ),
    _flow(
        "replication.policy.internal.topic.separator.enabled",
        Boolean(),
        "true: internal topics' names use the separator, too; false: always a dot.",
        "1.1",
        "internal_topic_separator_enabled",
    ),
)

ADMIN_TIMEOUT = _flow("admin.timeout.ms", Integer(1, LONG_MAX), "Timeout of an admin request; 15 s at most.", "1.1")

SESSION_TIMEOUT = Setting(
    name="session.timeout.ms",
    kind=Integer(1),
    place=KeyScope.WORKER,
    doc="Time after which a standby process replaces a dead one.",
    origin="1.6",
    model=FlowConfig,
    renamed="group_session_timeout_ms",
)

BEAT_SETTINGS: tuple[Setting, ...] = (*POLICY_SETTINGS, ADMIN_TIMEOUT, SESSION_TIMEOUT)
"""Settings for pairs that only send heartbeats, next to the heartbeats' own."""

FLOW_SETTINGS: tuple[Setting, ...] = (
    _flow("topics", Names(), "Regexes of topics to copy; one of them must match the whole name.", "1.2"),
    _flow("topics.exclude", Names(), "Regexes of topics not to copy, though `topics` matches.", "1.2"),
    _flow(
        "topic.filter.class",
        ClassName((DEFAULT_TOPIC_FILTER,)),
        "Class that applies `topics` and `topics.exclude`.",
        "1.2",
    ),
    *POLICY_SETTINGS,
    _flow("replication.factor", FACTOR, "Replication factor of topics created at the target.", "1.2"),
    _flow("tasks.max", Integer(1), "Most Spark tasks for this flow.", "1.1"),
    _flow("refresh.topics.enabled", Boolean(), "true: the mirror looks for new topics and partitions.", "1.2"),
    _flow("refresh.topics.interval.seconds", SECONDS, "Time between two looks for new topics.", "1.2"),
    _flow(
        "heartbeats.replication.enabled",
        Boolean(),
        "true: the source's heartbeats topics are copied whatever `topics` says.",
        "1.2",
    ),
    ADMIN_TIMEOUT,
    SESSION_TIMEOUT,
    Setting(
        name="sparkmirror.merge.tiny.batches",
        kind=Boolean(),
        place=KeyScope.CONNECTOR,
        doc="true: a backlog's batches of less than 4 KiB, and batches with gaps, are merged into larger ones.",
        origin="docs/running.md",
        model=FlowConfig,
        renamed="merge_tiny_batches",
    ),
    Setting(
        name="sparkmirror.turn",
        kind=Choice(("first", "second", "")),
        place=KeyScope.CONNECTOR,
        doc="Place among two opposite flows that take turns with each topic: `first` begins, `second` waits.",
        origin="docs/topics.md",
        model=FlowConfig,
        renamed="turn",
    ),
    Setting(
        name="sparkmirror.objective.seconds",
        kind=Integer(0),
        place=KeyScope.CONNECTOR,
        doc="Promised lag, which alerts compare with; 0: no promise.",
        origin="docs/metrics.md",
        model=FlowConfig,
        renamed="objective_seconds",
    ),
)

LOG_FORMAT = Setting(
    name="sparkmirror.log.format",
    kind=Choice(("text", "json")),
    place=KeyScope.ALONE,
    doc="Format of the log of `run`, `serve` and `verify`; `--log-format` wins.",
    origin="docs/logs.md",
    model=MirrorConfig,
    renamed="log_format",
)

LOSS_SETTINGS: tuple[Setting, ...] = (
    _loss("sparkmirror.on.expired", ("continue", "halt"), "Reaction if records expired before they were copied."),
    _loss(
        "sparkmirror.on.truncated",
        ("halt", "continue"),
        "Reaction if the source's log was cut below the copied offset.",
    ),
    _loss(
        "sparkmirror.on.recreated", ("restart", "halt"), "Reaction if the source topic was deleted and created again."
    ),
)
"""Settings for reactions to losses."""

FETCH_SETTINGS: tuple[Setting, ...] = (
    _fetch(
        "auto.offset.reset",
        Reset(("earliest", "latest")),
        "Start of a partition that was never copied. `latest` is its end when first seen, also if it appears later; "
        "a query's later partitions begin at their start.",
    ),
    _fetch("fetch.min.bytes", SIZE, "Bytes that the source gathers before it answers."),
    _fetch("fetch.max.bytes", SIZE, "Most bytes in one answer; 64 KiB to 4 MiB, on a long line 16 MiB."),
    _fetch("fetch.max.wait.ms", Integer(0), "Longest wait of the source for `fetch.min.bytes`."),
    _fetch(
        "max.partition.fetch.bytes",
        SIZE,
        "Most bytes of one partition in one answer; 4 MiB at most, but the default grows on a long line.",
    ),
    _fetch("receive.buffer.bytes", BUFFER, "Socket buffer; -1 is the operating system's own."),
    _fetch(
        "isolation.level",
        Choice(("read_uncommitted", "read_committed")),
        "`read_uncommitted`: records of aborted transactions are copied, too.",
    ),
    _fetch("client.id", Text(), "Client id, as written, of connections that fetch; by default as `A.admin.client.id`."),
    _fetch("request.timeout.ms", Integer(1), "Timeout of an answer, beyond `fetch.max.wait.ms`."),
    _fetch("client.rack", Text(), "Rack or zone of the mirror, to fetch from a follower nearby."),
)

PRODUCE_SETTINGS: tuple[Setting, ...] = (
    _produce("max.request.size", SIZE, "Most bytes in one request; a larger batch goes alone."),
    _produce(
        "max.in.flight.requests.per.connection",
        Integer(1),
        "Most unanswered requests; above five, five: brokers recognise repeats among five only.",
    ),
    _produce("send.buffer.bytes", BUFFER, "Socket buffer; -1 is the operating system's own."),
    _produce(
        "client.id", Text(), "Client id, as written, of connections that write; by default as `B.admin.client.id`."
    ),
    _produce("request.timeout.ms", Integer(1), "Timeout of an answer."),
    _produce(
        "compression.type",
        Choice(("none", "gzip", "snappy", "lz4", "zstd")),
        "Codec of every batch at the target; with `none` each batch keeps the source's codec.",
    ),
    _produce(
        "compression.gzip.level",
        Integer(1, 9, also=-1),
        "Level of `compression.type = gzip`; -1 is zlib's default, which is 6.",
    ),
    _produce(
        "compression.lz4.level",
        Integer(1, 17),
        "Level of `compression.type = lz4`; 9 is the fast compressor, as in Kafka, each other is high compression.",
    ),
    _produce(
        "compression.zstd.level",
        Integer(-131_072, 22),
        "Level of `compression.type = zstd`.",
    ),
)
