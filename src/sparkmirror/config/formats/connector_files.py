"""Connector and worker files.

Connectors are JSON as Connect's REST interface has it, or properties. Workers are properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.connect_files import (
    RUNNING,
    STATES,
    ConnectCluster,
    Connector,
    ConnectorRole,
    WorkerSettings,
    resting,
)
from sparkmirror.config.formats.connector_shapes import Shape, shapes, spot
from sparkmirror.config.formats.files import File, FileKind
from sparkmirror.config.formats.reading import Note, place
from sparkmirror.config.formats.yaml_files import as_text, is_setting
from sparkmirror.errors import ConfigError
from sparkmirror.mistakes import Mistakes

_TOLD = ("tasks", "type")
"""Fields that Connect's REST interface adds to a connector."""
_CLASSES = ", ".join(role.value for role in ConnectorRole)


def read_connect(files: Sequence[File], wrong: Mistakes) -> tuple[tuple[ConnectCluster, ...], list[Note]]:
    """Return the Connect clusters, and notes; each directory is a cluster.

    A cluster has connectors, and a worker's file if there is any. Files that are left out go into `wrong`. Raise
    `ConfigError` if no connector is left.
    """
    clusters: list[ConnectCluster] = []
    notes: list[Note] = []
    first: dict[tuple[tuple[str, str], ConnectorRole], Connector] = {}
    for directory in dict.fromkeys(Path(file.path).parent for file in files):
        here = [file for file in files if Path(file.path).parent == directory]
        connectors: list[Connector] = []
        for file in (file for file in here if file.kind is not FileKind.WORKER):
            with wrong.gathered():
                reader = _ConnectorsFile(file)
                for connector in list(reader.connectors()):
                    _refuse_second(connector, first.setdefault((connector.flow, connector.role), connector))
                    connectors.append(connector)
                notes += reader.notes
        workers = [file for file in here if file.kind is FileKind.WORKER]
        for worker in workers[1:]:
            wrong.add(
                ConfigError(
                    f"is a second worker's file here, next to {workers[0].path}: give one Connect cluster at a time",
                    origin=worker.path,
                )
            )
        clusters.append(ConnectCluster(tuple(connectors), read_worker(workers[0]) if workers else None))
    if not any(cluster.connectors for cluster in clusters):
        wrong.stop()
        reason = "says how Connect's workers run, but not what: give the connectors' files, too"
        raise ConfigError(reason, origin=files[0].path)
    return tuple(clusters), notes


def read_worker(file: File) -> WorkerSettings:
    """Read a worker's file; each key's last entry counts."""
    return WorkerSettings({entry.key: entry for entry in file.entries}, file.path)


def _refuse_second(connector: Connector, first: Connector) -> None:
    if first is not connector:
        raise ConfigError(
            f"{connector.name} is a second {connector.role.value} of {'->'.join(connector.flow)}; the first is"
            f" {first.name} in {first.path}",
            origin=place(connector.path, connector.settings["connector.class"].line),
            key="connector.class",
        )


class _ConnectorsFile:
    """Connectors in a single file."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._path = file.path
        self._text = file.text
        self.notes: list[Note] = []

    def connectors(self) -> Iterator[Connector]:
        """Yield all connectors; `notes` is complete afterwards. Raise `ConfigError`."""
        if not self._file.is_json:
            yield self._of_properties()
            return
        mistakes = Mistakes()
        several = shapes(self._path, self._text, self._file.tree)
        for shape in several:
            connector = None
            with mistakes.gathered():
                connector = self._of_json(shape, alone=len(several) == 1)
            if connector is not None:
                yield connector
        mistakes.stop()

    def _of_properties(self) -> Connector:
        """Return the connector in a file for `connect-standalone.sh`."""
        if self._file.kind is FileKind.OTHER:
            raise ConfigError("is neither a connector's file nor a worker's", origin=self._path)
        settings = {entry.key: entry for entry in self._file.entries}
        name = settings["name"].value.strip() if "name" in settings else Path(self._path).stem
        return Connector(role=_role(self._path, settings), name=name, settings=settings, path=self._path)

    def _of_json(self, shape: Shape, *, alone: bool) -> Connector | None:
        settings = dict(self._settings(shape))
        name = str(shape.fields.get("name") or shape.config.get("name") or shape.name or Path(self._path).stem)
        stated = settings.get("connector.class")
        if not alone and stated is not None and "mirror" not in stated.value.rpartition(".")[2].lower():
            self._note(stated, f"{name} is none of MirrorMaker 2's connectors, and is left out")
            return None
        role = _role(self._path, settings)
        state = RUNNING
        fields = {
            key: self._entry(key, value, spot(self._text, key, shape.start)) for key, value in shape.fields.items()
        }
        if shape.fields:
            state = self._state(fields, shape)
        if state != RUNNING:
            settings |= resting(role, fields.get("initial_state") or self._entry("state", state, shape.start))
        return Connector(role=role, name=name, settings=settings, path=self._path, state=state)

    def _settings(self, shape: Shape) -> Iterable[tuple[str, Entry]]:
        mistakes = Mistakes()
        for key, value in shape.config.items():
            at = spot(self._text, key, shape.config_start)
            if not is_setting(value):
                reason = "must be text, a number or a list of these: a connector's values are text"
                mistakes.add(ConfigError(reason, origin=place(self._path, self._entry(key, "", at).line), key=key))
            elif value is not None:
                yield key, self._entry(key, value, at)
        mistakes.stop()

    def _state(self, fields: Mapping[str, Entry], shape: Shape) -> str:
        """Return a connector's wanted state.

        Fields next to name and configuration tell the state (KIP-980), else the connector's status does.
        """
        for key, entry in fields.items():
            if key in ("name", "config", "initial_state"):
                continue
            if key in _TOLD:
                self._note(entry, "is not needed: it is Connect's description of a connector", "not needed")
            else:
                self._note(entry, "is not read: next to name and config there is initial_state only")
        stated = fields.get("initial_state")
        if stated is not None and stated.value:
            state = stated.value.lower()
            if state not in STATES:
                raise ConfigError(
                    "must be RUNNING, PAUSED or STOPPED", origin=place(self._path, stated.line), key=stated.key
                )
        else:
            # A connector in another state, such as FAILED, is to run.
            state = shape.state.lower() if shape.state.lower() in STATES else RUNNING
            stated = self._entry("state", shape.state, shape.start)
        if state != RUNNING:
            self._note(stated, f"is {stated.value}: the connector is not run")
        return state

    def _entry(self, key: str, value: Any, at: int) -> Entry:
        text = as_text(value) if is_setting(value) else ""
        return Entry(key=key, value=text, where=self._path, line=self._text.count("\n", 0, at) + 1)

    def _note(self, at: Entry, reason: str, kind: str = "") -> None:
        self.notes.append(Note(path=self._path, line=at.line, key=at.key, reason=reason, kind=kind))


def _role(path: str, settings: Mapping[str, Entry]) -> ConnectorRole:
    stated = settings.get("connector.class")
    if stated is None:
        raise ConfigError(f"names no connector: write one of {_CLASSES}", origin=path, key="connector.class")
    word = stated.value.strip().rpartition(".")[2]
    word = word if word.endswith("Connector") else f"{word}Connector"
    for role in ConnectorRole:
        if word == role.value:
            return role
    raise ConfigError(f"is none of MirrorMaker 2's: {_CLASSES}", origin=place(path, stated.line), key="connector.class")
