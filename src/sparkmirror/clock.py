"""Clock for time limits on zombies, which also counts suspended time (R6).

A zombie is a former pump that goes on sending, for instance after its machine was suspended.
"""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_s() -> float:
    """Return the seconds since a fixed point."""
    return time.clock_gettime(_CLOCK)


def wall_ms() -> int:
    """Return the milliseconds since 1970, as in Kafka's timestamps."""
    return time.time_ns() // 1_000_000
