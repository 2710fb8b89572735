"""Schema ids as serializers write them, before a field or in a record header.

- Confluent's, which Karapace, Redpanda and Apicurio share: a byte 0 and four bytes, the id, big-endian.
- AWS Glue's: a byte 3, a byte for how the rest is compressed (0 none, 5 zlib), and 16 bytes, a UUID.
- Confluent's newer serializers can write a record header instead, with either id or, after a byte 1, a GUID.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple, TypeAlias
from uuid import UUID

from sparkmirror.kafka.wire.codecs import Buffer
from sparkmirror.kafka.wire.pieces import STAND_IN
from sparkmirror.kafka.wire.varints import read, unzigzag

KEY_HEADER, VALUE_HEADER = b"__key_schema_id", b"__value_schema_id"

_CONFLUENT, _GUID, _GLUE = 0, 1, 3
_CONFLUENT_SIZE, _GUID_SIZE, _GLUE_SIZE = 5, 17, 18
_GLUE_COMPRESSIONS = (0, 5)
_LONGEST = 18
"""Bytes of the longest id with its prefix."""
_LARGE_HEAD = 1 << 20
"""First bytes of a very large record that are searched for ids."""


class IdKind(StrEnum):
    """An id's kind, which determines the registry to ask."""

    CONFLUENT = "confluent"
    GUID = "guid"
    GLUE = "glue"


class SchemaId(NamedTuple):
    """A schema's id: a number, or a UUID."""

    kind: IdKind
    text: str


class Field(NamedTuple):
    """A record's key or value: its presence, and its schema id."""

    there: bool
    schema: SchemaId | None
    size: int = 0
    """Bytes in the key or value, if it has an id."""


Fields: TypeAlias = tuple[Field, Field]
"""A record's fields: key and value."""

NULL = Field(False, None)
PLAIN = Field(True, None)


@functools.lru_cache(1 << 10)
def schema_id(field: bytes) -> SchemaId | None:
    """Return the id that a key or value begins with.

    Ids that no registry gives (0 and below) count as none.
    """
    if len(field) >= _CONFLUENT_SIZE and field[0] == _CONFLUENT:
        number = int.from_bytes(field[1:_CONFLUENT_SIZE], "big", signed=True)
        return SchemaId(IdKind.CONFLUENT, str(number)) if number > 0 else None
    if len(field) >= _GLUE_SIZE and field[0] == _GLUE and field[1] in _GLUE_COMPRESSIONS:
        return SchemaId(IdKind.GLUE, str(UUID(bytes=field[2:_GLUE_SIZE])))
    return None


def fields(body: bytes) -> Fields | None:
    """Return the fields of a record's body, as `wire.records` delivers bodies.

    Returns None for a digest in place of a body. Raises ValueError for a damaged body.
    """
    if body.startswith(STAND_IN):
        return None
    try:
        key, at = _head(body, 0)
        value, at = _head(body, at)
        if body[at]:
            count, at = read(body, at)
            key, value = _with_headers(key, value, _headers(body, at, unzigzag(count)))
    except IndexError:
        raise ValueError("a record's body is cut off") from None
    return key, value


def large_fields(body: Iterable[Buffer]) -> Fields | None:
    """Return the fields of a record that comes in parts, without a look at headers.

    Returns None if the key alone is very large.
    """
    held = bytearray()
    for part in body:
        held += part
        length = min(len(held), _LARGE_HEAD)
        try:
            key, at = _head(bytes(held[:length]), 0)
            size, start = read(held, at)
        except (IndexError, ValueError):
            if length == _LARGE_HEAD:
                return None
            continue
        if size & 1 == 0 and len(held) < start + min(size >> 1, _LONGEST):
            continue
        return key, NULL if size & 1 else _field(bytes(held[start : start + min(size >> 1, _LONGEST)]), size >> 1)
    return None


def _head(body: bytes, at: int) -> tuple[Field, int]:
    """Return the field at `at`, which follows its length, and the field's end."""
    length = body[at]
    if length < 0x80:
        at += 1
    elif (high := body[at + 1]) < 0x80:
        length += (high << 7) - 0x80
        at += 2
    else:
        length, at = read(body, at)
    if length & 1:
        return NULL, at
    end = at + (length >> 1)
    if end > len(body):
        raise ValueError(f"{length >> 1} bytes announced, {len(body) - at} there")
    # Most fields of most topics begin otherwise; most other fields have one of few ids.
    if end - at < _CONFLUENT_SIZE or (first := body[at]) not in (_CONFLUENT, _GLUE):
        return PLAIN, end
    return _field(body[at : min(end, at + (_CONFLUENT_SIZE if first == _CONFLUENT else _LONGEST))], end - at), end


def _field(head: bytes, size: int) -> Field:
    schema = schema_id(head)
    return PLAIN if schema is None else Field(True, schema, size)


def _headers(body: bytes, at: int, count: int) -> Iterator[tuple[bytes, bytes | None]]:
    for _ in range(count):
        name, at = _text(body, at)
        content, at = _text(body, at)
        yield name or b"", content


def _text(body: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = read(body, at)
    size = unzigzag(length)
    return (None, at) if size < 0 else (body[at : at + size], at + size)


def _with_headers(key: Field, value: Field, headers: Iterable[tuple[bytes, bytes | None]]) -> Fields:
    """Put the ids from record headers into the fields.

    With such an id, the field's first bytes are content.
    """
    for name, content in headers:
        if content is not None and name in (KEY_HEADER, VALUE_HEADER):
            schema = _in_header(content)
            if schema is not None and name == KEY_HEADER:
                key = key._replace(schema=schema)
            elif schema is not None:
                value = value._replace(schema=schema)
    return key, value


def _in_header(content: bytes) -> SchemaId | None:
    if len(content) >= _GUID_SIZE and content[0] == _GUID:
        return SchemaId(IdKind.GUID, str(UUID(bytes=content[1:_GUID_SIZE])))
    schema = schema_id(content)
    return schema if schema is not None and schema.kind is IdKind.CONFLUENT else None
