"""Kafka's signed variable-length integers (varint and varlong), by tables: splicing writes three a record.

A value is zigzag-encoded (0, -1, 1, -2 ... become 0, 1, 2, 3 ...), then written in groups of seven bits.
"""

from __future__ import annotations

_LONGEST = 10
"""Bytes of a 64-bit value."""

SHORT = [bytes((n,)) if n < 0x80 else bytes((n & 0x7F | 0x80, n >> 7)) for n in range(1 << 14)]
"""The whole of a zigzag value below 16384."""
CONTINUED = [bytes((n & 0x7F | 0x80, n >> 7 | 0x80)) for n in range(1 << 14)]
"""The low 14 bits of a larger one."""


def zigzag(value: int) -> int:
    """The unsigned form of a signed 64-bit value."""
    return (value << 1) ^ (value >> 63)


def unzigzag(value: int) -> int:
    """The signed value that was zigzag-encoded."""
    return (value >> 1) ^ -(value & 1)


def written(unsigned: int) -> bytes:
    """A zigzag value in groups of seven bits."""
    if unsigned < 1 << 14:
        return SHORT[unsigned]
    return CONTINUED[unsigned & 0x3FFF] + written(unsigned >> 14)


def read(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """(a zigzag value that begins at `at`, where it ends); IndexError where the data ends, ValueError if too long."""
    value = shift = 0
    for end in range(at, at + _LONGEST):
        byte = data[end]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, end + 1
        shift += 7
    raise ValueError("a number of more than 64 bits")
