"""Transforms that add, copy and drop headers.

MirrorMaker 2's converter for headers, `ByteArrayConverter`, writes only bytes and null: in Java a new header with a
literal or a field stops the task. Here the header gets the value's text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from sparkmirror.transforms.casting import java_text
from sparkmirror.transforms.json_data import Data, decoded, encoded
from sparkmirror.transforms.options import BadOption, Options
from sparkmirror.transforms.record import Record, Side
from sparkmirror.transforms.shape import fields_of


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertHeader:
    """Append a header with a fixed value."""

    reroutes: ClassVar[bool] = False

    name: str
    content: bytes | None

    @classmethod
    def of(cls, options: Options) -> InsertHeader:
        literal = options["value.literal"]
        return cls(name=options["header"], content=None if literal == "null" else literal.encode("utf-8", "replace"))

    def apply(self, record: Record) -> Record:
        return replace(record, headers=(*record.headers, (self.name, self.content)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DropHeaders:
    """Take headers out by name."""

    reroutes: ClassVar[bool] = False

    names: frozenset[str]

    @classmethod
    def of(cls, options: Options) -> DropHeaders:
        return cls(names=frozenset(options["headers"]))

    def apply(self, record: Record) -> Record:
        return replace(record, headers=tuple(header for header in record.headers if header[0] not in self.names))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderFrom:
    """Copy or move fields of a key or a value into headers."""

    reroutes: ClassVar[bool] = False

    side: Side
    pairs: tuple[tuple[str, str], ...]
    """Fields, each with its header's name."""
    moves: bool

    @classmethod
    def of(cls, options: Options, side: Side) -> HeaderFrom:
        fields, headers = options["fields"], options["headers"]
        if len(fields) != len(headers):
            raise BadOption("headers", f"it has {len(headers)} names for {len(fields)} fields: write as many")
        return cls(side=side, pairs=tuple(zip(fields, headers, strict=True)), moves=options["operation"] == "move")

    def apply(self, record: Record) -> Record:
        given = fields_of(decoded(record.side(self.side)))
        made = tuple((header, _content(given.get(field))) for field, header in self.pairs)
        moved = {field for field, _ in self.pairs} if self.moves else set[str]()
        rest: Data = {name: field for name, field in given.items() if name not in moved}
        return replace(record.with_side(self.side, encoded(rest)), headers=(*record.headers, *made))


def _content(data: Data) -> bytes | None:
    """Return a header's bytes: text for scalars, JSON for lists and objects."""
    if data is None or isinstance(data, (list, dict)):
        return encoded(data)
    return java_text(data).encode("utf-8", "replace")
