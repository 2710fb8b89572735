"""Transforms that insert, drop, rename and nest fields."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

from sparkmirror.transforms.hash_order import hash_ordered
from sparkmirror.transforms.json_data import Data, decoded, encoded
from sparkmirror.transforms.options import BadOption, Options
from sparkmirror.transforms.record import Record, Side
from sparkmirror.transforms.shape import SidedTransform, fields_of


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertField(SidedTransform):
    """Put topic, partition, timestamp or a fixed text into fields."""

    topic: str | None
    partition: str | None
    timestamp: str | None
    static: str | None
    static_value: str

    @classmethod
    def of(cls, options: Options, side: Side) -> InsertField:
        names = [_without_mark(options[f"{name}.field"]) for name in ("topic", "partition", "timestamp", "static")]
        if options["offset.field"] is not None:
            raise BadOption("offset.field", "only sink connectors know an offset: take this key out")
        if all(name is None for name in names):
            raise BadOption("static.field", "nothing is to be inserted: write a field's name here, or in topic.field")
        if options["static.field"] is not None and options["static.value"] is None:
            raise BadOption("static.value", "it is missing, and static.field names its field: write the value")
        topic, partition, timestamp, static = names
        return cls(
            side=side,
            topic=topic,
            partition=partition,
            timestamp=timestamp,
            static=static,
            static_value=options["static.value"] or "",
        )

    def changed(self, data: Data, record: Record) -> Data:
        if data is None:
            return None
        made = dict(fields_of(data))
        if self.topic is not None:
            made[self.topic] = record.topic
        if self.partition is not None and record.partition is not None:
            made[self.partition] = record.partition
        if self.timestamp is not None and record.timestamp is not None:
            made[self.timestamp] = record.timestamp
        if self.static is not None:
            made[self.static] = self.static_value
        return made


def _without_mark(name: str | None) -> str | None:
    """Return a field's name without `!` or `?`, which are for schemas."""
    return name[:-1] if name and name[-1] in "?!" else name


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceField(SidedTransform):
    """Keep, drop and rename fields."""

    exclude: frozenset[str]
    include: frozenset[str]
    renames: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, options: Options, side: Side) -> ReplaceField:
        renames = {}
        for pair in options["renames"]:
            parts = java_split(pair)
            if len(parts) != 2:
                raise BadOption("renames", f"{pair!r} is no pair of names: write old:new,old:new")
            renames[parts[0]] = parts[1]
        return cls(
            side=side,
            exclude=frozenset(options["exclude"]),
            include=frozenset(options["include"]),
            renames=tuple(renames.items()),
        )

    def changed(self, data: Data, record: Record) -> Data:
        if data is None:
            return None
        fields = fields_of(data)
        names = dict(self.renames)
        kept = [name for name in fields if self._keeps(name)]
        new_names = Counter(names.get(name, name) for name in kept)
        if new_names and max(new_names.values()) > 1:
            kept = [name for name in hash_ordered(fields) if self._keeps(name)]
        return {names.get(name, name): fields[name] for name in kept}

    def _keeps(self, name: str) -> bool:
        return name not in self.exclude and (not self.include or name in self.include)


def java_split(text: str) -> list[str]:
    """Split at colons as Java's `String.split` does, without empty parts at the end."""
    parts = text.split(":")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if parts != [""] or not text else []


@dataclass(frozen=True, slots=True, kw_only=True)
class HoistField(SidedTransform):
    """Wrap the whole in a field."""

    field: str

    @classmethod
    def of(cls, options: Options, side: Side) -> HoistField:
        return cls(side=side, field=options["field"])

    def changed(self, data: Data, record: Record) -> Data:
        return {self.field: data}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flatten(SidedTransform):
    """Give inner objects' fields the names of their paths; lists stay."""

    delimiter: str

    @classmethod
    def of(cls, options: Options, side: Side) -> Flatten:
        return cls(side=side, delimiter=options["delimiter"])

    def changed(self, data: Data, record: Record) -> Data:
        if data is None:
            return None
        paths = self._paths(fields_of(data), "", hashed=False)
        if len(dict(paths)) < len(paths):
            paths = self._paths(fields_of(data), "", hashed=True)
        return dict(paths)

    def _paths(self, fields: dict[str, Data], prefix: str, *, hashed: bool) -> list[tuple[str, Data]]:
        made: list[tuple[str, Data]] = []
        for name in hash_ordered(fields) if hashed else fields:
            path = f"{prefix}{self.delimiter}{name}" if prefix else name
            field = fields[name]
            made += self._paths(field, path, hashed=hashed) if isinstance(field, dict) else [(path, field)]
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueToKey:
    """Make the key from fields in the value; the value keeps its bytes."""

    reroutes: ClassVar[bool] = False

    fields: tuple[str, ...]

    @classmethod
    def of(cls, options: Options) -> ValueToKey:
        return cls(fields=options["fields"])

    def apply(self, record: Record) -> Record:
        value = fields_of(decoded(record.value))
        return replace(record, key=encoded({name: value.get(name) for name in self.fields}))
