"""MirrorMaker 2's connector configuration, for a user's filter or policy.

The rules are those in `MirrorMakerConfig.connectorBaseConfig` (`mm2.md` section 1.6), and a further rule: no secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sparkmirror.config.duty_settings import DUTY_SETTINGS
from sparkmirror.config.known_keys import CONNECTOR, CONNECTOR_BASE
from sparkmirror.config.lookup import Lookup
from sparkmirror.config.model import FlowConfig
from sparkmirror.config.setting import KeyScope
from sparkmirror.config.settings import FLOW_SETTINGS
from sparkmirror.values import is_python_class

CONNECTOR_NAMES = {*CONNECTOR, *CONNECTOR_BASE, "enabled", "security.protocol", "config.providers"} | {
    setting.name
    for setting in (*FLOW_SETTINGS, *DUTY_SETTINGS)
    if setting.place is KeyScope.CONNECTOR and not setting.name.startswith("sparkmirror.")
}
"""Names in the three connectors' definitions, except for TLS and SASL."""

_SECRET = re.compile(r"password|secret|token|jaas|credential|user[._]info|keystore\.key", re.IGNORECASE)
_CLIENT = re.compile(r"bootstrap\.servers|security\.protocol|(ssl|sasl)\..*")
_ROLES = ("consumer", "producer", "admin")


def originals_for(flow: FlowConfig, lookup: Lookup) -> dict[str, str]:
    """Return the keys for this flow's Python classes; nothing without such a class."""
    classes = (
        flow.topic_filter_class,
        flow.replication_policy_class,
        flow.group.group_filter_class,
        flow.topic_sync.config_property_filter_class,
    )
    if not any(map(is_python_class, classes)):
        return {}
    raw = {key: entry.value for key, entry in lookup.properties.items() if not lookup.references(entry)}
    keys = connector_originals(raw, flow.source.alias, flow.target.alias)
    return {key: value for key, value in sorted(keys.items()) if not is_secret(key)}


def is_secret(key: str) -> bool:
    return _SECRET.search(key) is not None


def connector_originals(raw: Mapping[str, str], source: str, target: str) -> dict[str, str]:
    """Return the source connector's configuration for `source->target`.

    Secrets are included.
    """
    keys = {key: value for key, value in raw.items() if _is_connectors(key)}
    for end, alias in (("source", source), ("target", target)):
        for key, value in _cluster_keys(raw, alias).items():
            keys[f"{end}.{key}" if key.startswith(_ROLES) else f"{end}.cluster.{key}"] = value
        keys.setdefault(f"{end}.cluster.alias", alias)
    keys.setdefault("name", "MirrorSourceConnector")
    keys.setdefault("connector.class", "org.apache.kafka.connect.mirror.MirrorSourceConnector")
    keys.update(_stripped(raw, f"{source}->{target}."))
    keys.setdefault("enabled", "false")
    return keys


def _is_connectors(key: str) -> bool:
    # The connectors' definitions name all client settings of TLS and SASL.
    families = ("config.providers", "replication.policy", "ssl.", "sasl.")
    return key in CONNECTOR_NAMES or key.startswith(families)


def _cluster_keys(raw: Mapping[str, str], alias: str) -> dict[str, str]:
    """Return a cluster's own keys, and the keys common to all clusters' clients.

    They are MirrorMaker 2's `clusterProps`.
    """
    own = _stripped(raw, f"{alias}.")
    common = {key: value for key, value in raw.items() if _CLIENT.fullmatch(key)}
    keys = common | own
    for key, value in keys.copy().items():
        if _CLIENT.fullmatch(key):
            for role in _ROLES:
                keys.setdefault(f"{role}.{key}", value)
    return keys


def _stripped(raw: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in raw.items() if key.startswith(prefix)}
