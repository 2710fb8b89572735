"""Shape of transforms and predicates, and a frame for keys and values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

from sparkmirror.transforms.json_data import Data, decoded, encoded
from sparkmirror.transforms.record import Record, Side
from sparkmirror.transforms.refusal import UnfitRecord


class Transform(Protocol):
    """Change to a record; can be pickled."""

    @property
    def reroutes(self) -> bool:
        """True if topic or partition may change."""

    def apply(self, record: Record) -> Record | None:
        """Return the changed record, or None for none; raise `UnfitRecord`."""


class Predicate(Protocol):
    """Condition on a record; can be pickled."""

    def holds(self, record: Record) -> bool:
        """True if the record meets the condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SidedTransform(ABC):
    """Frame around a transform: reads a key or a value as JSON, and writes JSON."""

    reroutes: ClassVar[bool] = False

    side: Side

    def apply(self, record: Record) -> Record | None:
        data = self.changed(decoded(record.side(self.side)), record)
        return record.with_side(self.side, encoded(data))

    @abstractmethod
    def changed(self, data: Data, record: Record) -> Data:
        """Return the changed data."""


def fields_of(data: Data) -> dict[str, Data]:
    """Return a map's fields; raise `UnfitRecord` for other data."""
    if isinstance(data, dict):
        return data
    if data is None:
        raise UnfitRecord("it is null: leave tombstones out with a predicate RecordIsTombstone and negate=true")
    raise UnfitRecord(f"it is no JSON object, but {kind_of(data)}, which has no fields")


def kind_of(data: Data) -> str:
    """Name the kind of a value, without the value."""
    if data is None:
        return "null"
    if isinstance(data, bool):
        return "true or false"
    if isinstance(data, (int, float)):
        return "a number"
    if isinstance(data, str):
        return "a text"
    return "a list" if isinstance(data, list) else "an object"
