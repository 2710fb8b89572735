"""Rows as a whole record batch (magic 2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from sparkmirror.arrow.loops import record_kernels
from sparkmirror.arrow.row_columns import RowColumns
from sparkmirror.kafka.wire.batches import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    SEQUENCE_MODULUS,
)
from sparkmirror.kafka.wire.codecs import Codec, compress

_NO_EPOCH = -1
"""Leader epoch of a batch that no leader has appended yet."""
_CRC_AT, _CRC_END = 17, ATTRIBUTES_AT
_LARGEST = (1 << 31) - 1
"""Most bytes of a batch: its length is an int32."""


class EncodedBatch(NamedTuple):
    """A record batch to send, and the number of its records."""

    data: memoryview
    records: int


def encode(
    columns: RowColumns,
    rows: npt.NDArray[np.int64],
    *,
    producer_id: int,
    producer_epoch: int,
    sequence: int,
    codec: Codec,
    most: int,
) -> EncodedBatch:
    """Return a batch with the rows from the front of `rows` that fit in `most` bytes.

    `rows` are indexes into the columns, one at least; a batch has one row at least. `most` counts header and records
    before compression. `sequence` is the producer's number for the first record, not wrapped. Raises ValueError for a
    row that no batch can hold.
    """
    key, value, headers = columns.key, columns.value, columns.headers
    rows = np.ascontiguousarray(rows, np.int64)
    count, size, base, latest = record_kernels.fitting(
        rows,
        columns.timestamps,
        *(key.bounds, key.present, value.bounds, value.present),
        *(headers.bounds, headers.names.bounds, headers.contents.bounds, headers.contents.present),
        most - HEADER_SIZE,
    )
    if count <= 0:
        raise ValueError(f"rows to encode out of {columns.count}: {rows}")
    if size + HEADER_SIZE > _LARGEST:
        raise ValueError(f"a row of {size:,} bytes, which no record batch can hold")
    out = np.empty(HEADER_SIZE + size, np.uint8)
    done = record_kernels.written(
        rows[:count], columns.timestamps, *(*key.parts, *value.parts, *headers.parts), out[HEADER_SIZE:]
    )
    if done != size:
        raise ValueError("an Arrow column whose bounds lie outside its bytes")
    data = memoryview(out.data)
    if codec.number:
        packed = compress(codec, data[HEADER_SIZE:])
        data = memoryview(bytearray(HEADER_SIZE + len(packed)))
        data[HEADER_SIZE:] = packed
    HEADER.pack_into(
        data,
        0,
        *(0, len(data) - LENGTH_OVERHEAD, _NO_EPOCH, MAGIC, 0, codec.number, count - 1, base, latest),
        *(producer_id, producer_epoch, sequence % SEQUENCE_MODULUS, count),
    )
    crc: int = crc32c(data[ATTRIBUTES_AT:])
    data[_CRC_AT:_CRC_END] = crc.to_bytes(4, "big")
    return EncodedBatch(data, count)
