"""Times read by a format, as leniently as by Java's `SimpleDateFormat`."""

from __future__ import annotations

import re

from sparkmirror.transforms.calendar_time import DAY_MS, day_number, see_calendar
from sparkmirror.transforms.date_format import MONTHS, DateFormat, FormatPart
from sparkmirror.transforms.java_numbers import LONG_MAX
from sparkmirror.transforms.refusal import UnfitRecord

READABLE = "yMdHmsSXZ"
"""Fields that can be read.

`yy` can't: in Java its century depends on the current day.
"""

_DEFAULTS = {"y": 1970, "M": 1, "d": 1, "H": 0, "m": 0, "s": 0, "S": 0, "zone": 0}
_NUMBER = re.compile(r"-?[0-9]+")
_BLANKS = re.compile(r"[ \t]*")
_ZONES = {
    "X": re.compile(r"Z|([+-])([0-9]{2})()"),
    "XX": re.compile(r"Z|([+-])([0-9]{2})([0-9]{2})"),
    "XXX": re.compile(r"Z|([+-])([0-9]{2}):([0-9]{2})"),
    "Z": re.compile(r"([+-])([0-9]{2})([0-9]{2})"),
}
_MOST_DIGITS = 9


def unreadable(pattern: DateFormat) -> str:
    """Return the first field that can't be read; else nothing."""
    return next((part.text for part in pattern.parts if part.letter and not _is_readable(part)), "")


def parsed(pattern: DateFormat, text: str) -> int:
    """Return milliseconds since 1970; raise `UnfitRecord` for a foreign format.

    As in Java, text at the end is ignored, and 32 January is 1 February.
    """
    if field := unreadable(pattern):
        raise UnfitRecord(f"its time is a text, and the format's field {field} can't be read")
    fields = dict(_DEFAULTS)
    at = 0
    for part, following in zip(pattern.parts, (*pattern.parts[1:], None), strict=True):
        if not part.letter:
            if not text.startswith(part.text, at):
                raise _unlike()
            at += len(part.text)
            continue
        abuts = following is not None and _is_number(following)
        at = _read(part, text, at, fields, abuts=abuts)
    days = day_number(fields["y"], fields["M"], fields["d"])
    time = (fields["H"] * 60 + fields["m"]) * 60_000 + fields["s"] * 1000 + fields["S"]
    made = days * DAY_MS + time
    see_calendar(min(made // DAY_MS, day_number(fields["y"], 1, 1)))  # Java chooses the calendar by the year as written
    if made > LONG_MAX:
        raise UnfitRecord("its time is too large")
    return made - fields["zone"] * 60_000


def _is_readable(part: FormatPart) -> bool:
    return part.letter in READABLE and not (part.letter == "y" and part.width <= 2)


def _is_number(part: FormatPart) -> bool:
    return bool(part.letter) and part.letter not in "XZ" and not (part.letter == "M" and part.width > 2)


def _skipped(text: str, at: int) -> int:
    matched = _BLANKS.match(text, at)
    return matched.end() if matched else at


def _read(part: FormatPart, text: str, at: int, fields: dict[str, int], *, abuts: bool) -> int:
    """Read a field; return where the next part begins.

    Before a name no blank is skipped. Where a number abuts on another, blanks count among its digits.
    """
    if part.letter in "XZ":
        return _read_zone(part, text, _skipped(text, at), fields)
    if not _is_number(part):
        return _read_month(text, at, fields)
    end = at + part.width if abuts else len(text)
    matched = _NUMBER.match(text, _skipped(text, at), end)
    if matched is None:
        raise _unlike()
    if len(matched[0]) > _MOST_DIGITS:
        raise UnfitRecord("a number in its time is too large")
    fields[part.letter] = int(matched[0])
    return matched.end()


def _read_zone(part: FormatPart, text: str, at: int, fields: dict[str, int]) -> int:
    matched = _ZONES["Z" if part.letter == "Z" else part.text].match(text, at)
    if matched is None:
        raise _unlike()
    hours, minutes = int(matched[2] or "0"), int(matched[3] or "0")
    if hours > 23 or minutes > 59:
        raise _unlike()
    fields["zone"] = (hours * 60 + minutes) * (-1 if matched[1] == "-" else 1)
    return matched.end()


def _read_month(text: str, at: int, fields: dict[str, int]) -> int:
    """Read a month's English name, or three letters, in any case."""
    names = [(name, number) for number, full in enumerate(MONTHS, 1) for name in (full, full[:3])]
    for name, number in sorted(names, key=lambda pair: -len(pair[0])):
        if text[at : at + len(name)].lower() == name.lower():
            fields["M"] = number
            return at + len(name)
    raise _unlike()


def _unlike() -> UnfitRecord:
    return UnfitRecord("its time is not of the format")
