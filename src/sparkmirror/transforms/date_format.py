"""Time formats like Java's `SimpleDateFormat`, in UTC and with English names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sparkmirror.transforms.calendar_time import Moment

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_LETTERS = "GyMLdkHmsSEDFwWahKzZYuX"
_LONGEST_ZONE = 3
_PARTS = re.compile(r"''|'(?P<quoted>(?:[^']|'')*)'|(?P<letter>[a-zA-Z])(?P=letter)*|(?P<plain>[^a-zA-Z']+)")


@dataclass(frozen=True, slots=True)
class FormatPart:
    """Stretch of text, or a field: a letter, repeated."""

    text: str
    letter: str = ""

    @property
    def width(self) -> int:
        return len(self.text)


@dataclass(frozen=True, slots=True)
class DateFormat:
    """Pattern for times, in parts."""

    parts: tuple[FormatPart, ...]

    @classmethod
    def of(cls, pattern: str) -> DateFormat:
        """Raise `ValueError` for what Java refuses."""
        parts = []
        at = 0
        while at < len(pattern):
            matched = _PARTS.match(pattern, at)
            if matched is None:
                raise ValueError("a quote is not closed")
            at = matched.end()
            letter = matched["letter"] or ""
            if letter and letter not in _LETTERS:
                raise ValueError(f"there is no field {letter!r}: put other text between quotes")
            if letter == "X" and len(matched[0]) > _LONGEST_ZONE:
                raise ValueError("a zone has three X at most")
            text = matched[0] if letter else matched["plain"] or (matched["quoted"] or "'").replace("''", "'")
            parts.append(FormatPart(text, letter))
        return cls(tuple(parts))

    def format(self, time_ms: int) -> str:
        """Return a time's text; raise `UnfitRecord` for times before 1583."""
        moment = Moment.at(time_ms)
        return "".join(_field(part, moment) if part.letter else part.text for part in self.parts)


def _field(part: FormatPart, moment: Moment) -> str:
    words = _words(part, moment)
    return str(_number(part.letter, moment)).zfill(part.width) if words is None else words


def _words(part: FormatPart, moment: Moment) -> str | None:
    """Return a field made of words or two digits; None for plain numbers."""
    width = part.width
    match part.letter:
        case "G":
            return "AD"
        case "y" | "Y" if width == 2:
            return f"{_number(part.letter, moment) % 100:02}"
        case "M" | "L" if width > 2:
            name = MONTHS[moment.month - 1]
            return name if width > 3 else name[:3]
        case "E":
            name = _WEEKDAYS[moment.weekday]
            return name if width > 3 else name[:3]
        case "a":
            return "AM" if _hour(moment) < 12 else "PM"
        case "z":
            return "Coordinated Universal Time" if width > 3 else "UTC"
        case "Z":
            return "+0000"
        case "X":
            return "Z"
    return None


def _number(letter: str, moment: Moment) -> int:
    seconds, milliseconds = divmod(moment.day_ms, 1000)
    hour = _hour(moment)
    return {
        "y": moment.year,
        "Y": moment.week_year,
        "M": moment.month,
        "L": moment.month,
        "w": moment.week,
        "W": moment.week_of_month,
        "D": moment.day_of_year,
        "d": moment.day,
        "F": (moment.day - 1) // 7 + 1,
        "u": moment.weekday or 7,
        "H": hour,
        "k": hour or 24,
        "K": hour % 12,
        "h": hour % 12 or 12,
        "m": seconds // 60 % 60,
        "s": seconds % 60,
        "S": milliseconds,
    }[letter]


def _hour(moment: Moment) -> int:
    return moment.day_ms // 3_600_000
