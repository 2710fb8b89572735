"""What a round's applications lived through, and what the logs hold."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from chaos.switches.arena import BILLING

STRAY = "stray"


class Ack(NamedTuple):
    """An acknowledged record, and where."""

    at_ms: int
    alias: str
    producer: str
    topic: str
    partition: int
    offset: int
    value: str
    transaction: str


class Read(NamedTuple):
    """A record that a group has processed."""

    at_ms: int
    alias: str
    group: str
    topic: str
    partition: int
    offset: int
    value: str


class Kept(NamedTuple):
    """A record in a log."""

    offset: int
    value: str
    content: tuple[str, str, str, str]
    """Timestamp, key, value and headers."""


@dataclass(slots=True)
class History:
    """All lines of a history."""

    acks: list[Ack] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    """Values that a cluster refused."""
    ended: dict[str, str] = field(default_factory=dict)
    """How each transaction ended: committed, aborted or unknown."""
    reads: list[Read] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    """What groups' members saw: a commit that failed makes a record be read twice."""

    def committed(self) -> list[Ack]:
        """Return acknowledged records outside of transactions, and those of committed ones."""
        return [ack for ack in self.acks if not ack.transaction or self.ended.get(ack.transaction) == "committed"]

    def unknown(self) -> set[str]:
        """Return the values of transactions whose end the producer does not know."""
        return {
            ack.value
            for ack in self.acks
            if ack.transaction and self.ended.get(ack.transaction, "unknown") == "unknown"
        }


def read_history(path: Path) -> History:
    """Read a history's complete lines."""
    history = History()
    text = path.read_text()
    for line in text[: text.rfind("\n") + 1].splitlines():
        what, at, client, *more = line.split("\t")
        alias = client.rpartition(" ")[2]
        if what == "ack":
            producer, topic, partition, offset, value, transaction = more
            history.acks.append(Ack(int(at), alias, producer, topic, int(partition), int(offset), value, transaction))
        elif what == "no":
            history.refused.add(more[3])
        elif what == "end":
            history.ended[more[1]] = more[2]
        elif what == "read":
            group, topic, partition, offset, value = more
            history.reads.append(Read(int(at), alias, group, topic, int(partition), int(offset), value))
        elif what == "trouble" and client.startswith(BILLING):
            history.troubles.append(f"{client}: {' '.join(more)}")
    return history


def read_dump(path: Path) -> dict[int, list[Kept]]:
    """Read a dumped topic, by partition."""
    logs: dict[int, list[Kept]] = defaultdict(list)
    for line in path.read_text().splitlines():
        partition, offset, at, key, value, headers = line.split("\t")
        words = base64.b64decode(value).decode().partition("|")[0]
        logs[int(partition)].append(Kept(int(offset), words, (at, key, value, headers)))
    return logs


def number_of(value: str) -> int:
    """Return a value's place among those of its producer and partition."""
    return int(value.rpartition("-")[2])


def origin_of(value: str) -> str:
    """Return a value's producer and partition."""
    return value.rpartition("-")[0]


def out_of_order(values: Iterable[str]) -> list[str]:
    """Return values that come after one with a higher number of the same producer and partition."""
    highest: dict[str, int] = {}
    wrong = []
    for value in values:
        origin, number = origin_of(value), number_of(value)
        if number < highest.get(origin, -1):
            wrong.append(value)
        highest[origin] = max(number, highest.get(origin, -1))
    return wrong
