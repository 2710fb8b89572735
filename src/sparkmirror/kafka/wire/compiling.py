"""Decorators for loops over bytes: numba's, or stand-ins where numba is missing.

Numba is optional (`sparkmirror[fast]`), and takes half a second to load. Without numba the same functions run as plain
Python, much more slowly and with equal results: arrays reach them as memoryviews, whose items are Python's numbers.

Arithmetic in a loop must not rely on 64-bit overflow: mask each product.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

try:
    import numba
except ImportError:
    numba = None

Function = TypeVar("Function", bound=Callable[..., Any])

COMPILED: bool = numba is not None
"""True if loops are compiled."""

LONG = "int64"
READ_ONLY = "Array(uint8, 1, 'C', readonly=True)"
BYTES = "uint8[::1]"
INTS = "int32[::1]"
LONGS = "int64[::1]"
READ_LONGS = "Array(int64, 1, 'C', readonly=True)"
TABLE = "int64[:, ::1]"
"""Types of arguments, in numba's words."""


def longs(count: int) -> str:
    """Return the type of a tuple with so many numbers."""
    return f"UniTuple(int64, {count})"


def inner(function: Function) -> Function:
    """Compile a function into each loop that calls it.

    A call would count the arrays' users, with locks that take longer than the rest.
    """
    if not COMPILED:
        return function
    compiled: Function = numba.njit(boundscheck=True, inline="always")(function)
    return compiled


def unchecked(function: Function) -> Function:
    """Compile a function that only loops call, and that sees to its indexes itself."""
    if not COMPILED:
        return function
    compiled: Function = numba.njit(function)
    return compiled


def loop(returns: str, *takes: str) -> Callable[[Function], Function]:
    """Compile a function for these types now, or load it from the cache.

    All indexes are checked, at no cost that could be measured.
    """

    def compiled(function: Function) -> Function:
        if not COMPILED:
            return _plain(function)
        signature = f"{returns}({', '.join(takes)})"
        try:
            made: Function = numba.njit(signature, boundscheck=True, cache=True)(function)
        except RuntimeError:  # no directory for a cache can be written to
            made = numba.njit(signature, boundscheck=True)(function)
        return made

    return compiled


def _plain(function: Function) -> Function:
    @wraps(function)
    def called(*arguments: Any) -> Any:
        return function(*(memoryview(each.data) if isinstance(each, np.ndarray) else int(each) for each in arguments))

    return called  # type: ignore[return-value]  # it takes what the function takes
