"""Answers made from kafka-python's schemas: any of a kind, or the one that takes the most memory for its bytes."""

from __future__ import annotations

import os
import struct
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import kafka.protocol.admin
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer
import kafka.protocol.sasl  # noqa: F401 - each brings its answers
from kafka.protocol.api_header import ResponseClassRegistry

KINDS = {kind.name: kind[None] for kind in ResponseClassRegistry._response_class_registry.values()}  # noqa: SLF001
"""All classes of answers that the imports above bring, by name."""
Path = tuple[str, ...]
VARINT_FROM = 0x80
MOST_ITEMS = 3
DISTINCT = 1000
"""Entries after which they come again: no decoder remembers so many numbers."""


def schema_of(kind: Any) -> Any:
    return kind._struct  # noqa: SLF001


def uvarint(number: int) -> bytes:
    out = bytearray()
    while number >= VARINT_FROM:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def arrays(structure: Any, version: int, at: Path = ()) -> Iterator[Path]:
    """The path of each array in a structure."""
    for field in structure.untagged_fields(version):
        if field.is_array():
            yield (*at, field.name)
        inner = field.array_of if field.is_struct_array() else field
        if inner.is_struct():
            yield from arrays(inner, version, (*at, field.name))


class Crowded:
    """An answer of a kind whose array at `path` has as many entries as fit into `size` bytes, `most` at most."""

    def __init__(self, kind: Any, version: int, path: Path, text: bytes, size: int, most: int = sys.maxsize) -> None:
        self._version = version
        self._flexible = kind.flexible_version_q(version)
        self._path, self._text, self._size, self._most = path, text, size, most
        self.data = self._entry(schema_of(kind), ())

    def _length(self, count: int, layout: str = ">i") -> bytes:
        return uvarint(count + 1) if self._flexible else struct.pack(layout, count)

    def _entry(self, structure: Any, at: Path) -> bytes:
        if not structure.is_struct():
            return self._field(structure, at)
        fields = structure.untagged_fields(self._version)
        return b"".join(self._field(field, at) for field in fields) + bytes(int(self._flexible))

    def _field(self, field: Any, at: Path) -> bytes:
        here = (*at, field.name)
        if field.is_array():
            if self._path[: len(here)] != here:
                return self._length(0)
            fit = min(max(self._size // len(self._entry(field.array_of, here)), 1), self._most)
            count = fit if self._path == here else 1
            distinct = [self._entry(field.array_of, here) for _ in range(min(count, DISTINCT))]
            repeated = count // len(distinct)
            return self._length(count) + b"".join(distinct) * repeated + b"".join(distinct[: count % len(distinct)])
        if field.is_struct():
            present = b"\1" if field.nullable_for_version_q(self._version) else b""
            return present + self._entry(field, here)
        if field.type_str in ("string", "bytes", "records"):
            return self._length(len(self._text), ">h" if field.type_str == "string" else ">i") + self._text
        return b"\1" if field.type_str == "bool" else os.urandom(field._type.size)  # noqa: SLF001


def filled(kind: Any, version: int, choose: Callable[[int], int]) -> Any:
    """An answer with values in all fields; `choose(n)` gives numbers from 0 to n."""
    answer = kind(**_values(schema_of(kind), version, choose))
    answer.API_VERSION = version
    return answer


def _values(structure: Any, version: int, choose: Callable[[int], int]) -> dict[str, Any]:
    fields = [field for field in structure.fields.values() if field.for_version_q(version)]
    return {field.name: _value(field, version, choose) for field in fields}


def _value(field: Any, version: int, choose: Callable[[int], int]) -> Any:
    if field.is_array():
        return [_entry(field.array_of, version, choose) for _ in range(choose(MOST_ITEMS))]
    return _entry(field, version, choose)


def _entry(field: Any, version: int, choose: Callable[[int], int]) -> Any:
    if field.is_struct():
        if field.nullable_for_version_q(version) and not choose(1):
            return None
        return field.data_class(version=version, **_values(field, version, choose))
    match field.type_str:
        case "string":
            return "ä-" * choose(90)
        case "bytes" | "records":
            return bytes(choose(200))
        case "uuid":
            return uuid.UUID(int=choose(2**128 - 1))
        case "bool":
            return bool(choose(1))
        case "bitfield":
            return {3, 4, 8}
        case "float64":
            return float(choose(9))
        case "uint16":
            return choose(2**16 - 1)
    bits = 8 * field._type.size  # noqa: SLF001
    return choose(2**bits - 1) - 2 ** (bits - 1)
