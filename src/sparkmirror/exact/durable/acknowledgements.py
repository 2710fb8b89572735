"""Acknowledgements: operators' words that losses are known, with who and why.

The records are in the loss ledger's topic, next to the losses, which stay as they are: readers that know nothing about
acknowledgements pass over them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkmirror.exact.durable.loss_kinds import LossKind, LossOutcome
from sparkmirror.exact.durable.losses import Loss, read_losses
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog

_KIND = "acknowledged"


class Acknowledgement(BaseModel):
    """An operator's word on one entry of the ledger."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    acknowledged: str
    """The loss's key."""
    first: int
    end: int
    """Offset after the loss, as it was when it was acknowledged."""
    at_ms: int
    """Time when the operator said so, in milliseconds since 1970."""
    by: str
    """Operator, as `user@host`."""
    why: str

    @property
    def key(self) -> bytes:
        return _key_of(self.acknowledged)

    def covers(self, loss: Loss) -> bool:
        """Tell whether the word is about the whole loss, which may have grown since.

        A copy that keeps less loses records for as long as it does: one word is about them all.
        """
        return self.first <= loss.first and (loss.end <= self.end or loss.kind is LossKind.COPY_EXPIRED)


class LedgerEntry(NamedTuple):
    """A loss, and the operator's word on it, if there is one."""

    loss: Loss
    acknowledgement: Acknowledgement | None = None

    @property
    def is_open(self) -> bool:
        """True if an operator should look: the entry is neither acknowledged nor expected."""
        return self.acknowledgement is None and self.loss.outcome is not LossOutcome.EXPECTED


class LedgerState:
    """A loss ledger's contents, brought up to date with the topic's records."""

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
    """Parse a record; return `None` for another kind or version."""
    try:
        return None if value is None else Acknowledgement.model_validate_json(value)
    except ValidationError:
        return None
