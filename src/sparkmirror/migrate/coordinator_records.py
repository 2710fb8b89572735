"""Records of the brokers' own topics about transactions and commits, decoded.

`__transaction_state` has `TransactionLogKey` and `TransactionLogValue` (versions 0 and 1, the latter flexible),
`__consumer_offsets` has `OffsetCommitKey` (versions 0 and 1). A record with another kind or version decodes to None.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from sparkmirror.kafka.wire.primitives import INT64, Reader, read_from

TRANSACTION_STATE, CONSUMER_OFFSETS = "__transaction_state", "__consumer_offsets"

_FLEXIBLE = 1
_NEWEST_TRANSACTION = 1
_COMMIT_KEYS = frozenset({0, 1})
_PREVIOUS_TAG, _NEXT_TAG = 0, 1
_NO_PRODUCER = -1


class TransactionStatus(IntEnum):
    """State of a transactional id's last transaction, by Kafka's codes."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRecord:
    """A transactional id's state at one moment."""

    producers: frozenset[int]
    """Producer ids, present, previous and next."""
    status: int
    topics: frozenset[str]
    """Topics of the transaction; empty once the transaction has ended."""


@dataclass(frozen=True, slots=True)
class CommitKey:
    """Key for a committed offset."""

    group: str
    topic: str
    partition: int


def transactional_id(key: bytes | None) -> str | None:
    """Decode a key in `__transaction_state`; raises `Garbled`."""
    if key is None:
        return None
    reader = Reader(memoryview(key))
    with read_from(f"a key in {TRANSACTION_STATE}"):
        return reader.text() if reader.int16() == 0 else None


def transaction(value: bytes | None) -> TransactionRecord | None:
    """Decode a value in `__transaction_state`; raises `Garbled`."""
    if value is None:
        return None
    reader = Reader(memoryview(value))
    with read_from(f"a value in {TRANSACTION_STATE}"):
        version = reader.int16()
        if not 0 <= version <= _NEWEST_TRANSACTION:
            return None
        flexible = version >= _FLEXIBLE
        producers = {reader.int64()}
        reader.int16()  # epoch
        reader.int32()  # timeout
        status = reader.int8()
        topics = set()
        for _ in range(_length(reader, flexible)):
            topics.add((reader.compact_text() if flexible else reader.text()) or "")
            for _ in range(_length(reader, flexible)):
                reader.int32()
            if flexible:
                reader.tags()
        reader.int64()  # last update
        reader.int64()  # start
        if flexible:
            tags = reader.tags()
            producers |= {INT64.unpack(tags[tag])[0] for tag in (_PREVIOUS_TAG, _NEXT_TAG) if tag in tags}
    return TransactionRecord(producers=frozenset(producers - {_NO_PRODUCER}), status=status, topics=frozenset(topics))


def commit_key(key: bytes | None) -> CommitKey | None:
    """Decode a key in `__consumer_offsets`; raises `Garbled`.

    None for a group's metadata, which has other key versions.
    """
    if key is None:
        return None
    reader = Reader(memoryview(key))
    with read_from(f"a key in {CONSUMER_OFFSETS}"):
        if reader.int16() not in _COMMIT_KEYS:
            return None
        return CommitKey(reader.text() or "", reader.text() or "", reader.int32())


def _length(reader: Reader, flexible: bool) -> int:
    return reader.compact_length() if flexible else reader.int32()
