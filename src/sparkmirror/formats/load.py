"""Any of the formats, told apart by what is in the files, read into the one model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from sparkmirror.config import EffectiveValue, MirrorConfig, explain_entries, read_entries
from sparkmirror.errors import ConfigError
from sparkmirror.formats.connect import ConnectCluster, Role
from sparkmirror.formats.connector_files import is_worker, read_connect
from sparkmirror.formats.merge import as_mm2
from sparkmirror.formats.reading import Reading
from sparkmirror.formats.strimzi import read_strimzi

SECRETS_VARIABLE = "SPARKMIRROR_SECRETS"
"""The environment variable that names the directory of Secrets, where no option does."""

_YAML = (".yaml", ".yml")


def read(paths: Sequence[str], secrets: str | None = None, *, lone_checkpoints: bool = False) -> Reading:
    """One format's files, or a directory of connectors'. Raises `ConfigError`.

    `lone_checkpoints`: a connector's file may be a flow's only one, as a resource always may.
    """
    files = [file for path in paths for file in _files(path)]
    shown = paths[0] if len(paths) == 1 else ", ".join(paths)
    if len(files) == 1 and files[0].lower().endswith(_YAML):
        directory = secrets or os.environ.get(SECRETS_VARIABLE)
        clusters, resources, providers, notes = read_strimzi(files[0], directory)
        entries, more = as_mm2(shown, clusters, lone_checkpoints=True)
        return Reading(shown, "strimzi", (*entries, *providers), (*notes, *more), clusters, resources)
    if any(file.endswith(".json") for file in files) or (len(files) == 1 and _is_only_worker(files[0])):
        for file in files:
            if not file.endswith(".json") and not is_worker(file):
                raise ConfigError("is neither a connector's file nor a worker's: give one format at a time", where=file)
        connect, notes = read_connect(files)
        entries, more = as_mm2(shown, connect, lone_checkpoints=lone_checkpoints)
        return Reading(shown, "connectors", tuple(entries), (*notes, *more), connect)
    if len(files) > 1:
        raise ConfigError("give one file, or the files of one Connect cluster", where="command line", key=files[1])
    return Reading(shown, "properties", tuple(read_entries(files[0])))


def explain(
    reading: Reading, *, clusters: Sequence[str] = (), overrides: Mapping[str, str] | None = None
) -> tuple[MirrorConfig, tuple[EffectiveValue, ...]]:
    """What it comes to, and where each value comes from. Raises `ConfigError`."""
    notes = [str(note) for note in reading.notes if note.kind != "not needed"]
    config, values = explain_entries(
        reading.path, reading.entries, clusters=clusters, overrides=overrides or {}, notes=notes
    )
    return (_by_connectors(config, reading.connect) if reading.connect else config), values


def _by_connectors(config: MirrorConfig, clusters: Sequence[ConnectCluster]) -> MirrorConfig:
    """The source connectors' own names, by which a real worker finds what they have copied; without, none is."""
    names = {
        connector.flow: connector.name
        for cluster in clusters
        for connector in cluster.connectors
        if connector.role is Role.SOURCE
    }
    flows = []
    for flow in config.flows:
        name = names.get((flow.source.alias, flow.target.alias))
        update: dict[str, object] = {"copies": False}
        if name is not None:
            update = {"connect": flow.connect.model_copy(update={"connector": name})}
        flows.append(flow.model_copy(update=update))
    return config.model_copy(update={"flows": tuple(flows)})


def _files(path: str) -> list[str]:
    if not Path(path).is_dir():
        return [path]
    found = sorted(str(one) for one in Path(path).rglob("*") if one.suffix in (".json", ".properties"))
    if not any(one.endswith(".json") for one in found):
        raise ConfigError("is a directory without connectors' JSON files", where=path)
    return found


def _is_only_worker(path: str) -> bool:
    return Path(path).is_file() and is_worker(path)
