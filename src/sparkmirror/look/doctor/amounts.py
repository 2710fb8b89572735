"""Amounts, speeds and times as people read them, in units that fit."""

from __future__ import annotations


def rate(per_s: float, unit: str) -> str:
    """Return a speed, such as `0.4 records/s` or `45,000 records/s`."""
    return f"{per_s:.1f} {unit}/s" if 0 < per_s < 10 else f"{per_s:,.0f} {unit}/s"


def size(number: float) -> str:
    """Return bytes in decimal units: `512 B`, `1.5 MB`."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1000
    raise AssertionError("unreachable")


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
