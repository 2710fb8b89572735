"""A batch's records piece by piece, whatever it unpacks to: as they lie there, or decoded.

A piece has at most `PIECE_RECORDS` records and about `PIECE_BYTES`. A record that is larger comes alone, and its body
in parts; readers that need it as a whole get a digest that stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from sparkmirror.wire.batches import CODEC_MASK, HEADER_SIZE, MAGIC, TIMESTAMP_TYPE_BIT, BatchHeader
from sparkmirror.wire.codecs import Buffer
from sparkmirror.wire.old_formats import messages
from sparkmirror.wire.records import PIECE_RECORDS, NotAtOnce, Records, see_that_it_is_whole, unreadable
from sparkmirror.wire.unpacking import PIECE_BYTES
from sparkmirror.wire.unpacking import pieces as unpacked
from sparkmirror.wire.varints import read, unzigzag

STAND_IN = b"\xff" * 10
"""How a body begins that only stands for one: no key's length is such a number."""

_LONGEST_RECORD = 1 << 31
"""Its length is an int32."""

_HEADS = 64
"""Bytes, more than what precedes a record's body."""


class RawRecord(NamedTuple):
    """A record as a consumer sees it; the timestamp is in ms, -1 where there is none (message format v0)."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class LargeRecord:
    """A record that is larger than a piece; `body` is to be read before the next piece is asked for, or not at all."""

    offset: int
    timestamp: int
    attributes: int
    size: int
    """Of the body, in bytes."""
    body: Iterator[Buffer]


def pieces(header: BatchHeader, batch: memoryview) -> Iterator[Records | LargeRecord]:
    """All records of a batch, none of them empty; ValueError where it can't be read."""
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
    """The same, with a digest in the place of a body that is too large to be held; equal bodies have equal ones."""
    most = PIECE_BYTES - _HEADS
    for piece in pieces(header, batch):
        if isinstance(piece, LargeRecord):
            stand_in = Records()
            stand_in.append(piece.offset, piece.timestamp, piece.attributes, _digest(piece.size, piece.body))
            yield stand_in
            continue
        if piece.unpacked > most:  # whatever else was in the batch, its own size decides
            piece.bodies = [body if len(body) <= most else _digest(len(body), (body,)) for body in piece.bodies]
        yield piece


def _digest(size: int, body: Iterable[Buffer]) -> bytes:
    digest = blake2b(digest_size=32)
    for part in body:
        digest.update(part)
    return STAND_IN + size.to_bytes(8, "big") + digest.digest()


def _old(header: BatchHeader, batch: memoryview) -> Iterator[Records]:
    found = Records()
    try:
        for offset, timestamp, body in messages(batch):
            found.append(offset, timestamp, 0, body)
            if len(found) == PIECE_RECORDS or found.unpacked >= PIECE_BYTES:
                yield found
                found = Records()
    except ValueError as error:
        raise unreadable(header, error) from error
    if len(found):
        yield found


class _Section:
    """The records section of a magic-2 batch on its way through memory."""

    def __init__(self, header: BatchHeader, batch: memoryview) -> None:
        self._header = header
        self._batch = batch
        self._held = bytearray()
        """What was unpacked and not given yet; it begins with a record."""
        self._count = 0
        self._last = header.base_offset - 1

    def pieces(self) -> Iterator[Records | LargeRecord]:
        """All of it."""
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
                    for _ in large.body:  # what nobody wanted
                        pass
            if self._count != header.records:
                raise ValueError(f"{header.records} records announced, {self._count} found")
        except ValueError as error:
            raise error if isinstance(error, _NamedError) else _NamedError(str(unreadable(header, error))) from error

    def _fill(self, size: int) -> int:
        """How much is held now: so much, if it is there."""
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
        """So many records are given now; none of them if there are not as many as announced."""
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
        return LargeRecord(offset, timestamp, attributes, size, self._body(offset, size))

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


class _NamedError(ValueError):
    """It names its batch already."""


def _whole_records(data: bytearray) -> tuple[int, int]:
    """Where the last one of those that lie in `data` with all their bytes ends, and how many they are: no large one."""
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
    """Each record's offset, timestamp and body; records with equal bodies have equal keys, values and headers.

    ValueError if the batch is damaged. An old message's body is what it is in magic 2, and that of a very large
    record a digest (`STAND_IN`).
    """
    for piece in readable_pieces(header, batch):
        yield from zip(piece.offsets, piece.timestamps, piece.bodies, strict=True)


def records(header: BatchHeader, batch: memoryview) -> Iterator[RawRecord]:
    """Each record, decoded; ValueError if the batch is damaged."""
    for offset, timestamp, body in raw_parts(header, batch):
        if body.startswith(STAND_IN):
            size = int.from_bytes(body[len(STAND_IN) :][:8], "big")
            raise ValueError(f"the record at offset {offset} has {size} bytes, more than are held of one")
        try:
            key, at = _nullable(body, 0)
            value, at = _nullable(body, at)
            count, at = read(body, at)
            headers = []
            for _ in range(unzigzag(count)):
                name, at = _nullable(body, at)
                content, at = _nullable(body, at)
                if name is None:
                    raise ValueError("a header without a name")
                headers.append((name, content))
            if at != len(body) or count & 1:
                raise ValueError(f"its headers end at {at} of {len(body)} bytes")
        except (IndexError, ValueError) as error:
            raise ValueError(f"the record at offset {offset} is damaged: {error}") from error
        yield RawRecord(offset, timestamp, key, value, tuple(headers))


def _nullable(body: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = read(body, at)
    size = unzigzag(length)
    if size < 0:
        return None, at
    if at + size > len(body):
        raise ValueError(f"{size} bytes announced, {len(body) - at} there")
    return body[at : at + size], at + size
