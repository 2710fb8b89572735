"""Acknowledgements: operators' words that losses are known, with who and why.

The records lie in the topic of the loss ledger, beside the losses, which stay as they are: readers of losses that know
nothing of acknowledgements pass over them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkmirror.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.durable.loss_kinds import LossOutcome
from sparkmirror.durable.losses import Loss, read_losses

_KIND = "acknowledged"


class Acknowledgement(BaseModel):
    """An operator's word on one entry of the ledger."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    acknowledged: str
    """Key of the loss."""
    first: int
    end: int
    """Offset after the loss, as it was when it was acknowledged."""
    at_ms: int
    """Time of the word, in milliseconds since 1970."""
    by: str
    """Operator, as `user@host`."""
    why: str

    @property
    def key(self) -> bytes:
        """Key of the record in the topic."""
        return _key_of(self.acknowledged)

    def covers(self, loss: Loss) -> bool:
        """Tell whether the word is about all of the loss, which may have grown since."""
        return self.first <= loss.first and loss.end <= self.end


class LedgerEntry(NamedTuple):
    """A loss, and the operator's word on it, if there is one."""

    loss: Loss
    acknowledgement: Acknowledgement | None = None

    @property
    def is_open(self) -> bool:
        """True if an operator should look: the entry is neither acknowledged nor expected."""
        return self.acknowledgement is None and self.loss.outcome is not LossOutcome.EXPECTED


class LedgerState:
    """Contents of a loss ledger, brought up to date with the topic's records."""

    def __init__(self) -> None:
        self._losses: dict[str, Loss] = {}
        """Losses by key; the entry written last is last."""
        self._words: dict[bytes, Acknowledgement] = {}

    def apply(self, records: Iterable[LogEntry]) -> list[Loss]:
        """Take further records, in order; return the losses that are new or changed."""
        records = list(records)
        news = []
        for loss in read_losses(records):
            before = self._losses.pop(loss.key, None)
            self._losses[loss.key] = loss
            if before != loss:
                news.append(loss)
        for _, key, value in records:
            if key is None:
                continue
            word = _read(value)
            if word is not None:
                self._words[word.key] = word
            elif value is None:
                self._words.pop(key, None)
        return news

    @property
    def entries(self) -> list[LedgerEntry]:
        """All entries, the newest last."""
        return [LedgerEntry(loss, self._word_on(loss)) for loss in list(self._losses.values())]

    def _word_on(self, loss: Loss) -> Acknowledgement | None:
        word = self._words.get(_key_of(loss.key))
        return word if word is not None and word.covers(loss) else None


def read_ledger(log: TopicLog) -> list[LedgerEntry]:
    """Return a ledger's entries, the newest last; raises `ConnectionError`."""
    state = LedgerState()
    state.apply(log.read(0, 0)[0])
    return state.entries


def acknowledge(log: TopicLog, losses: Iterable[Loss], *, at_ms: int, by: str, why: str) -> None:
    """Make the operator's word on losses durable; raises `ConnectionError`."""
    words = [
        Acknowledgement(acknowledged=loss.key, first=loss.first, end=loss.end, at_ms=at_ms, by=by, why=why)
        for loss in losses
    ]
    log.append(0, [(word.key, word.model_dump_json().encode()) for word in words])


def retract(log: TopicLog, losses: Iterable[Loss]) -> None:
    """Take the operator's word on losses back; raises `ConnectionError`."""
    log.append(0, [(_key_of(loss.key), None) for loss in losses])


def _key_of(loss_key: str) -> bytes:
    return json.dumps([_KIND, loss_key]).encode()


def _read(value: bytes | None) -> Acknowledgement | None:
    """Parse a record; return `None` for records of another kind or another version."""
    try:
        return None if value is None else Acknowledgement.model_validate_json(value)
    except ValidationError:
        return None
