"""Brokers for connectors that name none: a mistake, or the worker's cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.connect_files import ConnectCluster, Connector, WorkerSettings
from sparkmirror.config.formats.reading import place
from sparkmirror.errors import ConfigError
from sparkmirror.mistakes import Mistakes

_SERVERS = "bootstrap.servers"
_ABBREVIATED = {"source": ("source", "src"), "target": ("target", "dest", "dst", "tgt")}
"""First words in keys that were meant for source or target brokers."""


def with_brokers(entries: Sequence[Entry], clusters: Sequence[ConnectCluster], mistakes: Mistakes) -> list[Entry]:
    """Return the entries with brokers for each alias.

    A target without brokers gets the worker's brokers. An alias that is still without brokers is a mistake, and gets a
    stand-in.
    """
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
                    more = [Entry(key=f"{alias}.{_SERVERS}", value=f"{end}:9092", where=connector.path)]
                added += more
    return [*entries, *added]


def _of_worker(alias: str, worker: WorkerSettings | None) -> Iterable[Entry]:
    """Return the worker's brokers and security settings for a target.

    As in Connect, a connector that names no target writes to the worker's own cluster.
    """
    if worker is None or _SERVERS not in worker.settings:
        return
    for key, entry in worker.settings.items():
        if key in (_SERVERS, "security.protocol") or key.startswith(("ssl.", "sasl.")):
            yield Entry(key=f"{alias}.{key}", value=entry.value, where=place(entry.where, entry.line), line=entry.line)


def _missing(connector: Connector, end: str, alias: str) -> ConfigError:
    key = f"{end}.cluster.{_SERVERS}"
    for entry in connector.settings.values():
        prefix = entry.key.removesuffix(_SERVERS)
        if prefix != entry.key and prefix.startswith((f"{alias}.", *_ABBREVIATED[end])):
            reason = f"is read by no connector: write {key}"
            return ConfigError(reason, origin=place(connector.path, entry.line), key=entry.key)
    return ConfigError(f"is missing in {connector.name}: write the brokers, host:9092", origin=connector.path, key=key)
