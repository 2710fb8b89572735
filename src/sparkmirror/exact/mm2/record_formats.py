"""MirrorMaker 2's heartbeats, checkpoints and offset syncs, byte for byte.

The format is described in `mm2.md` section 2. Strings are UTF-8 after a 16-bit length, numbers are big-endian; there is
no magic and no schema id. Heartbeats' and checkpoints' values begin with a version, 0; offset syncs' values have no
version.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self

from sparkmirror.errors import HandledError

VERSION = 0
_LONGEST = 32_767
_SHORT, _INT, _LONG, _TWO_LONGS = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q"), struct.Struct(">qq")


class Malformed(HandledError, ValueError):
    """Bytes that are no record of the expected kind."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Sign of life, written into the target of `source->target`."""

    source_alias: str
    target_alias: str
    timestamp_ms: int

    def key(self) -> bytes:
        return _string(self.source_alias) + _string(self.target_alias)

    def value(self) -> bytes:
        return _SHORT.pack(VERSION) + _LONG.pack(self.timestamp_ms)

    @classmethod
    def read(cls, key: bytes | None, value: bytes | None) -> Self:
        """Parse a record. Raises `Malformed`."""
        keys, values = _RecordReader(key), _RecordReader(value, versioned=True)
        return cls(keys.string(), keys.string(), values.long())


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A consumer group's position on both sides."""

    group: str
    topic: str
    """The topic's name at the target."""
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""
    """Metadata that the group committed with its offset."""

    def key(self) -> bytes:
        return _string(self.group) + _string(self.topic) + _INT.pack(self.partition)

    def value(self) -> bytes:
        return _SHORT.pack(VERSION) + _TWO_LONGS.pack(self.upstream, self.downstream) + _string(self.metadata)

    @classmethod
    def read(cls, key: bytes | None, value: bytes | None) -> Self:
        """Parse a record. Raises `Malformed`."""
        keys, values = _RecordReader(key), _RecordReader(value, versioned=True)
        return cls(
            group=keys.string(),
            topic=keys.string(),
            partition=keys.integer(),
            upstream=values.long(),
            downstream=values.long(),
            metadata=values.string(),
        )


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """One record's offset on both sides."""

    topic: str
    """The topic's name at the source."""
    partition: int
    upstream: int
    downstream: int

    def key(self) -> bytes:
        return _string(self.topic) + _INT.pack(self.partition)

    def value(self) -> bytes:
        return _TWO_LONGS.pack(self.upstream, self.downstream)

    @classmethod
    def read(cls, key: bytes | None, value: bytes | None) -> Self:
        """Parse a record. Raises `Malformed`."""
        keys, values = _RecordReader(key), _RecordReader(value)
        return cls(keys.string(), keys.integer(), values.long(), values.long())


def _string(text: str) -> bytes:
    """Encode a string; raises `ValueError` if its length exceeds 16 bits."""
    encoded = text.encode()
    if len(encoded) > _LONGEST:
        raise ValueError(f"{len(encoded)} bytes are too many for a string of Kafka's, which has 32767 at most")
    return _SHORT.pack(len(encoded)) + encoded


class _RecordReader:
    """Reader that takes fields off a record's key or value, one after another.

    As in Java, the reader ignores bytes after the last field.
    """

    def __init__(self, content: bytes | None, *, versioned: bool = False) -> None:
        if content is None:
            raise Malformed("it is empty")
        self._content = content
        self._at = 0
        if versioned and (version := self._take(_SHORT)) != VERSION:
            raise Malformed(f"version {version} is not known")

    def string(self) -> str:
        size = self._take(_SHORT)
        if size < 0 or self._at + size > len(self._content):
            raise Malformed("a string is longer than the rest of the record")
        self._at += size
        try:
            return self._content[self._at - size : self._at].decode()
        except UnicodeDecodeError:
            raise Malformed("a string is not UTF-8") from None

    def integer(self) -> int:
        return self._take(_INT)

    def long(self) -> int:
        return self._take(_LONG)

    def _take(self, field: struct.Struct) -> int:
        try:
            (number,) = field.unpack_from(self._content, self._at)
        except struct.error:
            raise Malformed("it ends too early") from None
        self._at += field.size
        return int(number)
