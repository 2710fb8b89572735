"""Text of Java's `HashMap`.

Connect's messages print partitions, offsets and configurations so.
"""

from __future__ import annotations

from collections.abc import Mapping

_CAPACITY = 16
"""Buckets of a new `HashMap`; the number doubles when three quarters are taken."""


def java_text(value: object, *, copied: bool = False) -> str:
    """Return `String.valueOf` of a JSON value, with maps in the order of buckets.

    A map that Java `copied` from another map has as few buckets as its size needs.
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        ordered = _bucket_order(value, 1 if copied else _CAPACITY)
        return "{" + ", ".join(f"{key}={java_text(value[key])}" for key in ordered) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(java_text, value)) + "]"
    return str(value)


def _bucket_order(keys: Mapping[str, object], capacity: int) -> list[str]:
    while len(keys) > capacity * 3 / 4:
        capacity *= 2
    return sorted(keys, key=lambda key: _hash(key) & (capacity - 1))


def _hash(text: str) -> int:
    """Return `String.hashCode`, spread as `HashMap` spreads hash codes."""
    code = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code ^ (code >> 16)
