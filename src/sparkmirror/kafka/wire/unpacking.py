"""Decompress a batch's records section, piece by piece.

A small batch may unpack to gigabytes by its producer's ill will. So the memory for a batch is bounded by `PIECE_BYTES`
and the codec's window, however much the batch unpacks to. Data that can't be unpacked in pieces is refused with its
size (`Oversized`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from sparkmirror.errors import HandledError
from sparkmirror.kafka.wire.batches import CODECS
from sparkmirror.kafka.wire.codecs import (
    GZIP,
    GZIP_FRAMING,
    LZ4,
    LZ4_BLOCK,
    LZ4_END,
    LZ4_FRAME,
    SNAPPY,
    XERIAL_HEADER,
    XERIAL_MAGIC,
    ZSTD,
    ZSTD_WINDOW,
    Buffer,
    known,
)

PIECE_BYTES = 4 << 20
"""Most bytes of a batch that are unpacked at once.

Batches from Kafka's own producers hold 1 MB at most (`max.request.size`, which counts uncompressed bytes), and 16 KB by
default (`batch.size`).
"""

WHOLE_BYTES = 32 << 20
"""Most bytes unpacked from data that doesn't come in pieces.

Such data are a message in an old format, a snappy block, and a zstd frame with a window above `ZSTD_WINDOW`.
"""

_LONGEST_WINDOW = 128 << 20
"""Longest zstd window that is accepted: the library's own limit."""

_STEP_BYTES = 128 << 10
"""Approximate bytes that a codec puts out at a time: zstd's block size."""
_FEW_BLOCKS = 8
"""Number of zstd blocks that unpack to 1 MB at most."""

_FED_BYTES = 16 << 10
"""Bytes put into a codec at a time, since each codec copies its unused input."""

_INT32 = struct.Struct(">i")
_LZ4_SIZE = struct.Struct("<I")
_LZ4_PLAIN = 1 << 31
"""Flag for an uncompressed LZ4 block, in its size field."""
_SNAPPY_RATIO = 32
"""Upper bound of snappy's ratio: 64 bytes from every 3.

Source: the format's description, "copies".
"""
_ZSTD_MAGIC, _ZSTD_SKIPPED = 0xFD2FB528, 0x184D2A50
_RLE_BLOCK = 1
_COUNTED_BYTES = 1 << 30
"""Bytes at which counting refused data stops."""


class Oversized(HandledError, ValueError):
    """Data that unpacks to more bytes than may be held.

    `size` is in bytes, and only a lower bound unless `exact`.
    """

    def __init__(self, size: int, most: int, *, exact: bool = True) -> None:
        super().__init__(
            f"it unpacks to {'' if exact else 'more than '}{size} bytes, which don't come in pieces: "
            f"the most that is held of one is {most}"
        )
        self.size = size


def decompress(codec: int, data: Buffer, most: int = WHOLE_BYTES) -> bytes:
    """Return the data behind this codec (an index into `CODECS`).

    Raises ValueError if `data` can't be of this codec, and `Oversized` as soon as the result exceeds `most` bytes.
    """
    if known(codec) == LZ4 and (unpacked := _java_lz4(data, most)) is not None:
        return unpacked
    parts: list[Buffer] = []
    size = 0
    for part in pieces(codec, data):
        size += len(part)
        if size > most:
            raise Oversized(size, most, exact=False)
        parts.append(part)
    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


def size_of(codec: int, data: Buffer) -> tuple[int, bool]:
    """Return the unpacked size in bytes, and True if the size is exact.

    Counting stops above `_COUNTED_BYTES`.
    """
    size = 0
    for part in pieces(codec, data):
        size += len(part)
        if size > _COUNTED_BYTES:
            return size, False
    return size, True


def pieces(codec: int, data: Buffer) -> Iterator[Buffer]:
    """Yield the decompressed data in small pieces.

    Data that doesn't come in pieces is yielded as a whole, block by block.
    """
    return (_plain, _gunzip, _unsnappy, _unlz4, _unzstd)[known(codec)](data)


def _plain(data: Buffer) -> Iterator[Buffer]:
    view = memoryview(data)
    for start in range(0, len(view), _STEP_BYTES):
        yield view[start : start + _STEP_BYTES]


def _gunzip(data: Buffer) -> Iterator[Buffer]:
    import zlib

    if not data:
        raise _damaged(GZIP, "no data")
    view = memoryview(data)
    at = 0
    while at < len(view) and (not at or view[at]):  # several members, perhaps zeros behind
        member = zlib.decompressobj(GZIP_FRAMING)
        while not member.eof:
            fed = member.unconsumed_tail
            if not fed:
                fed = bytes(view[at : at + _FED_BYTES])
                at += len(fed)
                if not fed:
                    raise _damaged(GZIP, "it is cut off")
            try:
                piece = member.decompress(fed, _STEP_BYTES)
            except zlib.error as error:
                raise _damaged(GZIP, error) from error
            if piece:
                yield piece
        at -= len(member.unused_data)


def _unsnappy(data: Buffer) -> Iterator[Buffer]:
    """Yield the blocks in xerial's framing, or one raw block.

    Some clients other than Java's write a raw block.
    """
    view = memoryview(data)
    if view[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        yield _snappy_block(view)
        return
    at = 0
    while at < len(view):
        if view[at : at + len(XERIAL_MAGIC)] == XERIAL_MAGIC:  # header of the next of several streams
            at += len(XERIAL_HEADER)
            continue
        try:
            (size,) = _INT32.unpack_from(view, at)
        except struct.error as error:
            raise _damaged(SNAPPY, error) from error
        at += _INT32.size + size
        if size < 0 or at > len(view):
            raise _damaged(SNAPPY, f"a block of {size} bytes")
        yield _snappy_block(view[at - size : at])


def _snappy_block(block: memoryview) -> bytes:
    """Decompress a snappy block after a check of the size it announces.

    The check is needed because the library allocates the announced size before it looks at the rest.
    """
    import snappy

    size = 0
    for at, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            break
    if size > len(block) * _SNAPPY_RATIO:
        raise _damaged(SNAPPY, f"{len(block)} bytes that say they were {size}")
    if size > WHOLE_BYTES:
        raise Oversized(size, WHOLE_BYTES)
    try:
        unpacked: bytes = snappy.uncompress(block)
    except snappy.UncompressError as error:
        raise _damaged(SNAPPY, error) from error
    return unpacked


def _java_lz4(data: Buffer, most: int) -> bytes | None:
    """Decompress a Java client's LZ4 frame block by block; None for other frames.

    This takes a quarter less time than the general way.
    """
    import lz4.block

    if data[: len(LZ4_FRAME)] != LZ4_FRAME:
        return None
    parts: list[bytes] = []
    at, end = len(LZ4_FRAME), len(data) - len(LZ4_END)
    unpacked = 0
    try:
        while at < end:
            (size,) = _LZ4_SIZE.unpack_from(data, at)
            at += _LZ4_SIZE.size + (size & ~_LZ4_PLAIN)
            block = data[at - (size & ~_LZ4_PLAIN) : at]
            parts.append(bytes(block) if size & _LZ4_PLAIN else lz4.block.decompress(block, LZ4_BLOCK))
            unpacked += len(parts[-1])
            if unpacked > most:
                raise Oversized(unpacked, most, exact=False)
    except lz4.block.LZ4BlockError as error:
        raise _damaged(LZ4, error) from error
    if at != end or data[end:] != LZ4_END:
        return None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _unlz4(data: Buffer) -> Iterator[Buffer]:
    import lz4.frame

    frame = lz4.frame.LZ4FrameDecompressor()
    view = memoryview(data)
    at = 0
    while not frame.eof:
        fed = b""
        if frame.needs_input:
            fed = bytes(view[at : at + _FED_BYTES])
            at += len(fed)
            if not fed:
                raise _damaged(LZ4, "the frame is cut off")
        try:
            piece = frame.decompress(fed, max_length=_STEP_BYTES)
        except RuntimeError as error:
            raise _damaged(LZ4, error) from error
        if piece:
            yield piece


def _unzstd(data: Buffer) -> Iterator[Buffer]:
    import zstandard

    view = memoryview(data)
    frames, blocks, window = _walked_zstd(view)
    begins = int.from_bytes(view[:4], "little") == _ZSTD_MAGIC  # the library would end after a skippable frame
    if frames == 1 and begins and blocks <= _FEW_BLOCKS:  # takes half the time
        try:
            yield zstandard.ZstdDecompressor(max_window_size=_LONGEST_WINDOW).decompressobj().decompress(data)
        except zstandard.ZstdError as error:
            raise _damaged(ZSTD, error) from error
        return
    most = WHOLE_BYTES if window > ZSTD_WINDOW else None  # a long window takes no more memory than comes out
    try:  # Java's reader takes several frames for one
        reader = zstandard.ZstdDecompressor(max_window_size=_LONGEST_WINDOW).stream_reader(
            data, read_size=_FED_BYTES, read_across_frames=True
        )
        size = 0
        while piece := reader.read(_STEP_BYTES):
            size += len(piece)
            if most is not None and size > most:
                raise Oversized(size, most, exact=False)
            yield piece
    except zstandard.ZstdError as error:
        raise _damaged(ZSTD, error) from error


def _walked_zstd(view: memoryview) -> tuple[int, int, int]:
    """Count frames and blocks, and find the longest window (RFC 8878, section 3.1.1).

    Raises ValueError for a frame that is cut off, which the library doesn't report.
    """
    import zstandard

    at = frames = blocks = longest = 0
    while at < len(view) or not at:
        magic = int.from_bytes(view[at : at + 4], "little")
        if magic & ~0xF == _ZSTD_SKIPPED:
            at += 8 + int.from_bytes(view[at + 4 : at + 8], "little")
        elif magic == _ZSTD_MAGIC:
            try:
                head = bytes(view[at : at + 32])
                frame = zstandard.get_frame_parameters(head)
                at += zstandard.frame_header_size(head)
            except zstandard.ZstdError as error:
                raise _damaged(ZSTD, error) from error
            last = 0
            while not last:
                if at + 3 > len(view):
                    raise _damaged(ZSTD, "the frame is cut off")
                block = int.from_bytes(view[at : at + 3], "little")
                last = block & 1
                kind = block >> 1 & 3
                blocks += 1
                at += 3 + (1 if kind == _RLE_BLOCK else block >> 3)
            at += 4 if frame.has_checksum else 0
            frames += 1
            longest = max(longest, frame.window_size)
        else:
            raise _damaged(ZSTD, "a frame that is none" if at + 4 <= len(view) else "the frame is cut off")
    if at > len(view):
        raise _damaged(ZSTD, "the frame is cut off")
    return frames, blocks, longest


def _damaged(codec: int, why: object) -> ValueError:
    return ValueError(f"its {CODECS[codec]} data can't be decompressed: {why or 'damaged'}")
