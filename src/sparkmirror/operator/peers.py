"""Resources that would share one Connect cluster: a group or a storage topic.

Two resources of one group would overwrite each other's connectors for ever, so only the older resource runs.
"""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparkmirror.formats.strimzi import WORKERS_OWN
from sparkmirror.operator.names import Key, is_ours

_GROUP = "groupId"
_TOPICS = tuple(field for field in WORKERS_OWN if field != _GROUP)
_CLUSTER_SUFFIXES = (".svc.cluster.local", ".svc")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectNames:
    """Group and storage topics of a resource's pods at the target."""

    key: Key
    created: str
    """Time of creation, as Kubernetes writes it."""
    servers: frozenset[str]
    """Bootstrap servers of the target; names inside the cluster with their namespace."""
    names: Mapping[str, str]
    """Group and storage topics, by v1's fields."""

    @property
    def age(self) -> tuple[str, str, str]:
        """Sort key: the oldest resource runs."""
        return self.created, self.key.namespace, self.key.name

    def shared_with(self, other: ConnectNames) -> str:
        """Return the shared names, in words; empty without any."""
        if not self.servers & other.servers:
            return ""
        words = [f"{_GROUP} {self.names[_GROUP]}"] if self.names[_GROUP] == other.names[_GROUP] else []
        theirs = {other.names[field] for field in _TOPICS}
        words += [f"{field} {self.names[field]}" for field in _TOPICS if self.names[field] in theirs]
        return ", ".join(words)


def connect_names(resource: Mapping[str, Any], class_name: str) -> ConnectNames | None:
    """Return a resource's names at its target.

    None without any: the resource is another operator's, is scaled to nothing, or has no readable target.
    """
    metadata, spec = resource["metadata"], resource.get("spec")
    if not is_ours(resource, class_name) or not isinstance(spec, Mapping) or spec.get("replicas") == 0:
        return None
    target = _target(spec)
    if target is None:
        return None
    key = Key(str(metadata.get("namespace") or ""), str(metadata.get("name")))
    config = target.get("config")
    older = config if isinstance(config, Mapping) else {}
    names = {
        field: str(target.get(field) or older.get(property_name) or default)
        for field, (property_name, default) in WORKERS_OWN.items()
    }
    servers = frozenset(_servers(str(target.get("bootstrapServers") or ""), key.namespace))
    return ConnectNames(key=key, created=str(metadata.get("creationTimestamp") or ""), servers=servers, names=names)


def _target(spec: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the target in v1's layout, or in v1beta2's."""
    clusters = spec.get("clusters")
    listed = clusters if isinstance(clusters, list) else ()
    items = [item for item in listed if isinstance(item, Mapping) and item.get("alias") == spec.get("connectCluster")]
    target = spec.get("target") or next(iter(items), None)
    return target if isinstance(target, Mapping) else None


def _servers(text: str, namespace: str) -> Iterator[str]:
    """Yield servers in one spelling for each Service."""
    for server in text.lower().replace(" ", "").split(","):
        host, _, port = server.rpartition(":")
        for suffix in _CLUSTER_SUFFIXES:
            host = host.removesuffix(suffix)
        if host and "." not in host and not _is_address(host):
            host = f"{host}.{namespace}"
        if host:
            yield f"{host}:{port}"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Sharing:
    """Resources that share names with one resource, each in words."""

    earlier: str = ""
    """The oldest resource, which runs instead; empty if that is this resource."""
    later: tuple[str, ...] = ()
    """Younger resources, held because of the resource."""


class Peers:
    """Names of all resources of the operator's class, by key; thread-safe.

    The watch reports each change.
    """

    def __init__(self, class_name: str) -> None:
        self._class_name = class_name
        self._lock = threading.Lock()
        self._names: dict[Key, ConnectNames] = {}

    def see(self, key: Key, resource: Mapping[str, Any] | None) -> set[Key]:
        """Note a resource's present state, or None for a deleted resource.

        Return the other resources that are due for a turn: they share names with the resource, or did before.
        """
        names = connect_names(resource, self._class_name) if resource else None
        with self._lock:
            before = self._names.pop(key, None)
            if names is not None:
                self._names[key] = names
            others = [other for other in self._names.values() if other.key != key]
        return {
            other.key for other in others for each in (before, names) if each is not None and each.shared_with(other)
        }

    def sharing(self, key: Key, resource: Mapping[str, Any]) -> Sharing:
        """Return the resources that share names with this one."""
        names = connect_names(resource, self._class_name)
        if names is None:
            return Sharing()
        with self._lock:
            others = [other for other in self._names.values() if other.key != key]
        told = [(other.age, _told(other, words)) for other in others if (words := names.shared_with(other))]
        told.sort()
        earlier = [words for age, words in told if age < names.age]
        return Sharing(earlier[0] if earlier else "", tuple(words for _, words in told[len(earlier) :]))


def _told(other: ConnectNames, words: str) -> str:
    return f"KafkaMirrorMaker2 {other.key} uses the same {words} at {', '.join(sorted(other.servers))}"
