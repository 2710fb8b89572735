"""Rewrite a streaming query's checkpoint, so that it continues at the target.

The query's Kafka sources get the copies' names and offsets. Everything else stays: the query's id, its committed
batches, its state. A batch that was planned and not committed (a plain `query.stop()` leaves one) is translated too,
so Spark runs it at the target with exactly the same records.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from pyarrow import fs

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ConfigError, NotTranslated
from sparkmirror.frames.checkpoint_lines import OffsetFile, kafka_line, kafka_positions, with_initial
from sparkmirror.frames.passed_over import MissedOffsets, why_not_exact
from sparkmirror.kafka.cluster.first_offsets import parted, with_first
from sparkmirror.mirror.sync.application_translator import Stored, Translation
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.mirror.sync.turn_translator import FlowTranslator, translator_of

_NEWEST = 2
"""Number of files of `offsets/` that Spark reads at a start."""

_FIRST = -1
"""Number in place of a batch: the offsets with which a source began."""

Place = str | os.PathLike[str]


class MovedOffset(NamedTuple):
    """One partition's next offset, at the source and at the target."""

    batch: int
    """Number of the micro-batch that ends at the offset."""
    source: str
    """Number of the query's source."""
    stored: Stored
    translation: Translation


class RewrittenCheckpoint(NamedTuple):
    """Outcome of a rewriting."""

    offsets: tuple[MovedOffset, ...]
    planned: tuple[int, ...]
    """Batches that are planned and not committed: they run at the target."""
    left: tuple[str, ...]
    """Sources left as they are: they don't read topics of the flow."""


def rewrite_checkpoint(checkpoint: Place, to: Place, flow: FlowConfig) -> RewrittenCheckpoint:
    """Copy a stopped query's checkpoint, with the target's names and offsets.

    Both places are directories, or addresses that PyArrow knows (`s3://bucket/path`); `to` must not be there yet, and
    is complete or absent. Raises `ConfigError`, also for a file system that refuses, `ClusterUnreachable`, and
    `NotTranslated` with a line for each partition without an exact offset.
    """
    try:
        return _rewrite(checkpoint, to, flow)
    except OSError as error:  # PyArrow's words name the file
        raise ConfigError(f"can't be copied: {' '.join(str(error).split())}", origin=f"{checkpoint} to {to}") from error


def _rewrite(checkpoint: Place, to: Place, flow: FlowConfig) -> RewrittenCheckpoint:
    source, target = _Directory.at(checkpoint), _Directory.at(to)
    source.demand_checkpoint()
    target.demand_absent()
    rules = topic_rules(flow)
    with translator_of(flow) as translator:
        rewriting = _Rewriting(source, translator, rules.wanted)
        files = rewriting.files()
    reasons = why_not_exact(flow, list(rewriting.passed_over.values()))
    missed = [f"{place}: {why}" for place, why in zip(rewriting.passed_over, reasons, strict=True) if why]
    if refused := rewriting.refused + missed:
        raise NotTranslated("\n".join(refused))
    if not rewriting.moved:
        raise ConfigError(f"no source of the query reads topics that flow {flow.name} copies", origin=str(checkpoint))
    source.copy(target, files)
    moved = sorted(rewriting.moved, key=lambda each: each.batch)
    return RewrittenCheckpoint(tuple(moved), rewriting.planned, tuple(rewriting.left))


class _Rewriting:
    """Files with other contents, and what can't be translated."""

    def __init__(self, source: _Directory, translator: FlowTranslator, is_copied: Callable[[str], bool]) -> None:
        self._source, self._translator, self._is_copied = source, translator, is_copied
        self._batches = source.numbers("offsets")
        self.planned = tuple(sorted(set(self._batches) - set(source.numbers("commits"))))
        *_, before, newest = _FIRST, *self._batches
        self._begin = before if newest in self.planned else newest
        """Batch from whose end Spark continues; `_FIRST`: from the first offsets."""
        self._begins: dict[str, str] = {}
        """Moved lines of that batch, by source."""
        self.moved: list[MovedOffset] = []
        self.left: dict[str, None] = {}
        self.refused: list[str] = []
        self.passed_over: dict[str, MissedOffsets] = {}
        """Offsets without copies, by the place in words."""

    def files(self) -> dict[str, bytes | None]:
        """Return the files' new contents by name; None: the file is left out.

        Spark reads the two newest files of `offsets/` only, and older offsets may be gone at the target. Spark
        reads offsets before those from which it continues, and does not use them: if one has no place there, these take
        their place.
        """
        files: dict[str, bytes | None] = dict.fromkeys((f"offsets/{batch}" for batch in self._batches[:-_NEWEST]), None)
        for batch in sorted(self._batches[-_NEWEST:], key=lambda batch: (batch < self._begin, batch)):
            name = f"offsets/{batch}"
            try:
                read = OffsetFile.parsed(self._source.read(name).decode())
            except ValueError as error:
                raise ConfigError(f"it can't be read: {error}", origin=self._source.named(name)) from error
            texts = {line.source: self._moved(line.source, line.text, batch) for line in read.lines}
            if batch == self._begin:
                self._begins = {line.source: texts[line.source] for line in read.lines if kafka_positions(line.text)}
            files[name] = read.with_lines(texts).text().encode()
        for name in self._source.initial_files():
            number = name.split("/")[1]
            data = self._source.read(name)
            if (moved := with_initial(data, partial(self._moved, number, batch=_FIRST))) != data:
                files[name] = moved
        return files

    def _moved(self, source: str, text: str, batch: int) -> str:
        positions = kafka_positions(text)
        if positions is None:
            return text
        end, first = parted(json.loads(text))
        if first:  # of use until a batch of the source is committed
            moved = self._moved(source, json.dumps(end), batch)
            if batch == self._begin or source in self._begins:
                return moved
            return json.dumps(with_first(json.loads(moved), json.loads(self._moved(source, json.dumps(first), _FIRST))))
        if not any(self._is_copied(stored.topic) for stored in positions):
            self.left[f"source {source}: {', '.join(sorted({stored.topic for stored in positions}))}"] = None
            return text
        translations = self._translator.translate_each(positions)
        is_used = batch >= self._begin or source not in self._begins
        if not is_used and any(translation.offset is None for translation in translations):
            return self._begins[source]
        passed = self._translator.passed_over(positions) if is_used else [None] * len(positions)
        for stored, translation, offsets in zip(positions, translations, passed, strict=True):
            at = "first offsets" if batch == _FIRST else f"batch {batch}"
            place = f"{at}: {stored.topic}-{stored.partition} at {stored.offset}"
            if offsets is not None:
                self.passed_over[place] = MissedOffsets(stored.topic, stored.partition, translation.topic, offsets)
            if translation.offset is None:
                self.refused.append(f"{place}: {translation.reason}")
            elif batch != _FIRST:
                self.moved.append(MovedOffset(batch, source, stored, translation))
        return kafka_line([Stored(each.topic, each.partition, each.offset or 0) for each in translations])


class _Directory:
    """A directory of a file system."""

    def __init__(self, files: fs.FileSystem, path: str, shown: str) -> None:
        self._files, self._path, self._shown = files, path, shown

    @classmethod
    def at(cls, place: Place) -> _Directory:
        shown = os.fspath(place)
        if "://" not in shown:
            return cls(fs.LocalFileSystem(), os.path.abspath(shown), shown)
        try:
            files, path = fs.FileSystem.from_uri(shown)
        except (OSError, ValueError) as error:
            raise ConfigError(f"PyArrow can't open this address: {error}", origin=shown) from error
        return cls(files, path, shown)

    def named(self, name: str) -> str:
        return f"{self._shown}/{name}"

    def read(self, name: str) -> bytes:
        with self._files.open_input_stream(f"{self._path}/{name}") as stream:
            return bytes(stream.read())

    def demand_checkpoint(self) -> None:
        for name in ("metadata", "offsets"):
            if self._files.get_file_info(f"{self._path}/{name}").type is fs.FileType.NotFound:
                raise ConfigError(f"it is no checkpoint of a streaming query: it has no {name!r}", origin=self._shown)
        if not self.numbers("offsets"):
            raise ConfigError("the query has planned no batch yet: start it anywhere", origin=self._shown)

    def demand_absent(self) -> None:
        if self._files.get_file_info(self._path).type is not fs.FileType.NotFound:
            raise ConfigError("it is there already: name a new directory", origin=self._shown)

    def numbers(self, name: str) -> list[int]:
        """Return the numbers that name files of a log, in order."""
        names = (info.base_name for info in self._infos(name))
        return sorted(int(each) for each in names if each.isdecimal())

    def initial_files(self) -> list[str]:
        names = (info.path[len(self._path) + 1 :] for info in self._infos("sources") if info.is_file)
        return sorted(name for name in names if name.count("/") == 2 and name.endswith("/0"))

    def copy(self, target: _Directory, contents: dict[str, bytes | None]) -> None:
        """Copy all files; those of `contents` get these, and lose Hadoop's checksums.

        The directory has another name until it is complete.
        """
        unfinished = _Directory(target._files, f"{target._path}.unfinished", f"{target._shown}.unfinished")
        if unfinished._files.get_file_info(unfinished._path).type is not fs.FileType.NotFound:
            unfinished._files.delete_dir(unfinished._path)
        outdated = set(map(_checksum, contents))
        for info in self._infos(""):
            name = info.path[len(self._path) + 1 :]
            if not info.is_file or name in outdated or info.base_name.endswith(".tmp"):
                continue
            data = contents[name] if name in contents else self.read(name)
            if data is not None:
                unfinished._write(name, data)
        target._files.move(unfinished._path, target._path)

    def _write(self, name: str, data: bytes) -> None:
        path = f"{self._path}/{name}"
        self._files.create_dir(path.rpartition("/")[0], recursive=True)
        with self._files.open_output_stream(path) as stream:
            stream.write(data)

    def _infos(self, name: str) -> Iterator[fs.FileInfo]:
        selector = fs.FileSelector(f"{self._path}/{name}".rstrip("/"), recursive=True, allow_not_found=True)
        yield from self._files.get_file_info(selector)


def _checksum(name: str) -> str:
    directory, _, file = name.rpartition("/")
    return f"{directory}/.{file}.crc"
