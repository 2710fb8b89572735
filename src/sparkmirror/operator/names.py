"""Names of annotations, and of the objects made for a resource."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkmirror.formats.files import KIND

GROUP = "kafka.strimzi.io"
PLURAL = "kafkamirrormaker2s"
VERSIONS = ("v1beta2", "v1")
"""API versions of the resources; the operator reads the first one served.

If the cluster serves both, a resource stored in the older layout shows its fields only in the older version.
"""

CLASS = "sparkmirror.io/class"
"""Annotation that assigns a resource to the operator of this class."""
PAUSED = "strimzi.io/pause-reconciliation"
RESTART = "strimzi.io/restart-connector"
RESTART_TASK = "strimzi.io/restart-connector-task"
OFFSETS = "strimzi.io/connector-offsets"
OFFSETS_OF = "strimzi.io/mirrormaker-connector"
ROLL = "strimzi.io/manual-rolling-update"

MANAGER = "sparkmirror-operator"
"""Manager of applied fields, and the value of `app.kubernetes.io/managed-by`."""
SETTINGS_HASH = "sparkmirror.io/settings-hash"
"""Annotation of pods with a digest of the settings that they were started with."""
ROLLED_AT = "sparkmirror.io/rolled-at"

REST_PORT = 8083
METRICS_PORT = 9404
METRICS_PORT_NAME = "tcp-prometheus"

_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Key:
    """Namespace and name of a resource."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def is_object_name(text: str) -> bool:
    """True if Kubernetes allows this name for a Secret or ConfigMap (RFC 1123).

    Any other text could lead to another object, or out of a directory.
    """
    return _OBJECT_NAME.fullmatch(text) is not None and ".." not in text


def component(name: str) -> str:
    """Return Strimzi's name of the objects made for a resource."""
    return f"{name}-mirrormaker2"


def api_service(name: str) -> str:
    """Return the name of the Service for the REST interface and the metrics."""
    return f"{component(name)}-api"


def rest_url(key: Key) -> str:
    """Return the REST interface's address inside the cluster; also `status.url`."""
    return f"http://{api_service(key.name)}.{key.namespace}.svc:{REST_PORT}"


def selector(name: str) -> dict[str, str]:
    """Return the labels that select a resource's pods.

    Dashboards for Strimzi's pods use them, too.
    """
    return {"strimzi.io/cluster": name, "strimzi.io/name": component(name), "strimzi.io/kind": KIND}


def labels(name: str) -> dict[str, str]:
    """Return the labels of all objects made for a resource."""
    return {
        **selector(name),
        "app.kubernetes.io/name": "sparkmirror",
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/part-of": f"sparkmirror-{name}",
        "app.kubernetes.io/managed-by": MANAGER,
    }


def annotations_of(resource: Mapping[str, Any]) -> dict[str, str]:
    """Return a resource's annotations."""
    return dict((resource.get("metadata") or {}).get("annotations") or {})


def is_ours(resource: Mapping[str, Any], class_name: str) -> bool:
    """True if the resource's annotation assigns it to the operator of this class."""
    return annotations_of(resource).get(CLASS) == class_name


def is_paused(resource: Mapping[str, Any]) -> bool:
    """True if the resource's reconciliation is paused by its annotation."""
    return annotations_of(resource).get(PAUSED, "").lower() == "true"
