"""Figures as people read them in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sparkmirror.doctor.amounts import rate as rate
from sparkmirror.doctor.amounts import size as size
from sparkmirror.engine.snapshot import Topic

_MANY = 10_000_000


def duration(seconds: float) -> str:
    """Return a time in its two largest units.

    Examples are `0.4 s`, `45 s`, `3 min 20 s` and `4 d 3 h`.
    """
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    for unit, name, smaller, of in ((86_400, "d", "h", 3600), (3600, "h", "min", 60), (60, "min", "s", 1)):
        if whole >= unit:
            rest = whole % unit // of
            return f"{whole // unit:,} {name}" + (f" {rest} {smaller}" if rest else "")
    raise AssertionError("unreachable")


def clock(at_ms: int, now_ms: int, *, seconds: bool = False) -> str:
    """Return a time of day such as `09:53 UTC`, with the date of another day."""
    at, now = (datetime.fromtimestamp(each / 1000, UTC) for each in (at_ms, now_ms))
    day = "" if at.date() == now.date() else "%Y-%m-%d "
    return at.strftime(f"{day}%H:%M{':%S' if seconds else ''} UTC")


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    Examples are `1 record`, `1,234 records` and `12.3 million records`.
    """
    words = f"{number:,}" if number < _MANY else f"{number / 1e6:,.1f} million"
    return f"{words} {noun if number == 1 else plural or noun + 's'}"


def listed(parts: list[str]) -> str:
    """Join phrases with commas, and with `and` before the last."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]])) if parts else ""


def cannot(refused: Sequence[Topic]) -> str:
    """Return the predicate of a sentence about refused topics, after their number.

    `whole` stands for topics with copied partitions, of which only new partitions are refused.
    """
    return "can't be copied whole" if any(topic.partitions for topic in refused) else "can't be copied at all"
