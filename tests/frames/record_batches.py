"""Record batches made of plain records, for tests that compare them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafka.record.default_records import DefaultRecordBatchBuilder

from sparkmirror.kafka.cluster.log_range import LogBatch
from sparkmirror.kafka.wire.batches import batch_headers


class Record(NamedTuple):
    """What a user sees of a record, but for its offset."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def batch(records: Sequence[tuple[int, Record]], codec: int = 0, attributes: int = 0) -> LogBatch:
    """One batch of (offset, record), as a broker would give it; `attributes` are bits to set besides the codec."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    base = records[0][0]
    for offset, record in records:
        builder.append(offset - base, record.timestamp, record.key, record.value, list(record.headers))
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, base)
    data[22] |= attributes
    view = memoryview(data)
    return LogBatch(next(batch_headers(view))[1], view)


def batches(records: Sequence[tuple[int, Record]], sizes: Sequence[int], codec: int = 0) -> Iterator[LogBatch]:
    """All records in batches of these sizes, over and over."""
    at = turn = 0
    while at < len(records):
        size = sizes[turn % len(sizes)]
        yield batch(records[at : at + size], codec)
        at += size
        turn += 1
