"""The rules' input: the read files and their resulting configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.config import FlowConfig, MirrorConfig
from sparkmirror.config.entries import Entry
from sparkmirror.config.formats import Reading, model_of
from sparkmirror.config.formats.connect_files import Connector, ConnectorRole, by_flow
from sparkmirror.config.formats.merge import role_of
from sparkmirror.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Subject:
    """Read files, with the resulting configuration or the error that prevents one."""

    reading: Reading
    config: MirrorConfig | None
    error: ConfigError | None

    @classmethod
    def of(cls, reading: Reading) -> Subject:
        if reading.idle:
            return cls(reading, None, None)
        try:
            return cls(reading, model_of(reading)[0], None)
        except ConfigError as error:
            return cls(reading, None, error)

    @property
    def flows(self) -> tuple[FlowConfig, ...]:
        """The file's flows; empty if the file can't be run."""
        return self.config.flows if self.config else ()

    def entries(self) -> Iterator[Entry]:
        """Yield every entry as written in the files, including keys without effect."""
        if not self.reading.connect:
            yield from self.reading.entries
        for cluster in self.reading.connect:
            for connector in cluster.connectors:
                yield from connector.settings.values()
            if cluster.worker is not None:
                yield from cluster.worker.settings.values()

    def named(self, *names: str) -> Iterator[Entry]:
        """Yield entries with these names as keys, with or without a prefix."""
        for entry in self.entries():
            if any(entry.key == name or entry.key.endswith(f".{name}") for name in names):
                yield entry

    def stated(self, name: str, flow: FlowConfig) -> Entry | None:
        entries = {entry.key: entry for entry in self.reading.entries}
        return entries.get(f"{flow.name}.{name}") or entries.get(name)

    def own_key(self, key: str) -> str:
        """Return a key as in the user's file: connectors' keys have no flow as prefix."""
        flows = ("->".join(flow) + "." for flow, _ in self.connectors())
        return key.removeprefix(next((flow for flow in flows if key.startswith(flow)), ""))

    def flow_spot(self, flow: FlowConfig) -> Entry:
        """Return the entry that enables the flow, for findings about missing keys."""
        for entry in self.reading.entries:
            if entry.key == f"{flow.name}.enabled":
                return entry
        return Entry(key=flow.name, value="", where=self.reading.path)

    def connectors(self) -> Iterator[tuple[tuple[str, str], dict[ConnectorRole, Connector]]]:
        """Yield each flow with its connectors; nothing for an mm2.properties file."""
        yield from by_flow(self.reading.connect).items()


def bare(key: str) -> str:
    """Return a key's name, without flow, cluster or client as prefix."""
    if "->" in key:
        key = key.partition("->")[2].partition(".")[2]
    return key.removeprefix(role_of(key))
