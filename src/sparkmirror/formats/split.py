"""An mm2.properties file's keys as MirrorMaker 2's dedicated mode hands them out: to connectors and workers.

Its rules are `mm2.md` section 1.6, `workerConfig` and `connectorBaseConfig`; each connector gets the keys it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sparkmirror.config import Entry, FlowConfig, MirrorConfig
from sparkmirror.config.entries import Properties
from sparkmirror.config.originals import connector_originals
from sparkmirror.config.refusals import CONVERTERS
from sparkmirror.formats.connect import IDENTITY, PACKAGE, ConnectCluster, Connector, Role, Worker, readers
from sparkmirror.formats.merge import SECURITY, role_of
from sparkmirror.formats.reading import Note, Reading

SPARK_KEYS = "is for Spark on this machine: Kafka Connect and Strimzi have no place for it"
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
"""How top-level keys begin that reach the workers (`mm2.md` 1.6)."""


def as_connect(reading: Reading, config: MirrorConfig) -> tuple[list[ConnectCluster], list[Note]]:
    """A Connect cluster for each flow, and for each pair that only sends heartbeats; and what is not in them."""
    aliases = list(
        dict.fromkeys(one.alias for flow in (*config.flows, *config.beats) for one in (flow.source, flow.target))
    )
    entries = dict(Properties(reading.entries, (), aliases))
    notes = [
        Note(reading.path, entry.line, key, SPARK_KEYS) for key, entry in entries.items() if key.startswith("spark.")
    ]
    clusters = []
    for flow in (*config.flows, *config.beats):
        splitter = _Splitter(reading.path, entries, flow, copies=flow in config.flows)
        clusters.append(ConnectCluster(tuple(splitter.connectors()), splitter.worker(), flow.target.alias))
    return clusters, notes


class _Splitter:
    """One flow's share."""

    def __init__(self, path: str, entries: Mapping[str, Entry], flow: FlowConfig, *, copies: bool) -> None:
        self._path = path
        self._flow = flow
        self._copies = copies
        self._raw = {key: entry.value for key, entry in entries.items()}
        self._source, self._target = flow.source.alias, flow.target.alias
        self._base = connector_originals(self._raw, self._source, self._target)
        for key, value in self._raw.items():
            if key.startswith("sparkmirror."):
                self._base.setdefault(key, value)

    def connectors(self) -> Iterator[Connector]:
        """Those that have anything to do; a source connector, if records are copied."""
        if self._copies:
            yield self._connector(Role.SOURCE)
            if self._flow.group.emit_checkpoints_enabled:
                yield self._connector(Role.CHECKPOINT)
        if self._flow.heartbeat.emit_heartbeats_enabled:
            yield self._connector(Role.HEARTBEAT)

    def _connector(self, role: Role) -> Connector:
        name = f"{self._flow.name}.{role.value}"
        settings = {
            "name": name,
            "connector.class": PACKAGE + role.value,
            "tasks.max": "1",
            "source.cluster.alias": self._source,
            "target.cluster.alias": self._target,
        }
        settings |= {key: value for key, value in sorted(self._base.items()) if self._reads(role, key)}
        return Connector(role, name, _entries(settings), self._path)

    def _reads(self, role: Role, key: str) -> bool:
        if key in IDENTITY or key == "enabled" or key.startswith("config.providers"):
            return False
        if key.startswith(("source.cluster.", "target.cluster.")):
            name = key.split(".", 2)[2]
            return role is Role.SOURCE or name == "bootstrap.servers" or SECURITY.fullmatch(name) is not None
        name = key.removeprefix(role_of(key))
        if name == "bootstrap.servers" or SECURITY.fullmatch(name):
            return False  # each cluster's own are handed on
        if role_of(key) or key == "tasks.max" or key.startswith("sparkmirror."):
            return role is Role.SOURCE
        return role in readers(key)

    def worker(self) -> Worker:
        """The workers that MirrorMaker 2 would have for this flow."""
        settings = {"group.id": f"{self._source}-mm2"}
        settings |= {f"{kind}.storage.topic": f"mm2-{kind}s.{self._source}.internal" for kind in ("offset", "config")}
        settings["status.storage.topic"] = f"mm2-status.{self._source}.internal"
        settings |= {f"{kind}.converter": CONVERTERS[0] for kind in ("key", "value", "header")}
        prefix = "target.cluster."
        settings |= {key.removeprefix(prefix): value for key, value in self._base.items() if key.startswith(prefix)}
        del settings["alias"]
        for role in ("consumer.", "producer.", "admin."):
            for key, value in self._base.items():
                name = key.removeprefix(f"target.{role}")
                # Workers consume nothing but Connect's own topics, for which their own security counts.
                needless = name == "bootstrap.servers" or (role == "consumer." and SECURITY.fullmatch(name))
                if name != key and not needless:
                    settings[role + name] = value
        settings |= {key: value for key, value in self._raw.items() if key.startswith(_WORKERS)}
        return Worker(_entries(settings), self._path)


def _entries(settings: Mapping[str, str]) -> dict[str, Entry]:
    return {key: Entry(key, value, "") for key, value in settings.items()}
