"""Connectors' JSON files, as they are put through Connect's REST interface, and workers' properties files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sparkmirror.config import Entry, read_entries
from sparkmirror.errors import ConfigError
from sparkmirror.formats.connect import ConnectCluster, Connector, Role, Worker
from sparkmirror.formats.yaml_files import as_text, is_setting, read_text

_CLASSES = ", ".join(role.value for role in Role)


def read_connect(paths: Sequence[str]) -> tuple[ConnectCluster, ...]:
    """What lies in one directory is one Connect cluster: connectors, and their worker's file if it is given."""
    clusters = []
    for directory in dict.fromkeys(Path(path).parent for path in paths):
        here = [path for path in paths if Path(path).parent == directory]
        connectors = tuple(one for path in here if path.endswith(".json") for one in read_connectors(path))
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
    return tuple(clusters)


def read_worker(path: str) -> Worker:
    """A worker's file; the last of each key counts."""
    return Worker({entry.key: entry for entry in read_entries(path)}, path)


def is_worker(path: str) -> bool:
    """Whether a properties file is a Connect worker's and not MirrorMaker 2's own."""
    keys = {entry.key for entry in read_entries(path)}
    return "clusters" not in keys and bool(keys & {"group.id", "offset.storage.topic", "config.storage.topic"})


def read_connectors(path: str) -> list[Connector]:
    """Those of one file: one's configuration, `{"name": …, "config": {…}}`, or a list. Raises `ConfigError`."""
    text = read_text(path)
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"is no JSON: {error.msg}", where=f"{path}, line {error.lineno}") from None
    except RecursionError:
        raise ConfigError("is nested too deeply to be read", where=path) from None
    except ValueError:  # an integer of thousands of digits
        raise ConfigError("is no JSON: a number in it is too long", where=path) from None
    return list(_connectors(path, text, found))


def _connectors(path: str, text: str, found: Any) -> Iterator[Connector]:
    start = 0
    for one in found if isinstance(found, list) else [found]:
        config = one.get("config", one) if isinstance(one, dict) else None
        if not isinstance(config, dict):
            raise ConfigError("is no connector's configuration: write a map of keys and values", where=path)
        for key, value in config.items():
            if not is_setting(value):
                raise ConfigError(
                    "must be text, a number or a list of these: a connector's values are text", where=path, key=key
                )
        config = {key: value for key, value in config.items() if value is not None}
        if "config" in one:
            start = _place(text, "config", start)
        places = {key: _place(text, key, start) for key in config}
        settings = {
            key: Entry(key, as_text(value), path, text.count("\n", 0, places[key]) + 1) for key, value in config.items()
        }
        if isinstance(found, list):
            start = max(places.values(), default=start)  # the next connector's keys stand behind this one's
        name = str(one.get("name") or config.get("name") or Path(path).stem)
        yield Connector(_role(path, settings), name, settings, path)


def _place(text: str, key: str, start: int) -> int:
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
