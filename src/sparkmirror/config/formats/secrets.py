"""Kubernetes' Secrets and ConfigMaps, mounted as directories or as manifests.

`DIR/<name>/<key>` is a mounted value. It becomes a reference, which each process resolves when it connects, so that
nothing secret travels and renewed values count. A manifest's values are taken as they are.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sparkmirror.errors import ConfigError, HandledError

DIRECTORY_PROVIDER = "strimzidir"
"""Config provider's name in references to mounted secrets.

Strimzi declares it, too.
"""

KINDS = ("Secret", "ConfigMap")

_NAME = re.compile(r"(?!\.\.)[-._a-zA-Z0-9]{1,253}")
"""Names and keys that Kubernetes allows, and that can be file names."""


UNKNOWN = "<{kind} {name}, key {key}: not known>"
"""Stand-in for a missing value."""


def is_unknown(text: str) -> bool:
    """True if the text has a stand-in for a missing value."""
    return re.search(r"<(Secret|ConfigMap) [^<>]*: not known>", text) is not None


class _Missing(HandledError, ValueError):
    """Error: a Secret or ConfigMap, or a key in it, is missing."""


@dataclass(frozen=True, slots=True)
class MountedKeys:
    """Keys in the Secrets and ConfigMaps that another process finds mounted.

    Its files are `directory`/<name>/<key>.
    """

    directory: str
    keys: Mapping[str, Collection[str]]
    """Keys by their Secret's or ConfigMap's name."""
    provider: str = DIRECTORY_PROVIDER
    """Config provider's name in references."""


class Secrets:
    """Values by name and key; `missing` tells the missing values."""

    def __init__(self, mounted: str | MountedKeys | None, manifests: Iterable[Mapping[str, Any]] = ()) -> None:
        """Take a directory or its keys, and `manifests` with Secrets and ConfigMaps.

        Raise `ConfigError`.
        """
        self._missing: dict[str, bool] = {}
        self._mounted = Path(mounted).absolute() if isinstance(mounted, str) else mounted
        if isinstance(self._mounted, Path) and not self._mounted.is_dir():
            raise ConfigError("is no directory", origin="--secrets", key=str(mounted))
        self._manifests: dict[tuple[str, str], dict[str, str | None]] = {}
        for document in manifests:
            name = str((document.get("metadata") or {}).get("name") or "")
            self._manifests[str(document["kind"]), name] = _values(document)

    def missing(self) -> list[str]:
        """Return the reasons for missing values since the last call, each once."""
        new = [reason for reason, told in self._missing.items() if not told]
        self._missing |= dict.fromkeys(new, True)
        return new

    def text(self, name: str, key: str, *, kind: str = "Secret") -> str:
        """Return the text to write for a value: itself, or a reference to it.

        A missing value is a stand-in, and `missing` has the reason. Raise `ValueError` if the value is no text.
        """
        try:
            return self._text(name, key, kind)
        except _Missing as error:
            self._missing.setdefault(str(error), False)
            return UNKNOWN.format(kind=kind, name=name, key=key)

    def _text(self, name: str, key: str, kind: str) -> str:
        values = self._manifests.get((kind, name))
        if values is not None:
            if key not in values:
                raise _Missing(f"{kind} {name} has no key {key}; it has {', '.join(sorted(values)) or 'none'}")
            if (value := values[key]) is None:
                raise ValueError(f"{kind} {name}: {key} is not text in base64")
            return value
        if key not in self._keys(kind, name):
            missing = f": there is no file {self._mounted / name / key}" if isinstance(self._mounted, Path) else ""
            raise _Missing(f"{kind} {name} has no key {key}{missing}")
        provider = self._mounted.provider if isinstance(self._mounted, MountedKeys) else DIRECTORY_PROVIDER
        return f"${{{provider}:{self._directory_of(name)}:{key}}}"

    def path(self, name: str, key: str) -> str | None:
        """Return a mounted value's file; raise `ValueError`.

        None if the value comes from a manifest, or is missing.
        """
        if is_unknown(self.text(name, key)) or ("Secret", name) in self._manifests:
            return None
        return f"{self._directory_of(name)}/{key}"

    def matching(self, name: str, pattern: str) -> list[str]:
        """Return the keys that a glob pattern matches, sorted.

        The pattern itself if the keys are unknown.
        """
        try:
            return self._matching(name, pattern)
        except _Missing as error:
            self._missing.setdefault(str(error), False)
            return [pattern]

    def _matching(self, name: str, pattern: str) -> list[str]:
        values = self._manifests.get(("Secret", name))
        keys = self._keys("Secret", name) if values is None else values
        matches = sorted(key for key in keys if fnmatchcase(key, pattern) and not key.startswith(".."))
        if not matches:
            raise _Missing(f"Secret {name} has no key like {pattern}")
        return matches

    def _directory_of(self, name: str) -> str:
        directory = self._mounted.directory if isinstance(self._mounted, MountedKeys) else self._mounted
        return f"{directory}/{name}"

    def _keys(self, kind: str, name: str) -> Collection[str]:
        if self._mounted is None:
            raise _Missing(
                f"{kind} {name} is needed: say with --secrets DIR (or SPARKMIRROR_SECRETS) where DIR/{name}/<key> is"
                f" mounted, or where its manifest lies"
            )
        if isinstance(self._mounted, MountedKeys):
            if name not in self._mounted.keys:
                raise _Missing(f"{kind} {name} is not there")
            return self._mounted.keys[name]
        directory = self._mounted / name
        if not _NAME.fullmatch(name) or not directory.is_dir():
            raise _Missing(f"{kind} {name} is not there: neither {directory} nor a manifest of it")
        # Kubernetes mounts each key as a link into a hidden directory.
        return {file.name for file in directory.iterdir() if _NAME.fullmatch(file.name) and file.is_file()}


def _values(document: Mapping[str, Any]) -> dict[str, str | None]:
    """Return a manifest's values, decoded.

    None for a value that is no text, such as a PKCS12 store next to certificates.
    """
    plain = {key: str(value) for key, value in (document.get("stringData") or {}).items()}
    data = {key: str(value) for key, value in (document.get("data") or {}).items()}
    if document["kind"] == "ConfigMap":
        return {**data, **plain}
    return {**{key: _decoded(value) for key, value in data.items()}, **plain}


def _decoded(value: str) -> str | None:
    try:
        return base64.b64decode("".join(value.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
