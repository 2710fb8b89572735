"""Offsets of Kafka sources in the files of a Structured Streaming checkpoint.

A file of `offsets/` has a version (`v1`, or `v2` since Spark 4.2), a line of metadata, and a line for each source; in
`v2` the source's number and a colon come first. A Kafka source's line is JSON: `{"topic":{"partition":offset}}`. A file
of `sources/N/` has one such line after the version (Spark's `OffsetSeqLog` and `KafkaSourceInitialOffsetWriter`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.mirror.sync.application_translator import Stored

_NO_OFFSET = "-"


class SourceLine(NamedTuple):
    """The line of one source."""

    source: str
    """Number of the source, which names its directory in `sources/`."""
    text: str


class OffsetFile(NamedTuple):
    """A file of `offsets/`."""

    head: tuple[str, str]
    """Version and metadata."""
    lines: tuple[SourceLine, ...]

    @classmethod
    def parsed(cls, text: str) -> OffsetFile:
        """Parse the file's text; raises `ValueError` for a version that nobody knows."""
        version, metadata, *lines = text.split("\n")
        if version == "v1":
            return cls((version, metadata), tuple(SourceLine(str(n), line) for n, line in enumerate(lines)))
        if version == "v2":
            return cls((version, metadata), tuple(_numbered(line) for line in lines if line))
        raise ValueError(f"its version is {version[:20]!r}, and only v1 and v2 are known")

    def with_lines(self, texts: Mapping[str, str]) -> OffsetFile:
        """Return the file with other texts for these sources."""
        lines = (SourceLine(line.source, texts.get(line.source, line.text)) for line in self.lines)
        return OffsetFile(self.head, tuple(lines))

    def text(self) -> str:
        is_numbered = self.head[0] == "v2"
        return "\n".join(
            [*self.head, *(f"{line.source}:{line.text}" if is_numbered else line.text for line in self.lines)]
        )


def _numbered(line: str) -> SourceLine:
    source, colon, text = line.partition(":")
    if not colon:
        raise ValueError(f"a line has no source's number: {line[:40]!r}")
    return SourceLine(source, text)


def kafka_positions(text: str) -> list[Stored] | None:
    """Return the offsets of a Kafka source's line; None for another kind of source."""
    try:
        read = json.loads(text) if text != _NO_OFFSET else None
    except ValueError:
        return None
    if not isinstance(read, dict) or not read:
        return None
    if not all(isinstance(partitions, dict) for partitions in read.values()):
        return None
    rows = [(topic, *row) for topic, partitions in read.items() for row in partitions.items()]
    if not all(partition.isdecimal() and type(offset) is int for _, partition, offset in rows):
        return None
    return [Stored(topic, int(partition), offset) for topic, partition, offset in rows]


def kafka_line(positions: Sequence[Stored]) -> str:
    """Return a Kafka source's line."""
    topics: dict[str, dict[str, int]] = {}
    for topic, partition, offset in positions:
        topics.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(topics, separators=(",", ":"), ensure_ascii=False)


def with_initial(data: bytes, rewrite: Callable[[str], str]) -> bytes:
    """Return a file of `sources/N/` with its line rewritten; the bytes before it stay."""
    head, newline, line = data.partition(b"\n")
    return head + newline + rewrite(line.decode()).encode() if newline else data
