"""Strimzi's `KafkaMirrorMaker2` as the operator reads it: workers and connectors.

`docs/strimzi.md` has the fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkmirror.config.declared_providers import PROVIDERS_KEY
from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.connect_files import (
    PACKAGE,
    RUNNING,
    STATES,
    ConnectCluster,
    Connector,
    ConnectorRole,
    WorkerSettings,
    readers,
    resting,
)
from sparkmirror.config.formats.files import KIND, File
from sparkmirror.config.formats.merge import SECURITY
from sparkmirror.config.formats.reading import Note, Resource
from sparkmirror.config.formats.secrets import KINDS, MountedKeys, Secrets
from sparkmirror.config.formats.strimzi_notes import FieldNotes
from sparkmirror.config.formats.strimzi_providers import Providers
from sparkmirror.config.formats.strimzi_security import FieldError, security_settings
from sparkmirror.config.formats.strimzi_shapes import MANIFEST, RESOURCE, without_wrong
from sparkmirror.config.formats.written import Written
from sparkmirror.config.formats.yaml_files import Document, Path_, as_text, documents_of, read_text, shown
from sparkmirror.errors import ConfigError
from sparkmirror.mistakes import Mistakes

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
"""Prefixes for keys that the operator takes out of a cluster's `config`."""
LEFT_IN = ("ssl.endpoint.identification.algorithm", "ssl.cipher.suites", "ssl.protocol", "ssl.enabled.protocols")
"""Keys that the operator leaves in nevertheless."""
_STAND_IN = "cluster:9092"
"""Stand-in for missing brokers, so that further mistakes are found."""
_ALIASES = ("alias", "sourceCluster", "connectCluster")
_NO_ALIAS = (
    "is empty, which Strimzi's definition of the resource forbids; to keep names as MirrorMaker 2 does with an empty"
    " alias, name the cluster here and write source.cluster.alias and replication.policy.separator as '' into the"
    " config of each connector"
)
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
"""Names of the operator's Connect, by v1's fields.

Each has the key in v1beta2's `config`, and its default.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrimziFiles:
    """All resources' contents."""

    clusters: tuple[ConnectCluster, ...]
    resources: tuple[Resource, ...]
    providers: tuple[Entry, ...]
    """Entries that declare config providers."""
    notes: tuple[Note, ...]
    """Notes on fields without effect, and on missing Secrets."""
    documents: tuple[Document, ...]
    fields: Mapping[str, str]
    """Each alias's place, such as `spec.target`."""


def read_strimzi(
    files: Sequence[File], mounted: str | MountedKeys | None, mistakes: Mistakes, *, without_secrets: bool = False
) -> StrimziFiles:
    """Read every resource in the files; mistakes go into `mistakes`.

    Raise `ConfigError` if there is no resource. `without_secrets`: a Secret's missing value is worth a note only.
    """
    documents = [document for file in files for document in file.documents]
    mirrors = [document for document in documents if document.tree.get("kind") == KIND]
    if not mirrors:
        kinds = ", ".join(dict.fromkeys(str(document.tree.get("kind") or "none") for document in documents))
        there = f"; there is {kinds}" if kinds else ""
        raise ConfigError(f"holds no resource of kind {KIND}{there}", origin=files[0].path)
    manifests: list[Mapping[str, Any]] = []
    with mistakes.gathered():
        manifests += _manifests(documents, mounted if isinstance(mounted, str) else None, mistakes)
    secrets = Secrets(mounted, manifests)
    clusters, resources, providers, notes = [], [], Providers(secrets), []
    fields: dict[str, str] = {}
    for document in mirrors:
        with mistakes.gathered():
            reader = _ResourceReader(document, secrets, providers, mistakes, without_secrets=without_secrets)
            cluster, resource = reader.read()
            clusters.append(cluster)
            resources.append(resource)
            notes += reader.notes
            fields |= reader.fields
    if not clusters:
        mistakes.stop()
    declared = tuple(providers.entries(files[0].path))
    return StrimziFiles(
        clusters=tuple(clusters),
        resources=tuple(resources),
        providers=declared,
        notes=tuple(notes),
        documents=tuple(documents),
        fields=fields,
    )


def _manifests(documents: Iterable[Document], directory: str | None, mistakes: Mistakes) -> Iterator[Mapping[str, Any]]:
    files = sorted(map(str, Path(directory).glob("*.y*ml"))) if directory else ()
    others = [document for file in files for document in documents_of(file, read_text(file))]
    for document in [*others, *documents]:
        if document.tree.get("kind") in KINDS:
            right, wrong = without_wrong(document, MANIFEST)
            for mistake in wrong.values():
                mistakes.add(mistake)
            yield right.tree


class _ResourceReader:
    """Reader for a single resource."""

    def __init__(
        self,
        document: Document,
        secrets: Secrets,
        providers: Providers,
        mistakes: Mistakes,
        *,
        without_secrets: bool,
    ) -> None:
        self._document, self._wrong = without_wrong(document, RESOURCE)
        for mistake in self._wrong.values():
            mistakes.add(mistake)
        self._secrets = secrets
        self._providers = providers
        self._mistakes = mistakes
        self._without_secrets = without_secrets
        self.notes: list[Note] = []
        self.fields: dict[str, str] = {}
        """Each alias's place."""
        self._worker: dict[str, Entry] = {}
        group, _, version = (self._document.tree.get("apiVersion") or "").rpartition("/")
        if f"{group}/" != GROUP or version not in VERSIONS:
            raise self._error(("apiVersion",), _other_version(group, version))
        self._version = version
        self._spec: dict[str, Any] = self._document.tree.get("spec") or {}
        if not self._spec:
            raise self._error((), "has no spec")
        self._old = "target" not in self._spec and self._version == "v1beta2"

    def read(self) -> tuple[ConnectCluster, Resource]:
        """Return the resource as Connect's configuration, and for its status."""
        self.notes += FieldNotes(self._document, self._version, old=self._old).all()
        mirrors = self._spec.get("mirrors")
        if not mirrors:
            reason = "mirrors is missing: write the mirrors"
            raise self._wrong.get(("spec", "mirrors")) or self._error((), reason, "spec.mirrors")
        target: dict[str, Any] = {"alias": "target", "bootstrapServers": _STAND_IN}
        target_steps: Path_ = ("spec",)
        with self._mistakes.gathered():
            target, target_steps = self._target()
        alias = self._alias(target, target_steps)
        common = self._cluster("target", target, target_steps)
        connectors: list[Connector] = []
        states = []
        for index in range(len(mirrors)):
            with self._mistakes.gathered():
                for connector, state in self._mirror(index, alias, common):
                    connectors.append(connector)
                    states.append(("->".join(connector.flow), connector.name, state))
        replicas = self._replicas()
        if replicas > 1:
            kind = "" if self._spec.get("replicas") is not None else "not needed"
            self._note(("spec", "replicas"), f"has no effect above 1: {_REPLICAS.format(replicas - 1)}", kind)
        resource = Resource(
            document=self._document.tree,
            path=self._document.path,
            target=alias,
            connectors=tuple(states),
            replicas=replicas,
        )
        worker = WorkerSettings(self._worker, self._document.path)
        return ConnectCluster(tuple(connectors), worker, alias), resource

    def _replicas(self) -> int:
        stated = self._spec.get("replicas")
        return (3 if self._version == "v1beta2" else 1) if stated is None else int(stated)

    # --- clusters -------------------------------------------------------------------------------

    def _target(self) -> tuple[dict[str, Any], Path_]:
        if not self._old:
            target = self._need(self._spec, "target", ("spec",))
            for field in WORKERS_OWN:
                self._text(target, field, ("spec", "target"), field)
            return target, ("spec", "target")
        alias = self._need(self._spec, "connectCluster", ("spec",))
        return self._listed(alias, ("spec", "connectCluster"))

    def _source(self, mirror: dict[str, Any], steps: Path_) -> tuple[dict[str, Any], Path_]:
        if not self._old:
            return self._need(mirror, "source", steps), (*steps, "source")
        into, connect = mirror.get("targetCluster"), self._spec.get("connectCluster")
        if into is not None and connect is not None and into != connect:
            reason = f"is not {connect}, the connectCluster, where all records go: write connectCluster: {into}"
            targets = list(dict.fromkeys(str(each.get("targetCluster") or connect) for each in self._spec["mirrors"]))
            if len(targets) > 1:
                reason = (
                    f"is not {connect}: a resource has one target, its connectCluster; write one resource for each of"
                    f" {', '.join(targets)}, with the mirrors into it"
                )
            raise self._wrong_in((*steps, "targetCluster")) or self._error((*steps, "targetCluster"), reason)
        return self._listed(self._need(mirror, "sourceCluster", steps), (*steps, "sourceCluster"))

    def _listed(self, alias: Any, asked: Path_) -> tuple[dict[str, Any], Path_]:
        clusters = self._spec.get("clusters") or []
        for index, cluster in enumerate(clusters):
            if cluster.get("alias") == alias:
                return cluster, ("spec", "clusters", index)
        there = ", ".join(str(cluster.get("alias")) for cluster in clusters) or "none"
        raise self._error(asked, f"{alias} is not among spec.clusters: {there}")

    def _alias(self, cluster: Mapping[str, Any], steps: Path_) -> str:
        alias = self._text(cluster, "alias", steps, shown(steps))
        if not re.fullmatch(r"[a-zA-Z0-9._-]{1,100}", alias) and cluster.get("alias"):
            reason = "must be made of letters, digits, '.', '_' and '-'"
            self._tell((*steps, "alias"), reason)
        self.fields.setdefault(alias, shown(steps))
        return alias

    def _cluster(self, end: str, cluster: dict[str, Any], steps: Path_) -> dict[str, Entry]:
        prefix = f"{end}.cluster."
        servers = self._text(cluster, "bootstrapServers", steps, _STAND_IN)
        given: dict[str, Entry] = {}

        def put(key: str, value: Any, *at: str | int) -> None:
            given[prefix + key] = self._entry(prefix + key, value, (*steps, *at))

        put("alias", self._alias(cluster, steps), "alias")
        put("bootstrap.servers", servers, "bootstrapServers")
        try:
            for field, key, value in security_settings(cluster, self._secrets):
                self._name_missing((*steps, *_steps(field)))
                put(key, value, *_steps(field))
        except FieldError as error:
            self._tell((*steps, *_steps(error.field)), error.reason)
            # The cluster's other security settings would only cause further mistakes.
            given = {key: entry for key, entry in given.items() if not SECURITY.fullmatch(key.removeprefix(prefix))}
        config = {key: self._entry(key, value, (*steps, "config", key)) for key, value in _map(cluster, "config")}
        if end == "target":
            self._workers(cluster, config, steps)
        for key, entry in config.items():
            if key in LEFT_IN or (end == "source" and not key.startswith(TAKEN_OUT)):
                put(key, entry.value, "config", key)
        return given

    def _workers(self, target: Mapping[str, Any], config: dict[str, Entry], steps: Path_) -> None:
        self._providers.take(config)
        for field, (key, default) in WORKERS_OWN.items():
            if not self._old:
                self._worker[key] = self._entry(key, target.get(field), (*steps, field))
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
        steps: Path_ = ("spec", "mirrors", index)
        mirror = self._spec["mirrors"][index]
        source, source_steps = self._source(mirror, steps)
        clusters = {**common, **self._cluster("source", source, source_steps)}
        alias = clusters["source.cluster.alias"].value
        if alias == target:
            reason = f"{alias} is the target, too: they must be two clusters"
            self._tell((*source_steps, "alias"), reason)
            return
        patterns = dict(self._patterns(mirror, steps))
        for role in ConnectorRole:
            field = f"{role.word}Connector"
            if field not in mirror or (role is ConnectorRole.HEARTBEAT and self._version == "v1"):
                continue
            spec = mirror[field] or {}
            own = (*steps, field)
            settings = clusters | dict(self._connector(role, spec, own))
            settings |= {key: entry for key, entry in patterns.items() if role in readers(key)}
            if role is ConnectorRole.SOURCE and (rack := self._rack()) is not None:
                settings["consumer.client.rack"] = rack
            pause = spec.get("pause") is True and self._version == "v1beta2"
            state = spec.get("state") or ("paused" if pause else RUNNING)
            if state not in STATES:
                self._tell((*own, "state"), "must be paused, stopped or running")
                state = RUNNING
            wanted = "stopped" if state == RUNNING and self._replicas() == 0 else state
            if wanted != RUNNING:
                settings |= resting(role, self._entry("state", wanted, (*own, "state")))
            name = f"{alias}->{target}.{role.value}"
            yield (
                Connector(
                    role=role,
                    name=name,
                    settings=settings,
                    path=self._document.path,
                    state=wanted,
                    nameless=(alias, target),
                ),
                state,
            )

    def _connector(self, role: ConnectorRole, spec: dict[str, Any], steps: Path_) -> Iterator[tuple[str, Entry]]:
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

    def _patterns(self, mirror: Mapping[str, Any], steps: Path_) -> Iterator[tuple[str, Entry]]:
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

    def _need(self, there: Mapping[str, Any], field: str, steps: Path_) -> Any:
        if not there.get(field):
            reason = _NO_ALIAS if field in _ALIASES and there.get(field) == "" else "is missing"
            raise self._wrong_in((*steps, field)) or self._error(steps, reason, shown((*steps, field)))
        return there[field]

    def _text(self, there: Mapping[str, Any], field: str, steps: Path_, stand_in: str) -> str:
        """Return a field's text; without text add a mistake, and return `stand_in`."""
        try:
            return str(self._need(there, field, steps))
        except ConfigError as error:
            self._mistakes.add(error)
            return stand_in

    def _entry(self, key: str, value: Any, steps: Path_) -> Entry:
        text = as_text(value)
        try:
            text = self._providers.resolved(text)
        except ValueError as error:
            self._tell(steps, str(error))
        self._name_missing(steps)
        return Written(
            key=key,
            value=text,
            where=self._document.path,
            line=self._document.line(*steps),
            written=shown(steps),
        )

    def _name_missing(self, steps: Path_) -> None:
        """Report the Secrets that the latest look-ups missed."""
        for reason in self._secrets.missing():
            if self._without_secrets:
                self._note(steps, f"{reason}; until then its values are not known", "secret")
            else:
                self._tell(steps, reason)

    def _wrong_in(self, steps: Path_) -> ConfigError | None:
        """Return the error for a field that has a wrong shape, or for a field above it."""
        return next((self._wrong[steps[:end]] for end in range(len(steps) + 1) if steps[:end] in self._wrong), None)

    def _tell(self, steps: Path_, reason: str) -> None:
        """Add a mistake, or the wrong shape that the mistake follows from."""
        self._mistakes.add(self._wrong_in(steps) or self._error(steps, reason))

    def _note(self, steps: Path_, reason: str, kind: str = "") -> None:
        self.notes.append(
            Note(path=self._document.path, line=self._document.line(*steps), key=shown(steps), reason=reason, kind=kind)
        )

    def _error(self, steps: Path_, reason: str, field: str | None = None) -> ConfigError:
        return self._document.error(steps, reason, field)


def _other_version(group: str, version: str) -> str:
    """Return what is wrong with an `apiVersion`.

    Vendors that ship Strimzi under their own group have kept its fields.
    """
    if group and version in VERSIONS:
        return (
            f"{group} is another vendor's group; if its resources have Strimzi's fields, as those of IBM Event Streams"
            f" have, write {GROUP}{version} here: all else is read as it is"
        )
    return f"must be {' or '.join(GROUP + name for name in VERSIONS)}"


def _map(there: Mapping[str, Any], field: str) -> Iterable[tuple[str, Any]]:
    return (there.get(field) or {}).items()


def _steps(field: str) -> Path_:
    """Split a path such as `tls.trustedCertificates[0]` into steps.

    A config's key, with its dots, is a single step.
    """
    head, config, key = field.partition("config.")
    steps = tuple(int(name) if name.isdigit() else name for name in re.findall(r"[^.\[\]]+", head))
    return (*steps, "config", key) if config else steps
