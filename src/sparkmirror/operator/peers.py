"""Resources that would share a group or a storage topic at one target.

Two resources in one group would overwrite each other's connectors for ever, so only the older resource runs. Resources
for one flow would stand by for each other, with different settings.
"""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparkmirror.config.formats.strimzi import WORKERS_OWN
from sparkmirror.errors import ConfigError
from sparkmirror.operator.kube import KubeRefused
from sparkmirror.operator.mirror_file import file_place, file_text, read_mirror
from sparkmirror.operator.names import MIRROR, STRIMZI, Key, is_ours, key_of
from sparkmirror.operator.references import Contents, ObjectReference

_GROUP = "groupId"
_CLUSTER_SUFFIXES = (".svc.cluster.local", ".svc")

ContentsOf = Callable[[str, ObjectReference], Contents]
"""Reads a Secret or ConfigMap in a namespace; empty if it is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Group and topics that a resource's pods use at one target."""

    servers: frozenset[str]
    """Bootstrap servers; names inside the cluster with their namespace."""
    group: tuple[str, str]
    """The group's field and name."""
    topics: Mapping[str, str]
    """Storage topics' names by field."""
    leases: frozenset[str]
    """Groups through which processes agree on flows.

    Strimzi's resources have a group next to them.
    """

    def shared_with(self, other: Use) -> str:
        """Return the shared names, in words; empty without any."""
        if not self.servers & other.servers:
            return ""
        words = [" ".join(self.group)] if self.group[1] == other.group[1] else []
        if not words and (self.group[1] in other.leases or other.group[1] in self.leases):
            words = [" ".join(self.group if self.group[1] in other.leases else other.group)]
        if not words and (leases := self.leases & other.leases):
            words = [f"group {min(leases)}"]
        theirs = set(other.topics.values())
        words += [f"{field} {name}" for field, name in self.topics.items() if name in theirs]
        return ", ".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectNames:
    """Groups and topics of a resource's pods, at each target."""

    key: Key
    created: str
    """Creation time, as Kubernetes writes it."""
    uses: tuple[Use, ...]

    @property
    def age(self) -> tuple[str, str, str, str]:
        """Sort key: the oldest resource runs."""
        return self.created, self.key.namespace, self.key.name, self.key.kind.name

    def shared_with(self, other: ConnectNames) -> str:
        """Return the shared names with the target's servers; empty without any."""
        told = {
            f"{words} at {', '.join(sorted(theirs.servers))}": None
            for ours in self.uses
            for theirs in other.uses
            if (words := ours.shared_with(theirs))
        }
        return "; ".join(told)


def connect_names(
    resource: Mapping[str, Any], class_name: str, contents_of: ContentsOf = lambda *_: {}
) -> ConnectNames | None:
    """Return a resource's names at its targets.

    None without any: the resource is another operator's, is scaled to nothing, or has no readable target.
    """
    metadata, spec = resource["metadata"], resource.get("spec")
    if not is_ours(resource, class_name) or not isinstance(spec, Mapping) or spec.get("replicas") == 0:
        return None
    key = key_of(resource, MIRROR if resource.get("kind") == MIRROR.name else STRIMZI)
    uses = tuple(_mirror_uses(spec, key, contents_of) if key.kind is MIRROR else _connect_uses(spec, key))
    created = str(metadata.get("creationTimestamp") or "")
    return ConnectNames(key=key, created=created, uses=uses) if uses else None


def _connect_uses(spec: Mapping[str, Any], key: Key) -> Iterator[Use]:
    target = _target(spec)
    if target is None:
        return
    config = target.get("config")
    older = config if isinstance(config, Mapping) else {}
    names = {
        field: str(target.get(field) or older.get(property_name) or default)
        for field, (property_name, default) in WORKERS_OWN.items()
    }
    group = names.pop(_GROUP)
    servers = frozenset(_servers(str(target.get("bootstrapServers") or ""), key.namespace))
    leases = frozenset(f"{alias}-mm2" for alias in _sources(spec))
    yield Use(servers=servers, group=(_GROUP, group), topics=names, leases=leases)


def _sources(spec: Mapping[str, Any]) -> Iterator[str]:
    mirrors = spec.get("mirrors")
    for mirror in mirrors if isinstance(mirrors, list) else ():
        if isinstance(mirror, Mapping):
            source = mirror.get("source")
            alias = source.get("alias") if isinstance(source, Mapping) else mirror.get("sourceCluster")
            yield str(alias)


def _mirror_uses(spec: Mapping[str, Any], key: Key, contents_of: ContentsOf) -> Iterator[Use]:
    for alias, servers, topic in _mirror_flows(spec, key, contents_of):
        group = f"{alias}-mm2"
        yield Use(
            servers=frozenset(_servers(servers, key.namespace)),
            group=("group", group),
            topics={"offsets topic": topic or f"mm2-offsets.{alias}.internal"},
            leases=frozenset((group,)),
        )


def _mirror_flows(spec: Mapping[str, Any], key: Key, contents_of: ContentsOf) -> Iterator[tuple[str, str, str]]:
    """Yield each flow's source alias, target's servers, and offsets topic.

    The topic is empty if the file names none.
    """
    place = file_place(spec)
    if place is None and not spec.get("properties"):
        servers = {cluster.get("alias"): str(cluster.get("bootstrapServers")) for cluster in spec.get("clusters") or ()}
        for mirror in spec.get("mirrors") or ():
            yield str(mirror.get("source")), servers.get(mirror.get("target"), ""), ""
        return
    try:
        text = file_text(spec, key, contents_of(key.namespace, place.reference) if place else {})
        flows = read_mirror(text, spec, key).config.flows
    except (ConfigError, KubeRefused):
        return  # the turn tells of the mistake
    for flow in flows:
        yield flow.source.alias, ",".join(flow.target.bootstrap_servers), flow.connect.offset_storage_topic


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

    def __init__(self, class_name: str, contents_of: ContentsOf = lambda *_: {}) -> None:
        self._class_name = class_name
        self._contents_of = contents_of
        self._lock = threading.Lock()
        self._known: set[Key] = set()
        self._names: dict[Key, ConnectNames] = {}

    def see(self, key: Key, resource: Mapping[str, Any] | None) -> set[Key]:
        """Note a resource's present state, or None for a deleted resource.

        Return the other resources that are due for a turn: they share names with the resource, or did before.
        """
        names = connect_names(resource, self._class_name, self._contents_of) if resource else None
        with self._lock:
            before = self._names.pop(key, None)
            (self._known.add if resource else self._known.discard)(key)
            if names is not None:
                self._names[key] = names
            others = [other for other in self._names.values() if other.key != key]
        return {
            other.key for other in others for each in (before, names) if each is not None and each.shared_with(other)
        }

    def knows(self, key: Key) -> bool:
        """True if the resource is there, as far as reported."""
        with self._lock:
            return key in self._known

    def miss(self, key: Key) -> None:
        """Drop the names of a resource that a turn did not find.

        A turn that finds it again brings them back, other than after `see`.
        """
        with self._lock:
            self._names.pop(key, None)

    def sharing(self, key: Key, resource: Mapping[str, Any]) -> Sharing:
        """Return the resources that share names with this one.

        A Mirror's file may have changed without an event.
        """
        names = connect_names(resource, self._class_name, self._contents_of)
        if names is None:
            return Sharing()
        with self._lock:
            if key in self._known:
                self._names[key] = names
            others = [other for other in self._names.values() if other.key != key]
        told = [(other.age, _told(other, words)) for other in others if (words := names.shared_with(other))]
        told.sort()
        earlier = [words for age, words in told if age < names.age]
        return Sharing(earlier[0] if earlier else "", tuple(words for _, words in told[len(earlier) :]))


def _told(other: ConnectNames, words: str) -> str:
    return f"{other.key.told} uses the same {words}"
