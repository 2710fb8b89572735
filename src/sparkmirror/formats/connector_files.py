"""Connectors' JSON files, as they are put through Connect's REST interface, and workers' properties files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkmirror.config import Entry, read_entries
from sparkmirror.errors import ConfigError
from sparkmirror.formats.connect import RUNNING, STATES, ConnectCluster, Connector, Role, Worker, resting
from sparkmirror.formats.reading import Note, place
from sparkmirror.formats.yaml_files import as_text, is_setting, read_text

_TOLD = ("tasks", "type")
"""Fields of a connector as it is read from Connect's REST interface."""
_CLASSES = ", ".join(role.value for role in Role)


def read_connect(paths: Sequence[str]) -> tuple[tuple[ConnectCluster, ...], list[Note]]:
    """What lies in one directory is one Connect cluster: connectors, and their worker's file if it is given."""
    clusters = []
    notes: list[Note] = []
    for directory in dict.fromkeys(Path(path).parent for path in paths):
        here = [path for path in paths if Path(path).parent == directory]
        files = [_ConnectorsFile(path) for path in here if path.endswith(".json")]
        connectors = tuple(one for file in files for one in file.connectors())
        notes += [note for file in files for note in file.notes]
        workers = [read_worker(path) for path in here if not path.endswith(".json")]
        if len(workers) > 1:
            raise ConfigError(
                "is a second worker's file here: give one Connect cluster at a time", where=workers[1].path
            )
        clusters.append(ConnectCluster(connectors, workers[0] if workers else None))
    if not any(cluster.connectors for cluster in clusters):
        raise ConfigError(
            "says how Connect's workers run, but not what: give the connectors' files, too", where=paths[0]
        )
    return tuple(clusters), notes


def read_worker(path: str) -> Worker:
    """A worker's file; the last of each key counts."""
    return Worker({entry.key: entry for entry in read_entries(path)}, path)


def is_worker(path: str) -> bool:
    """Whether a properties file is a Connect worker's and not MirrorMaker 2's own."""
    keys = {entry.key for entry in read_entries(path)}
    return "clusters" not in keys and bool(keys & {"group.id", "offset.storage.topic", "config.storage.topic"})


class _ConnectorsFile:
    """One's configuration, `{"name": …, "config": {…}}`, or a list of these."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._text = read_text(path)
        self.notes: list[Note] = []

    def connectors(self) -> Iterator[Connector]:
        """All of them; `notes` are complete then. Raises `ConfigError`."""
        for one, start in _each(self._text, self._parsed()):
            config = self._config(one)
            wrapped = "config" in one
            inner = _spot(self._text, "config", start) if wrapped else start
            settings = {key: self._entry(key, value, _spot(self._text, key, inner)) for key, value in config.items()}
            name = str(one.get("name") or config.get("name") or Path(self._path).stem)
            role = _role(self._path, settings)
            state = RUNNING
            if wrapped:
                fields = {key: self._entry(key, value, _spot(self._text, key, start)) for key, value in one.items()}
                state = self._state(fields)
                if state != RUNNING:
                    settings |= resting(role, fields["initial_state"])
            yield Connector(role, name, settings, self._path, state)

    def _parsed(self) -> Any:
        try:
            return json.loads(self._text)
        except json.JSONDecodeError as error:
            raise ConfigError(f"is no JSON: {error.msg}", where=f"{self._path}, line {error.lineno}") from None
        except RecursionError:
            raise ConfigError("is nested too deeply to be read", where=self._path) from None
        except ValueError:  # an integer of thousands of digits
            raise ConfigError("is no JSON: a number in it is too long", where=self._path) from None

    def _config(self, one: Any) -> dict[str, Any]:
        config = one.get("config", one) if isinstance(one, dict) else None
        if not isinstance(config, dict):
            raise ConfigError("is no connector's configuration: write a map of keys and values", where=self._path)
        for key, value in config.items():
            if not is_setting(value):
                raise ConfigError(
                    "must be text, a number or a list of these: a connector's values are text",
                    where=self._path,
                    key=key,
                )
        return {key: value for key, value in config.items() if value is not None}

    def _state(self, fields: Mapping[str, Entry]) -> str:
        """What is wanted of it, by what stands beside its name and configuration (KIP-980)."""
        for key, entry in fields.items():
            if key in ("name", "config", "initial_state"):
                continue
            if key in _TOLD:
                self._note(entry, "is not needed: it is what Connect tells about a connector", "not needed")
            else:
                self._note(entry, "is not read: beside name and config there is initial_state only")
        stated = fields.get("initial_state")
        if stated is None or not stated.value:
            return RUNNING
        state = stated.value.lower()
        if state not in STATES:
            raise ConfigError(
                "must be RUNNING, PAUSED or STOPPED", where=place(self._path, stated.line), key=stated.key
            )
        if state != RUNNING:
            self._note(stated, f"is {stated.value}: the connector is not run")
        return state

    def _entry(self, key: str, value: Any, spot: int) -> Entry:
        text = as_text(value) if is_setting(value) else ""
        return Entry(key, text, self._path, self._text.count("\n", 0, spot) + 1)

    def _note(self, at: Entry, reason: str, kind: str = "") -> None:
        self.notes.append(Note(self._path, at.line, at.key, reason, kind))


def _each(text: str, found: Any) -> Iterator[tuple[Any, int]]:
    """The items of a list, or the one that is there, and where each begins."""
    if not isinstance(found, list):
        yield found, 0
        return
    at = text.index("[") + 1
    for _ in found:
        at += len(text[at:]) - len(text[at:].lstrip(", \t\r\n"))
        one, end = json.JSONDecoder().raw_decode(text, at)
        yield one, at
        at = end


def _spot(text: str, key: str, start: int) -> int:
    """Where a key stands, behind `start`: the first of its name with a colon behind it."""
    quoted = json.dumps(key, ensure_ascii=False)
    at = text.find(quoted, start)
    while at >= 0 and not text[at + len(quoted) :].lstrip().startswith(":"):
        at = text.find(quoted, at + 1)
    return max(at, start)


def _role(path: str, settings: dict[str, Entry]) -> Role:
    stated = settings.get("connector.class")
    if stated is None:
        raise ConfigError(f"names no connector: write one of {_CLASSES}", where=path, key="connector.class")
    word = stated.value.strip().rpartition(".")[2]
    word = word if word.endswith("Connector") else f"{word}Connector"
    for role in Role:
        if word == role.value:
            return role
    raise stated.error(f"is none of MirrorMaker 2's: {_CLASSES}")
