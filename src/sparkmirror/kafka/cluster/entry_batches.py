"""Keys and values as record batches, for topics that sparkmirror uses as logs."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder

from sparkmirror.kafka.wire.batches import ATTRIBUTES_AT, HEADER, HEADER_SIZE, LENGTH_OVERHEAD, BatchHeader
from sparkmirror.kafka.wire.codecs import GZIP, GZIP_FRAMING

_BATCH_BYTES = 512 * 1024
_PACKED_FROM = 256
"""Records section's size in bytes from which compression is worth its time."""
_LEVEL = 4
"""Compression level.

With `Z_FILTERED` claims become as small as at level 9, in half the default level's time.
"""


def entry_batches(
    entries: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int, *, packed: bool
) -> Iterator[memoryview]:
    """Yield as few batches as possible with these entries, compressed if `packed`."""
    builder, count = _new_builder(), 0
    for key, value in entries:
        if builder.append(count, timestamp_ms, key, value, []) is None:
            yield _built(builder, packed=packed)
            builder, count = _new_builder(), 0
            builder.append(count, timestamp_ms, key, value, [])
        count += 1
    yield _built(builder, packed=packed)


def _new_builder() -> Any:
    return DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=_BATCH_BYTES,
    )


def _built(builder: Any, *, packed: bool) -> memoryview:
    batch = memoryview(builder.build())
    return _compressed(batch) if packed and len(batch) >= HEADER_SIZE + _PACKED_FROM else batch


def _compressed(batch: memoryview) -> memoryview:
    """Return the batch compressed, or as it is if that is smaller.

    The codec is gzip: each Java has it, while zstd's and snappy's libraries must be unpacked into a directory that may
    run programs, which hardened brokers lack.
    """
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, GZIP_FRAMING, zlib.DEF_MEM_LEVEL, zlib.Z_FILTERED)
    section = packer.compress(batch[HEADER_SIZE:]) + packer.flush()
    size = HEADER_SIZE + len(section)
    if size >= len(batch):
        return batch
    made = bytearray(size)
    header = BatchHeader._make(HEADER.unpack_from(batch))._replace(length=size - LENGTH_OVERHEAD, attributes=GZIP)
    HEADER.pack_into(made, 0, *header)
    made[HEADER_SIZE:] = section
    crc = crc32c(memoryview(made)[ATTRIBUTES_AT:])
    HEADER.pack_into(made, 0, *header._replace(crc=crc))
    return memoryview(made)
