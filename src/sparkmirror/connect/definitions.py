"""The three connectors' settings: the `ConfigDef`s in Connect 4.3.1.

The order is as in Connect's own answers. `sparkmirror.config` documents a setting's effect in sparkmirror. Names,
types, importances, defaults, groups and checks were read from a Connect 4.3.1 worker's answers.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from sparkmirror.config import known_keys
from sparkmirror.config.duty_settings import (
    GROUP_SETTINGS,
    HEARTBEAT_SETTINGS,
    OFFSET_SYNC_SETTINGS,
    TOPIC_SYNC_SETTINGS,
)
from sparkmirror.config.model import DEFAULT_CONFIG_EXCLUDE
from sparkmirror.config.settings import FLOW_SETTINGS, SECURITY_PROTOCOL, SSL_SETTINGS


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One setting's definition.

    `default` is None for a setting without a default, which may be `required`.
    """

    name: str
    type: str
    importance: str
    default: str | None
    required: bool = False
    group: str | None = None
    order_in_group: int = -1
    width: str = "NONE"
    display_name: str = ""

    @property
    def secret(self) -> bool:
        """True if the value must not be shown."""
        return self.type == "PASSWORD"

    def as_json(self) -> dict[str, object]:
        """Return the setting as Connect's `ConfigKeyInfo`."""
        return {
            "name": self.name,
            "type": self.type,
            "required": self.required,
            "default_value": self.default,
            "importance": self.importance,
            "documentation": DOCUMENTATION.get(self.name, ""),
            "group": self.group,
            "order_in_group": self.order_in_group,
            "width": self.width,
            "display_name": self.display_name or self.name,
            "dependents": [],
        }


def _documentation() -> dict[str, str]:
    """Return each setting's effect in sparkmirror, or the reason for having none."""
    idle = {**known_keys.CONNECT, **known_keys.CONNECTOR, **known_keys.CONNECTOR_BASE}
    settings = (
        *(*FLOW_SETTINGS, *TOPIC_SYNC_SETTINGS, *GROUP_SETTINGS, *OFFSET_SYNC_SETTINGS, *HEARTBEAT_SETTINGS),
        *(SECURITY_PROTOCOL, *SSL_SETTINGS),
    )
    return {
        **{key.name: f"Has no effect: {key.reason}." for key in idle.values()},
        **{setting.name: setting.doc for setting in settings},
        "name": "The connector's name.",
        "connector.class": "Which of MirrorMaker 2's connectors it is.",
        "source.cluster.alias": "The source's alias.",
        "target.cluster.alias": "The target's alias.",
    }


DOCUMENTATION = _documentation()


def _table(text: str) -> tuple[Definition, ...]:
    """Parse settings from lines: name, type, importance, default; then display.

    The default is `= default`, `-` for none or `!` for required. The columns after `|`, if any, are group, order in the
    group, width and display name.
    """
    definitions = []
    for line in filter(None, map(str.strip, text.splitlines())):
        head, *shown = (part.strip() for part in line.split(" | "))
        name, kind, importance, default = (*head.split(" ", 3), "")[:4]
        definition = Definition(
            name=name,
            type=kind,
            importance=importance,
            default=default[1:].strip() if default[:1] == "=" else None,
            required=default == "!",
        )
        if shown:
            group, order, width, display_name = shown
            definition = dataclasses.replace(
                definition, group=group, order_in_group=int(order), width=width, display_name=display_name
            )
        definitions.append(definition)
    return tuple(definitions)


COMMON = _table(
    """
    name STRING HIGH ! | Common | 1 | MEDIUM | Connector name
    connector.class STRING HIGH ! | Common | 2 | LONG | Connector class
    connector.plugin.version STRING MEDIUM - | Common | 3 | MEDIUM | Connector version
    tasks.max INT HIGH = 1 | Common | 4 | SHORT | Tasks max
    tasks.max.enforce BOOLEAN LOW = true | Common | 5 | SHORT | Enforce tasks max
    key.converter CLASS LOW - | Common | 6 | SHORT | Key converter class
    key.converter.plugin.version STRING LOW - | Common | 7 | SHORT | Key converter version
    value.converter CLASS LOW - | Common | 8 | SHORT | Value converter class
    value.converter.plugin.version STRING LOW - | Common | 9 | SHORT | Value converter version
    header.converter CLASS LOW - | Common | 10 | SHORT | Header converter class
    header.converter.plugin.version STRING LOW - | Common | 11 | SHORT | Header converter version
    transforms LIST LOW = | Transforms | 12 | LONG | Transforms
    predicates LIST LOW = | Predicates | 13 | LONG | Predicates
    config.action.reload STRING LOW = restart | Common | 14 | MEDIUM | Reload Action
    errors.retry.timeout LONG MEDIUM = 0 | Error Handling | 1 | MEDIUM | Retry Timeout for Errors
    errors.retry.delay.max.ms LONG MEDIUM = 60000 | Error Handling | 2 | MEDIUM | {DELAY}
    errors.tolerance STRING MEDIUM = none | Error Handling | 3 | SHORT | Error Tolerance
    errors.log.enable BOOLEAN MEDIUM = false | Error Handling | 4 | SHORT | Log Errors
    errors.log.include.messages BOOLEAN MEDIUM = false | Error Handling | 5 | SHORT | Log Error Details
""".replace("{DELAY}", "Maximum Delay Between Retries for Errors")
)
"""Settings of every connector."""

SOURCE_CONNECTOR = _table("""
    topic.creation.groups LIST LOW = | Topic Creation | 1 | LONG | Topic Creation Groups
    exactly.once.support STRING MEDIUM = requested | Exactly Once Support | 2 | SHORT | Exactly once support
    transaction.boundary STRING MEDIUM = poll | Exactly Once Support | 3 | SHORT | Transaction Boundary
    transaction.boundary.interval.ms LONG LOW - | Exactly Once Support | 4 | SHORT | Transaction boundary interval
    offsets.storage.topic STRING LOW - | offsets.topic | 1 | LONG | Offsets topic
""")
"""Every source connector's settings; Connect checks these, and no connector does."""

MIRROR = _table("""
    enabled BOOLEAN LOW = true
    source.cluster.alias STRING HIGH !
    target.cluster.alias STRING HIGH = target
    admin.timeout.ms LONG LOW = 60000
    replication.policy.class CLASS LOW = org.apache.kafka.connect.mirror.DefaultReplicationPolicy
    replication.policy.separator STRING LOW = .
    replication.policy.internal.topic.separator.enabled BOOLEAN LOW = true
    forwarding.admin.class CLASS LOW = org.apache.kafka.clients.admin.ForwardingAdmin
    metric.reporters LIST LOW = org.apache.kafka.common.metrics.JmxReporter
    security.protocol STRING MEDIUM = PLAINTEXT
    config.providers LIST LOW =
    ssl.protocol STRING MEDIUM = TLSv1.3
    ssl.provider STRING MEDIUM -
    ssl.cipher.suites LIST LOW =
    ssl.enabled.protocols LIST MEDIUM = TLSv1.2,TLSv1.3
    ssl.keystore.type STRING MEDIUM = JKS
    ssl.keystore.location STRING HIGH -
    ssl.keystore.password PASSWORD HIGH -
    ssl.key.password PASSWORD HIGH -
    ssl.keystore.key PASSWORD HIGH -
    ssl.keystore.certificate.chain PASSWORD HIGH -
    ssl.truststore.certificates PASSWORD HIGH -
    ssl.truststore.type STRING MEDIUM = JKS
    ssl.truststore.location STRING HIGH -
    ssl.truststore.password PASSWORD HIGH -
    ssl.keymanager.algorithm STRING LOW = SunX509
    ssl.trustmanager.algorithm STRING LOW = PKIX
    ssl.endpoint.identification.algorithm STRING LOW = https
    ssl.secure.random.implementation STRING LOW -
    ssl.engine.factory.class CLASS LOW -
    sasl.kerberos.service.name STRING MEDIUM -
    sasl.kerberos.kinit.cmd STRING LOW = /usr/bin/kinit
    sasl.kerberos.ticket.renew.window.factor DOUBLE LOW = 0.8
    sasl.kerberos.ticket.renew.jitter DOUBLE LOW = 0.05
    sasl.kerberos.min.time.before.relogin LONG LOW = 60000
    sasl.login.refresh.window.factor DOUBLE LOW = 0.8
    sasl.login.refresh.window.jitter DOUBLE LOW = 0.05
    sasl.login.refresh.min.period.seconds SHORT LOW = 60
    sasl.login.refresh.buffer.seconds SHORT LOW = 300
    sasl.mechanism STRING MEDIUM = GSSAPI
    sasl.jaas.config PASSWORD MEDIUM -
    sasl.client.callback.handler.class CLASS MEDIUM -
    sasl.login.callback.handler.class CLASS MEDIUM -
    sasl.login.class CLASS MEDIUM -
    sasl.login.connect.timeout.ms INT LOW -
    sasl.login.read.timeout.ms INT LOW -
    sasl.login.retry.backoff.max.ms LONG LOW = 10000
    sasl.login.retry.backoff.ms LONG LOW = 100
    sasl.oauthbearer.jwt.retriever.class CLASS MEDIUM = org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
    sasl.oauthbearer.jwt.validator.class CLASS MEDIUM = org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
    sasl.oauthbearer.scope STRING MEDIUM -
    sasl.oauthbearer.client.credentials.client.id STRING MEDIUM -
    sasl.oauthbearer.client.credentials.client.secret PASSWORD MEDIUM -
    sasl.oauthbearer.assertion.algorithm STRING MEDIUM = RS256
    sasl.oauthbearer.assertion.claim.aud STRING MEDIUM -
    sasl.oauthbearer.assertion.claim.exp.seconds INT LOW = 300
    sasl.oauthbearer.assertion.claim.iss STRING MEDIUM -
    sasl.oauthbearer.assertion.claim.jti.include BOOLEAN MEDIUM = false
    sasl.oauthbearer.assertion.claim.nbf.seconds INT LOW = 60
    sasl.oauthbearer.assertion.claim.sub STRING MEDIUM -
    sasl.oauthbearer.assertion.file STRING MEDIUM -
    sasl.oauthbearer.assertion.private.key.file STRING MEDIUM -
    sasl.oauthbearer.assertion.private.key.passphrase PASSWORD MEDIUM -
    sasl.oauthbearer.assertion.template.file STRING MEDIUM -
    sasl.oauthbearer.scope.claim.name STRING LOW = scope
    sasl.oauthbearer.sub.claim.name STRING LOW = sub
    sasl.oauthbearer.token.endpoint.url STRING MEDIUM -
    sasl.oauthbearer.jwks.endpoint.url STRING MEDIUM -
    sasl.oauthbearer.jwks.endpoint.refresh.ms LONG LOW = 3600000
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG LOW = 10000
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG LOW = 100
    sasl.oauthbearer.clock.skew.seconds INT LOW = 30
    sasl.oauthbearer.expected.audience LIST HIGH =
    sasl.oauthbearer.expected.issuer STRING HIGH -
    sasl.oauthbearer.header.urlencode BOOLEAN LOW = false
""")
"""Settings that MirrorMaker 2's three connectors share."""

OWN = {
    "MirrorSourceConnector": _table(
        r"""
    topics LIST HIGH = .*
    topics.exclude LIST HIGH = mm2.*\.internal,.*\.replica,__.*
    config.properties.exclude LIST HIGH = {DEFAULT_CONFIG_EXCLUDE}
    topic.filter.class CLASS LOW = org.apache.kafka.connect.mirror.DefaultTopicFilter
    config.property.filter.class CLASS LOW = org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter
    consumer.poll.timeout.ms LONG LOW = 1000
    refresh.topics.enabled BOOLEAN LOW = true
    refresh.topics.interval.seconds LONG LOW = 600
    sync.topic.configs.enabled BOOLEAN LOW = true
    sync.topic.configs.interval.seconds LONG LOW = 600
    sync.topic.acls.enabled BOOLEAN LOW = true
    sync.topic.acls.interval.seconds LONG LOW = 600
    replication.factor INT LOW = 2
    offset-syncs.topic.replication.factor SHORT LOW = 3
    offset.lag.max LONG LOW = 100
    offset-syncs.topic.location STRING LOW = source
    emit.offset-syncs.enabled BOOLEAN LOW = true
    heartbeats.replication.enabled BOOLEAN LOW = true
    metric.names.formats LIST LOW = legacy
""".replace("{DEFAULT_CONFIG_EXCLUDE}", ",".join(DEFAULT_CONFIG_EXCLUDE))
    ),
    "MirrorCheckpointConnector": _table("""
    consumer.poll.timeout.ms LONG LOW = 1000
    groups LIST HIGH = .*
    groups.exclude LIST HIGH = console-consumer-.*,connect-.*,__.*
    group.filter.class CLASS LOW = org.apache.kafka.connect.mirror.DefaultGroupFilter
    refresh.groups.enabled BOOLEAN LOW = true
    refresh.groups.interval.seconds LONG LOW = 600
    emit.checkpoints.enabled BOOLEAN LOW = true
    emit.checkpoints.interval.seconds LONG LOW = 60
    sync.group.offsets.enabled BOOLEAN LOW = false
    sync.group.offsets.interval.seconds LONG LOW = 60
    checkpoints.topic.replication.factor SHORT LOW = 3
    offset-syncs.topic.location STRING LOW = source
    topic.filter.class CLASS LOW = org.apache.kafka.connect.mirror.DefaultTopicFilter
    metric.names.formats LIST LOW = legacy
"""),
    "MirrorHeartbeatConnector": _table("""
    emit.heartbeats.enabled BOOLEAN LOW = true
    emit.heartbeats.interval.seconds LONG LOW = 1
    heartbeats.topic.replication.factor SHORT LOW = 3
"""),
}
"""A single connector's settings, by class name without package."""

SECRETS = tuple(definition.name for definition in (*COMMON, *SOURCE_CONNECTOR, *MIRROR) if definition.secret)
"""Settings with secret values, by name without a prefix such as `producer.`."""
