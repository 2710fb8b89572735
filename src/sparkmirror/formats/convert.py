"""One format into another; what came out is read again, so that nothing is lost without a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sparkmirror.config import EffectiveValue
from sparkmirror.errors import SparkMirrorError
from sparkmirror.formats.load import explain, read
from sparkmirror.formats.reading import Note, Reading
from sparkmirror.formats.split import as_connect
from sparkmirror.formats.write import connector_texts, properties_text
from sparkmirror.formats.write_strimzi import strimzi_text

FORMATS = ("properties", "connectors", "strimzi")
SPARK = "*"
"""The flow that Spark's own settings are shown as."""

_FILES = {"properties": "mm2.properties", "strimzi": "mirror.yaml"}


@dataclass(frozen=True, slots=True)
class Conversion:
    """Files by their names, and what they don't say."""

    files: Mapping[str, str]
    notes: tuple[Note, ...]
    warnings: tuple[str, ...]
    """What had no effect already where it came from."""


def convert(reading: Reading, to: str, secrets: str | None = None) -> Conversion:
    """Write `reading` as one of `FORMATS`. Raises `ConfigError` for what can't be run as it is."""
    config, before = explain(reading)
    notes = [note for note in reading.notes if note.kind == "not needed" and to != reading.format]
    if to == "properties":
        files = {_FILES[to]: properties_text(reading.entries, reading.path)}
    else:
        clusters, left = as_connect(reading, config)
        notes += left
        if to == "connectors":
            files = connector_texts(clusters)
        else:
            text, unsaid = strimzi_text(clusters, reading.path)
            notes += unsaid
            files = {_FILES[to]: text}
    told = {note.key for note in notes}
    notes += [note for note in _lost(reading.path, before, files, to, secrets) if note.key not in told]
    return Conversion(files, tuple(dict.fromkeys(notes)), config.warnings)


def _lost(
    path: str, before: tuple[EffectiveValue, ...], files: Mapping[str, str], to: str, secrets: str | None
) -> Iterator[Note]:
    """What counts otherwise when the new files are read."""
    with TemporaryDirectory() as directory:
        for name, text in files.items():
            file = Path(directory, name)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, "latin-1" if name.endswith(".properties") else "utf-8")
        paths = [directory] if to == "connectors" else [str(Path(directory, name)) for name in files]
        try:
            after = {(one.flow, one.key): one.value for one in explain(read(paths, secrets))[1]}
        except SparkMirrorError as error:
            yield Note(path, 0, to, f"what was written can't be run: {str(error).replace(directory + '/', '')}")
            return
    for one in before:
        value = after.get((one.flow, one.key))
        key = f"{one.flow}.{one.key}"
        if one.flow == SPARK or value == one.value:
            continue
        reason = "is not said" if value is None else f"{one.value or 'nothing'} becomes {value or 'nothing'}"
        yield Note(path, 0, key, reason)
