"""Decode kafka-python's answers without trusting any length inside an answer.

kafka-python's own decoders believe a count until the bytes end, read numbers without an end, copy the rest of the
answer for each tagged field, and keep unknown tagged fields. These decoders are made from the same schemas, and give
the same objects with three differences: arrays are tuples, operation sets are the number that stands on the wire, and a
field that can't be null is empty if it is.

Before anything is made of an array, its count is held against the bytes that are left. So an answer's memory is at most
`MEMORY_FACTOR` times its bytes, and its time grows with its bytes only.
"""

from __future__ import annotations

import functools
import struct
import uuid
from collections.abc import Callable
from typing import Any

from sparkmirror.kafka.wire.primitives import MOST_TAGS

MEMORY_FACTOR = 34
"""Most memory bytes for each byte of a decoded answer.

An answer with the smallest possible entries takes 32.1 of them, a real cluster's a quarter
(`test_bounded_decoding.py`).
"""

_NUMBERS_PER_ENTRY = 4
_LONGEST_VARINT = 5
_INDENT = "    "

Decode = Callable[[memoryview, int, int], tuple[Any, int]]


def decode(kind: Any, version: int, frame: memoryview, at: int, most_entries: int) -> Any:
    """Decode this class's answer behind its header, which ends at `at`.

    `most_entries` are the most entries in all its arrays together. Among number arrays each distinct one counts once:
    equal ones are one object, since most partitions share their replica list with others. Raises `struct.error`,
    `IndexError` or `ValueError` for bytes that are no such answer.
    """
    return _decoder(kind[None], version)(frame, at, most_entries)[0]


def uvarint(data: memoryview, at: int) -> tuple[int, int]:
    """Read a 32-bit UNSIGNED_VARINT; return it and the place behind it."""
    value = 0
    for shift in range(0, 7 * _LONGEST_VARINT, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number of more than 32 bits")


def _absurd(count: int, left: int) -> ValueError:
    return ValueError(f"{count} entries or bytes are announced, and {left} bytes are left")


def _too_many(entries: int, most: int) -> ValueError:
    return ValueError(f"{entries:,} entries, and at most {most:,} are read")


@functools.cache
def _decoder(kind: Any, version: int) -> Decode:
    flexible = kind.flexible_version_q(version)
    return _Function(version, flexible).of_struct(kind._struct, kind)  # noqa: SLF001 - no public call has the schema


def smallest_size(field: Any, version: int, *, flexible: bool) -> int:
    """Return the fewest bytes that a field takes in an answer."""
    if field.is_array():
        return 1 if flexible else 4
    if field.is_struct():
        if field.nullable_for_version_q(version):
            return 1
        return _smallest_entry(field, version, flexible=flexible)
    size = field._type.size  # noqa: SLF001
    if isinstance(size, int):
        return size
    return 1 if flexible else 2 if field.type_str == "string" else 4


def _smallest_entry(structure: Any, version: int, *, flexible: bool) -> int:
    fields = structure.untagged_fields(version)
    return sum(smallest_size(field, version, flexible=flexible) for field in fields) + flexible


class _Function:
    """One decoder's source text, straight code for all fields as in kafka-python."""

    def __init__(self, version: int, flexible: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._lines: list[str] = []
        self._names: dict[str, Any] = {
            "absurd": _absurd,
            "new": object.__new__,
            "read_tags": _read_tags,
            "unpack_from": struct.unpack_from,
            "too_many": _too_many,
            "uvarint": uvarint,
            "UUID": uuid.UUID,
        }
        self._count = 0

    def of_struct(self, structure: Any, data_class: Any) -> Decode:
        self._struct("value", structure, data_class, _INDENT)
        return self._made("value")

    def of_field(self, field: Any) -> Decode:
        self._field("value", field, _INDENT)
        return self._made("value")

    def _made(self, result: str) -> Decode:
        head = ["def decode(data, pos, most):", f"{_INDENT}size, kept, entries = len(data), {{}}, 0"]
        text = "\n".join([*head, *self._lines, f"{_INDENT}return {result}, pos"])
        exec(compile(text, "<decoder of an answer>", "exec"), self._names)  # noqa: S102 - made of schemas alone
        made: Decode = self._names["decode"]
        return made

    def _add(self, indent: str, *lines: str) -> None:
        self._lines += [indent + line for line in lines]

    def _name(self, value: Any = None) -> str:
        """Return a new name, which stands for `value` if one is given."""
        self._count += 1
        name = f"v{self._count}"
        if value is not None:
            self._names[name] = value
        return name

    def _struct(self, into: str, structure: Any, data_class: Any, indent: str) -> None:
        decoded: list[tuple[str, str]] = []
        fields = structure.untagged_fields(self._version)
        at = 0
        while at < len(fields):
            run = []
            while at < len(fields) and fields[at].is_batchable():
                run.append(fields[at])
                at += 1
            if run:
                names = [self._name() for _ in run]
                layout = ">" + "".join(field._type.fmt for field in run)  # noqa: SLF001
                self._add(indent, f"{', '.join(names)}, = unpack_from('{layout}', data, pos)")
                self._add(indent, f"pos += {struct.calcsize(layout)}")
                decoded += zip((field.name for field in run), names, strict=True)
                continue
            name = self._name()
            self._field(name, fields[at], indent)
            decoded.append((fields[at].name, name))
            at += 1
        made = self._name(data_class)
        self._add(indent, f"{into} = new({made})", f"{into}._version = {self._version}")
        self._add(indent, f"{into}.tags = {into}.unknown_tags = None")
        self._add(indent, *(f"{into}.{field} = {name}" for field, name in decoded))
        if self._flexible:
            known = {
                field.tag: (field.name, _Function(self._version, flexible=True).of_field(field))
                for field in structure.fields.values()
                if field.for_version_q(self._version) and field.tagged_field_q(self._version)
            }
            tags = self._name(known)
            self._add(indent, "if data[pos]:", f"{_INDENT}pos = read_tags(data, pos, most, {tags}, {into})")
            self._add(indent, "else:", f"{_INDENT}pos += 1")

    def _field(self, into: str, field: Any, indent: str) -> None:
        if field.is_array():
            self._array(into, field, indent)
        elif field.is_struct():
            if field.nullable_for_version_q(self._version):
                self._add(indent, "pos += 1", "if data[pos - 1] == 0xFF:", f"{_INDENT}{into} = None", "else:")
                indent += _INDENT
            self._struct(into, field, field.data_class, indent)
        elif field.is_batchable():
            self._add(indent, f"{into}, = unpack_from('>{field._type.fmt}', data, pos)")  # noqa: SLF001
            self._add(indent, f"pos += {field._type.size}")  # noqa: SLF001
        elif field.type_str == "uuid":
            self._take("16", indent)
            self._add(indent, f"{into} = UUID(bytes=bytes(data[pos - 16:pos]))")
        elif field.type_str == "bitfield":
            self._add(indent, f"{into}, = unpack_from('>i', data, pos)", "pos += 4")
        else:
            text = field.type_str == "string"
            empty = "" if text else b""
            count = self._length(indent, "h" if text else "i")
            self._add(indent, f"if {count} < 0:", f"{_INDENT}{into} = {self._null(field, empty)!r}", "else:")
            self._take(count, indent + _INDENT)
            piece = f"data[pos - {count}:pos]"
            value = f"str({piece}, 'utf-8')" if text else f"bytes({piece})"
            self._add(indent + _INDENT, f"{into} = {value}")

    def _length(self, indent: str, layout: str) -> str:
        """Read how long an array, a string or bytes is; return the name that has it."""
        count = self._name()
        if self._flexible:
            self._add(indent, f"{count} = data[pos] - 1", "pos += 1", f"if {count} > 126:")
            self._add(indent + _INDENT, f"{count}, pos = uvarint(data, pos - 1)", f"{count} -= 1")
        else:
            self._add(indent, f"{count}, = unpack_from('>{layout}', data, pos)", f"pos += {struct.calcsize(layout)}")
        return count

    def _take(self, count: str, indent: str) -> None:
        """Step over so many bytes, if there are as many."""
        self._add(indent, f"if {count} > size - pos:", f"{_INDENT}raise absurd({count}, size - pos)", f"pos += {count}")

    def _array(self, into: str, field: Any, indent: str) -> None:
        entry = field.array_of
        count = self._length(indent, "i")
        self._add(indent, f"if {count} < 0:", f"{_INDENT}{into} = {self._null(field, ())}")
        least = max(smallest_size(entry, self._version, flexible=self._flexible), 1)
        self._add(indent, f"elif {count} > (size - pos) // {least}:")
        self._add(indent, f"{_INDENT}raise absurd({count}, size - pos)", "else:")
        inner = indent + _INDENT
        if entry.is_batchable():
            layout = entry._type.fmt  # noqa: SLF001
            self._add(inner, f"{into} = unpack_from(f'>{{{count}}}{layout}', data, pos)", f"pos += {count} * {least}")
            self._add(inner, f"if {into} in kept:", f"{_INDENT}{into} = kept[{into}]", "else:")
            self._add(inner + _INDENT, f"kept[{into}] = {into}")
            self._count_entries(f"1 + {count} // {_NUMBERS_PER_ENTRY}", inner + _INDENT)
            return
        gathered, value = self._name(), self._name()
        self._count_entries(count, inner)
        self._add(inner, f"{gathered} = []", f"for _ in range({count}):")
        if entry.is_struct():
            self._struct(value, entry, entry.data_class, inner + _INDENT)
        else:
            self._field(value, entry, inner + _INDENT)
        self._add(inner + _INDENT, f"{gathered}.append({value})")
        self._add(inner, f"{into} = tuple({gathered})")

    def _null(self, field: Any, empty: Any) -> Any:
        """Return what stands for null: only fields that may be null are None."""
        return None if field.nullable_for_version_q(self._version) else empty

    def _count_entries(self, count: str, indent: str) -> None:
        self._add(indent, f"entries += {count}", "if entries > most:", f"{_INDENT}raise too_many(entries, most)")


def _read_tags(data: memoryview, at: int, most: int, known: dict[int, tuple[str, Decode]], into: Any) -> int:
    """Read tagged fields (KIP-482) into an object; step over unknown ones."""
    count, at = uvarint(data, at)
    if count > MOST_TAGS:
        raise ValueError(f"{count} tagged fields in one place")
    for _ in range(count):
        tag, at = uvarint(data, at)
        size, at = uvarint(data, at)
        end = at + size
        if end > len(data):
            raise _absurd(size, len(data) - at)
        if tag in known:
            name, read = known[tag]
            setattr(into, name, read(data[:end], at, most)[0])
        at = end
    return at
