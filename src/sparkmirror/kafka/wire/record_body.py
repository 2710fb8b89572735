"""A record's body: key, value and headers, decoded and encoded.

The layout is magic 2's: each field has a length, -1 for null, and headers come after their count.
"""

from __future__ import annotations

from typing import NamedTuple

from sparkmirror.kafka.wire.varints import read, unzigzag, written, zigzag

Headers = tuple[tuple[bytes, bytes | None], ...]

_NULL = written(zigzag(-1))


class Body(NamedTuple):
    """A record's content."""

    key: bytes | None
    value: bytes | None
    headers: Headers


def decoded(body: bytes) -> Body:
    """Return a body's fields; ValueError or IndexError if it is damaged."""
    key, at = _nullable(body, 0)
    value, at = _nullable(body, at)
    count, at = read(body, at)
    headers = []
    for _ in range(unzigzag(count)):
        name, at = _nullable(body, at)
        content, at = _nullable(body, at)
        if name is None:
            raise ValueError("a header without a name")
        headers.append((name, content))
    if at != len(body) or count & 1:
        raise ValueError(f"its headers end at {at} of {len(body)} bytes")
    return Body(key, value, tuple(headers))


def encoded(body: Body) -> bytes:
    """Return the bytes of a body; `decoded` gives the same fields again."""
    parts = [*_written(body.key), *_written(body.value), written(zigzag(len(body.headers)))]
    for name, content in body.headers:
        parts += (*_written(name), *_written(content))
    return b"".join(parts)


def _written(field: bytes | None) -> tuple[bytes, ...]:
    return (_NULL,) if field is None else (written(zigzag(len(field))), field)


def _nullable(body: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = read(body, at)
    size = unzigzag(length)
    if size < 0:
        return None, at
    if at + size > len(body):
        raise ValueError(f"{size} bytes announced, {len(body) - at} there")
    return body[at : at + size], at + size
