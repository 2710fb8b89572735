"""One cluster's settings, as a flow has them."""

from __future__ import annotations

from sparkmirror.config.lookup import Lookup, Pair
from sparkmirror.config.model import ClusterConfig, SslConfig
from sparkmirror.config.setting import ADMIN_PLACES, Setting, for_place
from sparkmirror.config.settings import ADMIN_SETTINGS, SECURITY_PROTOCOL, SSL_SETTINGS
from sparkmirror.errors import ConfigError


def read_cluster(lookup: Lookup, servers: Setting, alias: str, pair: Pair) -> ClusterConfig:
    """The cluster `alias`, whose brokers `servers` looks for. Raises `ConfigError`."""
    protocol, *ssl = for_place((SECURITY_PROTOCOL, *SSL_SETTINGS), servers.place)
    admin = for_place(ADMIN_SETTINGS, ADMIN_PLACES[servers.place])
    fields: dict[str, object] = {"alias": alias, **lookup.given((servers, protocol, *admin), pair)}
    if servers.field not in fields:
        key = f"{alias}.{servers.name}"
        raise ConfigError(f"is missing: write {key} = host:9092", where=lookup.path, key=key)
    cluster = ClusterConfig.model_validate(fields)
    if not cluster.encrypted:
        return cluster
    secrets = [entry for setting in ssl if setting.secret and (entry := lookup.entry(setting, pair)) is not None]
    elsewhere = any(map(lookup.references, secrets))
    return cluster.model_copy(
        update={
            "ssl": SslConfig.model_validate(lookup.given(ssl, pair)),
            "providers": lookup.providers if elsewhere else (),
        }
    )
