"""Connect's connectors and workers as keys for an mm2.properties file.

MirrorMaker 2's dedicated mode goes the opposite way. There a flow's three connectors get the same keys; here each
connector has its own keys. If several connectors read a key, the source connector's value counts, and a note names
other values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sparkmirror.config.advice import of_no_client
from sparkmirror.config.duty_settings import STORAGE_SETTINGS
from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.connect_files import (
    IDENTITY,
    MUST_AGREE,
    SOURCE_ALIAS,
    TARGET_ALIAS,
    ConnectCluster,
    Connector,
    ConnectorRole,
    WorkerSettings,
    readers,
)
from sparkmirror.config.formats.reading import Note, place
from sparkmirror.config.formats.written import Written, as_written
from sparkmirror.config.known_keys import CLIENT, CONNECT, CONNECT_FAMILIES, CONNECTOR_BASE, ROLES
from sparkmirror.config.refusals import CONVERTERS
from sparkmirror.config.scopes import WHOLE_NAMES
from sparkmirror.config.settings import CLUSTERS_KEY
from sparkmirror.errors import ConfigError
from sparkmirror.mistakes import Mistakes

SECURITY = re.compile(r"security\.protocol|(ssl|sasl)\..*")
CONVERTER_KEYS = ("key.converter", "value.converter", "header.converter")

_OF_WORKERS = "has no effect: it is a setting of Connect's workers, which {place}"
_UNPREFIXED = "is for no cluster here, nor in MirrorMaker 2: write "
_STANDALONE = "offset.storage.file.filename"
_IN_A_FILE = (
    "is not read: where a standalone worker was is in that file only; sparkmirror continues where offset syncs and the"
    " target's records tell (docs/takeover.md)"
)
CONNECTS_OWN = {
    "group.id": "a flow's processes agree through a group of their own",
    "config.storage.topic": CONNECT["config.storage.topic"].reason,
    "status.storage.topic": CONNECT["status.storage.topic"].reason,
}
_STORAGE = {setting.name for setting in STORAGE_SETTINGS}


def as_mm2(
    path: str,
    clusters: Sequence[ConnectCluster],
    *,
    lone_checkpoints: bool = False,
    mistakes: Mistakes | None = None,
) -> tuple[list[Entry], list[Note]]:
    """Return the entries, each key once, and notes on all settings left out.

    `lone_checkpoints`: a checkpoint connector may be a flow's only connector; the flow then copies nothing. No key says
    so; `formats.load` does. Mistakes go into `mistakes`; without a list for mistakes, `ConfigError` is raised.
    """
    merged = _Merged(path, mistakes or Mistakes(), lone_checkpoints=lone_checkpoints)
    flows: dict[tuple[str, str], dict[ConnectorRole, Connector]] = {}
    for cluster in clusters:
        for connector in cluster.connectors:
            if not connector.flow[0]:
                reason = f"{connector.name} has no {SOURCE_ALIAS}"
                merged.mistakes.add(ConfigError(reason, origin=connector.path, key=SOURCE_ALIAS))
                continue
            first = flows.setdefault(connector.flow, {}).setdefault(connector.role, connector)
            if first is not connector:
                reason = (
                    f"{connector.name} is a second {connector.role.value} of {'->'.join(connector.flow)}; the first is"
                )
                merged.mistakes.add(ConfigError(f"{reason} {first.name}", origin=connector.path))
    aliases = dict.fromkeys(alias for flow in flows for alias in flow)
    merged.put("clusters", ", ".join(aliases))
    merged.put("emit.heartbeats.enabled", "false")
    for flow, connectors in flows.items():
        with merged.mistakes.gathered():
            merged.flow(flow, connectors)
    for cluster in clusters:
        if cluster.worker is not None:
            targets = {connector.flow[1] for connector in cluster.connectors} or (
                {cluster.target} if cluster.target else set()
            )
            merged.worker(cluster.worker, sorted(targets), cluster.connectors)
    merged.tidy(flows)
    if mistakes is None:
        merged.mistakes.stop()
    return list(merged.entries.values()), merged.notes


class _Merged:
    def __init__(self, path: str, mistakes: Mistakes, *, lone_checkpoints: bool) -> None:
        self.path = path
        self.mistakes = mistakes
        self._lone_checkpoints = lone_checkpoints
        self.entries: dict[str, Entry] = {}
        self.notes: list[Note] = []

    def put(self, key: str, value: str, at: Entry | None = None, written: str = "") -> None:
        """Add a value; two different values for a key are a mistake.

        `written` is the key's name in the user's file.
        """
        place_, line = (place(at.where, at.line), at.line) if at else (self.path, 0)
        entry = Written(
            key=key, value=value, where=place_, line=line, written=written or (as_written(at) if at else key)
        )
        first = self.entries.setdefault(key, entry)
        if first.value.strip() != value.strip():
            self.mistakes.add(entry.error(f"is something else in {first.where}; it can have one value only"))

    def note(self, at: Entry, reason: str, kind: str = "") -> None:
        self.notes.append(
            Note(path=at.where, line=at.line, key=as_written(at), reason=reason, kind=kind, setting=at.key)
        )

    # --- connectors -----------------------------------------------------------------------------

    def flow(self, flow: tuple[str, str], connectors: dict[ConnectorRole, Connector]) -> None:
        source, checkpoint = connectors.get(ConnectorRole.SOURCE), connectors.get(ConnectorRole.CHECKPOINT)
        name = "->".join(flow)
        first = next(iter(connectors.values())).settings["connector.class"]
        translates = checkpoint is not None and checkpoint.wants()
        if source is None and checkpoint is not None and translates:
            self._alone(checkpoint, name)
        for connector in connectors.values():
            if connector.name not in (connector.role.value, f"{name}.{connector.role.value}"):
                reason = f"is not needed: this is the {connector.role.word} connector of {name}"
                self.notes.append(
                    Note(path=connector.path, line=0, key=connector.name, reason=reason, kind="not needed")
                )
        wants = _word(translates or (source is not None and source.wants()))
        stated = next(
            (
                candidate.settings["enabled"]
                for candidate in (source, checkpoint)
                if candidate and "enabled" in candidate.settings
            ),
            first,
        )
        self.put(f"{name}.enabled", wants, stated)
        if not translates:
            at = checkpoint.settings["enabled"] if checkpoint else None
            self.put(
                f"{name}.emit.checkpoints.enabled", "false", at, "" if at else f"no {ConnectorRole.CHECKPOINT.value}"
            )
        if ConnectorRole.HEARTBEAT not in connectors:
            self.put(f"{name}.emit.heartbeats.enabled", "false", written=f"no {ConnectorRole.HEARTBEAT.value}")
        elif "emit.heartbeats.enabled" not in connectors[ConnectorRole.HEARTBEAT].settings:
            at = connectors[ConnectorRole.HEARTBEAT].settings["connector.class"]
            self.put(f"{name}.emit.heartbeats.enabled", "true", at)
        for key in (SOURCE_ALIAS, TARGET_ALIAS):
            self._alias(name, key, connectors.values())
        for connector in connectors.values():
            for entry in connector.settings.values():
                self._cluster(connector, entry)
        for connector in connectors.values():
            for entry in connector.settings.values():
                self._one(connector, entry, connectors)
        if source is not None and checkpoint is not None and checkpoint.wants():
            self._must_agree(source, checkpoint)

    def _alone(self, checkpoint: Connector, flow: str) -> None:
        if not self._lone_checkpoints:
            raise ConfigError(
                f"{checkpoint.name}: these files have no MirrorSourceConnector for {flow}, and offsets of groups can be"
                " translated only for topics that are copied; give the source connector's file, too",
                origin=checkpoint.path,
            )
        reason = (
            f"{flow} has no MirrorSourceConnector here, so nothing is copied, and groups are translated by"
            " sparkmirror's earlier copies; to copy, write a source connector into the same file"
        )
        line = checkpoint.settings["connector.class"].line
        self.notes.append(Note(path=checkpoint.path, line=line, key=checkpoint.name, reason=reason))

    def _alias(self, flow: str, key: str, connectors: Iterable[Connector]) -> None:
        """Add an empty alias: the flow has another name, MirrorMaker 2's data does not."""
        stated = [connector.settings[key] for connector in connectors if key in connector.settings]
        if not all(entry.value.strip() for entry in stated):
            for entry in stated:
                self.put(f"{flow}.{key}", entry.value, entry)

    def _cluster(self, connector: Connector, entry: Entry) -> None:
        """Add a setting for a cluster's brokers or security; note any other setting."""
        for end, alias in zip(("source", "target"), connector.flow, strict=True):
            prefix = f"{end}.cluster."
            if not entry.key.startswith(prefix) or entry.key in IDENTITY:
                continue
            key = entry.key.removeprefix(prefix)
            if key == "bootstrap.servers" or SECURITY.fullmatch(key):
                self.put(f"{alias}.{key}", entry.value, entry)
            elif key in CONNECT or key in _STORAGE or key.startswith(tuple(CONNECT_FAMILIES)):
                self._of_workers(entry)
            else:
                self.note(entry, of_no_client(prefix, key), "idle")

    def _of_workers(self, entry: Entry) -> None:
        counts = "counts in the target's config only" if isinstance(entry, Written) else "stands in their file"
        self.note(entry, _OF_WORKERS.format(place=counts), "idle")

    def _one(self, connector: Connector, entry: Entry, connectors: dict[ConnectorRole, Connector]) -> None:
        key = entry.key
        if key in IDENTITY or key == "enabled" or key.startswith(("source.cluster.", "target.cluster.")):
            return
        if key == "config.providers" or key.startswith(("config.providers.", "spark.")):
            self.put(key, entry.value, entry)
        elif key in _STORAGE:
            self._of_workers(entry)
        elif key == CLUSTERS_KEY:
            self.note(entry, "is not needed: a connector's clusters are its two aliases", "not needed")
        elif SECURITY.fullmatch(key):
            instead = "source.cluster. or target.cluster. before it"
            if isinstance(entry, Written):
                instead = "tls and authentication of a cluster"
            self.note(entry, _UNPREFIXED + instead, "idle")
        elif role_of(key):
            self._client(connector, entry, connectors.get(ConnectorRole.SOURCE))
        else:
            self._named(connector, entry, connectors)

    def _client(self, connector: Connector, entry: Entry, source: Connector | None) -> None:
        """Add a client's setting from the source connector, which all data goes through.

        The same setting in another connector has no effect; a note names a different value.
        """
        if connector.role is ConnectorRole.SOURCE:
            name = entry.key.removeprefix(role_of(entry.key))
            target = self.entries.get(f"{connector.flow[1]}.{name}")
            same = target is not None and target.value.strip() == entry.value.strip()
            # Connect needs the setting twice, as its workers' clients know nothing of the connector's clusters.
            if not (same and entry.key.startswith("producer.override.")):
                self.put(f"{'->'.join(connector.flow)}.{entry.key}", entry.value, entry)
        elif source is None or source.text(entry.key, entry.value) != entry.value.strip():
            self.note(entry, "has no effect: clients are set up for copying, by the source connector")

    def _named(self, connector: Connector, entry: Entry, connectors: dict[ConnectorRole, Connector]) -> None:
        if entry.key == "tasks.max" and connector.role is not ConnectorRole.SOURCE:
            return  # only records are spread over tasks
        reading = readers(entry.key)
        if connector.role not in reading:
            words = " and ".join(role.word for role in reading)
            self.note(entry, f"is not read by the {connector.role.word} connector, only by {words}", "misplaced")
            return
        owner = next(role for role in reading if role in connectors)
        if owner is connector.role:
            self.put(f"{'->'.join(connector.flow)}.{entry.key}", entry.value, entry)
        elif entry.key not in MUST_AGREE and connectors[owner].text(entry.key) != entry.value.strip():
            self.note(entry, f"is something else, or nothing, in the {owner.word} connector, whose value counts")

    def _must_agree(self, source: Connector, checkpoint: Connector) -> None:
        for key, default in MUST_AGREE.items():
            if source.text(key, default) == checkpoint.text(key, default):
                continue
            holder = checkpoint if key in checkpoint.settings else source
            reason = (
                f"{source.name} and {checkpoint.name} say different things, so MirrorMaker 2 would translate groups for"
                " topics that are not there; the source connector's value counts for both here"
            )
            self.note(holder.settings[key], reason, "mismatch")

    # --- workers --------------------------------------------------------------------------------

    def worker(self, worker: WorkerSettings, targets: Sequence[str], connectors: Iterable[Connector]) -> None:
        sources = [connector for connector in connectors if connector.role is ConnectorRole.SOURCE]
        self._converters(worker, sources)
        for target in targets:
            brokers, stated = self.entries.get(f"{target}.bootstrap.servers"), worker.settings.get("bootstrap.servers")
            elsewhere = brokers is not None and stated is not None and stated.value.strip() != brokers.value.strip()
            if elsewhere and stated is not None:
                self.note(
                    stated, f"Connect's own topics are not at {target}, where sparkmirror keeps its own: not used"
                )
            aliases = {source.flow[0] for source in sources if source.flow[1] == target}
            own = f"mm2-offsets.{min(aliases)}.internal" if len(aliases) == 1 else None
            if elsewhere and stated is not None and aliases:
                # The worker's own factor is for its own cluster.
                self.put(f"{target}.offset.storage.replication.factor", "-1", stated)
            for entry in worker.settings.values():
                if entry.key == _STANDALONE:
                    self.note(entry, _IN_A_FILE)
                elif entry.key in _STORAGE and not aliases:
                    self.note(entry, f"is not needed: nothing is copied to {target}", "not needed")
                elif entry.key not in _STORAGE or not (elsewhere or entry.value.strip() == own):
                    self._of_worker(target, entry)

    def tidy(self, flows: Iterable[tuple[str, str]]) -> None:
        """Drop the flow's keys that repeat a cluster's own key.

        Dedicated mode hands a cluster's key on to the flows.
        """
        for source, target in flows:
            prefix = f"{source}->{target}."
            for key in [key for key in self.entries if key.startswith(prefix)]:
                for end, alias in (("source.", source), ("target.", target)):
                    name = key.removeprefix(prefix + end)
                    own = self.entries.get(f"{alias}.{name}")
                    if name != key and role_of(name) and own is not None and own.value == self.entries[key].value:
                        del self.entries[key]

    def _converters(self, worker: WorkerSettings, sources: Sequence[Connector]) -> None:
        for key in CONVERTER_KEYS[:2]:
            for source in sources:
                stated = worker.settings.get(key)
                if stated is not None and key not in source.settings and stated.value.strip() not in CONVERTERS:
                    self.put(f"{'->'.join(source.flow)}.{key}", stated.value, stated)

    def _of_worker(self, target: str, entry: Entry) -> None:
        key = entry.key
        if key == "config.providers" or key.startswith(("config.providers.", "spark.")):
            self.put(key, entry.value, entry)
            return
        if key in CONNECTS_OWN:
            self.note(entry, f"is not needed: {CONNECTS_OWN[key]}", "not needed")
            return
        role = role_of(key)
        name = key.removeprefix(role)
        if key.startswith(CONVERTER_KEYS) and entry.value.strip() not in CONVERTERS:
            self.note(entry, f"is not needed: {CONNECTOR_BASE[CONVERTER_KEYS[0]].reason}", "not needed")
        if key == "bootstrap.servers" or key.startswith(CONVERTER_KEYS):
            return
        if name == "bootstrap.servers" or SECURITY.fullmatch(name):
            stated = self.entries.get(f"{target}.{name}")
            if stated is not None and stated.value.strip() == entry.value.strip():
                return
            if role != "producer.":
                self.note(entry, "is for Connect's own topics, which are not needed here", "idle")
                return
        elif not role and (name in CONNECT or name in CLIENT) and f"{target}.{key}" in self.entries:
            return  # another worker has the key, too; it has no effect from either worker
        self.put(f"{target}.{key}", entry.value, entry)


def role_of(key: str) -> str:
    """Return the client that a key is for, such as `producer.override.`.

    Empty if the key is the connector's own.
    """
    return "" if key in WHOLE_NAMES else next((role for role in ROLES if key.startswith(role)), "")


def _word(value: bool) -> str:
    return "true" if value else "false"
