"""Files as the rules look at them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.config import Entry, FlowConfig, MirrorConfig
from sparkmirror.errors import ConfigError
from sparkmirror.formats import Reading, explain
from sparkmirror.formats.connect import Connector, ConnectorRole, by_flow
from sparkmirror.formats.merge import role_of


@dataclass(frozen=True, slots=True)
class Subject:
    """What was read, and what it comes to; `error` is why it comes to nothing."""

    reading: Reading
    config: MirrorConfig | None
    error: ConfigError | None

    @classmethod
    def of(cls, reading: Reading) -> Subject:
        """Look at what was read."""
        if reading.idle:
            return cls(reading, None, None)
        try:
            return cls(reading, explain(reading)[0], None)
        except ConfigError as error:
            return cls(reading, None, error)

    @property
    def flows(self) -> tuple[FlowConfig, ...]:
        """Of the file, if it can be run."""
        return self.config.flows if self.config else ()

    def entries(self) -> Iterator[Entry]:
        """Every key as it stands in the files, those without effect among them."""
        if not self.reading.connect:
            yield from self.reading.entries
        for cluster in self.reading.connect:
            for connector in cluster.connectors:
                yield from connector.settings.values()
            if cluster.worker is not None:
                yield from cluster.worker.settings.values()

    def named(self, *names: str) -> Iterator[Entry]:
        """Entries whose keys end with one of these names, whatever is before them."""
        for entry in self.entries():
            if any(entry.key == name or entry.key.endswith(f".{name}") for name in names):
                yield entry

    def stated(self, name: str, flow: FlowConfig) -> Entry | None:
        """What the file says for this flow under this name."""
        entries = {entry.key: entry for entry in self.reading.entries}
        return entries.get(f"{flow.name}.{name}") or entries.get(name)

    def own_key(self, key: str) -> str:
        """A key as the user's file has it: connectors' have no flow before their names."""
        flows = ("->".join(flow) + "." for flow, _ in self.connectors())
        return key.removeprefix(next((flow for flow in flows if key.startswith(flow)), ""))

    def flow_spot(self, flow: FlowConfig) -> Entry:
        """The entry that makes the flow, for findings about what is not there."""
        for entry in self.reading.entries:
            if entry.key == f"{flow.name}.enabled":
                return entry
        return Entry(flow.name, "", self.reading.path)

    def connectors(self) -> Iterator[tuple[tuple[str, str], dict[ConnectorRole, Connector]]]:
        """Each flow's connectors, if the files are of that kind."""
        yield from by_flow(self.reading.connect).items()


def bare(key: str) -> str:
    """A key's name, without flow, cluster or client before it."""
    if "->" in key:
        key = key.partition("->")[2].partition(".")[2]
    return key.removeprefix(role_of(key))
