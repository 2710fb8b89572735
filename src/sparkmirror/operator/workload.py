"""Workload of a resource's pods: the common part of both kinds' plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkmirror.operator.mirror_file import DIRECTORY, FILE, file_place, named_secrets
from sparkmirror.operator.mirror_file import SECRETS as MOUNTED
from sparkmirror.operator.names import METRICS_PORT, Key
from sparkmirror.operator.plan import SECRETS, Plan, worker_arguments
from sparkmirror.operator.references import Contents, ObjectReference, digest, mounted_references

WORKER_FILE = "connect-distributed.properties"
_CONFIG = "/opt/sparkmirror/config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Arguments, file and mounted objects of a resource's pods."""

    arguments: tuple[str, ...]
    replicas: int
    directory: str
    """The file's directory in a pod."""
    file_name: str
    file: str
    """The file's text, in the resource's own ConfigMap; empty if `file_from` has it."""
    file_from: ObjectReference | None = None
    file_key: str = ""
    """The file's key in `file_from`."""
    secrets: str
    """Directory for the mounted objects, as DIR/<name>/<key>."""
    mounted: tuple[ObjectReference, ...]
    stamp: str
    """Digest of everything whose change needs new pods."""
    has_rest: bool
    """True if the pods have a REST interface, which has no passwords."""


def connect_workload(spec: Mapping[str, Any], key: Key, plan: Plan, contents: Contents) -> Workload:
    """Return what a `KafkaMirrorMaker2`'s pods run.

    `contents` holds the mounted Secrets and ConfigMaps, and others whose change needs new pods.
    """
    return Workload(
        arguments=tuple(worker_arguments(spec, f"{_CONFIG}/{WORKER_FILE}")),
        replicas=plan.replicas,
        directory=_CONFIG,
        file_name=WORKER_FILE,
        file=plan.worker_file,
        secrets=SECRETS,
        mounted=mounted_references(spec, key.namespace),
        stamp=digest(contents, plan.worker_file),
        has_rest=True,
    )


def mirror_references(spec: Mapping[str, Any], key: Key) -> tuple[ObjectReference, ...]:
    """Return the Secrets and ConfigMaps that the operator looks at for a `Mirror`."""
    place = file_place(spec)
    return (*named_secrets(spec, key.namespace), *([place.reference] if place else ()))


def mirror_workload(spec: Mapping[str, Any], key: Key, text: str) -> Workload:
    """Return what a `Mirror`'s pods run; `text` is its file.

    A renewed Secret needs no new pods, since `sparkmirror run` reads Secrets when it connects.
    """
    place = file_place(spec)
    mounted = named_secrets(spec, key.namespace)
    return Workload(
        arguments=("run", f"{DIRECTORY}/{FILE}", "--metrics-port", str(METRICS_PORT)),
        replicas=int(spec.get("replicas", 2)),
        directory=DIRECTORY,
        file_name=FILE,
        file="" if place else text,
        file_from=place.reference if place else None,
        file_key=place.key if place else "",
        secrets=MOUNTED,
        mounted=mounted,
        stamp=digest({}, text, *(item.name for item in mounted)),
        has_rest=False,
    )
