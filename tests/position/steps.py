"""How much work something is, without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable


def steps_of(work: Callable[[], object]) -> int:
    """How many functions it calls: the same on every machine."""
    calls = 0

    def note(*_: object) -> None:
        nonlocal calls
        calls += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls
