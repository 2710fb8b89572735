"""A client's settings, by the keys of Kafka's `MirrorClientConfig` (`mm2.md` 1.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkmirror.config import DEFAULT_POLICY, ClusterConfig
from sparkmirror.config.login import LoginError, read_login
from sparkmirror.config.model import SaslConfig, SslConfig
from sparkmirror.config.setting import Setting
from sparkmirror.config.settings import SASL_SETTINGS, SECURITY_PROTOCOL, SOURCE_SERVERS, SSL_SETTINGS
from sparkmirror.config.values import Boolean, Value
from sparkmirror.errors import ConfigError
from sparkmirror.policy import ReplicationPolicy, policy_for

WHERE = "settings of MirrorClient"
ADMIN, CONSUMER = "admin.", "consumer."
"""Before a key: it counts for the client that lists topics, or the one that reads checkpoints, only."""

_POLICY, _SEPARATOR = "replication.policy.class", "replication.policy.separator"
_INTERNAL = "replication.policy.internal.topic.separator.enabled"


def cluster_config(settings: Mapping[str, str], role: str) -> ClusterConfig:
    """How the cluster is spoken with by `ADMIN` or `CONSUMER`; raises `ConfigError`."""
    given = _given((SOURCE_SERVERS, SECURITY_PROTOCOL), settings, role)
    servers = given.get(SOURCE_SERVERS.field)
    if not isinstance(servers, tuple):
        raise ConfigError("is missing: write host:9092", where=WHERE, key=SOURCE_SERVERS.name)
    cluster = ClusterConfig.model_validate({"alias": "asked by MirrorClient", **given})
    ssl = SslConfig.model_validate(_given(SSL_SETTINGS, settings, role) if cluster.encrypted else {})
    sasl = SaslConfig.model_validate(_given(SASL_SETTINGS, settings, role) if cluster.signs_in else {})
    if cluster.signs_in:
        try:
            read_login(sasl)
        except LoginError as error:
            raise ConfigError(error.reason, where=WHERE, key=f"sasl.{error.setting}") from None
    return cluster.model_copy(update={"ssl": ssl, "sasl": sasl})


def replication_policy(settings: Mapping[str, str]) -> ReplicationPolicy:
    """The policy that the mirrors into this cluster use; raises `ConfigError`.

    The identity policy takes topics to come from `source.cluster.alias`.
    """
    try:
        return policy_for(
            settings.get(_POLICY, DEFAULT_POLICY).strip(),
            source_alias=settings.get("source.cluster.alias", ""),
            separator=settings.get(_SEPARATOR, "."),
            internal_separator_enabled=Boolean().parse(settings.get(_INTERNAL, "true")),
        )
    except ValueError as error:
        raise ConfigError(str(error), where=WHERE, key="replication.policy") from None


def _given(settings: Sequence[Setting], mapping: Mapping[str, str], role: str) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for setting in settings:
        key = f"{role}{setting.name}" if f"{role}{setting.name}" in mapping else setting.name
        if key in mapping:
            try:
                found[setting.field] = setting.kind.parse(str(mapping[key]))
            except ValueError as error:
                raise ConfigError(str(error), where=WHERE, key=key) from None
    return found
