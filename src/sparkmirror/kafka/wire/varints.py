"""Kafka's signed variable-length integers (varint and varlong), by tables.

Tables make the encoding fast: splicing writes three integers a record. A value is zigzag-encoded (0, -1, 1, -2 ...
become 0, 1, 2, 3 ...), then written in seven-bit groups.
"""

from __future__ import annotations

_LONGEST = 10
"""Bytes in a 64-bit value."""

SHORT = [bytes((n,)) if n < 0x80 else bytes((n & 0x7F | 0x80, n >> 7)) for n in range(1 << 14)]
"""Encodings of all zigzag values below 16384."""
CONTINUED = [bytes((n & 0x7F | 0x80, n >> 7 | 0x80)) for n in range(1 << 14)]
"""Encodings for the low 14 bits of larger zigzag values."""


def zigzag(value: int) -> int:
    """Return a signed 64-bit value's unsigned form."""
    return (value << 1) ^ (value >> 63)


def unzigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def written(unsigned: int) -> bytes:
    """Encode a zigzag value in seven-bit groups."""
    if unsigned < 1 << 14:
        return SHORT[unsigned]
    return CONTINUED[unsigned & 0x3FFF] + written(unsigned >> 14)


def read(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """Return the zigzag value that begins at `at`, and the index after it.

    Raises IndexError if the data ends inside the value, ValueError if the value exceeds 64 bits.
    """
    value = shift = 0
    for end in range(at, at + _LONGEST):
        byte = data[end]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, end + 1
        shift += 7
    raise ValueError("a number of more than 64 bits")
