"""Kafka's encodings for the hot requests, Fetch and Produce.

Compact encodings belong to flexible versions (KIP-482), the others to the versions before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from sparkmirror.errors import ClusterTrouble

INT8 = struct.Struct(">b")
INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
INT64 = struct.Struct(">q")

NO_TAGS = b"\x00"

MOST_TAGS = 64
"""Most tagged fields in one place (KIP-482); Kafka 4 has three at most."""

_LONGEST_VARINT = 10
"""Bytes in a 64-bit number as a varint."""


class Garbled(ClusterTrouble):
    """A broker's answer can't be read.

    All further bytes on the connection are useless, too.
    """


@contextmanager
def read_from(what: str) -> Iterator[None]:
    """Raise `Garbled` if a `Reader` can't read `what` in the block."""
    try:
        yield
    except (struct.error, IndexError, ValueError) as error:
        raise Garbled(f"{what} can't be read ({error})") from error


def uvarint(value: int) -> bytes:
    """Encode an UNSIGNED_VARINT."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact_string(text: str) -> bytes:
    """Encode a COMPACT_STRING: length plus one, then UTF-8."""
    data = text.encode()
    return uvarint(len(data) + 1) + data


def string(text: str) -> bytes:
    """Encode a STRING: length in two bytes, then UTF-8."""
    data = text.encode()
    return INT16.pack(len(data)) + data


def length(count: int, *, flexible: bool) -> bytes:
    """Encode the length of an array or of records, compact if `flexible`."""
    return uvarint(count + 1) if flexible else INT32.pack(count)


def request_header(
    api_key: int, api_version: int, correlation_id: int, client_id: bytes, *, flexible: bool = True
) -> bytes:
    """Encode request header v2 (flexible versions) or v1.

    The client id is not compact in any version.
    """
    head = struct.pack(">hhih", api_key, api_version, correlation_id, len(client_id)) + client_id
    return head + NO_TAGS if flexible else head


def check_answer(frame: memoryview, correlation_id: int) -> None:
    """Raise `Garbled` unless a frame answers the request with this correlation id."""
    with read_from("an answer"):
        (answered,) = INT32.unpack_from(frame)
    if answered != correlation_id:
        raise Garbled(f"an answer to request {answered} in place of request {correlation_id}")


class Reader:
    """A cursor over one response frame.

    A read past the frame's end raises `struct.error` or `IndexError`; an overlong varint raises `ValueError`.
    `read_from` turns all three into `Garbled`.
    """

    __slots__ = ("at", "view")

    def __init__(self, view: memoryview, at: int = 0) -> None:
        self.view = view
        self.at = at

    def int8(self) -> int:
        value: int = INT8.unpack_from(self.view, self.at)[0]
        self.at += 1
        return value

    def int16(self) -> int:
        value: int = INT16.unpack_from(self.view, self.at)[0]
        self.at += 2
        return value

    def int32(self) -> int:
        value: int = INT32.unpack_from(self.view, self.at)[0]
        self.at += 4
        return value

    def int64(self) -> int:
        value: int = INT64.unpack_from(self.view, self.at)[0]
        self.at += 8
        return value

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        """Read several fields of fixed size at once."""
        values = layout.unpack_from(self.view, self.at)
        self.at += layout.size
        return values

    def uvarint(self) -> int:
        view, at = self.view, self.at
        byte = view[at]
        at += 1
        if byte < 0x80:
            self.at = at
            return byte
        value = byte & 0x7F
        for shift in range(7, 7 * _LONGEST_VARINT, 7):
            byte = view[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.at = at
                return value
        raise ValueError("a number of more than 64 bits")

    def compact_length(self) -> int:
        """Read how long a compact array, string or records field is; -1 for null."""
        return self.uvarint() - 1

    def slice(self, size: int) -> memoryview:
        piece = self.view[self.at : self.at + size]
        if size < 0 or len(piece) < size:
            raise IndexError(f"{size} bytes are due, and {len(piece)} are left")
        self.at += size
        return piece

    def passes(self, expected: bytes) -> bool:
        """Step over `expected` if these bytes are next; return False if others are."""
        at = self.at
        if self.view[at : at + len(expected)] != expected:
            return False
        self.at = at + len(expected)
        return True

    def compact_text(self) -> str | None:
        length = self.compact_length()
        return None if length < 0 else str(self.slice(length), "utf-8", "replace")

    def text(self) -> str | None:
        """Read a NULLABLE_STRING."""
        length = self.int16()
        return None if length < 0 else str(self.slice(length), "utf-8", "replace")

    def encoded_string(self, *, flexible: bool) -> bytes:
        """Read a COMPACT_STRING or STRING as raw bytes, length included."""
        start = self.at
        self.slice(self.compact_length() if flexible else self.int16())
        return bytes(self.view[start : self.at])

    def uuid(self) -> bytes:
        return bytes(self.slice(16))

    def tags(self) -> dict[int, memoryview]:
        """Read tagged fields: tag -> its bytes."""
        count = self.uvarint()
        if not count:
            return {}
        if count > MOST_TAGS:
            raise ValueError(f"{count} tagged fields in one place")
        fields = {}
        for _ in range(count):
            tag = self.uvarint()
            fields[tag] = self.slice(self.uvarint())
        return fields
