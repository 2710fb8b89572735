"""What things are called: the annotations that are read, and what is made for a resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkmirror.formats.files import KIND

GROUP = "kafka.strimzi.io"
PLURAL = "kafkamirrormaker2s"
VERSIONS = ("v1beta2", "v1")
"""The first that is served is read: where both are, what was stored in the older layout shows in the older only."""

CLASS = "sparkmirror.io/class"
"""The annotation that hands a resource to the operator of this class."""
PAUSED = "strimzi.io/pause-reconciliation"
RESTART = "strimzi.io/restart-connector"
RESTART_TASK = "strimzi.io/restart-connector-task"
OFFSETS = "strimzi.io/connector-offsets"
OFFSETS_OF = "strimzi.io/mirrormaker-connector"
ROLL = "strimzi.io/manual-rolling-update"

MANAGER = "sparkmirror-operator"
"""Of fields that are applied, and the value of `app.kubernetes.io/managed-by`."""
SETTINGS_HASH = "sparkmirror.io/settings-hash"
"""On pods: what they were started with."""
ROLLED_AT = "sparkmirror.io/rolled-at"

REST_PORT = 8083
METRICS_PORT = 9404
METRICS_PORT_NAME = "tcp-prometheus"


@dataclass(frozen=True, slots=True)
class Key:
    """Which resource."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def component(name: str) -> str:
    """What is made for a resource of this name, as Strimzi calls it."""
    return f"{name}-mirrormaker2"


def api_service(name: str) -> str:
    """The service of the REST interface and the metrics."""
    return f"{component(name)}-api"


def rest_url(key: Key) -> str:
    """Where the REST interface answers inside of the cluster; also `status.url`."""
    return f"http://{api_service(key.name)}.{key.namespace}.svc:{REST_PORT}"


def selector(name: str) -> dict[str, str]:
    """The labels by which pods of a resource are found; dashboards for Strimzi's ask for them, too."""
    return {"strimzi.io/cluster": name, "strimzi.io/name": component(name), "strimzi.io/kind": KIND}


def labels(name: str) -> dict[str, str]:
    """Of all that is made for a resource."""
    return {
        **selector(name),
        "app.kubernetes.io/name": "sparkmirror",
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/part-of": f"sparkmirror-{name}",
        "app.kubernetes.io/managed-by": MANAGER,
    }


def annotations_of(resource: Mapping[str, Any]) -> dict[str, str]:
    """A resource's annotations."""
    return dict((resource.get("metadata") or {}).get("annotations") or {})


def is_ours(resource: Mapping[str, Any], class_name: str) -> bool:
    """Whether its annotation hands it to the operator of this class."""
    return annotations_of(resource).get(CLASS) == class_name


def is_paused(resource: Mapping[str, Any]) -> bool:
    """Whether it is to be left as it is."""
    return annotations_of(resource).get(PAUSED, "").lower() == "true"
