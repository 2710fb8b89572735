"""One cluster's settings, as a flow has them."""

from __future__ import annotations

from sparkmirror.config.login import LoginError, read_login
from sparkmirror.config.lookup import Lookup, Pair
from sparkmirror.config.model import ClusterConfig, SaslConfig, SslConfig
from sparkmirror.config.providers import with_secrets
from sparkmirror.config.setting import Setting, for_place
from sparkmirror.config.settings import SASL_SETTINGS, SECURITY_PROTOCOL, SSL_SETTINGS
from sparkmirror.errors import ConfigError


def read_cluster(lookup: Lookup, servers: Setting, alias: str, pair: Pair) -> ClusterConfig:
    """The cluster `alias`, whose brokers `servers` looks for. Raises `ConfigError`."""
    (protocol,) = for_place((SECURITY_PROTOCOL,), servers.place)
    ssl, sasl = for_place(SSL_SETTINGS, servers.place), for_place(SASL_SETTINGS, servers.place)
    fields: dict[str, object] = {"alias": alias, **lookup.given((servers, protocol), pair)}
    if servers.field not in fields:
        key = f"{alias}.{servers.name}"
        raise ConfigError(f"is missing: write {key} = host:9092", where=lookup.path, key=key)
    cluster = ClusterConfig.model_validate(fields)
    spoken = (ssl if cluster.encrypted else ()) + (sasl if cluster.signs_in else ())
    secrets = [entry for setting in spoken if setting.secret and (entry := lookup.entry(setting, pair)) is not None]
    elsewhere = any(map(lookup.references, secrets))
    cluster = cluster.model_copy(
        update={
            "ssl": SslConfig.model_validate(lookup.given(ssl, pair) if cluster.encrypted else {}),
            "sasl": SaslConfig.model_validate(lookup.given(sasl, pair) if cluster.signs_in else {}),
            "providers": lookup.providers if elsewhere else (),
        }
    )
    if cluster.signs_in:
        _check_login(lookup, cluster, sasl, pair)
    return cluster


def _check_login(lookup: Lookup, cluster: ClusterConfig, settings: tuple[Setting, ...], pair: Pair) -> None:
    """Stop at a login that can't be used; where secrets are references, what they lead to now is looked at."""
    try:
        read_login(with_secrets(cluster).sasl)
    except LoginError as error:
        blamed = next(setting for setting in settings if setting.name == f"sasl.{error.setting}")
        entry = lookup.entry(blamed, pair)
        if entry is not None:
            raise entry.error(error.reason) from None
        key = f"{cluster.alias}.{blamed.name}"
        raise ConfigError(error.reason, where=lookup.path, key=key) from None
