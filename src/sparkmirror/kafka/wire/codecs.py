"""Compress a batch's records section, as Kafka's Java clients do it.

`unpacking` is the reverse. Each codec's library is imported at its first use: a mirror that forwards whole batches
needs none.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sparkmirror.kafka.wire.batches import CODECS

if TYPE_CHECKING:
    from zstandard import ZstdCompressor

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)  # version, oldest version that can read the stream
_XERIAL_BLOCK = 32 * 1024
_INT32 = struct.Struct(">i")
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(len(CODECS))
LZ4_FRAME = b"\x04\x22\x4d\x18\x60\x40\x82"
"""Magic, version 1 with independent 64 KiB blocks, and the header's checksum."""
LZ4_BLOCK = 64 * 1024
LZ4_END = bytes(4)
_LZ4_FAST = 9
"""Kafka's level for lz4's fast compressor."""
_LZ4_HIGH = 3
"""Lowest level for the library's high compression."""
_USUAL_LEVELS = (0, -1, 0, _LZ4_FAST, 3)
"""Kafka's default level for each codec; -1 is zlib's default, which is 6."""
ZSTD_WINDOW = 8 << 20
"""Window that each zstd decoder should support (RFC 8878, section 3.1.1.1.2).

Compression level 22 asks for 128 MB, whatever the data.
"""
GZIP_FRAMING = 31
"""zlib's `wbits` for gzip: gzip's header and trailer, and the longest window."""
_AT_ONCE = 2 << 20
"""Bytes: a longer section is compressed in parts, to bound the memory in use."""

Buffer = bytes | bytearray | memoryview


class Codec(NamedTuple):
    """A codec to compress with."""

    number: int
    """Index into `CODECS`."""
    level: int | None = None
    """Level in Kafka's count (KIP-390); None: Kafka's default."""


class _Contexts(threading.local):
    """Codecs' contexts: none may be used by two threads at a time."""

    def __init__(self) -> None:
        self.zstd: dict[int, ZstdCompressor] = {}


_of_thread = _Contexts()


def _plain(data: Buffer, _level: int) -> bytes:
    return bytes(data)


def _gzip(data: Buffer, level: int) -> bytes:
    import gzip

    return gzip.compress(data, level, mtime=0)


def _snappy(data: Buffer, _level: int) -> bytes:
    """Compress in xerial's framing: a header, then blocks behind int32 lengths."""
    return XERIAL_HEADER + _snappy_blocks(data)


def _snappy_blocks(data: Buffer) -> bytes:
    import snappy

    parts: list[bytes] = []
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK):
        block: bytes = snappy.compress(view[start : start + _XERIAL_BLOCK])
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _lz4(data: Buffer, level: int) -> bytes:
    return b"".join((LZ4_FRAME, _lz4_blocks(data, level), LZ4_END))


def _lz4_blocks(data: Buffer, level: int) -> memoryview:
    """Compress into independent blocks, as Java's writer makes them.

    Kafka's reader can't read blocks that depend on each other. `lz4.block` takes a seventh less time, but its output is
    4 % larger. As in Kafka, level 9 is the fast compressor (the library's 0), and each other level is high compression:
    the library has it from level 3 on, and takes each above 12 as 12.
    """
    import lz4.frame

    packed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level == _LZ4_FAST else max(level, _LZ4_HIGH),
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return memoryview(packed)[len(LZ4_FRAME) : -len(LZ4_END)]


def _zstd(data: Buffer, level: int) -> bytes:
    """Compress into one frame, with a context that the thread keeps.

    A new one for each batch takes a tenth more time, for its memory.
    """
    compressor = _of_thread.zstd.get(level)
    if compressor is None:
        import zstandard

        compressor = _of_thread.zstd[level] = zstandard.ZstdCompressor(level)
    packed: bytes = compressor.compress(data)
    return packed


_COMPRESS: tuple[Callable[[Buffer, int], bytes], ...] = (_plain, _gzip, _snappy, _lz4, _zstd)


def compress(codec: Codec, data: Buffer) -> bytes:
    """Return `data` as one block of this codec.

    The same data gives the same bytes each time.
    """
    return _COMPRESS[known(codec.number)](data, _level(codec))


def _level(codec: Codec) -> int:
    return _USUAL_LEVELS[codec.number] if codec.level is None else codec.level


class _Stream(Protocol):
    """A codec that takes its data in parts."""

    def compress(self, data: Buffer, /) -> Buffer: ...

    def flush(self) -> Buffer: ...


class _Blocks:
    """A stream of independent blocks between a head and an end."""

    def __init__(self, blocks: Callable[[Buffer], Buffer], head: bytes, end: bytes) -> None:
        self._blocks = blocks
        self._head, self._end = head, end

    def compress(self, data: Buffer) -> Buffer:
        head, self._head = self._head, b""
        return b"".join((head, self._blocks(data)))

    def flush(self) -> Buffer:
        return self._end


def _stream(codec: Codec) -> _Stream:
    stream: _Stream
    level = _level(codec)
    if codec.number == GZIP:
        import zlib

        stream = zlib.compressobj(level, zlib.DEFLATED, GZIP_FRAMING)
    elif codec.number == ZSTD:
        import zstandard

        # A source size keeps the window of levels 20 to 22 within what each reader has memory for.
        fitted = zstandard.ZstdCompressionParameters.from_level(level, source_size=ZSTD_WINDOW)
        stream = zstandard.ZstdCompressor(compression_params=fitted).compressobj()
    elif codec.number == LZ4:
        stream = _Blocks(partial(_lz4_blocks, level=level), LZ4_FRAME, LZ4_END)
    else:
        stream = _Blocks(_snappy_blocks, XERIAL_HEADER, b"")
    return stream


class Compressor:
    """Compressor for a records section that arrives in parts.

    With lz4 a part becomes a block as soon as it is large enough, while it is in the processor's cache.
    """

    def __init__(self, codec: Codec) -> None:
        known(codec.number)
        self._codec = codec
        self._at_once = LZ4_BLOCK // 2 if codec.number == LZ4 else _AT_ONCE
        self._stream: _Stream | None = None
        self._waiting: list[Buffer] = []
        self._size = 0
        self._done: list[Buffer] = []
        self.made = 0
        """Bytes put out so far; the codec may still hold back some added data."""

    def add(self, parts: list[bytes] | list[Buffer], size: int) -> None:
        self._waiting += parts
        self._size += size
        if self._size >= self._at_once:
            self._work_off()

    def _work_off(self) -> None:
        if self._codec.number:
            if self._stream is None:
                self._stream = _stream(self._codec)
            self._keep(self._stream.compress(b"".join(self._waiting)))
        else:
            self._done += self._waiting
            self.made += self._size
        self._waiting, self._size = [], 0

    def _keep(self, data: Buffer) -> None:
        self._done.append(data)
        self.made += len(data)

    def ended(self) -> list[Buffer]:
        """Finish, and return the whole compressed section in parts."""
        if self._codec.number and self._stream is None:
            return [compress(self._codec, b"".join(self._waiting))]
        if self._waiting:
            self._work_off()
        if self._stream is not None:
            self._keep(self._stream.flush())
        return self._done


def known(codec: int) -> int:
    """Return `codec`; raise `ValueError` for a number that Kafka does not have."""
    if not 0 <= codec < len(CODECS):
        raise ValueError(f"codec {codec}, which Kafka does not have")
    return codec
