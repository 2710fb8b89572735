"""Classes and config providers of the worker's file, which connectors may load.

The client that puts a connector is not the operator who runs the server. Importing a Python module runs its code, and a
config provider reads files and variables of the server (CVE-2024-31141). So the worker's file alone allows both, in
`sparkmirror.classes` and `config.providers`. A token that is read from a file is sent to brokers of the connector's
choice, so that a connector must not name such a file (CVE-2025-27817, for which Kafka 4.0 reads only the files that a
system property lists).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sparkmirror.config import Entry, FlowConfig
from sparkmirror.config.jaas import parse_jaas
from sparkmirror.config.providers import FAMILY, PROVIDERS_KEY, declared_providers, resolve
from sparkmirror.config.values import is_python_class
from sparkmirror.errors import ConfigError

CLASSES_KEY = "sparkmirror.classes"

_NOT_LISTED = f"a Python class is loaded only if the worker's file lists it in {CLASSES_KEY}"
_NOT_DECLARED = "config providers are those of the worker's own file only: declare it there, and take it out here"

_FROM_FILE = (
    "names a file of the server, and its content would be sent to brokers of the connector's choice: only the"
    " worker's own file may name one; take the token from one of its config providers, as option oauth.access.token of"
    " Strimzi's login handler"
)

_URL_KEY = re.compile(r"(.*\.)?sasl\.oauthbearer\.(token|jwks)\.endpoint\.url")
_JAAS_KEY = re.compile(r"(.*\.)?sasl\.jaas\.config")
_FILE_OPTION = re.compile(r"oauth\.(access\.token|refresh\.token|client\.assertion)\.location")
_CLASS_KEY = re.compile(r"(.*\.)?(class|classes|metric\.reporters)")
"""Keys whose values Kafka's clients and Connect load as classes."""


@dataclass(frozen=True, slots=True)
class Loadable:
    """Permissions of the worker's file."""

    classes: frozenset[str] = frozenset()
    """Allowed Python classes, `module:Class`."""
    providers: Mapping[str, str] = field(default_factory=dict)
    """Values of `config.providers` and of the keys with that prefix."""

    def refusal(self, key: str, value: str) -> str:
        """Return the reason against a connector's setting; empty if allowed.

        The reason does not contain the value.
        """
        if key == PROVIDERS_KEY or key.startswith(FAMILY):
            return self._refused_provider(key, value)
        if _reads_token(key, value):
            return _FROM_FILE
        refused = _CLASS_KEY.fullmatch(key) and any(map(self._refuses, _items(value)))
        return _NOT_LISTED if refused else ""

    def resolved(self, value: str) -> str:
        """Return the value with references resolved by the worker's config providers.

        Raises `ConfigError` if the providers are declared wrongly. An unresolvable value is returned as it is.
        """
        declared = declared_providers(Entry(key=key, value=text, where="") for key, text in self.providers.items())
        try:
            return resolve(value, declared)
        except ValueError:
            return value  # reading the flow fails later, with the reason

    def check(self, flow: FlowConfig) -> None:
        """Raise `ConfigError` for a forbidden class, named directly or by a reference."""
        for key, name in _classes_of(flow):
            if self._refuses(name):
                raise ConfigError(f"{name}: {_NOT_LISTED}", origin=f"flow {flow.name}", key=key)

    def _refuses(self, name: str) -> bool:
        return is_python_class(name) and name not in self.classes

    def _refused_provider(self, key: str, value: str) -> str:
        stated = self.providers.get(key, "")
        same = set(_items(value)) <= set(_items(stated)) if key == PROVIDERS_KEY else value.strip() == stated.strip()
        return "" if same else _NOT_DECLARED


def read_loadable(settings: Mapping[str, Entry]) -> Loadable:
    """Return the permissions of a worker's file.

    Raises `ConfigError` for an entry of `sparkmirror.classes` that is no Python class.
    """
    stated = settings.get(CLASSES_KEY)
    names = _items(stated.value) if stated else []
    for name in names:
        if stated and not is_python_class(name):
            raise stated.error(f"{name!r} is not allowed, it must be a Python class: module:Class")
    providers = {key: entry.value for key, entry in settings.items() if key == PROVIDERS_KEY or key.startswith(FAMILY)}
    return Loadable(frozenset(names), providers)


def _classes_of(flow: FlowConfig) -> Iterator[tuple[str, str]]:
    """Yield the keys for which Python classes are loaded, with their values."""
    yield "replication.policy.class", flow.replication_policy_class
    yield "topic.filter.class", flow.topic_filter_class
    yield "group.filter.class", flow.group.group_filter_class
    yield "config.property.filter.class", flow.topic_sync.config_property_filter_class


def _reads_token(key: str, value: str) -> bool:
    if _URL_KEY.fullmatch(key):
        return value.strip().partition(":")[0].lower() == "file"
    if not _JAAS_KEY.fullmatch(key):
        return False
    try:
        return any(map(_FILE_OPTION.fullmatch, parse_jaas(value).options))
    except ValueError:
        return False  # no client can sign in with an unreadable JAAS line


def _items(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]
