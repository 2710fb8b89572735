"""The compiled walk over records.

It does what `records` and `joining` do in Python, for sound records: the results are equal. None means that the loops
have given up: the walk in Python decides then, and words the error if there is one. Import this module only where
`walk_loading.WALK` is ready.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparkmirror.kafka.wire import kernels
from sparkmirror.kafka.wire.batches import HEADER_SIZE, TIMESTAMP_TYPE_BIT, BatchHeader
from sparkmirror.kafka.wire.codecs import Buffer, Codec, compress
from sparkmirror.kafka.wire.compiling import COMPILED
from sparkmirror.kafka.wire.joined import FAR, PIECE_RECORDS, SMALLEST_RECORD, Joined, LoneRecords

if not COMPILED:
    raise ImportError("numba is missing: the walk in Python is faster than these loops in Python")

_GROWTH = 16
"""Bytes that a record's numbers may grow by.

They are a length, a timestamp delta of up to ten bytes, and an offset delta.
"""


class RecordColumns(NamedTuple):
    """A section's records; bounds count from the section's first byte."""

    offsets: list[int]
    timestamps: list[int]
    """The records' own timestamps."""
    body_starts: list[int]
    ends: list[int]
    attributes: bytes


class JoinedSections(NamedTuple):
    """Records that were joined, and the index of the batch that had the first."""

    joined: Joined
    first: int


def columns(header: BatchHeader, section: bytes) -> RecordColumns | None:
    """Return a section's records, or those in a part that ends with a record."""
    most = min(header.records, len(section) // SMALLEST_RECORD, PIECE_RECORDS)
    numbers, attributes = np.empty((kernels.COLUMNS, most), np.int64), np.empty(most, np.uint8)
    count = kernels.columns(_array(section), numbers, attributes)
    if count <= 0 or numbers[0, count - 1] > header.last_offset_delta or not -FAR < header.base_timestamp < FAR:
        return None
    numbers[0] += header.base_offset
    numbers[1] += header.base_timestamp
    offsets, timestamps, body_starts, ends = numbers[:, :count].tolist()
    return RecordColumns(offsets, timestamps, body_starts, ends, attributes[:count].tobytes())


def joined_sections(
    batches: Sequence[tuple[BatchHeader, bytes]], from_offset: int, codec: Codec
) -> JoinedSections | None:
    """Join the records from `from_offset` on, compressed with `codec`.

    The batches are of magic 2, each with its uncompressed section, and have records. Batches that their broker stamped
    (LogAppendTime) may be among them.
    """
    heads = []
    end = room = 0
    for header, section in batches:
        end += len(section)
        room += min(header.records, len(section) // kernels.SMALLEST_HEAD)
        stamped = header.attributes & TIMESTAMP_TYPE_BIT
        base = header.max_timestamp if stamped else header.base_timestamp
        heads.append((header.base_offset, base, bool(stamped), header.records, end, header.next_offset))
    data = batches[0][1] if len(batches) == 1 else b"".join(section for _, section in batches)
    out, runs = np.empty(end + room * _GROWTH, np.uint8), np.empty((room, 2), np.int64)
    size, count, base, latest, run_count, first = kernels.joined(
        _array(data), np.array(heads, np.int64), from_offset, out, runs
    )
    if size < 0 or not count:
        return None
    parts = [compress(codec, out[:size].data)]
    return JoinedSections(Joined(parts, _pairs(runs[:run_count]), count, base, latest), first)


def joined_lone_records(records: memoryview, upstream: int, tiny: int) -> LoneRecords | None:
    """Join the plain one-record batches that `records` begins with, as `joining` does."""
    room = len(records) // (HEADER_SIZE + kernels.SMALLEST_HEAD) + 1
    out, runs = np.empty(len(records), np.uint8), np.empty((room, 2), np.int64)
    size, count, base, latest, run_count, upstream, leader_epoch, end = kernels.lone(
        _array(records.toreadonly()), upstream, tiny, out, runs
    )
    if not count:
        return None
    joined = Joined([out[:size].data], _pairs(runs[:run_count]), count, base, latest)
    return LoneRecords(joined, upstream, leader_epoch, end)


def _array(data: Buffer) -> kernels.Bytes:
    return np.frombuffer(data, np.uint8)


def _pairs(runs: kernels.Longs) -> list[tuple[int, int]]:
    return list(zip(*runs.T.tolist(), strict=True))
