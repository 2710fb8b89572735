"""Connectors as flows: the three of one pair of aliases are one flow, as they are one mirror for MirrorMaker 2.

What is read, and whose value counts, is as in `formats.merge`. Here it is decided what each connector does of it: which
one is at work, which can't be, and what is said about it. The same connectors give the same flows in every process.

Of two connectors for the same work the older has it (`ConnectorSpec.place`): a newcomer never ends what runs. Who is
stopped, or can't be run as configured, has nothing; who is paused, or whose cluster is away, keeps it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sparkmirror.config import Entry, FlowConfig, MirrorConfig, explain_entries
from sparkmirror.config.providers import FAMILY, PROVIDERS_KEY
from sparkmirror.config.scopes import WHOLE_NAMES
from sparkmirror.connect.loadable import CLASSES_KEY, Loadable, read_loadable
from sparkmirror.connect.masking import is_secret
from sparkmirror.connect.model import ConnectorSpec, TargetState
from sparkmirror.errors import ConfigError
from sparkmirror.formats.connect import (
    IDENTITY,
    MUST_AGREE,
    PACKAGE,
    ConnectCluster,
    Connector,
    ConnectorRole,
    WorkerSettings,
    readers,
)
from sparkmirror.formats.merge import as_mm2
from sparkmirror.sync.topic_rules import group_filter, topic_rules

DUTIES = {
    ConnectorRole.SOURCE: "is copied",
    ConnectorRole.CHECKPOINT: "has its checkpoints",
    ConnectorRole.HEARTBEAT: "has its heartbeats",
}


@dataclass(frozen=True, slots=True)
class ConnectorPart:
    """What one connector has to do with its flow."""

    role: ConnectorRole | None = None
    """None: it is none of MirrorMaker 2's."""
    flow: str = ""
    """`source->target`; nothing where that can't be told."""
    failure: str = ""
    """Why it can't run, in one line."""
    note: str = ""
    """What is to be known though it runs: settings that disagree, or what it can't do alone."""
    idle: bool = False
    """It runs, and has nothing to do."""
    unfit: bool = False
    """It is its configuration that it can't run with, and no other connector."""


@dataclass(frozen=True, slots=True)
class Flows:
    """All connectors of one Connect cluster."""

    config: MirrorConfig
    """Of those that are started."""
    parts: Mapping[str, ConnectorPart]
    """By connector."""
    known: Mapping[str, FlowConfig] = field(default_factory=dict)
    """Every flow and pair that could be read, by name, as if all of its connectors were started."""


def read_flows(specs: Mapping[str, ConnectorSpec], worker: WorkerSettings) -> Flows:
    """What these connectors make. Nothing is raised: what is wrong with one is said of it, and the others go on."""
    loadable = read_loadable(worker.settings)
    file = replace(worker, settings={key: entry for key, entry in worker.settings.items() if key != CLASSES_KEY})
    parts: dict[str, ConnectorPart] = {}
    pairs: dict[str, list[Connector]] = defaultdict(list)
    queue = sorted(specs.values(), key=lambda spec: (spec.target_state is TargetState.STOPPED, spec.place, spec.name))
    for spec in queue:
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
    # Who copies goes before who only sends checkpoints; then the older, as the queue has it.
    for reading in sorted(readings.values(), key=lambda one: ConnectorRole.SOURCE not in one.connectors):
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
        if all(specs[one.name].target_state is TargetState.STOPPED for one in reading.connectors.values()):
            continue
        rival = next(
            (rival for at in _places(reading.flow) if (rival := targets.setdefault(at, reading)) is not reading), None
        )
        if rival is not None:
            why = (
                f"{rival.name} has the same source alias and the same target cluster: their offsets would be in one"
                " topic; give both connectors the same target.cluster.alias, or the sources two; or stop those of"
                f" {rival.name}, and these take over"
            )
            parts |= {one.name: _failed(parts[one.name], why) for one in reading.connectors.values()}
            continue
        if started:
            flows.append(_with(reading.flow, started))
    config = MirrorConfig(
        path=worker.path,
        flows=tuple(flows),
        beats=tuple(beats),
        warnings=tuple(dict.fromkeys(warnings)),
    )
    known = {name: one.flow for name, one in readings.items() if one.flow is not None}
    return Flows(config, parts, known)


def _connector(spec: ConnectorSpec, loadable: Loadable) -> Connector:
    where = f"connector {spec.name}"
    for key, value in spec.config.items():
        if refusal := loadable.refusal(key, loadable.resolved(value)):
            shown = "" if is_secret(key) else f"{value}: "
            raise ConfigError(shown + refusal, where=where, key=key)
    settings = {
        key: Entry(key, value, where)
        for key, value in spec.config.items()
        if key not in ("clusters", PROVIDERS_KEY) and not key.startswith(FAMILY)
    }
    stated = settings.get("connector.class")
    short = (stated.value.strip() if stated else "").removeprefix(PACKAGE)
    role = next((role for role in ConnectorRole if short in (role.value, role.value.removesuffix("Connector"))), None)
    if role is None:
        known = ", ".join(PACKAGE + role.value for role in ConnectorRole)
        raise ConfigError(f"is none of MirrorMaker 2's: write one of {known}", where=where, key="connector.class")
    connector = Connector(role, spec.name, settings, where)
    if not connector.flow[0]:
        raise ConfigError("is missing: write the source's alias", where=where, key="source.cluster.alias")
    for end, alias in zip(("source", "target"), connector.flow, strict=True):
        if not alias.isprintable():  # it would be in what is printed, line by line
            raise ConfigError(f"{alias!r} holds what is no text", where=where, key=f"{end}.cluster.alias")
    return connector


def _second(connector: Connector, first: Connector) -> ConnectorPart:
    flow = "->".join(connector.flow)
    words = f"{flow} {DUTIES[connector.role]} by {first.name} already"
    later = f"when {first.name} is deleted or stopped, {connector.name} takes over"
    if connector.role is ConnectorRole.SOURCE:
        return ConnectorPart(
            connector.role, flow, failure=f"{words}: put the topics of {connector.name} into that one; {later}"
        )
    words += f", so that there is nothing left to do; {later}"
    if any(key.startswith(("emit.heartbeats.", "heartbeats.topic.")) for key in connector.settings):
        words += f"; its settings are those of a {ConnectorRole.HEARTBEAT.value}"
    return ConnectorPart(connector.role, flow, note=words, idle=True)


class _Reading:
    """One flow's connectors read together, as far as they can be; of `queue` the first of each role that can."""

    def __init__(self, name: str, queue: Sequence[Connector], worker: WorkerSettings, loadable: Loadable) -> None:
        self.name = name
        self.connectors: dict[ConnectorRole, Connector] = {}
        """Those that have the work."""
        self.flow: FlowConfig | None = None
        self.warnings: list[str] = []
        self.parts: dict[str, ConnectorPart] = {}
        self._worker = worker
        self._loadable = loadable
        # The source connector's goes first, so that another that contradicts it is to blame.
        for connector in sorted(queue, key=lambda one: list(ConnectorRole).index(one.role)):
            self.parts[connector.name] = self._part(connector)
        self._note_checkpoints()

    @property
    def is_beat(self) -> bool:
        """Whether it only sends heartbeats."""
        return set(self.connectors) == {ConnectorRole.HEARTBEAT}

    def _part(self, connector: Connector) -> ConnectorPart:
        first = self.connectors.get(connector.role)
        if first is not None:
            return _second(connector, first)
        try:
            self.flow, self.warnings = self._merged([*self.connectors.values(), connector])
        except ConfigError as error:
            return ConnectorPart(connector.role, self.name, failure=self._in_their_words(str(error)), unfit=True)
        self.connectors[connector.role] = connector
        return ConnectorPart(connector.role, self.name)

    def _note_checkpoints(self) -> None:
        """What is to be known of checkpoints: that they are of other topics than are copied, or of none."""
        source, checkpoint = self.connectors.get(ConnectorRole.SOURCE), self.connectors.get(ConnectorRole.CHECKPOINT)
        if checkpoint is None:
            return
        if source is not None:
            disagreement = _disagreement(source, checkpoint)
            for one in (source, checkpoint) if disagreement else ():
                self.parts[one.name] = replace(self.parts[one.name], note=disagreement)
            return
        unfit = [f"{name} can't be run" for name, part in self.parts.items() if part.role is ConnectorRole.SOURCE]
        words = (
            f"waits for a {ConnectorRole.SOURCE.value} of {self.name}: checkpoints are translated by what it has"
            " copied, and until there is one only what was copied before is translated"
        )
        words = "; ".join([words, *unfit])
        self.parts[checkpoint.name] = replace(self.parts[checkpoint.name], note=words)

    def _merged(self, connectors: Sequence[Connector]) -> tuple[FlowConfig, list[str]]:
        """The flow of these connectors; raises `ConfigError`."""
        roles = {connector.role: connector for connector in connectors}
        notes: list[str] = []
        if ConnectorRole.SOURCE not in roles and ConnectorRole.CHECKPOINT in roles:
            # What is read of both is in the checkpoint connector, then.
            lent = replace(roles[ConnectorRole.CHECKPOINT], role=ConnectorRole.SOURCE)
            entries, _ = as_mm2(lent.path, [ConnectCluster((lent, *connectors), self._worker)])
        else:
            own = [_own(one) if ConnectorRole.SOURCE in roles else one for one in connectors]
            entries, found = as_mm2(connectors[0].path, [ConnectCluster(tuple(own), self._worker)])
            # What both connectors say is in one of them now; `_disagreement` names what they say differently.
            notes = [str(note) for note in found if note.kind not in ("not needed", "mismatch")]
        config, _ = explain_entries(connectors[0].path, list(self._with_target(entries, connectors[0])), notes=notes)
        flow = next(iter((*config.flows, *config.beats)), None)
        if flow is None:
            raise ConfigError("asks for nothing to be done", where=connectors[0].path, key="enabled")
        # What can't be built can't be run, and must not have the pair.
        self._loadable.check(flow)
        topic_rules(flow, flow.originals)
        group_filter(flow, flow.originals)
        if ConnectorRole.SOURCE in roles:
            connect = flow.connect.model_copy(update={"connector": roles[ConnectorRole.SOURCE].name})
            flow = flow.model_copy(update={"connect": connect})
        return flow, [self._in_their_words(line) for line in config.warnings]

    def _in_their_words(self, line: str) -> str:
        """Keys as they stand in a connector, where the flow's name need not be said."""
        return line.replace(f"{self.name}.", "")

    def _with_target(self, entries: Sequence[Entry], connector: Connector) -> Iterable[Entry]:
        """A connector that names no target writes, as in Connect, to the worker's own cluster."""
        yield from entries
        alias = connector.flow[1]
        if any(entry.key == f"{alias}.bootstrap.servers" for entry in entries):
            return
        for key, entry in self._worker.settings.items():
            if key in ("bootstrap.servers", "security.protocol") or key.startswith(("ssl.", "sasl.")):
                yield Entry(f"{alias}.{key}", entry.value, entry.where, entry.line)


def _failed(part: ConnectorPart, why: str) -> ConnectorPart:
    """The same with a failure, unless it had one."""
    return replace(part, failure=part.failure or why)


def _own(connector: Connector) -> Connector:
    """Beside a source connector: what that is silent about has its default, whatever the others say."""
    settings = {
        key: entry
        for key, entry in connector.settings.items()
        if (key in WHOLE_NAMES and readers(key)[0] is connector.role) or key not in WHOLE_NAMES or key in IDENTITY
    }
    return replace(connector, settings=settings)


def _disagreement(source: Connector, checkpoint: Connector) -> str:
    """What both must say the same about and don't; the source connector's values count."""
    words = [
        f"{key} is {source.text(key, default) or 'empty'} in {source.name} and"
        f" {checkpoint.text(key, default) or 'empty'} in {checkpoint.name}"
        for key, default in MUST_AGREE.items()
        if source.text(key, default) != checkpoint.text(key, default)
    ]
    return f"{'; '.join(words)}: what {source.name} says counts for both" if words else ""


def _name_strangers(readings: Mapping[str, _Reading], parts: dict[str, ConnectorPart]) -> None:
    """Connectors without a source connector of their own aliases, though there is one that they may belong to."""
    sources = [one for one in readings.values() if ConnectorRole.SOURCE in one.connectors]
    for reading in readings.values():
        if ConnectorRole.SOURCE in reading.connectors or not reading.connectors:
            continue
        for other in sources:
            ours, theirs = next(iter(reading.connectors.values())), other.connectors[ConnectorRole.SOURCE]
            ends = [
                end
                for end, mine, there in zip(("source", "target"), ours.flow, theirs.flow, strict=True)
                if mine != there
            ]
            key = f"{ends[0]}.cluster.alias"
            if len(ends) != 1 or not _same_servers(ours, theirs, ends[0]):
                continue
            mine, there = (one.text(key, "target") or "empty" for one in (ours, theirs))
            for one in (*reading.connectors.values(), theirs):
                words = f"{key} is {mine} in {ours.name} and {there} in {theirs.name}: write the same for one flow"
                parts[one.name] = replace(parts[one.name], note=words)


def _same_servers(one: Connector, other: Connector, end: str) -> bool:
    """Whether both speak of the same cluster, whatever they call it."""
    key = f"{end}.cluster.bootstrap.servers"
    mine, theirs = ({word.strip() for word in each.text(key).split(",")} for each in (one, other))
    return bool(mine & theirs)


def _places(flow: FlowConfig) -> list[tuple[str, str]]:
    """Where its internal topics are: by these it can be seen that two flows are at odds."""
    return [(flow.source.alias, server) for server in flow.target.bootstrap_servers]


def _with(flow: FlowConfig, started: set[ConnectorRole]) -> FlowConfig:
    """The flow without what is done by connectors that rest."""
    update: dict[str, object] = {}
    if ConnectorRole.SOURCE not in started:
        update["copies"] = False
    if ConnectorRole.CHECKPOINT not in started:
        off = {"emit_checkpoints_enabled": False, "sync_group_offsets_enabled": False}
        update["group"] = flow.group.model_copy(update=off)
    if ConnectorRole.HEARTBEAT not in started:
        update["heartbeat"] = flow.heartbeat.model_copy(update={"emit_heartbeats_enabled": False})
    return flow.model_copy(update=update)
