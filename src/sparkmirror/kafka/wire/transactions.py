"""Aborted batches in a read_committed Fetch answer (`exactness.md`, fetching)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from sparkmirror.kafka.wire.batches import HEADER_SIZE, TRANSACTIONAL_BIT, BatchHeader
from sparkmirror.kafka.wire.primitives import Reader

_ABORT = 0


class Transactions:
    """Transactions in one Fetch answer; make a new object for each answer.

    `aborted` are the answer's aborted transactions: (producer id, first offset).
    """

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._ahead = sorted(((first, producer_id) for producer_id, first in aborted), reverse=True)
        self._open: set[int] = set()

    def is_aborted(self, header: BatchHeader, view: memoryview) -> bool:
        """True if a batch is aborted data.

        Pass all batches in order, transaction markers too. Raises ValueError.
        """
        while self._ahead and self._ahead[-1][0] < header.next_offset:
            self._open.add(self._ahead.pop()[1])
        if header.is_control:
            # The log cleaner empties old markers and keeps their headers; Kafka's consumer passes over them, too.
            if header.records and _marker_type(view) == _ABORT:
                self._open.discard(header.producer_id)
            return False
        return bool(header.attributes & TRANSACTIONAL_BIT) and header.producer_id in self._open


def _marker_type(view: memoryview) -> int:
    """Return the type of a control batch's only record: 0 abort, 1 commit.

    The record's key is int16 version, int16 type. Raises ValueError.
    """
    reader = Reader(view, HEADER_SIZE)
    try:
        reader.uvarint()  # length
        reader.int8()  # attributes
        reader.uvarint()  # timestamp delta
        reader.uvarint()  # offset delta
        reader.uvarint()  # key length
        reader.int16()  # key version
        return reader.int16()
    except (struct.error, IndexError) as error:
        raise ValueError("a transaction marker that is none") from error
