"""Classes, config providers, files and token servers that connectors may name.

The client that puts a connector is not the operator who runs the server. Importing a Python module runs its code, and a
config provider reads the server's files and variables (CVE-2024-31141). So the worker's file alone allows both, in
`sparkmirror.classes` and `config.providers`. A token that is read from a file is sent to brokers that the connector
chooses, and a token server may be any address that the server reaches. So a connector must not name such a file, and
only URLs that `sparkmirror.allowed.urls` lists (CVE-2025-27817, for which Kafka 4.0 asks only URLs that a system
property lists, none by default). Stores and keytabs are never sent: a connector may name any, or those that
`sparkmirror.allowed.paths` allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sparkmirror.config import FlowConfig
from sparkmirror.config.declared_providers import FAMILY, PROVIDERS_KEY, allowed_paths, declared_providers
from sparkmirror.config.entries import Entry
from sparkmirror.config.named_file import is_allowed
from sparkmirror.config.named_places import URLS_KEY, PlaceKind, places
from sparkmirror.config.providers import resolve
from sparkmirror.errors import ConfigError
from sparkmirror.values import is_python_class

CLASSES_KEY = "sparkmirror.classes"
PATHS_KEY = "sparkmirror.allowed.paths"
KEYS = (CLASSES_KEY, PATHS_KEY, URLS_KEY)
"""Keys in the worker's file that limit what connectors may name."""

_NOT_LISTED = f"a Python class is loaded only if the worker's file lists it in {CLASSES_KEY}"
_NOT_DECLARED = "config providers are those of the worker's own file only: declare it there, and take it out here"

_FROM_FILE = (
    "names a file of the server, and its content would be sent to brokers of the connector's choice: only the"
    " worker's own file may name one; take the token from one of its config providers, as option oauth.access.token of"
    " Strimzi's login handler"
)

_NOT_AMONG = f"names a file of the server that the worker's file does not allow: add its directory to {PATHS_KEY} there"
_NO_SERVER = f"names a token server that the worker's file does not allow: add the URL to {URLS_KEY} there"

_CLASS_KEY = re.compile(r"(.*\.)?(class|classes|metric\.reporters)")
"""Keys whose values Kafka's clients and Connect load as classes."""


@dataclass(frozen=True, slots=True)
class Loadable:
    """Permissions of the worker's file."""

    classes: frozenset[str] = frozenset()
    """Allowed Python classes, `module:Class`."""
    providers: Mapping[str, str] = field(default_factory=dict)
    """The values under `config.providers` and the keys with that prefix."""
    paths: tuple[str, ...] | None = None
    """Allowed files and directories; None: all."""
    urls: frozenset[str] = frozenset()
    """Allowed token servers."""

    def refusal(self, key: str, value: str) -> str:
        """Return the reason against a connector's setting; empty if allowed.

        The reason does not contain the value.
        """
        if key == PROVIDERS_KEY or key.startswith(FAMILY):
            return self._refused_provider(key, value)
        for kind, place in places(key, value):
            if reason := self._refused_place(kind, place):
                return reason
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

    def _refused_place(self, kind: PlaceKind, place: str) -> str:
        if kind is PlaceKind.TOKEN_FILE:
            return _FROM_FILE
        if kind is PlaceKind.FILE:
            return "" if is_allowed(place, self.paths) else _NOT_AMONG
        return "" if place in self.urls else _NO_SERVER

    def _refused_provider(self, key: str, value: str) -> str:
        stated = self.providers.get(key, "")
        same = set(_items(value)) <= set(_items(stated)) if key == PROVIDERS_KEY else value.strip() == stated.strip()
        return "" if same else _NOT_DECLARED


def read_loadable(settings: Mapping[str, Entry]) -> Loadable:
    """Return the permissions of a worker's file.

    Raises `ConfigError` for an entry in `sparkmirror.classes` that is no Python class, and for an allowed path that
    does not exist.
    """
    stated = settings.get(CLASSES_KEY)
    names = _items(stated.value) if stated else []
    for name in names:
        if stated and not is_python_class(name):
            raise stated.error(f"{name!r} is not allowed, it must be a Python class: module:Class")
    providers = {key: entry.value for key, entry in settings.items() if key == PROVIDERS_KEY or key.startswith(FAMILY)}
    paths, urls = settings.get(PATHS_KEY), settings.get(URLS_KEY)
    return Loadable(
        frozenset(names),
        providers,
        None if paths is None else allowed_paths(paths),
        frozenset(_items(urls.value) if urls else ()),
    )


def _classes_of(flow: FlowConfig) -> Iterator[tuple[str, str]]:
    """Yield the keys for which Python classes are loaded, with their values."""
    yield "replication.policy.class", flow.replication_policy_class
    yield "topic.filter.class", flow.topic_filter_class
    yield "group.filter.class", flow.group.group_filter_class
    yield "config.property.filter.class", flow.topic_sync.config_property_filter_class


def _items(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]
