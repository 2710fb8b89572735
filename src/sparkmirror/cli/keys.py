"""Pressed keys of a terminal, one by one and without an echo."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
_KEY = re.compile(r"\x1b[\[O]([A-Z])|\x1b\[[0-9;]*~|([^\x1b])|\x1b")

Keys = Callable[[float], list[str]]
"""Function that waits for keys, and returns the pressed keys.

The argument is the longest wait in seconds. The key is `end` once the terminal is gone.
"""


@contextmanager
def pressed_keys() -> Iterator[Keys]:
    """Read keys from standard input, a terminal, while the context is open.

    Restores the terminal's modes at the end.
    """
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield lambda timeout_s: _read(descriptor, timeout_s)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _read(descriptor: int, timeout_s: float) -> list[str]:
    if not select.select([descriptor], [], [], timeout_s)[0]:
        return []
    typed = os.read(descriptor, 1024)
    return parsed(typed.decode(errors="replace")) if typed else ["end"]


def parsed(typed: str) -> list[str]:
    """Return keys by name: letters as typed, `up`, `down`, `left`, `right`.

    Leaves out all further keys.
    """
    keys = [_ARROWS.get(arrow, "") if arrow else letter for arrow, letter in _KEY.findall(typed)]
    return [key for key in keys if key]
