"""Connectors as flows: the three connectors for one pair of aliases are one flow.

MirrorMaker 2 regards the three connectors as one mirror, too. `formats.merge` reads the settings and decides between
connectors with different values. This module decides which connector works, which can't work, and what its status says.
The same connectors give the same flows in every process.

The older of two connectors for the same work has the work (`ConnectorSpec.place`): a newcomer never ends a running
flow. A connector that is stopped, or can't be run as configured, has no work. A connector that is paused, or whose
cluster is away, keeps its work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sparkmirror.config import FlowConfig, MirrorConfig
from sparkmirror.config.declared_providers import FAMILY, PROVIDERS_KEY
from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.connect_files import (
    IDENTITY,
    MUST_AGREE,
    PACKAGE,
    ConnectCluster,
    Connector,
    ConnectorRole,
    WorkerSettings,
    readers,
)
from sparkmirror.config.formats.merge import as_mm2
from sparkmirror.config.properties import explain_entries
from sparkmirror.config.scopes import WHOLE_NAMES
from sparkmirror.connect.connector_model import ConnectorSpec, TargetState
from sparkmirror.connect.loadable import KEYS, Loadable, read_loadable
from sparkmirror.connect.masking import is_secret
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.sync.topic_rules import group_filter, topic_rules

DUTIES = {
    ConnectorRole.SOURCE: "is copied",
    ConnectorRole.CHECKPOINT: "has its checkpoints",
    ConnectorRole.HEARTBEAT: "has its heartbeats",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorPart:
    """One connector's part in its flow."""

    role: ConnectorRole | None = None
    """The connector's role; None if it is none of MirrorMaker 2's."""
    flow: str = ""
    """The flow's name, `source->target`; empty if unknown."""
    failure: str = ""
    """Reason, in one line, for a connector that can't run; else empty."""
    note: str = ""
    """Hint about a running connector: contradicting settings, or a missing partner."""
    idle: bool = False
    """True if the connector runs and has no work."""
    unfit: bool = False
    """True if the connector can't run because of its own configuration alone."""


@dataclass(frozen=True, slots=True)
class Flows:
    """Flows from all connectors in one Connect cluster."""

    config: MirrorConfig
    """Configuration for all flows with a started connector."""
    parts: Mapping[str, ConnectorPart]
    """Part in its flow, by connector."""
    known: Mapping[str, FlowConfig] = field(default_factory=dict)
    """Every readable flow and heartbeat pair by name, as with all connectors started."""


def read_flows(specs: Mapping[str, ConnectorSpec], worker: WorkerSettings) -> Flows:
    """Return the flows that these connectors ask for.

    No error is raised: a wrong connector's part has its failure, and the other connectors continue.
    """
    loadable = read_loadable(worker.settings)
    file = replace(worker, settings={key: entry for key, entry in worker.settings.items() if key not in KEYS})
    parts: dict[str, ConnectorPart] = {}
    pairs: dict[str, list[Connector]] = defaultdict(list)
    queue = sorted(specs.values(), key=lambda spec: (spec.target_state is TargetState.STOPPED, spec.place, spec.name))
    for spec in queue:
        if spec.held:
            parts[spec.name] = ConnectorPart(failure=spec.held, unfit=True)
            continue
        try:
            connector = _connector(spec, loadable)
        except ConfigError as error:
            parts[spec.name] = ConnectorPart(failure=str(error), unfit=True)
            continue
        pairs["->".join(connector.flow)].append(connector)
    readings = {flow: _Reading(flow, connectors, file, loadable) for flow, connectors in pairs.items()}
    for reading in readings.values():
        parts |= reading.parts
    _name_strangers(readings, parts)
    flows, beats, warnings = [], [], []
    targets: dict[tuple[str, str], _Reading] = {}
    # Flows that copy go before flows with checkpoints alone; among equals the older goes first, as in the queue.
    for reading in sorted(readings.values(), key=lambda reading: ConnectorRole.SOURCE not in reading.connectors):
        if reading.flow is None:
            continue
        started = {
            role
            for role, connector in reading.connectors.items()
            if specs[connector.name].target_state is TargetState.STARTED and not parts[connector.name].failure
        }
        warnings += reading.warnings
        if reading.is_beat:
            beats += [reading.flow] if started else []
            continue
        if all(specs[member.name].target_state is TargetState.STOPPED for member in reading.connectors.values()):
            continue
        rival = next(
            (
                rival
                for place in _topic_sites(reading.flow)
                if (rival := targets.setdefault(place, reading)) is not reading
            ),
            None,
        )
        if rival is not None:
            why = (
                f"{rival.name} has the same source alias and the same target cluster: their offsets would be in one"
                " topic; give both connectors the same target.cluster.alias, or the sources two; or stop those of"
                f" {rival.name}, and these take over"
            )
            parts |= {member.name: _failed(parts[member.name], why) for member in reading.connectors.values()}
            continue
        if started:
            flows.append(_with(reading.flow, started))
    config = MirrorConfig(
        path=worker.path,
        flows=tuple(flows),
        beats=tuple(beats),
        warnings=tuple(dict.fromkeys(warnings)),
    )
    known = {name: reading.flow for name, reading in readings.items() if reading.flow is not None}
    return Flows(config, parts, known)


def _connector(spec: ConnectorSpec, loadable: Loadable) -> Connector:
    origin = f"connector {spec.name}"
    for key, value in spec.config.items():
        if refusal := loadable.refusal(key, loadable.resolved(value)):
            shown = "" if is_secret(key) else f"{value}: "
            raise ConfigError(shown + refusal, origin=origin, key=key)
    settings = {
        key: Entry(key=key, value=value, where=origin)
        for key, value in spec.config.items()
        if key not in ("clusters", PROVIDERS_KEY) and not key.startswith(FAMILY)
    }
    stated = settings.get("connector.class")
    short = (stated.value.strip() if stated else "").removeprefix(PACKAGE)
    role = next((role for role in ConnectorRole if short in (role.value, role.value.removesuffix("Connector"))), None)
    if role is None:
        known = ", ".join(PACKAGE + role.value for role in ConnectorRole)
        raise ConfigError(f"is none of MirrorMaker 2's: write one of {known}", origin=origin, key="connector.class")
    connector = Connector(role=role, name=spec.name, settings=settings, path=origin)
    if not connector.flow[0]:
        raise ConfigError("is missing: write the source's alias", origin=origin, key="source.cluster.alias")
    for end, alias in zip(("source", "target"), connector.flow, strict=True):
        if not alias.isprintable():  # aliases are part of output that is printed line by line
            raise ConfigError(f"{alias!r} holds no text", origin=origin, key=f"{end}.cluster.alias")
    return connector


def _second(connector: Connector, first: Connector) -> ConnectorPart:
    flow = "->".join(connector.flow)
    words = f"{flow} {DUTIES[connector.role]} by {first.name} already"
    later = f"when {first.name} is deleted or stopped, {connector.name} takes over"
    if connector.role is ConnectorRole.SOURCE:
        return ConnectorPart(
            role=connector.role,
            flow=flow,
            failure=f"{words}: put the topics of {connector.name} into that one; {later}",
        )
    words += f", so that there is nothing left to do; {later}"
    if any(key.startswith(("emit.heartbeats.", "heartbeats.topic.")) for key in connector.settings):
        words += f"; its settings are those of a {ConnectorRole.HEARTBEAT.value}"
    return ConnectorPart(role=connector.role, flow=flow, note=words, idle=True)


class _Reading:
    """One flow's connectors, read together.

    The first readable connector for each role in `queue` has the work.
    """

    def __init__(self, name: str, queue: Sequence[Connector], worker: WorkerSettings, loadable: Loadable) -> None:
        self.name = name
        self.connectors: dict[ConnectorRole, Connector] = {}
        """Connectors that have the work, by role."""
        self.flow: FlowConfig | None = None
        self.warnings: list[str] = []
        self.parts: dict[str, ConnectorPart] = {}
        self._worker = worker
        self._loadable = loadable
        # The source connector goes first, so that a failure blames the connector that contradicts it.
        for connector in sorted(queue, key=lambda connector: list(ConnectorRole).index(connector.role)):
            self.parts[connector.name] = self._part(connector)
        self._note_checkpoints()

    @property
    def is_beat(self) -> bool:
        return set(self.connectors) == {ConnectorRole.HEARTBEAT}

    def _part(self, connector: Connector) -> ConnectorPart:
        first = self.connectors.get(connector.role)
        if first is not None:
            return _second(connector, first)
        try:
            self.flow, self.warnings = self._merged([*self.connectors.values(), connector])
        except ConfigError as error:
            return ConnectorPart(
                role=connector.role, flow=self.name, failure=self._in_their_words(str(error)), unfit=True
            )
        self.connectors[connector.role] = connector
        return ConnectorPart(role=connector.role, flow=self.name)

    def _note_checkpoints(self) -> None:
        """Note settings that contradict the source connector, or its absence.

        Without a source connector only earlier copies have checkpoints.
        """
        source, checkpoint = self.connectors.get(ConnectorRole.SOURCE), self.connectors.get(ConnectorRole.CHECKPOINT)
        if checkpoint is None:
            return
        if source is not None:
            disagreement = _disagreement(source, checkpoint)
            for connector in (source, checkpoint) if disagreement else ():
                self.parts[connector.name] = replace(self.parts[connector.name], note=disagreement)
            return
        unfit = [f"{name} can't be run" for name, part in self.parts.items() if part.role is ConnectorRole.SOURCE]
        words = (
            f"waits for a {ConnectorRole.SOURCE.value} of {self.name}: checkpoints are translated by the"
            " records that it has copied; until there is one, only offsets of earlier copies are translated"
        )
        words = "; ".join([words, *unfit])
        self.parts[checkpoint.name] = replace(self.parts[checkpoint.name], note=words)

    def _merged(self, connectors: Sequence[Connector]) -> tuple[FlowConfig, list[str]]:
        """Return these connectors' flow and its warnings; raise `ConfigError`."""
        roles = {connector.role: connector for connector in connectors}
        notes: list[str] = []
        if ConnectorRole.SOURCE not in roles and ConnectorRole.CHECKPOINT in roles:
            # Without a source connector, keys of both roles count as the checkpoint connector states them.
            lent = replace(roles[ConnectorRole.CHECKPOINT], role=ConnectorRole.SOURCE)
            entries, _ = as_mm2(lent.path, [ConnectCluster((lent, *connectors), self._worker)])
        else:
            own = [_own(connector) if ConnectorRole.SOURCE in roles else connector for connector in connectors]
            entries, all_notes = as_mm2(connectors[0].path, [ConnectCluster(tuple(own), self._worker)])
            # `_own` has taken shared keys out of the other connectors; `_disagreement` names the differences.
            notes = [str(note) for note in all_notes if note.kind not in ("not needed", "mismatch")]
        config, _ = explain_entries(connectors[0].path, list(self._with_target(entries, connectors[0])), notes=notes)
        flow = next(iter((*config.flows, *config.beats)), None)
        if flow is None:
            raise ConfigError(
                "asks for no work: enable the flow or its heartbeats", origin=connectors[0].path, key="enabled"
            )
        # A flow whose classes or filters can't be built must not occupy the pair.
        self._loadable.check(flow)
        topic_rules(flow)
        group_filter(flow)
        if ConnectorRole.SOURCE in roles:
            connect = flow.connect.model_copy(update={"connector": roles[ConnectorRole.SOURCE].name})
            flow = flow.model_copy(update={"connect": connect})
        return flow, [self._in_their_words(line) for line in config.warnings]

    def _in_their_words(self, line: str) -> str:
        """Return the message with keys as in a connector, without the flow's name."""
        return line.replace(f"{self.name}.", "")

    def _with_target(self, entries: Sequence[Entry], connector: Connector) -> Iterable[Entry]:
        """Add the worker's own cluster as the target if the connector names no target.

        Connect does the same.
        """
        yield from entries
        alias = connector.flow[1]
        if any(entry.key == f"{alias}.bootstrap.servers" for entry in entries):
            return
        for key, entry in self._worker.settings.items():
            if key in ("bootstrap.servers", "security.protocol") or key.startswith(("ssl.", "sasl.")):
                yield Entry(key=f"{alias}.{key}", value=entry.value, where=entry.where, line=entry.line)


def _failed(part: ConnectorPart, why: str) -> ConnectorPart:
    """Return the part with this failure, unless there is an earlier failure."""
    return replace(part, failure=part.failure or why)


def _own(connector: Connector) -> Connector:
    """Return a connector without the keys that another role decides.

    A shared key that the source connector does not state has its default, whatever other connectors state.
    """
    settings = {
        key: entry
        for key, entry in connector.settings.items()
        if (key in WHOLE_NAMES and readers(key)[0] is connector.role) or key not in WHOLE_NAMES or key in IDENTITY
    }
    return replace(connector, settings=settings)


def _disagreement(source: Connector, checkpoint: Connector) -> str:
    """Return, in words, the settings that must agree and differ.

    The source connector's values count.
    """
    words = [
        f"{key} is {source.text(key, default) or 'empty'} in {source.name} and"
        f" {checkpoint.text(key, default) or 'empty'} in {checkpoint.name}"
        for key, default in MUST_AGREE.items()
        if source.text(key, default) != checkpoint.text(key, default)
    ]
    return f"{'; '.join(words)}: what {source.name} says counts for both" if words else ""


def _name_strangers(readings: Mapping[str, _Reading], parts: dict[str, ConnectorPart]) -> None:
    """Note connectors whose aliases may be a misspelling of a source connector's.

    A noted connector has no source connector in its own pair. Its pair differs from the source connector's in one
    alias, although both connectors name the same bootstrap server there.
    """
    sources = [reading for reading in readings.values() if ConnectorRole.SOURCE in reading.connectors]
    for reading in readings.values():
        if ConnectorRole.SOURCE in reading.connectors or not reading.connectors:
            continue
        for with_source in sources:
            first, source = next(iter(reading.connectors.values())), with_source.connectors[ConnectorRole.SOURCE]
            ends = [
                end
                for end, alias, source_alias in zip(("source", "target"), first.flow, source.flow, strict=True)
                if alias != source_alias
            ]
            key = f"{ends[0]}.cluster.alias"
            if len(ends) != 1 or not _same_servers(first, source, ends[0]):
                continue
            own, sources_own = (connector.text(key, "target") or "empty" for connector in (first, source))
            for connector in (*reading.connectors.values(), source):
                words = (
                    f"{key} is {own} in {first.name} and {sources_own} in {source.name}: write the same for one flow"
                )
                parts[connector.name] = replace(parts[connector.name], note=words)


def _same_servers(connector: Connector, other: Connector, end: str) -> bool:
    """Tell whether two connectors share a bootstrap server of `end`.

    `end` is `source` or `target`.
    """
    key = f"{end}.cluster.bootstrap.servers"
    servers, others = ({word.strip() for word in each.text(key).split(",")} for each in (connector, other))
    return bool(servers & others)


def _topic_sites(flow: FlowConfig) -> list[tuple[str, str]]:
    """Return pairs of source alias and target server, which identify internal topics.

    Two flows with a pair in common would write to the same internal topics.
    """
    return [(flow.source.alias, server) for server in flow.target.bootstrap_servers]


def _with(flow: FlowConfig, started: set[ConnectorRole]) -> FlowConfig:
    """Return the flow without the work of connectors that are not started."""
    update: dict[str, object] = {}
    if ConnectorRole.SOURCE not in started:
        update["copies"] = False
    if ConnectorRole.CHECKPOINT not in started:
        off = {"emit_checkpoints_enabled": False, "sync_group_offsets_enabled": False}
        update["group"] = flow.group.model_copy(update=off)
    if ConnectorRole.HEARTBEAT not in started:
        update["heartbeat"] = flow.heartbeat.model_copy(update={"emit_heartbeats_enabled": False})
    return flow.model_copy(update=update)
