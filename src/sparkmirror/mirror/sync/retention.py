"""A copy's retention next to the source's: which copies lose kept records?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

FOREVER = -1
"""Kafka's value for endless retention."""
_TIME, _SIZE, _POLICY, _TOMBSTONES = "retention.ms", "retention.bytes", "cleanup.policy", "delete.retention.ms"
PROPERTIES = (_TIME, _SIZE, _POLICY, _TOMBSTONES)
"""Topic properties that decide which records a log keeps.

`local.retention.ms` and `local.retention.bytes` do not: what a tiered topic drops locally stays in remote storage.
"""
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def keeps_less(source: Mapping[str, str], target: Mapping[str, str]) -> str:
    """Return how a copy keeps less than its source; empty if it does not.

    Both have topic properties' effective values, defaults among them; what is missing is not compared.
    """
    return ", ".join(shorter(source, target).values())


def shorter(source: Mapping[str, str], target: Mapping[str, str]) -> dict[str, str]:
    """Return each property by which a copy keeps less than its source, in words."""
    return dict(_shorter(source, target))


def _shorter(source: Mapping[str, str], target: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    here, there = source.get(_POLICY, "delete"), target.get(_POLICY, "delete")
    if "compact" in there and "compact" not in here:
        yield _POLICY, f"{_POLICY} is {there} ({here} at the source)"
    if "delete" in there:
        for name in (_TIME, _SIZE):
            limit = _number(source, name) if "delete" in here else FOREVER
            if (own := _number(target, name)) is not None and limit is not None and _is_less(own, limit):
                yield name, f"{name} is {_text(name, own)} ({_text(name, limit)} at the source)"
    if "compact" in here and "compact" in there:
        own, limit = _number(target, _TOMBSTONES), _number(source, _TOMBSTONES)
        if own is not None and limit is not None and own < limit:
            yield _TOMBSTONES, f"{_TOMBSTONES} is {_text(_TOMBSTONES, own)} ({_text(_TOMBSTONES, limit)} at the source)"


def _number(values: Mapping[str, str], name: str) -> int | None:
    value = values.get(name)
    return int(value) if value is not None else None


def _is_less(own: int, limit: int) -> bool:
    return own >= 0 and (limit < 0 or own < limit)


def _text(name: str, value: int) -> str:
    if value < 0:
        return "without end"
    if name == _SIZE:
        return f"{value:,} bytes"
    number, unit = next(((value / size, unit) for size, unit in _UNITS if value >= size), (value, "ms"))
    return f"{number:,.4g} {unit}"
