"""Batches as brokers give them, with right CRCs, and such with changed records."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

from crc32c import crc32c
from tests.support.built import Content, build

from sparkmirror.kafka.wire.batches import ATTRIBUTES_AT, HEADER_SIZE, LENGTH_OVERHEAD, BatchHeader, batch_headers
from sparkmirror.kafka.wire.pieces import RawRecord

Batches = list[tuple[BatchHeader, memoryview]]


def log(contents: Sequence[Content], seed: int | None = None) -> Batches:
    """Whole batches one after the other; with a seed, uncompressed ones have changed bytes behind their headers."""
    source = random.Random(seed)
    data = memoryview(b"".join(_stored(content, source if seed is not None else None) for content in contents))
    return [(header, data[at : at + header.size]) for at, header in batch_headers(data)]


def _stored(content: Content, source: random.Random | None) -> bytes:
    data = bytearray(build(content))
    if content.magic != 2:
        return bytes(data)
    if source is not None and not content.codec and len(data) > HEADER_SIZE:
        for _ in range(source.randrange(1, 3)):
            at = source.randrange(HEADER_SIZE, len(data) + 1)
            junk = source.choice((source.randbytes(1), b"\xff" * 9 + b"\x01", b"\x01", b"\0", b"\x80"))
            data[at : at + source.choice((0, 1, 1, 4))] = junk
        struct.pack_into(">i", data, 8, len(data) - LENGTH_OVERHEAD)
    struct.pack_into(">I", data, 17, crc32c(data[ATTRIBUTES_AT:]))
    return bytes(data)


def as_rows(records: Sequence[RawRecord], topic: str, partition: int) -> list[dict[str, object]]:
    """The records as rows, but for the timestamp's type; the timestamp in microseconds."""
    return [
        {
            "key": record.key,
            "value": record.value,
            "topic": topic,
            "partition": partition,
            "offset": record.offset,
            "timestamp": record.timestamp * 1000,
            "headers": [{"key": name.decode(), "value": value} for name, value in record.headers] or None,
        }
        for record in records
    ]
