"""Versions of plug-ins and ranges in Maven's syntax, as in Connect (KIP-891).

`4.3.1` and `[4.3.1]` are a single version, `[4.0,5.0)` is a range, `[1,2],[4,5]` are two ranges, `latest` is any
version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from sparkmirror.errors import HandledError

ANY_VERSION = "latest"
_LONGEST = 10_000
"""Most characters of a range; a longer text is refused before parsing costs time."""
_QUALIFIERS = ("alpha", "beta", "milestone", "rc", "snapshot", "", "sp")
"""Qualifiers in Maven's order.

A release has the empty qualifier; unknown qualifiers come last.
"""
_ALIASES = {"ga": "", "final": "", "release": "", "cr": "rc"}
_BEFORE_NUMBERS = {"a": "alpha", "b": "beta", "m": "milestone"}


class InvalidRange(HandledError, ValueError):
    """Text that is no range; the message has Maven's words."""


@dataclass(frozen=True)
class _Bounds:
    """One range of versions; a bound of None is open."""

    low: str | None
    high: str | None
    with_low: bool
    with_high: bool

    def __contains__(self, version: str) -> bool:
        order = _order(version)
        if self.low is not None and (order < _order(self.low) or (order == _order(self.low) and not self.with_low)):
            return False
        return self.high is None or order < _order(self.high) or (order == _order(self.high) and self.with_high)

    def __str__(self) -> str:
        return f"{'[' if self.with_low else '('}{self.low or ''},{self.high or ''}{']' if self.with_high else ')'}"


@dataclass(frozen=True)
class VersionRange:
    """Ranges of versions; `text` is as the user wrote it."""

    text: str

    def __contains__(self, version: str) -> bool:
        return self._bounds is None or any(version in bounds for bounds in self._bounds)

    def __str__(self) -> str:
        return ",".join(map(str, self._bounds or ()))

    def check(self) -> None:
        """Raise `InvalidRange` if `text` is no range."""
        _ = self._bounds

    @cached_property
    def _bounds(self) -> tuple[_Bounds, ...] | None:
        if self.text == ANY_VERSION:
            return None
        text = self.text.strip()
        if len(text) > _LONGEST:
            raise InvalidRange(f"Range of more than {_LONGEST} characters")
        return tuple(_parse(text if text.startswith(("[", "(")) else f"[{text}]"))


def _parse(text: str) -> Iterator[_Bounds]:
    rest, above = text, None
    first = True
    while rest.startswith(("[", "(")):
        end = re.search(r"[])]", rest)
        if end is None:
            raise InvalidRange(f"Unbounded range: {text}")
        bounds = _one(rest[: end.end()])
        if not first and (above is not None and (bounds.low is None or _order(bounds.low) < _order(above))):
            raise InvalidRange(f"Ranges overlap: {text}")
        yield bounds
        first, above = False, bounds.high
        rest = rest[end.end() :].strip().removeprefix(",").strip()
    if rest:
        raise InvalidRange(f"Only fully-qualified sets allowed in multiple set scenario: {text}")


def _one(text: str) -> _Bounds:
    with_low, with_high = text.startswith("["), text.endswith("]")
    low, comma, high = (part.strip() for part in text[1:-1].partition(","))
    if not comma:
        if not (with_low and with_high):
            raise InvalidRange(f"Single version must be surrounded by []: {text}")
        return _Bounds(low, low, True, True)
    if low and high and (_order(high), with_low and with_high) < (_order(low), True):
        raise InvalidRange(f"Range defies version ordering: {text}")
    return _Bounds(low or None, high or None, with_low, with_high)


def _order(version: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts versions in Maven's order.

    Numbers sort by size, and words before numbers. Zeros at the end, or before a word, don't count.
    """
    parts: list[tuple[int, int, str]] = []
    for number, letters, follows in re.findall(r"(\d+)|([a-z]+|[^a-z\d.\-]+)(?=(\d?))", version.lower()):
        if number:
            digits = number.lstrip("0")
            parts.append((2, len(digits), digits))
            continue
        word = (_BEFORE_NUMBERS if follows else _ALIASES).get(letters, _ALIASES.get(letters, letters))
        _drop_zeros(parts)
        if word:
            parts.append((0, _QUALIFIERS.index(word), "") if word in _QUALIFIERS else (1, 0, word))
    _drop_zeros(parts)
    return (*parts, (0, _QUALIFIERS.index(""), ""))


def _drop_zeros(parts: list[tuple[int, int, str]]) -> None:
    while parts and parts[-1] == (2, 0, ""):
        parts.pop()
