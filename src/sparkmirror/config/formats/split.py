"""An mm2.properties file's keys, dealt out to connectors and workers.

MirrorMaker 2's dedicated mode does the same. The rules are `mm2.md` section 1.6, `workerConfig` and
`connectorBaseConfig`; each connector gets the keys that it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sparkmirror.config import MirrorConfig
from sparkmirror.config.entries import Entry, Properties
from sparkmirror.config.formats.connect_files import (
    IDENTITY,
    PACKAGE,
    RUNNING,
    SOURCE_ALIAS,
    TARGET_ALIAS,
    ConnectCluster,
    Connector,
    ConnectorRole,
    WorkerSettings,
    by_flow,
    readers,
)
from sparkmirror.config.formats.merge import CONNECTS_OWN, SECURITY, role_of
from sparkmirror.config.formats.reading import Note, Reading
from sparkmirror.config.metrics_settings import METRICS
from sparkmirror.config.originals import connector_originals
from sparkmirror.config.refusals import CONVERTERS

_LEFT_OUT = "is no enabled flow: its settings are left out"
SPARK_KEYS = "is for Spark on this machine: Kafka Connect and Strimzi have no place for it"
METRICS_KEYS = "is for sparkmirror run with its own file: say --metrics-port, or scrape sparkmirror serve's listeners"
_WORKERS = (
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task.",
    "worker.",
    "config.providers",
)
"""Prefixes for top-level keys that reach the workers (`mm2.md` 1.6)."""


def as_connect(reading: Reading, config: MirrorConfig | None) -> tuple[list[ConnectCluster], list[Note]]:
    """Return a Connect cluster for each flow, and notes on all settings left out.

    A pair that only sends heartbeats has a cluster, too. `config` is the model for `reading`; None if `reading` asks
    for no run.
    """
    shares = _read_as_connectors(reading) if reading.connect else _of_dedicated_mode(config)
    aliases = list(dict.fromkeys(alias for share in shares for alias in share.flow))
    entries = dict(Properties(reading.entries, (), aliases))
    notes = [
        Note(path=reading.path, line=entry.line, key=key, reason=SPARK_KEYS)
        for key, entry in entries.items()
        if key.startswith("spark.")
    ]
    notes += [
        Note(path=reading.path, line=entry.line, key=key, reason=METRICS_KEYS)
        for key, entry in entries.items()
        if key.startswith(METRICS)
    ]
    notes += [
        Note(path=reading.path, line=entry.line, key=name, reason=_LEFT_OUT)
        for name, entry in _left_out(reading, config).items()
    ]
    clusters = []
    for share in shares:
        splitter = _Splitter(reading.path, entries, share)
        clusters.append(ConnectCluster(tuple(splitter.connectors()), splitter.worker(), share.flow[1]))
    return clusters, notes


@dataclass(frozen=True, slots=True)
class _Share:
    """Connectors to write for a flow.

    Connectors and workers that come from a file are as they were there.
    """

    flow: tuple[str, str]
    roles: Mapping[ConnectorRole, Connector | None]
    worker: WorkerSettings | None = None


def _of_dedicated_mode(config: MirrorConfig | None) -> list[_Share]:
    """Return the connectors that have work; a source connector if records are copied."""
    shares = []
    for flow in (*config.flows, *config.beats) if config else ():
        copies = config is not None and flow in config.flows
        wanted = {
            ConnectorRole.SOURCE: copies,
            ConnectorRole.CHECKPOINT: copies and flow.group.emit_checkpoints_enabled,
            ConnectorRole.HEARTBEAT: flow.heartbeat.emit_heartbeats_enabled,
        }
        roles: dict[ConnectorRole, Connector | None] = {role: None for role, wants in wanted.items() if wants}
        shares.append(_Share((flow.source.alias, flow.target.alias), roles))
    return shares


def _read_as_connectors(reading: Reading) -> list[_Share]:
    """Return all connectors in a reading, paused and stopped connectors included."""
    workers = {
        connector.flow: cluster.worker for cluster in reversed(reading.connect) for connector in cluster.connectors
    }
    return [
        _Share(flow, {role: connectors[role] for role in ConnectorRole if role in connectors}, workers[flow])
        for flow, connectors in by_flow(reading.connect).items()
    ]


def _left_out(reading: Reading, config: MirrorConfig | None) -> dict[str, Entry]:
    """Return the pairs without a flow that have keys, each with its first key.

    Only an mm2.properties file has such pairs.
    """
    pairs: dict[str, Entry] = {}
    flows = {flow.name for flow in config.flows} if config else set()
    for entry in reading.entries if not reading.connect else ():
        source, arrow, rest = entry.key.partition("->")
        target, _, name = rest.partition(".")
        if arrow and f"{source}->{target}" not in flows and name != "enabled" and ConnectorRole.SOURCE in readers(name):
            pairs.setdefault(f"{source}->{target}", entry)
    return pairs


class _Splitter:
    """Splitter for a single flow's keys."""

    def __init__(self, path: str, entries: Mapping[str, Entry], share: _Share) -> None:
        self._path = path
        self._share = share
        self._raw = {key: entry.value for key, entry in entries.items()}
        self._source, self._target = share.flow
        self._base = connector_originals(self._raw, self._source, self._target)
        for key, value in self._raw.items():
            if key.startswith("sparkmirror.") and not key.startswith(METRICS):
                self._base.setdefault(key, value)

    def connectors(self) -> Iterator[Connector]:
        for role, read in self._share.roles.items():
            yield self._connector(role, read)

    def _connector(self, role: ConnectorRole, read: Connector | None) -> Connector:
        name = read.name if read else f"{self._source}->{self._target}.{role.value}"
        settings = {
            "name": name,
            "connector.class": PACKAGE + role.value,
            "tasks.max": read.text("tasks.max", "1") if read else "1",
            SOURCE_ALIAS: self._base[SOURCE_ALIAS].strip(),
            TARGET_ALIAS: self._base[TARGET_ALIAS].strip(),
        }
        settings |= {key: value for key, value in sorted(self._base.items()) if self._reads(role, key)}
        if read is not None and not read.wants():
            # The reading set these keys since the connector does not run, unless the file had them.
            own = read.settings if read.state == RUNNING else {}
            for key in {"emit.checkpoints.enabled", "emit.heartbeats.enabled"} - own.keys():
                settings.pop(key, None)
            if read.state == RUNNING:
                settings["enabled"] = "false"
        state = read.state if read else RUNNING
        return Connector(
            role=role, name=name, settings=_entries(settings), path=self._path, state=state, nameless=self._share.flow
        )

    def _reads(self, role: ConnectorRole, key: str) -> bool:
        if key in IDENTITY or key == "enabled" or key.startswith("config.providers"):
            return False
        if key.startswith(("source.cluster.", "target.cluster.")):
            name = key.split(".", 2)[2]
            return role is ConnectorRole.SOURCE or name == "bootstrap.servers" or SECURITY.fullmatch(name) is not None
        name = key.removeprefix(role_of(key))
        if name == "bootstrap.servers" or SECURITY.fullmatch(name):
            return False  # a cluster's own settings are handed on instead
        if role_of(key) or key == "tasks.max" or key.startswith("sparkmirror."):
            return role is ConnectorRole.SOURCE
        return role in readers(key)

    def worker(self) -> WorkerSettings:
        settings = {"group.id": f"{self._source}-mm2"}
        settings |= {f"{kind}.storage.topic": f"mm2-{kind}s.{self._source}.internal" for kind in ("offset", "config")}
        settings["status.storage.topic"] = f"mm2-status.{self._source}.internal"
        settings |= {f"{kind}.converter": CONVERTERS[0] for kind in ("key", "value", "header")}
        if self._share.worker is not None:
            read = self._share.worker.settings
            settings |= {key: read[key].value for key in CONNECTS_OWN if key in read}
        prefix = "target.cluster."
        settings |= {key.removeprefix(prefix): value for key, value in self._base.items() if key.startswith(prefix)}
        del settings["alias"]
        for role in ("consumer.", "producer.", "admin."):
            for key, value in self._base.items():
                name = key.removeprefix(f"target.{role}")
                # Workers consume only Connect's own topics, with the workers' own security.
                needless = name == "bootstrap.servers" or (role == "consumer." and SECURITY.fullmatch(name))
                if name != key and not needless:
                    settings[role + name] = value
        settings |= {key: value for key, value in self._raw.items() if key.startswith(_WORKERS)}
        return WorkerSettings(_entries(settings), self._path)


def _entries(settings: Mapping[str, str]) -> dict[str, Entry]:
    return {key: Entry(key=key, value=value, where="") for key, value in settings.items()}
