"""Read a cluster's settings, for a flow."""

from __future__ import annotations

from sparkmirror.config.aliases import in_other_case
from sparkmirror.config.credentials import LoginError
from sparkmirror.config.login import read_login
from sparkmirror.config.lookup import Lookup, Pair
from sparkmirror.config.model import ClusterConfig, SaslConfig, SslConfig
from sparkmirror.config.providers import with_secrets
from sparkmirror.config.setting import ADMIN_PLACES, KeyScope, Setting, for_place
from sparkmirror.config.settings import ADMIN_SETTINGS, SASL_SETTINGS, SECURITY_PROTOCOL, SSL_SETTINGS
from sparkmirror.errors import ConfigError

ADMINS = {KeyScope.SOURCE: KeyScope.SOURCE_ADMIN_ACCESS, KeyScope.TARGET: KeyScope.TARGET_ADMIN_ACCESS}
COPIERS = {KeyScope.SOURCE: KeyScope.SOURCE_CONSUMER_ACCESS, KeyScope.TARGET: KeyScope.TARGET_PRODUCER_ACCESS}
"""Places for a cluster's security settings, by where its brokers are.

`ADMINS` is for the cluster's admin clients, `COPIERS` for the client that copies: the consumer or the producer.
"""


def read_cluster(lookup: Lookup, servers: Setting, alias: str, pair: Pair) -> ClusterConfig:
    """Read the cluster `alias`; `servers` is the setting for its brokers.

    Mistakes go into `lookup.mistakes`.
    """
    admin_settings = for_place(ADMIN_SETTINGS, ADMIN_PLACES[servers.place])
    fields: dict[str, object] = {"alias": alias, **lookup.given((servers, *admin_settings), pair)}
    if servers.field not in fields:
        if lookup.entry(servers, pair) is None:
            key = f"{alias}.{servers.name}"
            reason = f"is missing: write {key} = host:9092{in_other_case(key, lookup.properties)}"
            lookup.mistakes.add(ConfigError(reason, origin=lookup.path, key=key))
        fields[servers.field] = ()
    cluster = ClusterConfig.model_validate(fields)
    admin = _secured(lookup, cluster, ADMINS[servers.place], pair)
    copier = _secured(lookup, cluster, COPIERS[servers.place], pair)
    return admin if copier == admin else admin.model_copy(update={"copier": copier})


def _secured(lookup: Lookup, cluster: ClusterConfig, place: KeyScope, pair: Pair) -> ClusterConfig:
    """Return the cluster with its clients' security settings from `place`."""
    protocol = lookup.given(for_place((SECURITY_PROTOCOL,), place), pair)
    cluster = cluster.model_copy(update=dict(protocol))
    ssl = for_place(SSL_SETTINGS, place) if cluster.encrypted else ()
    sasl = for_place(SASL_SETTINGS, place) if cluster.signs_in else ()
    secrets = [setting for setting in (*ssl, *sasl) if setting.secret]
    entries = [entry for setting in secrets if (entry := lookup.entry(setting, pair)) is not None]
    with lookup.mistakes.apart() as wrong:
        parts = {
            "ssl": SslConfig.model_validate(lookup.given(ssl, pair)),
            "sasl": SaslConfig.model_validate(lookup.given(sasl, pair)),
        }
    for mistake in wrong:
        lookup.mistakes.add(mistake)
    providers = lookup.providers if any(map(lookup.references, entries)) else ()
    cluster = cluster.model_copy(update={**parts, "providers": providers})
    if cluster.signs_in and not wrong:
        with lookup.mistakes.gathered():
            _check_login(lookup, cluster, sasl, pair)
    return cluster


def _check_login(lookup: Lookup, cluster: ClusterConfig, settings: tuple[Setting, ...], pair: Pair) -> None:
    """Raise `ConfigError` if the cluster's login can't be used.

    References to secrets are resolved for the check, to their present values.
    """
    try:
        read_login(with_secrets(cluster).sasl)
    except LoginError as error:
        blamed = next(setting for setting in settings if setting.name == f"sasl.{error.setting}")
        entry = lookup.entry(blamed, pair)
        if entry is not None:
            raise entry.error(error.reason) from None
        key = f"{cluster.alias}.{blamed.name}"
        raise ConfigError(error.reason, origin=lookup.path, key=key) from None
