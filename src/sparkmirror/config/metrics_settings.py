"""Settings for the metrics listeners: addresses, TLS and users.

The settings follow Kafka Connect's `listeners`.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import SecretStr

from sparkmirror.config.lookup import Lookup
from sparkmirror.config.model import MetricsConfig, SslConfig
from sparkmirror.config.setting import KeyScope, Setting
from sparkmirror.config.settings import SSL_SETTINGS
from sparkmirror.errors import ConfigError
from sparkmirror.values import Choice, Listeners, Names, Text, Value

METRICS = "sparkmirror.metrics."
"""Prefix of all metrics settings."""
HTTPS = f"{METRICS}listeners.https."

_PAGE = "docs/metrics.md"
_ALONE = ("", "")

LISTENERS = Setting(
    name=f"{METRICS}listeners",
    kind=Listeners(),
    place=KeyScope.ALONE,
    doc="Addresses where `run` answers `/metrics`: `http://host:port` or `https://host:port`, separated by commas.",
    origin=_PAGE,
    model=MetricsConfig,
    renamed="listeners",
)
JAAS_FILE = Setting(
    name=f"{METRICS}jaas.file",
    kind=Text(),
    place=KeyScope.ALONE,
    doc="JAAS file of the users who may ask, as for Connect's basic authentication. Without it every client may ask.",
    origin=_PAGE,
    model=MetricsConfig,
    renamed="jaas_file",
)
HOSTS = Setting(
    name=f"{METRICS}hosts",
    kind=Names(),
    place=KeyScope.ALONE,
    doc="Names by which browsers may ask, such as a reverse proxy's, separated by commas. Addresses, this machine's"
    " name, the listeners' hosts and names that public DNS does not have need not be listed.",
    origin=_PAGE,
    model=MetricsConfig,
    renamed="hosts",
)
CLIENT_AUTH = Setting(
    name=f"{HTTPS}ssl.client.auth",
    kind=Choice(("none", "requested", "required"), any_case=True),
    place=KeyScope.ALONE,
    doc="`required` or `requested`: clients of https show a certificate.",
    origin=_PAGE,
    model=MetricsConfig,
    renamed="client_auth",
)
SERVER_SSL = tuple(
    replace(setting, name=HTTPS + setting.name, place=KeyScope.ALONE, renamed=setting.field)
    for setting in SSL_SETTINGS
    if setting.name not in ("ssl.endpoint.identification.algorithm", "ssl.protocol")
)
"""TLS settings for the https listeners."""
METRICS_SETTINGS = (LISTENERS, JAAS_FILE, HOSTS, CLIENT_AUTH, *SERVER_SSL)


def read_metrics(lookup: Lookup) -> MetricsConfig:
    """Read the metrics settings; mistakes go into `lookup.mistakes`."""
    given = lookup.given((LISTENERS, JAAS_FILE, HOSTS, CLIENT_AUTH), _ALONE)
    https = SslConfig.model_validate(_stores(lookup))
    config = MetricsConfig.model_validate({**given, "https": https})
    encrypted = [listener for listener in config.listeners if listener.lower().startswith("https:")]
    if encrypted and not https.keystore_location and not https.keystore_key.get_secret_value():
        reason = "is missing: https listeners need a key and a certificate"
        lookup.mistakes.add(ConfigError(reason, origin=lookup.path, key=f"{HTTPS}ssl.keystore.location"))
    return config


def _stores(lookup: Lookup) -> dict[str, Value | SecretStr]:
    """Return the TLS settings with secrets resolved.

    The secrets stay in this process, unlike clusters' secrets.
    """
    fields: dict[str, Value | SecretStr] = dict(lookup.given(SERVER_SSL, _ALONE))
    for setting in SERVER_SSL:
        entry = lookup.entry(setting, _ALONE)
        if entry is not None and setting.secret:
            with lookup.mistakes.gathered():
                fields[setting.field] = SecretStr(lookup.text(entry, any_text=True))
    return fields
