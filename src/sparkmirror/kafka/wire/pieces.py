"""A batch's records piece by piece: bounded memory, as stored or decoded.

A piece has at most `PIECE_RECORDS` records and about `PIECE_BYTES`, however large the batch is when unpacked. A larger
record comes alone, its body in parts; readers that need a body as a whole get a digest instead, transforms the body.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from sparkmirror.errors import HandledError
from sparkmirror.kafka.wire.batches import CODEC_MASK, HEADER_SIZE, MAGIC, TIMESTAMP_TYPE_BIT, BatchHeader
from sparkmirror.kafka.wire.codecs import Buffer
from sparkmirror.kafka.wire.joined import PIECE_RECORDS
from sparkmirror.kafka.wire.old_formats import messages
from sparkmirror.kafka.wire.record_body import Headers, decoded
from sparkmirror.kafka.wire.records import NotAtOnce, Records, see_that_it_is_whole, unreadable
from sparkmirror.kafka.wire.unpacking import PIECE_BYTES
from sparkmirror.kafka.wire.unpacking import pieces as unpacked
from sparkmirror.kafka.wire.varints import read, unzigzag

STAND_IN = b"\xff" * 10
"""First bytes of a digest that replaces a body; no key's length looks so."""

_LONGEST_RECORD = 1 << 31
"""Longest record that can be written: a record's length is an int32."""

_HEADS = 64
"""Most bytes that come before a record's body."""


class RawRecord(NamedTuple):
    """A record as a consumer sees it.

    The timestamp is in ms, and -1 for a record without timestamp (message format v0).
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRecord:
    """A record larger than a piece.

    Read `body` before asking for the next piece, or never.
    """

    offset: int
    timestamp: int
    attributes: int
    size: int
    """The body's bytes."""
    body: Iterator[Buffer]

    def held(self) -> Records:
        """Return the record as a piece, with its whole body."""
        piece = Records()
        piece.append(self.offset, self.timestamp, self.attributes, b"".join(self.body))
        return piece


def pieces(header: BatchHeader, batch: memoryview) -> Iterator[Records | LargeRecord]:
    """Yield all records in a batch in pieces that hold at least a record each.

    Raises ValueError for an unreadable batch.
    """
    if header.magic != MAGIC:
        yield from _old(header, batch)
        return
    whole = Records()
    try:
        whole.add(header, batch)
    except NotAtOnce:
        yield from _Section(header, batch).pieces()
    else:
        if len(whole):
            yield whole


def readable_pieces(header: BatchHeader, batch: memoryview) -> Iterator[Records]:
    """Yield the same pieces, with a digest for each body that is too large to hold.

    Equal bodies have equal digests.
    """
    for piece in pieces(header, batch):
        if isinstance(piece, LargeRecord):
            stand_in = Records()
            stand_in.append(piece.offset, piece.timestamp, piece.attributes, _digest(piece.size, piece.body))
            yield stand_in
            continue
        if piece.unpacked > PIECE_BYTES - _HEADS:
            shorten(piece)
        yield piece


def held_pieces(header: BatchHeader, batch: memoryview) -> Iterator[Records]:
    """Yield the same pieces with all bodies, for transforms, which need them whole.

    `shorten` makes readable pieces of them.
    """
    for piece in pieces(header, batch):
        yield piece.held() if isinstance(piece, LargeRecord) else piece


def shorten(piece: Records) -> None:
    """Put a digest in the place of each body that is too large to hold.

    The body's own size decides, whatever else the batch holds.
    """
    most = PIECE_BYTES - _HEADS
    piece.bodies = [body if len(body) <= most else _digest(len(body), (body,)) for body in piece.bodies]


def _digest(size: int, body: Iterable[Buffer]) -> bytes:
    digest = blake2b(digest_size=32)
    for part in body:
        digest.update(part)
    return STAND_IN + size.to_bytes(8, "big") + digest.digest()


def _old(header: BatchHeader, batch: memoryview) -> Iterator[Records]:
    piece = Records()
    try:
        for offset, timestamp, body in messages(batch):
            piece.append(offset, timestamp, 0, body)
            if len(piece) == PIECE_RECORDS or piece.unpacked >= PIECE_BYTES:
                yield piece
                piece = Records()
    except ValueError as error:
        raise unreadable(header, error) from error
    if len(piece):
        yield piece


class _Section:
    """A magic-2 batch's records section on its way through memory."""

    def __init__(self, header: BatchHeader, batch: memoryview) -> None:
        self._header = header
        self._batch = batch
        self._held = bytearray()
        """Unpacked bytes not yet given to the reader; a record begins at byte 0."""
        self._count = 0
        self._last = header.base_offset - 1

    def pieces(self) -> Iterator[Records | LargeRecord]:
        header = self._header
        try:
            see_that_it_is_whole(header, self._batch)
            self._unpacked = unpacked(header.attributes & CODEC_MASK, self._batch[HEADER_SIZE:])
            while self._fill(PIECE_BYTES + _HEADS):
                end, count = _whole_records(self._held)
                if count:
                    yield self._taken(end, count)
                else:
                    large = self._large()
                    yield large
                    for _ in large.body:  # the reader skipped the rest
                        pass
            if self._count != header.records:
                raise ValueError(f"{header.records} records announced, {self._count} found")
        except ValueError as error:
            raise error if isinstance(error, _NamedError) else _NamedError(str(unreadable(header, error))) from error

    def _fill(self, size: int) -> int:
        """Hold `size` bytes if the section has as many; return the number held."""
        held = self._held
        while len(held) < size and (part := next(self._unpacked, None)) is not None:
            held += part
        return len(held)

    def _taken(self, end: int, count: int) -> Records:
        records = Records(unpacked=end)
        if records.walk(self._header, bytes(self._held[:end])) != end or len(records) != count:
            raise ValueError(f"a record after offset {self._last} is damaged")
        del self._held[:end]
        self._note(records.offsets[0], records.offsets[-1], count)
        return records

    def _note(self, first: int, last: int, count: int) -> None:
        """Count records for the reader, and check their offsets.

        Raises ValueError if the offsets don't ascend or leave the batch, or if the batch has more records than
        announced. `_taken` calls this method before the reader gets the records.
        """
        if first <= self._last or last >= self._header.next_offset:
            raise ValueError(f"offsets {first} to {last} follow {self._last}")
        self._last = last
        self._count += count
        announced = self._header.records
        if self._count > announced or (self._count == announced and self._fill(1)):
            raise ValueError(f"{announced} records announced, more found")

    def _large(self) -> LargeRecord:
        held, header = self._held, self._header
        try:
            length, start = read(held, 0)
            attributes = held[start]
            stamp, at = read(held, start + 1)
            delta, at = read(held, at)
        except IndexError:
            raise ValueError(f"{header.records} records announced, {self._count} found") from None
        size = start + (length >> 1) - at
        if size < 0 or delta & 1:
            raise ValueError(f"a record after offset {self._last} is damaged")
        del held[:at]
        timestamp = header.base_timestamp + unzigzag(stamp)
        if header.attributes & TIMESTAMP_TYPE_BIT:
            timestamp = header.max_timestamp
        offset = header.base_offset + (delta >> 1)
        if offset <= self._last or offset >= header.next_offset:
            raise ValueError(f"offset {offset} follows {self._last}")
        return LargeRecord(
            offset=offset, timestamp=timestamp, attributes=attributes, size=size, body=self._body(offset, size)
        )

    def _body(self, offset: int, size: int) -> Iterator[Buffer]:
        try:
            while size and self._fill(1):
                part = bytes(self._held[:size])
                del self._held[: len(part)]
                size -= len(part)
                yield part
            if size:
                raise ValueError(f"the record at offset {offset} lacks {size} bytes")
            self._note(offset, offset, 1)
        except ValueError as error:
            raise _NamedError(str(unreadable(self._header, error))) from error


class _NamedError(HandledError, ValueError):
    """A ValueError whose text names the batch."""


def _whole_records(data: bytearray) -> tuple[int, int]:
    """Return where the last whole record in `data` ends, and the record count.

    The walk stops before a record larger than `PIECE_BYTES`, and after `PIECE_RECORDS`.
    """
    at = count = 0
    while count < PIECE_RECORDS and at < len(data):
        try:
            length, start = read(data, at)
        except IndexError:
            break
        if length & 1 or length >= 2 * _LONGEST_RECORD:
            raise ValueError(f"a record of {unzigzag(length)} bytes")
        if length >> 1 > PIECE_BYTES or start + (length >> 1) > len(data):
            break
        at = start + (length >> 1)
        count += 1
    return at, count


def raw_parts(header: BatchHeader, batch: memoryview) -> Iterator[tuple[int, int, bytes]]:
    """Yield each record's offset, timestamp and body.

    Records with equal bodies have equal keys, values and headers. An old message's body is as in magic 2; a very large
    record's body is a digest (`STAND_IN`). Raises ValueError if the batch is damaged.
    """
    for piece in readable_pieces(header, batch):
        yield from zip(piece.offsets, piece.timestamps, piece.bodies, strict=True)


def records(header: BatchHeader, batch: memoryview) -> Iterator[RawRecord]:
    """Yield each record, decoded; ValueError if the batch is damaged."""
    for offset, timestamp, body in raw_parts(header, batch):
        if body.startswith(STAND_IN):
            size = int.from_bytes(body[len(STAND_IN) :][:8], "big")
            raise ValueError(f"the record at offset {offset} has {size} bytes, more than are held of one")
        try:
            key, value, headers = decoded(body)
        except (IndexError, ValueError) as error:
            raise ValueError(f"the record at offset {offset} is damaged: {error}") from error
        yield RawRecord(offset, timestamp, key, value, headers)
