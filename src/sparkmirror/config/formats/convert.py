"""Convert a format into another, with a check that notes every loss.

The check reads the written files again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from sparkmirror.config import MirrorConfig
from sparkmirror.config.effective import EffectiveValue
from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.additions import entries_in_full
from sparkmirror.config.formats.connect_files import NAMELESS, ConnectCluster
from sparkmirror.config.formats.load import model_of, read
from sparkmirror.config.formats.merge import CONNECTS_OWN
from sparkmirror.config.formats.reading import Note, Reading
from sparkmirror.config.formats.split import as_connect
from sparkmirror.config.formats.strimzi_upgrade import upgraded
from sparkmirror.config.formats.write import connector_texts, properties_text
from sparkmirror.config.formats.write_strimzi import strimzi_text
from sparkmirror.errors import SparkMirrorError

FORMATS = ("properties", "connectors", "strimzi")
SPARK = "*"
"""Flow that Spark's own settings are shown under."""

_COPIES_NOTHING = (
    "copies nothing, and only translates groups: mm2.properties can't say that, so the flow is written as not enabled"
)
_NAMELESS = "is {name} there: a connector whose cluster has an empty alias has no other name for it"
_FILES = {"properties": "mm2.properties", "strimzi": "mirror.yaml"}


@dataclass(frozen=True, slots=True)
class Conversion:
    """Files by their names, and notes on the settings that the files lack."""

    files: Mapping[str, str]
    notes: tuple[Note, ...]
    warnings: tuple[str, ...]
    """Warnings about settings that had no effect in the original file."""


def convert(reading: Reading, to: str, secrets: str | None = None) -> Conversion:
    """Write `reading` in another format, one in `FORMATS`.

    Raise `ConfigError` if the original can't be run as it is.
    """
    config, before = (None, ()) if reading.idle else model_of(reading)
    reading = replace(reading, entries=entries_in_full(reading.entries))
    notes = list(_not_needed(reading, to))
    runs = True
    if to == "properties":
        entries, lone = _without_lone(reading, config)
        notes += lone
        runs = not lone or (config is not None and len(lone) < len(config.flows))
        files = {_FILES[to]: properties_text(entries, reading.path)}
    elif to == reading.format == "strimzi":
        text, unsaid = upgraded(reading.documents)
        notes += unsaid
        files = {_FILES[to]: text}
    else:
        clusters, left = as_connect(reading, config)
        notes += left
        if to == "connectors":
            files = connector_texts(_with_their_workers(reading, clusters))
        else:
            text, unsaid = strimzi_text(clusters, reading.path)
            notes += unsaid
            files = {_FILES[to]: text}
    if config is not None and runs:
        renamed = _renamed(config) if to == "connectors" else {}
        notes += [
            Note(path=reading.path, line=0, key=flow, reason=_NAMELESS.format(name=name))
            for flow, name in renamed.items()
        ]
        told = {note.key for note in notes}
        before = tuple(_called(row, renamed.get(row.flow, row.flow)) for row in before)
        notes += [note for note in _lost(reading.path, before, files, to, secrets) if note.key not in told]
    return Conversion(files, tuple(dict.fromkeys(notes)), config.warnings if config else ())


def _without_lone(reading: Reading, config: MirrorConfig | None) -> tuple[tuple[Entry, ...], list[Note]]:
    """Return the entries with flows that copy nothing turned off, and notes.

    As mm2.properties has them, such flows would copy.
    """
    lone = {f"{flow.name}.enabled": flow.name for flow in (config.flows if config else ()) if not flow.copies}
    entries = [replace(entry, value="false") if entry.key in lone else entry for entry in reading.entries]
    return tuple(entries), [Note(path=reading.path, line=0, key=name, reason=_COPIES_NOTHING) for name in lone.values()]


def _renamed(config: MirrorConfig) -> dict[str, str]:
    """Return the names in connectors for flows that have another name here.

    Such flows have empty aliases.
    """
    renamed = {}
    for flow in (*config.flows, *config.beats):
        named = zip((flow.mm2_source, flow.mm2_target), NAMELESS, strict=True)
        name = "->".join(alias or nameless for alias, nameless in named)
        if name != flow.name:
            renamed[flow.name] = name
    return renamed


def _called(value: EffectiveValue, flow: str) -> EffectiveValue:
    """Return the same value, for a flow with another name."""
    names = zip((value.flow, *value.flow.split("->")), (flow, *flow.split("->")), strict=True)
    key = next(
        (f"{new}.{value.key.removeprefix(old + '.')}" for old, new in names if value.key.startswith(f"{old}.")),
        value.key,
    )
    return replace(value, flow=flow, key=key)


def _not_needed(reading: Reading, to: str) -> Iterator[Note]:
    """Yield the notes on settings without a use here or a place in the other format."""
    kept: set[str] = set()
    if to == reading.format == "strimzi":
        return
    if to != "properties":
        kept |= CONNECTS_OWN.keys()
    if to == "connectors":
        kept |= {connector.name for cluster in reading.connect for connector in cluster.connectors}
    if to == reading.format == "connectors":
        kept |= {key for cluster in reading.connect if cluster.worker for key in cluster.worker.settings}
    for note in reading.notes:
        tasks = to != "properties" and note.key.endswith(".tasksMax")
        if note.kind == "not needed" and (note.setting or note.key) not in kept and not tasks:
            yield note


def _with_their_workers(reading: Reading, clusters: Sequence[ConnectCluster]) -> Sequence[ConnectCluster]:
    """Return the clusters with their workers as read from a file, if there is a file."""
    if reading.format != "connectors":
        return clusters
    read = {connector.flow: cluster.worker for cluster in reversed(reading.connect) for connector in cluster.connectors}
    return [replace(cluster, worker=read[cluster.connectors[0].flow] or cluster.worker) for cluster in clusters]


def _lost(
    path: str, before: tuple[EffectiveValue, ...], files: Mapping[str, str], to: str, secrets: str | None
) -> Iterator[Note]:
    """Yield a note for each value that changes when the new files are read."""
    with TemporaryDirectory() as directory:
        for name, text in files.items():
            file = Path(directory, name)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, "latin-1" if name.endswith(".properties") else "utf-8")
        paths = [directory] if to == "connectors" else [str(Path(directory, name)) for name in files]
        try:
            written = read(paths, secrets, lone_checkpoints=True, without_secrets=True)
            after = {(row.flow, row.key): row.value for row in model_of(written)[1]}
        except SparkMirrorError as error:
            yield Note(
                path=path, line=0, key=to, reason=f"the result can't be run: {str(error).replace(directory + '/', '')}"
            )
            return
    there = {SPARK, *(flow for flow, _ in after)}
    for row in before:
        value = after.get((row.flow, row.key))
        if row.flow == SPARK or row.flow not in there or value == row.value:
            continue
        reason = "is not said" if value is None else f"{row.value or 'nothing'} becomes {value or 'nothing'}"
        yield Note(path=path, line=0, key=f"{row.flow}.{row.key}", reason=reason)
    for flow in dict.fromkeys(row.flow for row in before if row.flow not in there):
        yield Note(path=path, line=0, key=flow, reason="is not there, with all that is set for it")
