"""Brokers answer before they show what was changed."""

from __future__ import annotations

import time
from collections.abc import Callable


def assert_soon(look: Callable[[], object], expected: object, timeout_s: float = 10.0) -> None:
    """Look again until it is as expected, and fail with what was seen last."""
    deadline = time.monotonic() + timeout_s
    while (seen := look()) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    assert seen == expected
