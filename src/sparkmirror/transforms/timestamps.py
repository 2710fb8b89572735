"""TimestampConverter: times as numbers and as texts."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.transforms.date_format import DateFormat
from sparkmirror.transforms.date_parsing import parsed
from sparkmirror.transforms.java_numbers import LONG_MAX
from sparkmirror.transforms.json_data import Data
from sparkmirror.transforms.options import BadOption, Options
from sparkmirror.transforms.record import Record, Side
from sparkmirror.transforms.refusal import UnfitRecord
from sparkmirror.transforms.shape import SidedTransform, fields_of, kind_of

TARGETS = ("string", "unix")
PRECISIONS = {"nanoseconds": (1, 1_000_000), "microseconds": (1, 1000), "milliseconds": (1, 1), "seconds": (1000, 1)}
"""Factor and divisor to milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampConverter(SidedTransform):
    """Convert times between numbers and texts, in a field or as the whole."""

    field: str
    target: str
    format: DateFormat
    precision: str

    @classmethod
    def of(cls, options: Options, side: Side) -> TimestampConverter:
        target, pattern = options["target.type"], options["format"]
        if target not in TARGETS:
            raise BadOption("target.type", f"JSON has no {target}: write string or unix")
        if target == "string" and not pattern:
            raise BadOption("format", "it is missing, and target.type=string needs it: write, say, yyyy-MM-dd")
        try:
            made = DateFormat.of(pattern)
        except ValueError as error:
            raise BadOption("format", str(error)) from None
        return cls(side=side, field=options["field"], target=target, format=made, precision=options["unix.precision"])

    def changed(self, data: Data, record: Record) -> Data:
        if data is None or not self.field:
            return self._converted(data)
        given = fields_of(data)
        return {**given, self.field: self._converted(given.get(self.field))}

    def _converted(self, data: Data) -> Data:
        if data is None:
            return None
        factor, divisor = PRECISIONS[self.precision]
        time_ms = self._time(data, factor, divisor)
        if self.target == "unix":
            return _scaled(time_ms, divisor, factor)
        return self.format.format(time_ms)

    def _time(self, data: Data, factor: int, divisor: int) -> int:
        if isinstance(data, str):
            if not self.format.parts:
                raise UnfitRecord("its time is a text: write its format")
            return parsed(self.format, data)
        if isinstance(data, bool) or not isinstance(data, int):
            raise UnfitRecord(f"its time is {kind_of(data)}; whole numbers and texts can be converted")
        return _scaled(data, factor, divisor)


def _scaled(number: int, factor: int, divisor: int) -> int:
    """Return a number in a new unit, as Java's `TimeUnit` does.

    It is cut towards zero, and stays within 64 bits.
    """
    made = abs(number) * factor // divisor
    return max(-LONG_MAX - 1, min(LONG_MAX, -made if number < 0 else made))
