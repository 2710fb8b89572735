"""Brokers that connectors don't name: a mistake, or the cluster of their own worker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sparkmirror.config import Entry
from sparkmirror.config.mistakes import Mistakes
from sparkmirror.errors import ConfigError
from sparkmirror.formats.connect import ConnectCluster, Connector, WorkerSettings
from sparkmirror.formats.reading import place

_SERVERS = "bootstrap.servers"
_ABBREVIATED = {"source": ("source", "src"), "target": ("target", "dest", "dst", "tgt")}
"""How a key for a cluster's brokers begins when it was meant for the source or the target."""


def with_brokers(entries: Sequence[Entry], clusters: Sequence[ConnectCluster], mistakes: Mistakes) -> list[Entry]:
    """The entries with brokers for each alias; where none are named, with those of the worker, or a stand-in."""
    there = {entry.key for entry in entries}
    added: list[Entry] = []
    for cluster in clusters:
        for connector in cluster.connectors:
            for end, alias in zip(("source", "target"), connector.flow, strict=True):
                if not alias or f"{alias}.{_SERVERS}" in there:
                    continue
                there.add(f"{alias}.{_SERVERS}")
                more = list(_of_worker(alias, cluster.worker)) if end == "target" else []
                if not more:
                    mistakes.add(_missing(connector, end, alias))
                    more = [Entry(f"{alias}.{_SERVERS}", f"{end}:9092", connector.path)]
                added += more
    return [*entries, *added]


def _of_worker(alias: str, worker: WorkerSettings | None) -> Iterable[Entry]:
    """A connector that names no target writes, as in Connect, to the worker's own cluster."""
    if worker is None or _SERVERS not in worker.settings:
        return
    for key, entry in worker.settings.items():
        if key in (_SERVERS, "security.protocol") or key.startswith(("ssl.", "sasl.")):
            yield Entry(f"{alias}.{key}", entry.value, place(entry.where, entry.line), entry.line)


def _missing(connector: Connector, end: str, alias: str) -> ConfigError:
    key = f"{end}.cluster.{_SERVERS}"
    for entry in connector.settings.values():
        prefix = entry.key.removesuffix(_SERVERS)
        if prefix != entry.key and prefix.startswith((f"{alias}.", *_ABBREVIATED[end])):
            reason = f"is read by no connector: write {key}"
            return ConfigError(reason, where=place(connector.path, entry.line), key=entry.key)
    return ConfigError(f"is missing in {connector.name}: write the brokers, host:9092", where=connector.path, key=key)
