"""Names for annotations, and for the objects made for a resource."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkmirror.config.formats.files import KIND

GROUP = "kafka.strimzi.io"
PLURAL = "kafkamirrormaker2s"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKind:
    """A resource kind that the operator runs."""

    name: str
    group: str
    plural: str
    versions: tuple[str, ...]
    """API versions; the operator reads the first one served."""
    suffix: str
    """End of the names of the objects made for a resource."""
    provider: str
    """The CustomResourceDefinition's provider, in words."""

    def __str__(self) -> str:
        return self.name

    @property
    def definition(self) -> str:
        """The CustomResourceDefinition's name."""
        return f"{self.plural}.{self.group}"


STRIMZI = ResourceKind(
    name=KIND,
    group=GROUP,
    plural=PLURAL,
    # If the cluster serves both, a resource stored in the older layout shows its fields only in the older version.
    versions=("v1beta2", "v1"),
    suffix="mirrormaker2",
    provider="Strimzi",
)
MIRROR = ResourceKind(
    name="Mirror",
    group="sparkmirror.io",
    plural="mirrors",
    versions=("v1alpha1",),
    suffix="mirror",
    provider="the operator's chart",
)
RESOURCE_KINDS = (STRIMZI, MIRROR)

CLASS = "sparkmirror.io/class"
"""Annotation that assigns a resource to the operator with this class.

Objects have it from the operator that made them; a label could not have every class.
"""
OWN_CLASS = "sparkmirror"
"""Class for a `Mirror` without the annotation: no other operator runs the kind."""
MIRROR_LABEL = "sparkmirror.io/mirror"
"""Label on a Mirror's objects, with its name."""
PAUSED = "strimzi.io/pause-reconciliation"
RESTART = "strimzi.io/restart-connector"
RESTART_TASK = "strimzi.io/restart-connector-task"
OFFSETS = "strimzi.io/connector-offsets"
OFFSETS_OF = "strimzi.io/mirrormaker-connector"
ROLL = "strimzi.io/manual-rolling-update"

MANAGER = "sparkmirror-operator"
"""Manager of applied fields, and the value of `app.kubernetes.io/managed-by`."""
SETTINGS_HASH = "sparkmirror.io/settings-hash"
"""Annotation of pods with a digest of the settings at their start."""
ROLLED_AT = "sparkmirror.io/rolled-at"

REST_PORT = 8083
METRICS_PORT = 9404
METRICS_PORT_NAME = "tcp-prometheus"

_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Key:
    """A resource's namespace, name and kind."""

    namespace: str
    name: str
    kind: ResourceKind = STRIMZI

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.kind is STRIMZI else self.told

    @property
    def told(self) -> str:
        """Kind, namespace and name, in words."""
        return f"{self.kind} {self.namespace}/{self.name}"


def is_object_name(text: str) -> bool:
    """True if Kubernetes allows this name for a Secret or ConfigMap (RFC 1123).

    Any other text could lead to another object, or out of a directory.
    """
    return _OBJECT_NAME.fullmatch(text) is not None and ".." not in text


def component(key: Key) -> str:
    """Return the name for the objects made for a resource.

    For Strimzi's resource it is Strimzi's name.
    """
    return f"{key.name}-{key.kind.suffix}"


def service(key: Key) -> str:
    """Return the Service's name for the metrics, and for a REST interface."""
    return f"{component(key)}-api" if key.kind is STRIMZI else component(key)


def rest_url(key: Key) -> str:
    """Return the REST interface's address inside the cluster; also `status.url`."""
    return f"http://{service(key)}.{key.namespace}.svc:{REST_PORT}"


def selector(key: Key) -> dict[str, str]:
    """Return the labels that select a resource's pods.

    Dashboards for Strimzi's pods use Strimzi's labels, too.
    """
    if key.kind is MIRROR:
        return {MIRROR_LABEL: key.name}
    return {"strimzi.io/cluster": key.name, "strimzi.io/name": component(key), "strimzi.io/kind": KIND}


def labels(key: Key) -> dict[str, str]:
    """Return the labels on all objects made for a resource."""
    return {
        **selector(key),
        "app.kubernetes.io/name": "sparkmirror",
        "app.kubernetes.io/instance": key.name,
        "app.kubernetes.io/part-of": f"sparkmirror-{key.name}",
        "app.kubernetes.io/managed-by": MANAGER,
    }


def key_of(resource: Mapping[str, Any], kind: ResourceKind) -> Key:
    """Return the key of a resource of this kind."""
    metadata = resource["metadata"]
    return Key(str(metadata.get("namespace") or ""), str(metadata["name"]), kind)


def key_of_labels(namespace: str, labels: Mapping[str, str]) -> Key:
    """Return the key of the resource that an object with these labels was made for."""
    kind = MIRROR if MIRROR_LABEL in labels else STRIMZI
    return Key(namespace, labels.get("app.kubernetes.io/instance", ""), kind)


def annotations_of(resource: Mapping[str, Any]) -> dict[str, str]:
    return dict((resource.get("metadata") or {}).get("annotations") or {})


def is_ours(resource: Mapping[str, Any], class_name: str) -> bool:
    """True if the resource is assigned to the operator with this class.

    By its annotation; a `Mirror` without it belongs to `OWN_CLASS`.
    """
    unsaid = OWN_CLASS if resource.get("kind") == MIRROR.name else None
    return annotations_of(resource).get(CLASS, unsaid) == class_name


def is_paused(resource: Mapping[str, Any]) -> bool:
    """True if the resource's reconciliation is paused by its annotation."""
    return annotations_of(resource).get(PAUSED, "").lower() == "true"
