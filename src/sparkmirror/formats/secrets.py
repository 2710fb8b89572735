"""Kubernetes' Secrets and ConfigMaps, mounted as directories or given as manifests.

`DIR/<name>/<key>` is a mounted one: its values become references, which each process resolves when it connects,
so that nothing secret travels and renewed ones count. A manifest's values are taken as they are.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sparkmirror.errors import ConfigError

DIRECTORY_PROVIDER = "strimzidir"
"""The name of the provider that references to mounted secrets go through: Strimzi declares it, too."""

KINDS = ("Secret", "ConfigMap")

_NAME = re.compile(r"(?!\.\.)[-._a-zA-Z0-9]{1,253}")
"""What Kubernetes lets their names and keys be, and what can be looked for as a file."""


class Secrets:
    """What can be looked up by name and key."""

    def __init__(self, directory: str | None, manifests: Iterable[tuple[str, Mapping[str, Any]]] = ()) -> None:
        """`manifests` are pairs of a path and a document. Raises `ConfigError`."""
        self._directory = None if directory is None else Path(directory).absolute()
        if self._directory is not None and not self._directory.is_dir():
            raise ConfigError("is no directory", where="--secrets", key=directory)
        self._manifests: dict[tuple[str, str], dict[str, str]] = {}
        for path, document in manifests:
            name = str((document.get("metadata") or {}).get("name") or "")
            self._manifests[str(document["kind"]), name] = _values(path, name, document)

    def text(self, name: str, key: str, *, kind: str = "Secret") -> str:
        """What to write for this value: itself, or a reference to it. Raises `ValueError`."""
        values = self._manifests.get((kind, name))
        if values is not None:
            if key not in values:
                raise ValueError(f"{kind} {name} has no key {key}; it has {', '.join(sorted(values)) or 'none'}")
            return values[key]
        directory = self._mounted(kind, name)
        if not _NAME.fullmatch(key) or not (directory / key).is_file():
            raise ValueError(f"{kind} {name} has no key {key}: there is no file {directory / key}")
        return f"${{{DIRECTORY_PROVIDER}:{directory}:{key}}}"

    def path(self, name: str, key: str) -> str | None:
        """The file of a mounted value; None if it is given by a manifest. Raises `ValueError`."""
        self.text(name, key)
        return None if ("Secret", name) in self._manifests else str(self._mounted("Secret", name) / key)

    def matching(self, name: str, pattern: str) -> list[str]:
        """The keys that a glob pattern matches, sorted. Raises `ValueError`."""
        values = self._manifests.get(("Secret", name))
        keys: Iterable[str]
        if values is not None:
            keys = values
        else:
            # Kubernetes mounts each key as a link into a hidden directory.
            keys = (one.name for one in self._mounted("Secret", name).iterdir() if one.is_file())
        found = sorted(key for key in keys if fnmatchcase(key, pattern) and not key.startswith(".."))
        if not found:
            raise ValueError(f"Secret {name} has no key like {pattern}")
        return found

    def _mounted(self, kind: str, name: str) -> Path:
        if self._directory is None:
            raise ValueError(
                f"{kind} {name} is needed: say with --secrets DIR (or SPARKMIRROR_SECRETS) where DIR/{name}/<key> is"
                f" mounted, or where its manifest lies"
            )
        directory = self._directory / name
        if not _NAME.fullmatch(name) or not directory.is_dir():
            raise ValueError(f"{kind} {name} is not there: neither {directory} nor a manifest of it")
        return directory


def _values(path: str, name: str, document: Mapping[str, Any]) -> dict[str, str]:
    """A manifest's values, decoded."""
    plain = {**(document.get("stringData") or {})}
    if document["kind"] == "ConfigMap":
        return {key: str(value) for key, value in {**(document.get("data") or {}), **plain}.items()}
    values = {}
    for key, value in (document.get("data") or {}).items():
        try:
            values[key] = base64.b64decode(str(value), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise ConfigError("is not text in base64", where=path, key=f"Secret {name}, data.{key}") from None
    return values | {key: str(value) for key, value in plain.items()}
