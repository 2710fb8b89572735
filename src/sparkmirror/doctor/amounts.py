"""Amounts and speeds as people read them, in units that fit."""

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
