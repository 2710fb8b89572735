"""Order of fields in Java's `HashMap`.

The order counts when two fields get the same name: the last field stays.
"""

from __future__ import annotations

from collections.abc import Iterable

_LEAST_BUCKETS = 16
_FULL = 0.75


def hash_ordered(names: Iterable[str]) -> list[str]:
    """Return names in a `HashMap`'s order, after insertion in the given order.

    Java's trees, for buckets with nine names or more, are left out.
    """
    given = list(names)
    buckets = _LEAST_BUCKETS
    while len(given) > buckets * _FULL:
        buckets *= 2
    return sorted(given, key=lambda name: _spread(name) % buckets)


def _spread(name: str) -> int:
    """Return `String.hashCode`, with its upper half mixed into the lower one."""
    number = 0
    units = name.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        number = (31 * number + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return number ^ number >> 16
