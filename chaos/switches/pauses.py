"""How long clients paused at a switch."""

from __future__ import annotations

from typing import NamedTuple

from chaos.switches.records import STRAY, History


class Pause(NamedTuple):
    """A client's last record at the cluster that it left, and its first at the other."""

    client: str
    is_group: bool
    seconds: float


def pauses(history: History, switches: list[tuple[str, str, int]]) -> list[Pause]:
    """Return the pauses of all clients that moved; `switches` are who, from where, and when in ms."""
    found = []
    writes = [(ack.producer, ack.alias, ack.at_ms) for ack in history.committed() if ack.producer != STRAY]
    reads = [(read.group, read.alias, read.at_ms) for read in history.reads]
    for who, left, began_ms in switches:
        if who != "consumers":
            found += _pauses(writes, left, began_ms, is_group=False)
        if who != "producers":
            found += _pauses(reads, left, began_ms, is_group=True)
    return found


def _pauses(events: list[tuple[str, str, int]], left: str, began_ms: int, *, is_group: bool) -> list[Pause]:
    found = []
    for client in sorted({client for client, _, _ in events}):
        first = min((at for who, alias, at in events if who == client and alias != left and at >= began_ms), default=0)
        last = max((at for who, alias, at in events if who == client and alias == left and at <= first), default=0)
        if first and last:
            found.append(Pause(client, is_group, (first - last) / 1000))
    return found
