"""Strimzi's `KafkaMirrorMaker2` as the operator reads it: workers and connectors (`docs/strimzi.md` has the fields)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkmirror.config import Entry
from sparkmirror.config.providers import PROVIDERS_KEY
from sparkmirror.errors import ConfigError
from sparkmirror.formats.connect import (
    PACKAGE,
    RUNNING,
    STATES,
    ConnectCluster,
    Connector,
    Role,
    Worker,
    readers,
    resting,
)
from sparkmirror.formats.reading import Note, Resource
from sparkmirror.formats.secrets import KINDS, Secrets
from sparkmirror.formats.strimzi_notes import FieldNotes
from sparkmirror.formats.strimzi_providers import Providers
from sparkmirror.formats.strimzi_security import FieldError, security_settings
from sparkmirror.formats.strimzi_shapes import MANIFEST, RESOURCE, check_shape
from sparkmirror.formats.yaml_files import Document, as_text, read_documents, shown

KIND = "KafkaMirrorMaker2"
GROUP = "kafka.strimzi.io/"
VERSIONS = ("v1", "v1beta2")

TAKEN_OUT = (
    "group.id",
    "config.storage.topic",
    "offset.storage.topic",
    "status.storage.topic",
    "ssl.",
    "sasl.",
    "security.",
    "listeners",
    "plugin.path",
    "rest.",
    "bootstrap.servers",
    "consumer.interceptor.classes",
    "producer.interceptor.classes",
)
"""How keys begin that the operator takes out of a cluster's `config`."""
LEFT_IN = ("ssl.endpoint.identification.algorithm", "ssl.cipher.suites", "ssl.protocol", "ssl.enabled.protocols")
"""Those that it leaves in nevertheless."""
_CONNECTORS_OWN = ("name", "connector.class", "tasks.max", "connector.plugin.version")
_REPLICAS = (
    "this process is one, and Spark's tasks share the work; for {} that stand by, start as many more on this file"
)
_PATTERNS = {
    "topics": ("topicsPattern",),
    "topics.exclude": ("topicsExcludePattern", "topicsBlacklistPattern"),
    "groups": ("groupsPattern",),
    "groups.exclude": ("groupsExcludePattern", "groupsBlacklistPattern"),
}
WORKERS_OWN = {
    "groupId": ("group.id", "mirrormaker2-cluster"),
    "configStorageTopic": ("config.storage.topic", "mirrormaker2-cluster-configs"),
    "offsetStorageTopic": ("offset.storage.topic", "mirrormaker2-cluster-offsets"),
    "statusStorageTopic": ("status.storage.topic", "mirrormaker2-cluster-status"),
}
"""What the operator's Connect is called by: v1's fields, with the keys of v1beta2's `config` and their defaults."""


def read_strimzi(
    path: str, secrets_directory: str | None
) -> tuple[tuple[ConnectCluster, ...], tuple[Resource, ...], list[Entry], list[Note]]:
    """Every resource of the file, what declares config providers, and what has no effect. Raises `ConfigError`."""
    documents = read_documents(path)
    found = [document for document in documents if document.tree.get("kind") == KIND]
    if not found:
        raise ConfigError(f"holds no resource of kind {KIND}", where=path)
    secrets = Secrets(secrets_directory, _manifests(documents, secrets_directory))
    clusters, resources, providers, notes = [], [], Providers(secrets), []
    for document in found:
        reader = _ResourceReader(document, secrets, providers)
        cluster, resource = reader.read()
        clusters.append(cluster)
        resources.append(resource)
        notes += reader.notes
    return tuple(clusters), tuple(resources), providers.entries(path), notes


def _manifests(documents: Iterable[Document], directory: str | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    files = sorted(Path(directory).glob("*.y*ml")) if directory else ()
    beside = [document for file in files for document in read_documents(str(file))]
    for document in [*beside, *documents]:
        if document.tree.get("kind") in KINDS:
            check_shape(document, MANIFEST)
            yield document.path, document.tree


class _ResourceReader:
    """One resource."""

    def __init__(self, document: Document, secrets: Secrets, providers: Providers) -> None:
        self._document = document
        self._secrets = secrets
        self._providers = providers
        self.notes: list[Note] = []
        self._worker: dict[str, Entry] = {}
        check_shape(document, RESOURCE)
        version = document.tree.get("apiVersion") or ""
        if version.removeprefix(GROUP) not in VERSIONS:
            known = " or ".join(GROUP + one for one in VERSIONS)
            raise self._error(("apiVersion",), f"must be {known}")
        self._version = version.removeprefix(GROUP)
        self._spec: dict[str, Any] = document.tree.get("spec") or {}
        if not self._spec:
            raise self._error((), "has no spec")
        self._old = "target" not in self._spec and self._version == "v1beta2"

    def read(self) -> tuple[ConnectCluster, Resource]:
        """The resource as Connect's configuration, and for its status."""
        self.notes += FieldNotes(self._document, self._version, old=self._old).all()
        mirrors = self._spec.get("mirrors")
        if not mirrors:
            raise self._error((), "mirrors is missing: write what is mirrored", "spec.mirrors")
        target, target_steps = self._target()
        alias = self._alias(target, target_steps)
        common = self._cluster("target", target, target_steps)
        connectors: list[Connector] = []
        states = []
        for index in range(len(mirrors)):
            for connector, state in self._mirror(index, alias, common):
                connectors.append(connector)
                states.append(("->".join(connector.flow), connector.name, state))
        replicas = self._replicas()
        if replicas > 1:
            kind = "" if self._spec.get("replicas") is not None else "not needed"
            self._note(("spec", "replicas"), f"has no effect above 1: {_REPLICAS.format(replicas - 1)}", kind)
        resource = Resource(self._document.tree, self._document.path, alias, tuple(states), replicas)
        worker = Worker(self._worker, self._document.path)
        return ConnectCluster(tuple(connectors), worker, alias), resource

    def _replicas(self) -> int:
        stated = self._spec.get("replicas")
        return (3 if self._version == "v1beta2" else 1) if stated is None else int(stated)

    # --- clusters -------------------------------------------------------------------------------

    def _target(self) -> tuple[dict[str, Any], tuple[str | int, ...]]:
        if not self._old:
            target = self._need(self._spec, "target", ("spec",))
            for field in WORKERS_OWN:
                self._need(target, field, ("spec", "target"))
            return target, ("spec", "target")
        alias = self._need(self._spec, "connectCluster", ("spec",))
        return self._listed(alias, ("spec", "connectCluster"))

    def _source(self, mirror: dict[str, Any], steps: tuple[str | int, ...]) -> tuple[dict[str, Any], tuple[Any, ...]]:
        if not self._old:
            return self._need(mirror, "source", steps), (*steps, "source")
        into, connect = mirror.get("targetCluster"), self._spec["connectCluster"]
        if into is not None and into != connect:
            raise self._error(
                (*steps, "targetCluster"),
                f"is not {connect}, the connectCluster, which is where all records go; make connectCluster the target",
            )
        return self._listed(self._need(mirror, "sourceCluster", steps), (*steps, "sourceCluster"))

    def _listed(self, alias: Any, asked: tuple[str | int, ...]) -> tuple[dict[str, Any], tuple[str | int, ...]]:
        clusters = self._spec.get("clusters") or []
        for index, cluster in enumerate(clusters):
            if cluster.get("alias") == alias:
                return cluster, ("spec", "clusters", index)
        there = ", ".join(str(cluster.get("alias")) for cluster in clusters) or "none"
        raise self._error(asked, f"{alias} is not among spec.clusters: {there}")

    def _alias(self, cluster: Mapping[str, Any], steps: tuple[str | int, ...]) -> str:
        alias = str(self._need(cluster, "alias", steps))
        if not re.fullmatch(r"[a-zA-Z0-9._-]{1,100}", alias):
            raise self._error((*steps, "alias"), "must be made of letters, digits, '.', '_' and '-'")
        return alias

    def _cluster(self, end: str, cluster: dict[str, Any], steps: tuple[str | int, ...]) -> dict[str, Entry]:
        """What each connector is told about one of its clusters."""
        prefix = f"{end}.cluster."
        servers = self._need(cluster, "bootstrapServers", steps)
        given: dict[str, Entry] = {}

        def put(key: str, value: Any, *at: str | int) -> None:
            given[prefix + key] = self._entry(prefix + key, value, (*steps, *at))

        put("alias", self._alias(cluster, steps), "alias")
        put("bootstrap.servers", servers, "bootstrapServers")
        try:
            for field, key, value in security_settings(cluster, self._secrets):
                put(key, value, *_steps(field))
        except FieldError as error:
            raise self._error((*steps, *_steps(error.field)), error.reason) from None
        config = {key: self._entry(key, value, (*steps, "config", key)) for key, value in _map(cluster, "config")}
        if end == "target":
            self._workers(cluster, config, steps)
        for key, entry in config.items():
            if key in LEFT_IN or (end == "source" and not key.startswith(TAKEN_OUT)):
                put(key, entry.value, "config", key)
        return given

    def _workers(self, target: Mapping[str, Any], config: dict[str, Entry], steps: tuple[str | int, ...]) -> None:
        self._providers.take(config)
        for field, (key, default) in WORKERS_OWN.items():
            if not self._old:
                self._worker[key] = self._entry(key, target[field], (*steps, field))
            else:
                self._worker[key] = config.get(key) or self._entry(key, default, steps)
        for key, entry in config.items():
            if key.startswith(PROVIDERS_KEY) or key in LEFT_IN:
                continue
            if key.startswith(TAKEN_OUT):
                if not (self._old and key in self._worker):
                    self._note(
                        (*steps, "config", key), "is taken out by Strimzi: it says so in fields of its own", "idle"
                    )
            else:
                self._worker[key] = entry

    # --- mirrors --------------------------------------------------------------------------------

    def _mirror(self, index: int, target: str, common: Mapping[str, Entry]) -> Iterator[tuple[Connector, str]]:
        steps: tuple[str | int, ...] = ("spec", "mirrors", index)
        mirror = self._spec["mirrors"][index]
        source, source_steps = self._source(mirror, steps)
        clusters = {**common, **self._cluster("source", source, source_steps)}
        alias = clusters["source.cluster.alias"].value
        if alias == target:
            raise self._error((*source_steps, "alias"), f"{alias} is the target, too: they must be two clusters")
        patterns = dict(self._patterns(mirror, steps))
        for role in Role:
            field = f"{role.word}Connector"
            if field not in mirror or (role is Role.HEARTBEAT and self._version == "v1"):
                continue
            spec = mirror[field] or {}
            own = (*steps, field)
            settings = clusters | dict(self._connector(role, spec, own))
            settings |= {key: entry for key, entry in patterns.items() if role in readers(key)}
            if role is Role.SOURCE and (rack := self._rack()) is not None:
                settings["consumer.client.rack"] = rack
            pause = spec.get("pause") is True and self._version == "v1beta2"
            state = spec.get("state") or ("paused" if pause else RUNNING)
            if state not in STATES:
                raise self._error((*own, "state"), "must be paused, stopped or running")
            wanted = "stopped" if state == RUNNING and self._replicas() == 0 else state
            if wanted != RUNNING:
                settings |= resting(role, self._entry("state", wanted, (*own, "state")))
            name = f"{alias}->{target}.{role.value}"
            yield Connector(role, name, settings, self._document.path, wanted), state

    def _connector(self, role: Role, spec: dict[str, Any], steps: tuple[str | int, ...]) -> Iterator[tuple[str, Entry]]:
        yield "connector.class", self._entry("connector.class", PACKAGE + role.value, steps)
        yield (
            "tasks.max",
            self._entry("tasks.max", 1 if spec.get("tasksMax") is None else spec["tasksMax"], (*steps, "tasksMax")),
        )
        for key, value in _map(spec, "config"):
            if key in _CONNECTORS_OWN:
                self._note((*steps, "config", key), "is taken out by Strimzi", "idle")
            else:
                yield key, self._entry(key, value, (*steps, "config", key))

    def _patterns(self, mirror: Mapping[str, Any], steps: tuple[str | int, ...]) -> Iterator[tuple[str, Entry]]:
        for key, fields in _PATTERNS.items():
            for field in fields:
                if mirror.get(field) is not None and not (field.endswith("BlacklistPattern") and self._version == "v1"):
                    yield key, self._entry(key, mirror[field], (*steps, field))
                    break

    def _rack(self) -> Entry | None:
        rack = self._spec.get("rack")
        if not rack:
            return None
        if rack.get("type") != "environment-variable" or not rack.get("envVarName"):
            self._note(
                ("spec", "rack"), "has no effect: a node's label is not seen from here; name an environment variable"
            )
            return None
        return self._entry("consumer.client.rack", f"${{strimzienv:{rack['envVarName']}}}", ("spec", "rack"))

    # --- fields ---------------------------------------------------------------------------------

    def _need(self, there: Mapping[str, Any], field: str, steps: Sequence[str | int]) -> Any:
        if not there.get(field):
            raise self._error(tuple(steps), "is missing", shown((*steps, field)))
        return there[field]

    def _entry(self, key: str, value: Any, steps: tuple[str | int, ...]) -> Entry:
        try:
            text = self._providers.resolved(as_text(value))
        except ValueError as error:
            raise self._error(steps, str(error)) from None
        return Entry(key, text, self._document.path, self._document.line(*steps))

    def _note(self, steps: tuple[str | int, ...], reason: str, kind: str = "") -> None:
        self.notes.append(Note(self._document.path, self._document.line(*steps), shown(steps), reason, kind))

    def _error(self, steps: tuple[str | int, ...], reason: str, field: str | None = None) -> ConfigError:
        return self._document.error(steps, reason, field)


def _map(there: Mapping[str, Any], field: str) -> Iterable[tuple[str, Any]]:
    return (there.get(field) or {}).items()


def _steps(field: str) -> tuple[str | int, ...]:
    """`tls.trustedCertificates[0]` as steps; a config's key, with its dots, is one step."""
    head, config, key = field.partition("config.")
    steps = tuple(int(name) if name.isdigit() else name for name in re.findall(r"[^.\[\]]+", head))
    return (*steps, "config", key) if config else steps
