"""Clocks: for time limits on zombies (R6), and for people.

A zombie is a former pump that continues sending, for instance after its machine was suspended: the clock for time
limits also counts suspended time.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_s() -> float:
    """Return the seconds since a fixed point."""
    return time.clock_gettime(_CLOCK)


def wall_ms() -> int:
    """Return the milliseconds since 1970, as in Kafka's timestamps."""
    return time.time_ns() // 1_000_000


def utc(seconds: float) -> str:
    """Return a time since 1970 for people, such as `2026-11-30T06:18:03Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
