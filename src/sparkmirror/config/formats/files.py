"""Files and their kinds, told apart by the contents.

The kinds are connectors, workers, Kubernetes documents and MirrorMaker 2's own keys.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any

from sparkmirror.config.entries import Entry, entries_of, read_entries
from sparkmirror.config.formats.yaml_files import Document, Fill, documents_of, read_text
from sparkmirror.errors import ConfigError

KIND = "KafkaMirrorMaker2"
"""The Strimzi resource kind that is read."""
SUFFIXES = (".json", ".properties", ".yaml", ".yml")
"""File suffixes to read in a directory."""
MOST_FILES = 1000
"""Most files with these suffixes in a directory: more point to a wrong directory."""
_YAML = (".yaml", ".yml")
_STORAGE = re.compile(r"(offset|config|status)\.storage\.(topic|file\.filename)")
_WORKERS = ("group.id", "key.converter", "value.converter", "plugin.path", "listeners", "rest.port")
_CLIENTS = ("", "producer", "consumer", "admin", "source.cluster", "target.cluster")
"""Prefixes before `.bootstrap.servers` in Connect's files.

Any other prefix is an alias.
"""


class FileKind(Enum):
    """A file's kind; `OTHER` if the contents don't tell."""

    CONNECTORS = "a connector's file"
    WORKER = "a Connect worker's file"
    RESOURCE = "a KafkaMirrorMaker2"
    KUBERNETES = "a Kubernetes file"
    MM2 = "MirrorMaker 2's own file"
    OTHER = "no file of any format that is read"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file's contents, whatever its kind."""

    path: str
    kind: FileKind
    text: str = ""
    """A JSON file's text."""
    tree: Any = None
    """A JSON file's parsed text."""
    entries: tuple[Entry, ...] = ()
    """A properties file's entries."""
    documents: tuple[Document, ...] = ()

    @property
    def is_json(self) -> bool:
        return bool(self.text)


def files_below(path: str) -> list[str]:
    """Return the path itself, or all candidates' paths in a directory.

    Raise `ConfigError` if a directory has no candidate, or more than `MOST_FILES`.
    """
    if not os.path.isdir(path):  # pathlib raises for a name that is too long
        return [path]
    below = (file for file in Path(path).rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
    # Hidden names hold Kubernetes' originals of mounted files, and files of tools.
    shown = (str(file) for file in below if not any(part.startswith(".") for part in file.relative_to(path).parts))
    names = sorted(islice(shown, MOST_FILES + 1))
    if len(names) > MOST_FILES:
        raise ConfigError(
            f"is a directory with more than {MOST_FILES:,} files of {', '.join(SUFFIXES)}: name a directory that has "
            "only the files of the mirror",
            origin=path,
        )
    if not names:
        raise ConfigError(f"is a directory without any file of {', '.join(SUFFIXES)}", origin=path)
    return names


def open_file(path: str, fill: Fill | None = None) -> File:
    """Read a file and tell its kind; raise `ConfigError`."""
    suffix = Path(path).suffix.lower()
    if suffix in _YAML:
        return _kubernetes(path, read_text(path), fill)
    if suffix == ".json" or (suffix != ".properties" and _begins_as_json(path)):
        return _json(path, read_text(path), fill)
    return _properties(path, _filled(read_entries(path), fill))


def file_of(path: str, text: str) -> File:
    """Return the file that a text is, as if it were at a path; raise `ConfigError`.

    The path ends in `.json` or `.properties`.
    """
    return _json(path, text, None) if path.endswith(".json") else _properties(path, entries_of(path, text.encode()))


def _properties(path: str, entries: Iterable[Entry]) -> File:
    entries = tuple(entries)
    return File(path=path, kind=_kind({entry.key for entry in entries}), entries=entries)


def _begins_as_json(path: str) -> bool:
    """True if a file without a known suffix is JSON.

    No key in a properties file begins with a brace or a bracket.
    """
    return os.path.isfile(path) and Path(path).read_bytes()[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def _kubernetes(path: str, text: str, fill: Fill | None) -> File:
    documents = tuple(documents_of(path, text, fill))
    mirrors = any(document.tree.get("kind") == KIND for document in documents)
    return File(path=path, kind=FileKind.RESOURCE if mirrors else FileKind.KUBERNETES, documents=documents)


def _json(path: str, text: str, fill: Fill | None) -> File:
    try:
        tree = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"is no JSON: {error.msg}", origin=f"{path}, line {error.lineno}") from None
    except RecursionError:
        raise ConfigError("is nested too deeply to be read", origin=path) from None
    except ValueError:  # an integer of thousands of digits
        raise ConfigError("is no JSON: a number in it is too long", origin=path) from None
    if isinstance(tree, dict) and isinstance(tree.get("kind"), str) and "apiVersion" in tree:
        return _kubernetes(path, text, fill)
    kind = FileKind.CONNECTORS if '"connector.class"' in text else FileKind.OTHER
    return File(path=path, kind=kind, text=text, tree=_filled_tree(tree, fill) if fill else tree)


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
    return (
        entries if fill is None else (replace(entry, key=fill(entry.key), value=fill(entry.value)) for entry in entries)
    )


def _filled_tree(tree: Any, fill: Fill) -> Any:
    if isinstance(tree, dict):
        return {fill(key): _filled_tree(below, fill) for key, below in tree.items()}
    if isinstance(tree, list):
        return [_filled_tree(below, fill) for below in tree]
    return fill(tree) if isinstance(tree, str) else tree
