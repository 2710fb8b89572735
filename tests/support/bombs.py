"""Batches that unpack to far more than they are: made piece by piece, as they would not fit."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import lz4.frame
import snappy
import zstandard
from crc32c import crc32c

from sparkmirror.kafka.wire.batches import HEADER_SIZE, BatchHeader, batch_headers
from sparkmirror.kafka.wire.varints import written, zigzag

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
ZEROS = bytes(1 << 20)
XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


class Stream(Protocol):
    """A compressor of the libraries'."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class Plain:
    def compress(self, data: bytes) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


class Lz4:
    def __init__(self) -> None:
        self._frame = lz4.frame.LZ4FrameCompressor(block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False)
        self._head: bytes = self._frame.begin()

    def compress(self, data: bytes) -> bytes:
        head, self._head = self._head, b""
        return head + bytes(self._frame.compress(data))

    def flush(self) -> bytes:
        return bytes(self._frame.flush())


class Snappy:
    def __init__(self) -> None:
        self._head = XERIAL

    def compress(self, data: bytes) -> bytes:
        out, self._head = [self._head], b""
        for at in range(0, len(data), 1 << 15):
            block = snappy.compress(data[at : at + (1 << 15)])
            out += [struct.pack(">i", len(block)), block]
        return b"".join(out)

    def flush(self) -> bytes:
        return b""


def stream(codec: int) -> Stream:
    made: dict[int, Any] = {
        0: Plain,
        GZIP: lambda: zlib.compressobj(6, zlib.DEFLATED, 31),
        SNAPPY: Snappy,
        LZ4: Lz4,
        ZSTD: lambda: zstandard.ZstdCompressor().compressobj(),
    }
    compressor: Stream = made[codec]()
    return compressor


def record(size: int, delta: int) -> Iterator[bytes]:
    """One without key, with zeros for value, in parts."""
    head = b"\0\0" + written(zigzag(delta)) + b"\x01" + written(zigzag(size))
    yield written(zigzag(len(head) + size + 1)) + head
    for at in range(0, size, len(ZEROS)):
        yield ZEROS[: size - at]
    yield b"\0"


def bomb(codec: int, sizes: Sequence[int], *, base: int = 0, attributes: int = 0, span: int = 0) -> bytes:
    """A batch of records with so many zeros each."""
    compressor = stream(codec)
    waiting: list[bytes] = []
    packed = []
    for delta, size in enumerate(sizes):
        for part in record(size, delta):
            waiting.append(part)
            if len(part) > 1000 or len(waiting) > 1000:
                packed.append(compressor.compress(b"".join(waiting)))
                waiting.clear()
    packed.append(compressor.compress(b"".join(waiting)))
    packed.append(compressor.flush())
    return batch_of_section(b"".join(packed), len(sizes), base=base, attributes=codec | attributes, span=span)


def batch_of_section(section: bytes, count: int, *, base: int = 0, attributes: int = 0, span: int = 0) -> bytes:
    """With whatever section, as a broker stores it, its CRC right."""
    length = HEADER_SIZE - 12 + len(section)
    data = bytearray(struct.pack(">qiibIh", base, length, 4, 2, 0, attributes))
    data += struct.pack(">iqqqhii", (span or count) - 1, 1_700_000_000_000, 1_700_000_000_000, -1, -1, -1, count)
    data += section
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return bytes(data)


def header_of(batch: bytes) -> tuple[BatchHeader, memoryview]:
    ((_, header),) = batch_headers(memoryview(batch))
    return header, memoryview(batch)
