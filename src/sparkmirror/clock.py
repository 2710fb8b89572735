"""The clock that bounds zombies: it counts the time that a machine was suspended too (R6)."""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_s() -> float:
    """Seconds since some fixed point."""
    return time.clock_gettime(_CLOCK)


def wall_ms() -> int:
    """Milliseconds since 1970, as Kafka's timestamps."""
    return time.time_ns() // 1_000_000
