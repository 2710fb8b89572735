"""The Secrets and ConfigMaps that a resource names, and what tells that one of them has changed."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sparkmirror.errors import ConfigError

_MOUNTED = ("target", "clusters", "mirrors")
"""Fields of `spec` whose Secrets the mirror reads; those in `template` and `externalConfiguration` the pod mounts."""
_PROVIDERS = {"strimzisecrets": "Secret", "strimziconfigmaps": "ConfigMap"}
_CLASSES = {"KubernetesSecretConfigProvider": "Secret", "KubernetesConfigMapConfigProvider": "ConfigMap"}
_DECLARED = re.compile(r"config\.providers\.([^.]+)\.class")
_REFERENCE = re.compile(r"\$\{([^}:]*):([^}:]*):[^}:]*\}")


class ObjectReference(NamedTuple):
    """A Secret or a ConfigMap in the resource's namespace."""

    kind: str
    name: str


Contents = Mapping[ObjectReference, Mapping[str, bytes]]
"""What was found: the values by their keys."""


def mounted_references(spec: Mapping[str, Any], namespace: str) -> tuple[ObjectReference, ...]:
    """Those that the mirror reads, in order. Raises `ConfigError` for one of another namespace: no pod can mount it."""
    result: dict[ObjectReference, None] = {}
    providers = dict(_PROVIDERS)
    texts: list[tuple[str, str]] = []
    for field in _MOUNTED:
        for path, key, value in _walk(spec.get(field), f"spec.{field}"):
            if key == "secretName":
                result[ObjectReference("Secret", value)] = None
            elif (declared := _DECLARED.fullmatch(key)) and value.rpartition(".")[2] in _CLASSES:
                providers[declared[1]] = _CLASSES[value.rpartition(".")[2]]
            texts.append((path, value))
    for path, text in texts:
        for provider, place in _REFERENCE.findall(text):
            if provider not in providers:
                continue
            other, _, name = place.rpartition("/")
            if other not in ("", namespace):
                kind = providers[provider]
                reason = f"{kind} {name} is in namespace {other}, and pods can mount their own namespace's only"
                raise ConfigError(reason, where=namespace, key=path)
            result[ObjectReference(providers[provider], name)] = None
    return tuple(result)


def logging_reference(spec: Mapping[str, Any]) -> tuple[ObjectReference, str] | None:
    """The ConfigMap of `logging` of type external, and its key."""
    named = ((spec.get("logging") or {}).get("valueFrom") or {}).get("configMapKeyRef") or {}
    return (
        (ObjectReference("ConfigMap", named["name"]), named["key"]) if named.get("name") and named.get("key") else None
    )


def pod_references(spec: Mapping[str, Any]) -> tuple[ObjectReference, ...]:
    """Those that pods are given by `externalConfiguration` and `template`; a change of theirs takes new pods, too."""
    result: dict[ObjectReference, None] = {}
    for field in ("externalConfiguration", "template"):
        for path, key, value in _walk(spec.get(field), ""):
            if key == "secretName" or (key == "name" and path.endswith((".secretKeyRef", ".secretRef"))):
                result[ObjectReference("Secret", value)] = None
            elif key == "name" and path.endswith((".configMapKeyRef", ".configMapRef", ".configMap")):
                result[ObjectReference("ConfigMap", value)] = None
    return tuple(result)


def decoded(reference: ObjectReference, manifest: Mapping[str, Any]) -> dict[str, bytes]:
    """The values of a Secret or ConfigMap as the API has it."""
    data = {key: str(value) for key, value in (manifest.get("data") or {}).items()}
    if reference.kind == "Secret":
        return {key: base64.b64decode(value) for key, value in data.items()}
    binary = {key: base64.b64decode(value) for key, value in (manifest.get("binaryData") or {}).items()}
    return {**{key: value.encode() for key, value in data.items()}, **binary}


def digest(contents: Contents, *more: str) -> str:
    """Changes when a value does; tells nothing of what the values are."""
    hashed = hashlib.sha256()
    for part in _parts(contents, more):
        hashed.update(len(part).to_bytes(8, "big") + part)
    return hashed.hexdigest()[:16]


def _parts(contents: Contents, more: Iterable[str]) -> Iterator[bytes]:
    for reference in sorted(contents):
        yield from (part.encode() for part in reference)
        for key in sorted(contents[reference]):
            yield key.encode()
            yield contents[reference][key]
    yield from (text.encode() for text in more)


def _walk(value: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Each text below: the path of what it is in, its key, itself."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            if isinstance(below, str):
                yield path, key, below
            else:
                yield from _walk(below, f"{path}.{key}")
    elif isinstance(value, list):
        for index, below in enumerate(value):
            if isinstance(below, str):
                yield f"{path}[{index}]", "", below
            else:
                yield from _walk(below, f"{path}[{index}]")
