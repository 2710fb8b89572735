"""Cast: types for fields, or for a whole key or value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sparkmirror.transforms import java_numbers
from sparkmirror.transforms.fields import java_split
from sparkmirror.transforms.json_data import Data
from sparkmirror.transforms.options import BLANKS, BadOption, Options
from sparkmirror.transforms.record import Record, Side
from sparkmirror.transforms.refusal import UnfitRecord
from sparkmirror.transforms.shape import SidedTransform, fields_of, kind_of

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TYPES = (*_BITS, "float32", "float64", "boolean", "string")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldCast(SidedTransform):
    """Cast fields; a missing field becomes null, as in Java."""

    types: tuple[tuple[str, str], ...]

    def changed(self, data: Data, record: Record) -> Data:
        if data is None:
            return None
        given = fields_of(data)
        return {**given, **{name: _cast_field(name, given.get(name), kind) for name, kind in self.types}}


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCast:
    """Cast a whole key or value, read and written as text.

    Tombstones stay.
    """

    reroutes: ClassVar[bool] = False

    side: Side
    type: str

    def apply(self, record: Record) -> Record:
        content = record.side(self.side)
        if content is None:
            return record
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise UnfitRecord("its bytes are no text in UTF-8") from None
        made = java_text(_cast_field("", text, self.type))
        return record.with_side(self.side, made.encode("utf-8", "replace"))


def cast_of(options: Options, side: Side) -> FieldCast | WholeCast:
    """Return the cast for `spec`: fields, or the whole."""
    types: dict[str, str] = {}
    whole = ""
    for pair in options["spec"]:
        parts = java_split(pair)
        if len(parts) not in (1, 2):
            raise BadOption("spec", f"{pair!r} is no pair: write field:type,field:type, or a type")
        kind = parts[-1].strip(BLANKS).lower()
        if kind not in TYPES:
            raise BadOption("spec", f"{kind!r} is no type to cast to; there are {', '.join(TYPES)}")
        if len(parts) == 1:
            whole = kind
        else:
            types[parts[0].strip(BLANKS)] = kind
    if whole and len(options["spec"]) > 1:
        raise BadOption("spec", "a type without a field is for the whole: write it alone")
    return WholeCast(side=side, type=whole) if whole else FieldCast(side=side, types=tuple(types.items()))


def java_text(data: Data) -> str:
    """Return a scalar as Java's `toString`."""
    if isinstance(data, bool):
        return "true" if data else "false"
    return java_numbers.double_text(data) if isinstance(data, float) else str(data)


def _cast_field(name: str, data: Data, kind: str) -> Data:
    subject = f"its field {name!r}" if name else "it"
    if isinstance(data, (list, dict)):
        raise UnfitRecord(f"{subject} is {kind_of(data)}, which can't be cast")
    if data is None:
        return None
    try:
        return _cast(data, kind)
    except ValueError as error:
        raise UnfitRecord(f"{subject} can't be cast to {kind}: {error}") from None


def _cast(data: bool | int | float | str, kind: str) -> Data:
    if kind == "string":
        return java_text(data)
    if kind == "boolean":
        return _boolean(data)
    if kind in _BITS:
        return _whole(data, _BITS[kind])
    if isinstance(data, str):
        return java_numbers.parse_single(data) if kind == "float32" else java_numbers.parse_double(data)
    return java_numbers.single(data) if kind == "float32" else float(data)


def _whole(data: bool | int | float | str, bits: int) -> int:
    if isinstance(data, str):
        return java_numbers.parse_integer(data, bits)
    return java_numbers.narrowed(data, bits) if isinstance(data, float) else java_numbers.wrapped(data, bits)


def _boolean(data: bool | int | float | str) -> bool:
    if isinstance(data, str):
        return data.lower() == "true"
    return java_numbers.narrowed(data, 64) != 0 if isinstance(data, float) else bool(data)
