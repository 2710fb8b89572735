"""Predicates, and Filter, which drops records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import regex

from sparkmirror.transforms.options import BadOption, Options
from sparkmirror.transforms.record import Record
from sparkmirror.transforms.routing import compiled, fully_matches


@dataclass(frozen=True, slots=True)
class Filter:
    """Drop each record."""

    reroutes: ClassVar[bool] = False

    def apply(self, record: Record) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicNameMatches:
    """True for topics with whole names that match a regex."""

    pattern: regex.Pattern[str]

    @classmethod
    def of(cls, options: Options) -> TopicNameMatches:
        try:
            return cls(pattern=compiled(options["pattern"]))
        except ValueError as error:
            raise BadOption("pattern", str(error)) from None

    def holds(self, record: Record) -> bool:
        return fully_matches(self.pattern, record.topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class HasHeaderKey:
    """True for records with a certain header."""

    name: str

    @classmethod
    def of(cls, options: Options) -> HasHeaderKey:
        return cls(name=options["name"])

    def holds(self, record: Record) -> bool:
        return any(name == self.name for name, _ in record.headers)


@dataclass(frozen=True, slots=True)
class RecordIsTombstone:
    """True for records without a value."""

    def holds(self, record: Record) -> bool:
        return record.value is None
