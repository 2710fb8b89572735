"""`MirrorClient`'s settings, by the keys in Kafka's `MirrorClientConfig`.

`mm2.md` 1.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkmirror.config import DEFAULT_POLICY, ClusterConfig
from sparkmirror.config.credentials import LoginError
from sparkmirror.config.declared_providers import declared_providers
from sparkmirror.config.entries import Entry
from sparkmirror.config.login import read_login
from sparkmirror.config.model import ProviderConfig, SaslConfig, SslConfig
from sparkmirror.config.originals import is_secret
from sparkmirror.config.providers import resolve, with_secrets
from sparkmirror.config.setting import Setting
from sparkmirror.config.settings import SASL_SETTINGS, SECURITY_PROTOCOL, SOURCE_SERVERS, SSL_SETTINGS
from sparkmirror.errors import ConfigError
from sparkmirror.policy import ReplicationPolicy, policy_for
from sparkmirror.values import Boolean, Value

WHERE = "settings of MirrorClient"
ADMIN, CONSUMER = "admin.", "consumer."
"""Key prefixes for a single client.

`admin.` keys count for the client that lists topics, `consumer.` keys for the client that reads checkpoints.
"""

_POLICY, _SEPARATOR = "replication.policy.class", "replication.policy.separator"
_INTERNAL = "replication.policy.internal.topic.separator.enabled"


def cluster_config(settings: Mapping[str, str], role: str) -> ClusterConfig:
    """Return the cluster's configuration for the client `ADMIN` or `CONSUMER`.

    Raises `ConfigError`. Config providers' secrets stay references, which are resolved for each connection.
    """
    providers = declared_providers(Entry(key=key, value=str(value), where=WHERE) for key, value in settings.items())

    def given(wanted: Sequence[Setting]) -> dict[str, Value]:
        return _given(wanted, settings, role, providers)

    fields = given((SOURCE_SERVERS, SECURITY_PROTOCOL))
    servers = fields.get(SOURCE_SERVERS.field)
    if not isinstance(servers, tuple):
        raise ConfigError("is missing: write host:9092", origin=WHERE, key=SOURCE_SERVERS.name)
    cluster = ClusterConfig.model_validate({"alias": "asked by MirrorClient", **fields})
    ssl = SslConfig.model_validate(given(SSL_SETTINGS) if cluster.encrypted else {})
    sasl = SaslConfig.model_validate(given(SASL_SETTINGS) if cluster.signs_in else {})
    cluster = cluster.model_copy(update={"ssl": ssl, "sasl": sasl, "providers": providers})
    if cluster.signs_in:
        try:
            read_login(with_secrets(cluster).sasl)
        except LoginError as error:
            raise ConfigError(error.reason, origin=WHERE, key=f"sasl.{error.setting}") from None
    return cluster


def replication_policy(settings: Mapping[str, str]) -> ReplicationPolicy:
    """Return the mirrors' replication policy into this cluster.

    Raises `ConfigError`. The identity policy assumes `source.cluster.alias` as the source of all topics.
    """
    try:
        return policy_for(
            settings.get(_POLICY, DEFAULT_POLICY).strip(),
            source_alias=settings.get("source.cluster.alias", ""),
            separator=settings.get(_SEPARATOR, "."),
            internal_separator_enabled=Boolean().parse(settings.get(_INTERNAL, "true")),
            originals={key: str(value) for key, value in settings.items() if not is_secret(key)},
        )
    except ValueError as error:
        raise ConfigError(str(error), origin=WHERE, key="replication.policy") from None


def _given(
    settings: Sequence[Setting], mapping: Mapping[str, str], role: str, providers: Sequence[ProviderConfig]
) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for setting in settings:
        key = f"{role}{setting.name}" if f"{role}{setting.name}" in mapping else setting.name
        if key in mapping:
            text = str(mapping[key])
            try:
                resolved = resolve(text, providers)
                values[setting.field] = setting.kind.parse(text if setting.secret else resolved)
            except ValueError as error:
                raise ConfigError(str(error), origin=WHERE, key=key) from None
    return values
