"""Connectors' first starts: one that brings workers down is held.

A worker that dies from a connector (memory, a crashing library) would die from it at its next start again, and with it
all other connectors. So the status topic has the configurations that no worker has lived with yet. Two workers may die
within `PROVEN_S` of a configuration's start; then the connector is held, until it is restarted or changed. A worker
that ends in order, or hands the lease over, has not died.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from sparkmirror.connect.connector_model import ConnectorSpec, TargetState
from sparkmirror.connect.status_log import Record, StatusState, start_record

PROVEN_S = 30.0
"""Time after which a worker has lived with a configuration."""
MOST_DEATHS = 2

_HELD = (
    f"held: {MOST_DEATHS} workers ended within {PROVEN_S:.0f} s of its start with this configuration; their logs say"
    " of what: change it, or restart the connector to try it once more"
)


class FirstStarts:
    """Starts of this process, next to those in the status topic; not thread-safe."""

    def __init__(self, state: StatusState) -> None:
        self._state = state
        self._begun: dict[str, tuple[str, float]] = {}
        """Configuration and time in seconds of unproven starts, by connector."""

    def begin(self, specs: Mapping[str, ConnectorSpec], now_s: float) -> tuple[dict[str, ConnectorSpec], list[Record]]:
        """Return the connectors to start, and the records to write before.

        A held connector comes with the reason.
        """
        allowed = dict(specs)
        records = [start_record(name) for name in self._state.starts.keys() - specs.keys()]
        self._begun = {name: begun for name, begun in self._begun.items() if name in specs}
        for name, spec in specs.items():
            digest = _digest(spec)
            known, starts = self._state.starts.get(name, ("", 0))
            starts = starts if known == digest else 0
            if spec.target_state is not TargetState.STARTED or (known == digest and not starts):
                continue
            if self._begun.get(name, ("", 0.0))[0] == digest:
                continue
            if starts >= MOST_DEATHS:
                allowed[name] = replace(spec, held=_HELD)
                continue
            self._begun[name] = digest, now_s
            records.append(start_record(name, digest, starts + 1))
        return allowed, records

    def proven(self, now_s: float) -> list[Record]:
        """Return the records on configurations that this process has lived with."""
        return [start_record(name, digest, 0) for name, digest in self._ended(lambda at: now_s - at >= PROVEN_S)]

    def end(self) -> list[Record]:
        """Return the records that take unproven starts back: this process ends in order."""
        return [start_record(name) for name, _ in self._ended(lambda _: True)]

    def again(self, name: str) -> list[Record]:
        """Return the record that lets a held connector start once more."""
        return [start_record(name)] if self._state.starts.get(name, ("", 0))[1] >= MOST_DEATHS else []

    def _ended(self, which: Callable[[float], bool]) -> list[tuple[str, str]]:
        ended = [(name, digest) for name, (digest, at) in self._begun.items() if which(at)]
        for name, _ in ended:
            del self._begun[name]
        return ended


def _digest(spec: ConnectorSpec) -> str:
    return hashlib.sha256(json.dumps(sorted(spec.config.items())).encode()).hexdigest()[:16]
