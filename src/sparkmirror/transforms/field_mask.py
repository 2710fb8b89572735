"""MaskField: fields with secret values."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.transforms.java_numbers import big_decimal, long_of
from sparkmirror.transforms.json_data import Data
from sparkmirror.transforms.options import Options
from sparkmirror.transforms.record import Record, Side
from sparkmirror.transforms.refusal import UnfitRecord
from sparkmirror.transforms.shape import SidedTransform, fields_of, kind_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskField(SidedTransform):
    """Put zero, false, an empty value or a replacement into fields.

    A missing field becomes null, as in Java.
    """

    fields: tuple[str, ...]
    replacement: str | None

    @classmethod
    def of(cls, options: Options, side: Side) -> MaskField:
        return cls(side=side, fields=options["fields"], replacement=options["replacement"])

    def changed(self, data: Data, record: Record) -> Data:
        given = fields_of(data)
        return {**given, **{name: self._masked(name, given.get(name)) for name in self.fields}}

    def _masked(self, name: str, data: Data) -> Data:
        if data is None:
            return None
        if self.replacement is None:
            return _empty(data)
        if isinstance(data, str):
            return self.replacement
        if isinstance(data, bool) or not isinstance(data, (int, float)):
            raise UnfitRecord(f"its field {name!r} is {kind_of(data)}, for which there is no replacement")
        try:
            number = big_decimal(self.replacement)
        except ValueError:
            raise UnfitRecord(f"its field {name!r} is a number, and the replacement is none") from None
        return long_of(number) if isinstance(data, int) else float(number) or 0.0


def _empty(data: Data) -> Data:
    if isinstance(data, bool):
        return False
    if isinstance(data, int):
        return 0
    if isinstance(data, float):
        return 0.0
    if isinstance(data, str):
        return ""
    return [] if isinstance(data, list) else {}
