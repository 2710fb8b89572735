"""Shapes of Strimzi's fields: text, numbers, lists, maps.

A file is checked against the shapes before anything is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, TypeAlias

from sparkmirror.config.formats.yaml_files import Document, Path_, is_setting
from sparkmirror.errors import ConfigError


class ShapeKind(Enum):
    """Kind of value without its own fields; the value is the words for it."""

    TEXT = "text"
    NUMBER = "a whole number"
    FLAG = "true or false"
    TEXTS = "a map of keys and text"
    SETTINGS = "a map of keys and values"


Shape: TypeAlias = "ShapeKind | list[Shape] | Mapping[str, Shape]"
"""Kind, list with a single shape, or fields by their names."""

_CERTIFICATES: list[Shape] = [{"secretName": ShapeKind.TEXT, "certificate": ShapeKind.TEXT, "pattern": ShapeKind.TEXT}]
_KEY: Shape = {"secretName": ShapeKind.TEXT, "key": ShapeKind.TEXT}
_AUTHENTICATION: Mapping[str, Shape] = {
    "type": ShapeKind.TEXT,
    "certificateAndKey": {"secretName": ShapeKind.TEXT, "certificate": ShapeKind.TEXT, "key": ShapeKind.TEXT},
    "username": ShapeKind.TEXT,
    "passwordSecret": {"secretName": ShapeKind.TEXT, "password": ShapeKind.TEXT},
    "sasl": ShapeKind.FLAG,
    "config": ShapeKind.SETTINGS,
    "clientId": ShapeKind.TEXT,
    "clientSecret": _KEY,
    "tokenEndpointUri": ShapeKind.TEXT,
    "scope": ShapeKind.TEXT,
    "audience": ShapeKind.TEXT,
    "grantType": ShapeKind.TEXT,
    "accessToken": _KEY,
    "accessTokenLocation": ShapeKind.TEXT,
    "refreshToken": _KEY,
    "clientAssertion": _KEY,
    "clientAssertionLocation": ShapeKind.TEXT,
    "clientAssertionType": ShapeKind.TEXT,
    "saslExtensions": ShapeKind.SETTINGS,
    "tlsTrustedCertificates": _CERTIFICATES,
    "connectTimeoutSeconds": ShapeKind.NUMBER,
    "readTimeoutSeconds": ShapeKind.NUMBER,
    "maxTokenExpirySeconds": ShapeKind.NUMBER,
    "includeAcceptHeader": ShapeKind.FLAG,
    "disableTlsHostnameVerification": ShapeKind.FLAG,
}
_CLUSTER: Mapping[str, Shape] = {
    "alias": ShapeKind.TEXT,
    "bootstrapServers": ShapeKind.TEXT,
    "tls": {"trustedCertificates": _CERTIFICATES},
    "authentication": _AUTHENTICATION,
    "config": ShapeKind.SETTINGS,
}
_CONNECTOR: Shape = {
    "tasksMax": ShapeKind.NUMBER,
    "config": ShapeKind.SETTINGS,
    "state": ShapeKind.TEXT,
    "pause": ShapeKind.FLAG,
}
_MIRROR: Mapping[str, Shape] = {
    "source": _CLUSTER,
    "sourceCluster": ShapeKind.TEXT,
    "targetCluster": ShapeKind.TEXT,
    **{f"{role}Connector": _CONNECTOR for role in ("source", "checkpoint", "heartbeat")},
    **{
        f"{kind}{which}Pattern": ShapeKind.TEXT
        for kind in ("topics", "groups")
        for which in ("", "Exclude", "Blacklist")
    },
}
SPEC: Mapping[str, Shape] = {
    "target": {
        **_CLUSTER,
        **dict.fromkeys(("groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic"), ShapeKind.TEXT),
    },
    "clusters": [_CLUSTER],
    "connectCluster": ShapeKind.TEXT,
    "mirrors": [_MIRROR],
    "replicas": ShapeKind.NUMBER,
    "rack": {"type": ShapeKind.TEXT, "topologyKey": ShapeKind.TEXT, "envVarName": ShapeKind.TEXT},
}
"""Fields in `spec` that are read."""
RESOURCE: Shape = {
    "apiVersion": ShapeKind.TEXT,
    "metadata": {"name": ShapeKind.TEXT, "namespace": ShapeKind.TEXT, "generation": ShapeKind.NUMBER},
    "spec": SPEC,
}
MANIFEST: Shape = {"metadata": {"name": ShapeKind.TEXT}, "data": ShapeKind.TEXTS, "stringData": ShapeKind.TEXTS}
"""Shape of a Secret or ConfigMap."""
_TYPES = {ShapeKind.TEXT: str, ShapeKind.NUMBER: int, ShapeKind.FLAG: bool}


def without_wrong(document: Document, shape: Shape) -> tuple[Document, dict[Path_, ConfigError]]:
    """Return the document without the fields that have a wrong shape, and the errors."""
    wrong = {steps: document.error(steps, words) for steps, words in _wrong(document.tree, shape, ())}
    return replace(document, tree=_without(document.tree, wrong, ())) if wrong else document, wrong


def _without(value: Any, wrong: Mapping[Path_, ConfigError], steps: Path_) -> Any:
    """Return a value with null, or an empty list item, for each wrong part.

    So wrong parts count as missing.
    """
    if isinstance(value, dict):
        return {
            key: None if (*steps, key) in wrong else _without(below, wrong, (*steps, key))
            for key, below in value.items()
        }
    if isinstance(value, list):
        return [{} if (*steps, i) in wrong else _without(item, wrong, (*steps, i)) for i, item in enumerate(value)]
    return value


def _wrong(value: Any, shape: Shape, steps: Path_) -> Iterator[tuple[Path_, str]]:
    if isinstance(shape, ShapeKind):
        yield from _wrong_kind(value, shape, steps)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield steps, f"must be a list, and is {_word(value)}"
            return
        for index, item in enumerate(value):
            yield from _wrong(item, shape[0], (*steps, index))
    elif not isinstance(value, dict):
        yield steps, f"must be a map of fields, and is {_word(value)}"
    else:
        # Null counts as missing.
        for name, below in value.items():
            if name in shape and below is not None:
                yield from _wrong(below, shape[name], (*steps, name))


def _wrong_kind(value: Any, kind: ShapeKind, steps: Path_) -> Iterator[tuple[Path_, str]]:
    if kind in (ShapeKind.TEXTS, ShapeKind.SETTINGS):
        if not isinstance(value, dict):
            yield steps, f"must be {kind.value}, and is {_word(value)}"
            return
        for key, below in value.items():
            if kind is ShapeKind.TEXTS:
                yield from _wrong_kind(below, ShapeKind.TEXT, (*steps, key))
            elif not is_setting(below):
                yield (*steps, key), f"must be text, a number or a list of these, and is {_word(below)}"
    elif kind is ShapeKind.TEXT and isinstance(value, int):
        yield steps, f"must be text, and is {_word(value)}: put it in quotes"
    elif type(value) is not _TYPES[kind]:
        yield steps, f"must be {kind.value}, and is {_word(value)}"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    words = {str: "text", int: "a number", list: "a list", dict: "a map"}
    return words.get(type(value), "nothing")
