"""A resource's Secrets and ConfigMaps, and a digest to notice their changes."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sparkmirror.config.formats.secrets import DIRECTORY_PROVIDER, MountedKeys
from sparkmirror.config.formats.strimzi_providers import KUBERNETES_CLASSES, KUBERNETES_PROVIDERS
from sparkmirror.errors import ConfigError
from sparkmirror.operator.kube import Api, object_path
from sparkmirror.operator.names import is_object_name

_MOUNTED = ("target", "clusters", "mirrors")
"""Fields in `spec` whose Secrets and ConfigMaps the mirror reads.

The pod itself mounts the ones in `template` and `externalConfiguration`.
"""
_DECLARED = re.compile(r"config\.providers\.([^.]+)\.class")
_REFERENCE = re.compile(r"\$\{([^}:]*):([^}:]*):[^}:]*\}")


class ObjectReference(NamedTuple):
    """A Secret or a ConfigMap in the resource's namespace."""

    kind: str
    name: str


Contents = Mapping[ObjectReference, Mapping[str, bytes]]
"""Values by key of each Secret and ConfigMap."""


def mounted_keys(contents: Contents, directory: str, provider: str = DIRECTORY_PROVIDER) -> MountedKeys:
    """Return the keys that pods find mounted.

    A Secret and a ConfigMap with one name share their directory.
    """
    keys: dict[str, set[str]] = {}
    for reference, values in contents.items():
        keys.setdefault(reference.name, set()).update(values)
    return MountedKeys(directory, keys, provider)


def mounted_references(spec: Mapping[str, Any], namespace: str) -> tuple[ObjectReference, ...]:
    """Return the Secrets and ConfigMaps that the mirror reads, in order.

    Raises `ConfigError` for a name that Kubernetes does not allow, and for a reference to another namespace: a pod
    can't mount it.
    """
    result: dict[ObjectReference, None] = {}
    providers = dict(KUBERNETES_PROVIDERS)
    texts: list[tuple[str, str]] = []
    for field in _MOUNTED:
        for path, key, value in _walk(spec.get(field), f"spec.{field}"):
            if key == "secretName":
                result[_named("Secret", value, f"{path}.{key}", namespace)] = None
            elif (declared := _DECLARED.fullmatch(key)) and value.rpartition(".")[2] in KUBERNETES_CLASSES:
                providers[declared[1]] = KUBERNETES_CLASSES[value.rpartition(".")[2]]
            texts.append((path, value))
    for path, text in texts:
        for provider, place in _REFERENCE.findall(text):
            if provider not in providers:
                continue
            other, _, name = place.rpartition("/")
            if other not in ("", namespace):
                kind = providers[provider]
                reason = f"{kind} {name} is in namespace {other}, and pods can mount their own namespace's only"
                raise ConfigError(reason, origin=namespace, key=path)
            result[_named(providers[provider], name, path, namespace)] = None
    return tuple(result)


def secret_references(
    spec: Mapping[str, Any], namespace: str, fields: Iterable[str], names: Iterable[str]
) -> tuple[ObjectReference, ...]:
    """Return the Secrets that these fields in `spec` name, and those in `names`.

    Raises `ConfigError` for a name that Kubernetes does not allow.
    """
    result = dict.fromkeys(_named("Secret", name, "spec.secrets", namespace) for name in names)
    for field in fields:
        for path, key, value in _walk(spec.get(field), f"spec.{field}"):
            if key == "secretName":
                result[_named("Secret", value, f"{path}.{key}", namespace)] = None
    return tuple(result)


def read_references(api: Api, namespace: str, references: Iterable[ObjectReference]) -> Contents:
    """Read Secrets and ConfigMaps; leave out missing ones."""
    result: dict[ObjectReference, Mapping[str, bytes]] = {}
    for reference in dict.fromkeys(references):
        manifest = api.get(object_path(reference.kind, namespace, reference.name))
        if manifest is not None:
            result[reference] = decoded(reference, manifest)
    return result


def _named(kind: str, name: str, path: str, origin: str) -> ObjectReference:
    if not is_object_name(name):
        reason = f"{name!r} is no name of a {kind}: write lower-case letters, digits, '-' and '.'"
        raise ConfigError(reason, origin=origin, key=path)
    return ObjectReference(kind, name)


def logging_reference(spec: Mapping[str, Any]) -> tuple[ObjectReference, str] | None:
    """Return ConfigMap and key of a `logging` of type external; None for other types."""
    named = ((spec.get("logging") or {}).get("valueFrom") or {}).get("configMapKeyRef") or {}
    return (
        (ObjectReference("ConfigMap", named["name"]), named["key"]) if named.get("name") and named.get("key") else None
    )


def pod_references(spec: Mapping[str, Any], namespace: str) -> tuple[ObjectReference, ...]:
    """Return the Secrets and ConfigMaps in `externalConfiguration` and `template`.

    A change of one of them needs new pods, too. Raises `ConfigError` for a name that Kubernetes does not allow.
    """
    result: dict[ObjectReference, None] = {}
    for field in ("externalConfiguration", "template"):
        for path, key, value in _walk(spec.get(field), f"spec.{field}"):
            if key == "secretName" or (key == "name" and path.endswith((".secretKeyRef", ".secretRef"))):
                result[_named("Secret", value, f"{path}.{key}", namespace)] = None
            elif key == "name" and path.endswith((".configMapKeyRef", ".configMapRef", ".configMap")):
                result[_named("ConfigMap", value, f"{path}.{key}", namespace)] = None
    return tuple(result)


def decoded(reference: ObjectReference, manifest: Mapping[str, Any]) -> dict[str, bytes]:
    """Decode the values of a Secret or ConfigMap, as returned by the API."""
    data = {key: str(value) for key, value in (manifest.get("data") or {}).items()}
    if reference.kind == "Secret":
        return {key: base64.b64decode(value) for key, value in data.items()}
    binary = {key: base64.b64decode(value) for key, value in (manifest.get("binaryData") or {}).items()}
    return {**{key: value.encode() for key, value in data.items()}, **binary}


def digest(contents: Contents, *more: str) -> str:
    """Return a digest that changes with any value, and reveals none."""
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
    """Yield each text below `value`: its container's path, its key, the text."""
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
