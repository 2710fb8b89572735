"""Properties file for the consumer group offset sync app.

The format of AWS's app: keys are names of Java constants (`BOOTSTRAP_SERVERS_CONFIG`), each with a default, and an
empty value counts as absent. The file may also have Kafka's own keys (`bootstrap.servers`, `security.protocol`,
`sasl.*`, `ssl.*`), which win, and `config.providers` with its settings.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import javaproperties

from sparkmirror.config.declared_providers import PROVIDERS_KEY
from sparkmirror.errors import ConfigError
from sparkmirror.events import Event

DEFAULT_FILE = "/tmp/kafka/consumer.properties"  # noqa: S108 - the path in AWS's app
DEFAULT_SERVERS = "127.0.0.1:9092"

_OWN_KEYS = {"BOOTSTRAP_SERVERS_CONFIG": "bootstrap.servers", "GROUP_ID_CONFIG": "client.id"}
_TLS_KEYS = {"SSL_TRUSTSTORE_LOCATION_CONFIG": "ssl.truststore.location"}
_MTLS_KEYS = {
    "SSL_KEYSTORE_LOCATION_CONFIG": "ssl.keystore.location",
    "SSL_KEYSTORE_PASSWORD_CONFIG": "ssl.keystore.password",
    "SSL_KEY_PASSWORD_CONFIG": "ssl.key.password",
}
_DEFAULTS = {
    "SSL_TRUSTSTORE_LOCATION_CONFIG": "/tmp/kafka.client.truststore.jks",  # noqa: S108
    "SSL_KEYSTORE_LOCATION_CONFIG": "/tmp/kafka.client.keystore.jks",  # noqa: S108
    "SSL_KEYSTORE_PASSWORD_CONFIG": "password",
    "SSL_KEY_PASSWORD_CONFIG": "password",
}
_KAFKAS = ("bootstrap.servers", "client.id", "security.protocol", "sasl.", "ssl.", PROVIDERS_KEY)

log = logging.getLogger(__name__)


def read_group_sync_file(path: str, *, tls: bool, mtls: bool) -> dict[str, str]:
    """Return `MirrorClient`'s settings for the file and the flags.

    Raises `ConfigError` for an unreadable file. A missing file is logged, and the defaults hold. `mtls` implies `tls`.
    """
    given = _given(path)
    _name_unread(path, given)
    settings = {"bootstrap.servers": DEFAULT_SERVERS}
    settings |= {kafkas: given[own] for own, kafkas in _OWN_KEYS.items() if given.get(own)}
    settings["bootstrap.servers"] = settings["bootstrap.servers"].replace("http://", "")
    if tls or mtls:
        settings["security.protocol"] = "SSL"
        wanted = _TLS_KEYS | (_MTLS_KEYS if mtls else {})
        settings |= {kafkas: given.get(own) or _DEFAULTS[own] for own, kafkas in wanted.items()}
    return settings | {key: value for key, value in given.items() if value and key.startswith(_KAFKAS)}


def _name_unread(path: str, given: Mapping[str, str]) -> None:
    known = (*_OWN_KEYS, *_TLS_KEYS, *_MTLS_KEYS)
    unread = sorted(key for key, value in given.items() if value and key not in known and not key.startswith(_KAFKAS))
    if unread:
        log.warning(
            "%s: %s: not read: groups are set by an admin client, which has no use for it",
            path,
            ", ".join(unread),
            extra=Event.CONFIG_WARNING.extra,
        )


def _given(path: str) -> Mapping[str, str]:
    try:
        with Path(path).open("rb") as file:
            return {key: value.strip() for key, value in javaproperties.load(file).items()}
    except FileNotFoundError:
        log.info("Properties file not found in location: %s, using defaults", path)
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"can't be read: {error}", origin=path) from None
