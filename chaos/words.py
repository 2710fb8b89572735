"""What the mirror says of itself, each second: that a flow has caught up, that a partition has no lag.

It is taken from the snapshot, which page, terminals and doctor are made from, and from the metrics.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chaos.mirror import SOURCE, TARGET
from chaos.truth import Part, Truth

FLOW = f"{SOURCE}->{TARGET}"
_CAUGHT_UP = "caught up"
_STATE, _LAG, _PARTITION_LAG = (
    f"sparkmirror_{name}" for name in ("flow_state", "lag_records", "partition_lag_records")
)
_MOST = 10


class Word(NamedTuple):
    """What was said at one moment of the monotonic clock."""

    at: float
    where: str
    """`snapshot` or `metrics`."""
    whole: str = ""
    """In which words it was said that nothing lacks; empty: it was not said."""
    whole_parts: frozenset[Part] = frozenset()
    """Partitions of which it was said."""


@dataclass(slots=True)
class FalseWords:
    """What was said and is not so."""

    count: int = 0
    """What is said again each second counts once."""
    first: list[str] = field(default_factory=list)
    """The first of them."""

    def add(self, words: str) -> None:
        self.count += 1
        if len(self.first) < _MOST:
            self.first.append(f"{time.strftime('%H:%M:%S')} {words}")

    def merge(self, other: FalseWords) -> None:
        self.count += other.count
        self.first = (self.first + other.first)[:_MOST]


class Judge:
    """Compares words with the truth, a moment after they were said."""

    def __init__(self, truth: Truth) -> None:
        self.false = FalseWords()
        self.judged = 0
        """Words that said that something is whole, and were compared."""
        self._truth = truth
        self._waiting: list[Word] = []
        self._still: dict[str, set[str]] = {}
        """What was false in the last word that was judged, by where it was said."""

    def hear(self, word: Word) -> None:
        """Take a word, and judge those that are old enough."""
        self._waiting.append(word)
        while self._waiting and self._truth.can_judge(self._waiting[0].at):
            self._judge(self._waiting.pop(0))

    def _judge(self, word: Word) -> None:
        lacking = self._truth.lacking(word.at)
        self.judged += bool(word.whole or word.whole_parts)
        false: dict[str, str] = {}
        for (topic, partition), lacks in sorted(lacking.items()):
            what = f"{topic}-{partition} had {lacks.there} of {lacks.promised}"
            if word.whole:
                false.setdefault("flow", f"{word.where}: {word.whole}, but {what}")
            if (topic, partition) in word.whole_parts:
                false[f"{topic}-{partition}"] = f"{word.where}: lag 0, but {what}"
        for subject in false.keys() - self._still.get(word.where, set()):
            self.false.add(false[subject])
        self._still[word.where] = set(false)


def of_snapshot(text: str) -> Word | None:
    """Return what a snapshot says; None if its process does not work on the flow. Raises ValueError, LookupError."""
    flow = next((one for one in json.loads(text)["flows"] if one["flow"] == FLOW), None)
    if flow is None or flow["role"] != "leader":
        return None
    said = _CAUGHT_UP if flow["state"] == _CAUGHT_UP else "lag 0" if flow.get("lag") == 0 else ""
    parts = frozenset(
        (topic["topic"], int(part["partition"]))
        for topic in flow.get("topics", ())
        for part in topic.get("partitions", ())
        if part.get("lag") == 0
    )
    return Word(time.monotonic() - (time.time() - flow["at_ms"] / 1000), "snapshot", said, parts)


def state_of(text: str) -> tuple[str, int]:
    """Return the flow's state in a snapshot, and when it was put together, in milliseconds since 1970."""
    flow = next((one for one in json.loads(text)["flows"] if one["flow"] == FLOW), None)
    return (flow["state"], flow["at_ms"]) if flow is not None else ("", 0)


def position_of(text: str, topic: str, partition: int) -> int:
    """Return up to where a snapshot says that a partition is copied; -1: it does not."""
    flow: Any = next((one for one in json.loads(text)["flows"] if one["flow"] == FLOW), {})
    found = (
        part.get("position")
        for one in flow.get("topics", ())
        for part in one.get("partitions", ())
        if (one["topic"], part["partition"]) == (topic, partition)
    )
    position = next(found, None)
    return -1 if position is None else int(position)


Sample = tuple[str, frozenset[tuple[str, str]], float]
"""Name, labels and value of a metric."""


def of_metrics(at: float, samples: Iterable[Sample]) -> Word:
    """Return what metrics say that were asked for at that time."""
    said, parts = "", set()
    for name, pairs, value in samples:
        labels = dict(pairs)
        if labels.get("flow") != FLOW:
            continue
        if name == _STATE and value and labels["state"] == _CAUGHT_UP:
            said = _CAUGHT_UP
        elif name == _LAG and value == 0:
            said = said or "lag 0"
        elif name == _PARTITION_LAG and value == 0:
            parts.add((labels["topic"], int(labels["partition"])))
    return Word(at, "metrics", said, frozenset(parts))
