"""Transforms that change a record's topic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import regex

from sparkmirror.policy.java_regex import TOO_LONG_S, groups_of, to_python
from sparkmirror.transforms.date_format import DateFormat
from sparkmirror.transforms.options import BadOption, Options
from sparkmirror.transforms.record import Record
from sparkmirror.transforms.refusal import UnfitRecord
from sparkmirror.transforms.replacement import Part, filled, parts_of

MOST_TOPICS = 4096
"""Answers kept for topics; a task has few topics, and many records."""


def compiled(pattern: str) -> regex.Pattern[str]:
    """Compile Java's `pattern`; alternatives keep their order."""
    try:
        return regex.compile(to_python(pattern), regex.VERSION1)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {getattr(error, 'msg', error)}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegexRouter:
    """Rename topics with whole names that match a regex.

    As in Java the first match is replaced, which may be shorter than the name.
    """

    reroutes: ClassVar[bool] = True

    pattern: regex.Pattern[str]
    groups: int
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, options: Options) -> RegexRouter:
        pattern = options["regex"]
        try:
            parts = parts_of(options["replacement"], pattern)
        except ValueError as error:
            raise BadOption("replacement", str(error)) from None
        try:
            return cls(pattern=compiled(pattern), groups=groups_of(pattern)[0], parts=parts)
        except ValueError as error:
            raise BadOption("regex", str(error)) from None

    def apply(self, record: Record) -> Record:
        made = _renamed(self.pattern, self.groups, self.parts, record.topic)
        return record if made == record.topic else replace(record, topic=made)


@lru_cache(MOST_TOPICS)
def _renamed(pattern: regex.Pattern[str], groups: int, parts: tuple[Part, ...], topic: str) -> str:
    if not fully_matches(pattern, topic):
        return topic
    try:
        matched = pattern.search(topic, timeout=TOO_LONG_S)
    except TimeoutError:
        raise _too_slow() from None
    texts = [matched[0], *(matched[f"g{number}"] for number in range(1, groups + 1))]
    return f"{topic[: matched.start()]}{filled(parts, texts)}{topic[matched.end() :]}"


@lru_cache(MOST_TOPICS)
def fully_matches(pattern: regex.Pattern[str], topic: str) -> bool:
    """True if a topic's whole name matches; raise `UnfitRecord` after a time limit."""
    try:
        return pattern.fullmatch(topic, timeout=TOO_LONG_S) is not None
    except TimeoutError:
        raise _too_slow() from None


def _too_slow() -> UnfitRecord:
    return UnfitRecord(f"the regex takes more than {TOO_LONG_S:g} s for its topic")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampRouter:
    """Rename topics by the record's time, in UTC."""

    reroutes: ClassVar[bool] = True

    topic_format: str
    timestamp_format: DateFormat

    @classmethod
    def of(cls, options: Options) -> TimestampRouter:
        try:
            timestamp_format = DateFormat.of(options["timestamp.format"])
        except ValueError as error:
            raise BadOption("timestamp.format", str(error)) from None
        return cls(topic_format=options["topic.format"], timestamp_format=timestamp_format)

    def apply(self, record: Record) -> Record:
        if record.timestamp is None:
            raise UnfitRecord("it has no timestamp")
        time = self.timestamp_format.format(record.timestamp)
        return replace(record, topic=self.topic_format.replace("${topic}", record.topic).replace("${timestamp}", time))
