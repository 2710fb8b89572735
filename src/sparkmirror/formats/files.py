"""Files told apart by what is in them: connectors, workers, Kubernetes' documents, or MirrorMaker 2's own keys."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from sparkmirror.config import Entry, read_entries
from sparkmirror.errors import ConfigError
from sparkmirror.formats.yaml_files import Document, Fill, documents_of, read_text

KIND = "KafkaMirrorMaker2"
"""Of Strimzi's resources that are read."""
SUFFIXES = (".json", ".properties", ".yaml", ".yml")
"""Of the files that are looked at in a directory."""
_YAML = (".yaml", ".yml")
_STORAGE = re.compile(r"(offset|config|status)\.storage\.(topic|file\.filename)")
_WORKERS = ("group.id", "key.converter", "value.converter", "plugin.path", "listeners", "rest.port")
_CLIENTS = ("", "producer", "consumer", "admin", "source.cluster", "target.cluster")
"""What may stand before `.bootstrap.servers` in files of Connect's; another word there is an alias."""


class FileKind(Enum):
    """What a file is; `OTHER` if nothing in it tells."""

    CONNECTORS = "a connector's file"
    WORKER = "a Connect worker's file"
    RESOURCE = "a KafkaMirrorMaker2"
    KUBERNETES = "a Kubernetes file"
    MM2 = "MirrorMaker 2's own file"
    OTHER = "no file of any format that is read"


@dataclass(frozen=True, slots=True)
class File:
    """One file's contents, of whichever kind it is."""

    path: str
    kind: FileKind
    text: str = ""
    """Of JSON."""
    tree: Any = None
    """Of JSON, parsed."""
    entries: tuple[Entry, ...] = ()
    """Of a properties file."""
    documents: tuple[Document, ...] = ()

    @property
    def is_json(self) -> bool:
        """Whether connectors stand in it as JSON."""
        return bool(self.text)


def files_below(path: str) -> list[str]:
    """The path itself, or all files of a directory that may be meant. Raises `ConfigError`."""
    if not os.path.isdir(path):  # pathlib raises for a name that is too long
        return [path]
    below = (one for one in Path(path).rglob("*") if one.suffix.lower() in SUFFIXES and one.is_file())
    # Kubernetes mounts what is there behind hidden names, and tools keep their own there.
    names = sorted(str(one) for one in below if not any(part.startswith(".") for part in one.relative_to(path).parts))
    if not names:
        raise ConfigError(f"is a directory without any file of {', '.join(SUFFIXES)}", where=path)
    return names


def open_file(path: str, fill: Fill | None = None) -> File:
    """Read one file and tell what it is. Raises `ConfigError`."""
    suffix = Path(path).suffix.lower()
    if suffix in _YAML:
        return _kubernetes(path, read_text(path), fill)
    if suffix == ".json" or (suffix != ".properties" and _begins_as_json(path)):
        return _json(path, read_text(path), fill)
    entries = tuple(_filled(read_entries(path), fill))
    return File(path, _kind({entry.key for entry in entries}), entries=entries)


def _begins_as_json(path: str) -> bool:
    """Whether a file of no known suffix is JSON: no key of a properties file begins so."""
    return os.path.isfile(path) and Path(path).read_bytes()[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def _kubernetes(path: str, text: str, fill: Fill | None) -> File:
    documents = tuple(documents_of(path, text, fill))
    mirrors = any(document.tree.get("kind") == KIND for document in documents)
    return File(path, FileKind.RESOURCE if mirrors else FileKind.KUBERNETES, documents=documents)


def _json(path: str, text: str, fill: Fill | None) -> File:
    try:
        tree = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"is no JSON: {error.msg}", where=f"{path}, line {error.lineno}") from None
    except RecursionError:
        raise ConfigError("is nested too deeply to be read", where=path) from None
    except ValueError:  # an integer of thousands of digits
        raise ConfigError("is no JSON: a number in it is too long", where=path) from None
    if isinstance(tree, dict) and isinstance(tree.get("kind"), str) and "apiVersion" in tree:
        return _kubernetes(path, text, fill)
    kind = FileKind.CONNECTORS if '"connector.class"' in text else FileKind.OTHER
    return File(path, kind, text=text, tree=_filled_tree(tree, fill) if fill else tree)


def _kind(keys: set[str]) -> FileKind:
    if "connector.class" in keys and "clusters" not in keys:
        return FileKind.CONNECTORS
    servers = {key.removesuffix("bootstrap.servers").rstrip(".") for key in keys if key.endswith("bootstrap.servers")}
    if "clusters" in keys or servers - {*_CLIENTS} or any("->" in key for key in keys):
        return FileKind.MM2
    if any(map(_STORAGE.fullmatch, keys)) or keys & {*_WORKERS}:
        return FileKind.WORKER
    return FileKind.OTHER


def _filled(entries: Iterable[Entry], fill: Fill | None) -> Iterable[Entry]:
    return entries if fill is None else (replace(one, key=fill(one.key), value=fill(one.value)) for one in entries)


def _filled_tree(tree: Any, fill: Fill) -> Any:
    if isinstance(tree, dict):
        return {fill(key): _filled_tree(below, fill) for key, below in tree.items()}
    if isinstance(tree, list):
        return [_filled_tree(below, fill) for below in tree]
    return fill(tree) if isinstance(tree, str) else tree
