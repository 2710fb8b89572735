"""Figures as people read them in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sparkmirror.look.doctor.amounts import duration as duration
from sparkmirror.look.doctor.amounts import rate as rate
from sparkmirror.look.doctor.amounts import size as size
from sparkmirror.snapshot.snapshot import Topic

_MANY = 10_000_000


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
