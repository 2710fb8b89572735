"""Record on the way through a chain of transforms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
Side: TypeAlias = Literal["key", "value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Record as in MirrorMaker 2's transforms.

    `topic` is the name at the target, after the replication policy. The partition is the same at source and target.
    """

    topic: str
    partition: int | None = None
    timestamp: int | None = None
    """Milliseconds since 1970; None for a record without a timestamp."""
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    offset: int | None = None
    """Offset at the source, which only messages show."""

    def side(self, side: Side) -> bytes | None:
        return self.key if side == "key" else self.value

    def with_side(self, side: Side, content: bytes | None) -> Record:
        return replace(self, key=content) if side == "key" else replace(self, value=content)
