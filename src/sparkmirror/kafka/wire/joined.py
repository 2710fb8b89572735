"""Joined records, as both walks return them (`joining`, `array_walk`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.kafka.wire.codecs import Buffer

PIECE_RECORDS = 1 << 15
"""Most records taken at once: each becomes objects of more than 100 bytes in all."""

SMALLEST_RECORD = 7
"""Bytes of a record without key, value and headers."""

FAR = 1 << 62
"""Greatest distance of timestamps from each other and from 1970 for joining.

Timestamps farther apart are left to `splice`, because a sum might overflow 64 bits.
"""


class Joined(NamedTuple):
    """Records whose offset deltas and timestamp deltas count from the first record."""

    parts: Sequence[Buffer]
    """The records section, compressed."""
    runs: list[tuple[int, int]]
    """Ranges without a gap: the first record's source offset, and record count."""
    records: int
    base_timestamp: int
    max_timestamp: int


class LoneRecords(NamedTuple):
    """Joined records from batches that held one plain record each."""

    joined: Joined
    next_offset: int
    """Source offset after the last record."""
    leader_epoch: int
    size: int
    """Bytes in the original batches; the new batch is never larger."""
