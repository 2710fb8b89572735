"""What Strimzi's fields hold: text, numbers, lists, maps. A file is held against this before anything is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, TypeAlias

from sparkmirror.errors import ConfigError
from sparkmirror.formats.yaml_files import Document, Path_, is_setting


class Kind(Enum):
    """What has no fields of its own, with the words for it."""

    TEXT = "text"
    NUMBER = "a whole number"
    FLAG = "true or false"
    TEXTS = "a map of keys and text"
    SETTINGS = "a map of keys and values"


Shape: TypeAlias = "Kind | list[Shape] | Mapping[str, Shape]"
"""A kind, a list of one shape, or fields by their names."""

_CERTIFICATES: list[Shape] = [{"secretName": Kind.TEXT, "certificate": Kind.TEXT, "pattern": Kind.TEXT}]
_KEY: Shape = {"secretName": Kind.TEXT, "key": Kind.TEXT}
_AUTHENTICATION: Mapping[str, Shape] = {
    "type": Kind.TEXT,
    "certificateAndKey": {"secretName": Kind.TEXT, "certificate": Kind.TEXT, "key": Kind.TEXT},
    "username": Kind.TEXT,
    "passwordSecret": {"secretName": Kind.TEXT, "password": Kind.TEXT},
    "sasl": Kind.FLAG,
    "config": Kind.SETTINGS,
    "clientId": Kind.TEXT,
    "clientSecret": _KEY,
    "tokenEndpointUri": Kind.TEXT,
    "scope": Kind.TEXT,
    "audience": Kind.TEXT,
    "grantType": Kind.TEXT,
    "accessToken": _KEY,
    "accessTokenLocation": Kind.TEXT,
    "refreshToken": _KEY,
    "clientAssertion": _KEY,
    "clientAssertionLocation": Kind.TEXT,
    "clientAssertionType": Kind.TEXT,
    "saslExtensions": Kind.SETTINGS,
    "tlsTrustedCertificates": _CERTIFICATES,
    "connectTimeoutSeconds": Kind.NUMBER,
    "readTimeoutSeconds": Kind.NUMBER,
    "maxTokenExpirySeconds": Kind.NUMBER,
    "includeAcceptHeader": Kind.FLAG,
    "disableTlsHostnameVerification": Kind.FLAG,
}
_CLUSTER: Mapping[str, Shape] = {
    "alias": Kind.TEXT,
    "bootstrapServers": Kind.TEXT,
    "tls": {"trustedCertificates": _CERTIFICATES},
    "authentication": _AUTHENTICATION,
    "config": Kind.SETTINGS,
}
_CONNECTOR: Shape = {"tasksMax": Kind.NUMBER, "config": Kind.SETTINGS, "state": Kind.TEXT, "pause": Kind.FLAG}
_MIRROR: Mapping[str, Shape] = {
    "source": _CLUSTER,
    "sourceCluster": Kind.TEXT,
    "targetCluster": Kind.TEXT,
    **{f"{role}Connector": _CONNECTOR for role in ("source", "checkpoint", "heartbeat")},
    **{f"{kind}{which}Pattern": Kind.TEXT for kind in ("topics", "groups") for which in ("", "Exclude", "Blacklist")},
}
SPEC: Mapping[str, Shape] = {
    "target": {
        **_CLUSTER,
        **dict.fromkeys(("groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic"), Kind.TEXT),
    },
    "clusters": [_CLUSTER],
    "connectCluster": Kind.TEXT,
    "mirrors": [_MIRROR],
    "replicas": Kind.NUMBER,
    "rack": {"type": Kind.TEXT, "topologyKey": Kind.TEXT, "envVarName": Kind.TEXT},
}
"""Every field that is read."""
RESOURCE: Shape = {
    "apiVersion": Kind.TEXT,
    "metadata": {"name": Kind.TEXT, "namespace": Kind.TEXT, "generation": Kind.NUMBER},
    "spec": SPEC,
}
MANIFEST: Shape = {"metadata": {"name": Kind.TEXT}, "data": Kind.TEXTS, "stringData": Kind.TEXTS}
"""Of a Secret or ConfigMap."""
_TYPES = {Kind.TEXT: str, Kind.NUMBER: int, Kind.FLAG: bool}


def without_wrong(document: Document, shape: Shape) -> tuple[Document, dict[Path_, ConfigError]]:
    """The document without the fields that hold something else, and these."""
    wrong = {steps: document.error(steps, words) for steps, words in _wrong(document.tree, shape, ())}
    return replace(document, tree=_without(document.tree, wrong, ())) if wrong else document, wrong


def _without(value: Any, wrong: Mapping[Path_, ConfigError], steps: Path_) -> Any:
    """What is wrong is null, or an empty item of a list, as if it were not there."""
    if isinstance(value, dict):
        return {
            key: None if (*steps, key) in wrong else _without(below, wrong, (*steps, key))
            for key, below in value.items()
        }
    if isinstance(value, list):
        return [{} if (*steps, i) in wrong else _without(one, wrong, (*steps, i)) for i, one in enumerate(value)]
    return value


def _wrong(value: Any, shape: Shape, steps: Path_) -> Iterator[tuple[Path_, str]]:
    if isinstance(shape, Kind):
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
        # What is null counts as not there.
        for name, below in value.items():
            if name in shape and below is not None:
                yield from _wrong(below, shape[name], (*steps, name))


def _wrong_kind(value: Any, kind: Kind, steps: Path_) -> Iterator[tuple[Path_, str]]:
    if kind in (Kind.TEXTS, Kind.SETTINGS):
        if not isinstance(value, dict):
            yield steps, f"must be {kind.value}, and is {_word(value)}"
            return
        for key, below in value.items():
            if kind is Kind.TEXTS:
                yield from _wrong_kind(below, Kind.TEXT, (*steps, key))
            elif not is_setting(below):
                yield (*steps, key), f"must be text, a number or a list of these, and is {_word(below)}"
    elif kind is Kind.TEXT and isinstance(value, int):
        yield steps, f"must be text, and is {_word(value)}: put it in quotes"
    elif type(value) is not _TYPES[kind]:
        yield steps, f"must be {kind.value}, and is {_word(value)}"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    words = {str: "text", int: "a number", list: "a list", dict: "a map"}
    return words.get(type(value), "nothing")
