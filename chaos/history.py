"""What the source has promised its producers: one line for each acknowledged record and each ended transaction.

    sent plain-3-1041           the record was acknowledged
    sent txn1-3-77-12-abort     the same, in transaction 12 of producer txn1, which was to be aborted
    committed txn1-12           the source confirmed that the transaction is committed (or `aborted`)

A transaction without such a line may have ended either way.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

PLAIN = "plain"
OLD = "old"
DRAFT = "draft"
NOTE = "note"
BILL = "bill"


def bait(kind: str) -> str:
    """The name of the producer by which a fault writes to a topic of that kind, next to those that always do."""
    return f"bait.{kind}"


def record_id(producer: str, partition: int, number: int, transaction: int = 0, fate: str = "") -> str:
    """The name of a record; `number` counts the producer's records in the partition."""
    return f"{producer}-{partition}-{number}" + (f"-{transaction}-{fate}" if transaction else "")


def transaction_of(name: str) -> str | None:
    """Producer and number of the transaction that the record belongs to; None without one."""
    parts = name.split("-")
    return f"{parts[0]}-{parts[3]}" if len(parts) == 5 else None


def partition_of(name: str) -> int:
    """The partition that the record was sent to."""
    return int(name.split("-")[1])


@dataclass(slots=True)
class History:
    """What was promised."""

    sent: set[str] = field(default_factory=set)
    ended: dict[str, str] = field(default_factory=dict)
    """`committed` or `aborted`, by transaction."""


class HistoryWriter:
    """Appends to the file; for any thread."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self._writing = threading.Lock()

    def sent(self, name: str) -> None:
        self._write(f"sent {name}\n")

    def ended(self, transaction: str, how: str) -> None:
        self._write(f"{how} {transaction}\n")

    def close(self) -> None:
        """Write no more."""
        self._file.close()

    def _write(self, line: str) -> None:
        with self._writing:
            self._file.write(line)


def read_history(path: Path) -> History:
    """Read the file; a last line that was cut off in the middle counts for nothing."""
    history = History()
    for line in path.read_text().splitlines(keepends=True) if path.exists() else ():
        what, _, name = line.rstrip("\n").partition(" ")
        if not line.endswith("\n"):
            break
        if what == "sent":
            history.sent.add(name)
        else:
            history.ended[name] = what
    return history
