"""Pods of a resource.

The needed fields, overridden by the resource's `template`, `resources`, probes and `externalConfiguration`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sparkmirror.operator.names import (
    METRICS_PORT,
    METRICS_PORT_NAME,
    REST_PORT,
    ROLLED_AT,
    SETTINGS_HASH,
    Key,
    component,
    labels,
    selector,
)
from sparkmirror.operator.plan import ADDRESS_VARIABLE, SECRETS, worker_arguments
from sparkmirror.operator.references import ObjectReference

CONFIG = "/opt/sparkmirror/config"
WORKER_FILE = "connect-distributed.properties"
EXTERNAL = "/opt/kafka/external-configuration"
"""Directory in which Strimzi mounts the volumes of `externalConfiguration`."""

_STATE = "/var/lib/sparkmirror"
_POD_FIELDS = (
    "imagePullSecrets",
    "priorityClassName",
    "schedulerName",
    "hostAliases",
    "affinity",
    "tolerations",
    "enableServiceLinks",
    "dnsPolicy",
    "dnsConfig",
    "hostUsers",
)
"""Fields of `template.pod` that are copied to the pod's spec under the same name."""
_PROBE_FIELDS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_GRACE_S = 60
"""Longest time for a pod to end.

The pod closes its flows in order, so that another pod takes them over at once.
"""
_CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_POD_SECURITY = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def pod_template(
    spec: Mapping[str, Any], key: Key, image: str, references: tuple[ObjectReference, ...], digest: str, rolled_at: str
) -> dict[str, Any]:
    """Return the `template` of the Deployment.

    `rolled_at` is the time of the last request for new pods; empty without one.
    """
    asked = dict((spec.get("template") or {}).get("pod") or {})
    metadata = asked.get("metadata") or {}
    stamps = {SETTINGS_HASH: digest} | ({ROLLED_AT: rolled_at} if rolled_at else {})
    pod: dict[str, Any] = {
        "serviceAccountName": component(key.name),
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": asked.get("terminationGracePeriodSeconds", _GRACE_S),
        "securityContext": asked.get("securityContext") or _POD_SECURITY,
        "topologySpreadConstraints": asked.get("topologySpreadConstraints") or [_spread(key.name)],
        "containers": [_container(spec, key.name, image, references)],
        "volumes": [*_volumes(key.name, references, asked), *_external_volumes(spec), *(asked.get("volumes") or ())],
    }
    pod |= {field: asked[field] for field in _POD_FIELDS if field in asked}
    return {
        "metadata": {
            "labels": {**(metadata.get("labels") or {}), **labels(key.name)},
            "annotations": {**(metadata.get("annotations") or {}), **stamps},
        },
        "spec": pod,
    }


def _spread(name: str) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector(name)},
    }


def _container(
    spec: Mapping[str, Any], name: str, image: str, references: tuple[ObjectReference, ...]
) -> dict[str, Any]:
    asked = (spec.get("template") or {}).get("connectContainer") or {}
    container: dict[str, Any] = {
        "name": component(name),
        "image": image,
        "args": worker_arguments(spec, f"{CONFIG}/{WORKER_FILE}"),
        "env": [
            {"name": ADDRESS_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            *_external_variables(spec),
            *(asked.get("env") or ()),
        ],
        "ports": [
            {"name": "rest-api", "containerPort": REST_PORT, "protocol": "TCP"},
            {"name": METRICS_PORT_NAME, "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        "startupProbe": _probe("/health", {"periodSeconds": 5, "failureThreshold": 60}),
        "readinessProbe": _probe("/ready", spec.get("readinessProbe") or {}),
        "livenessProbe": _probe("/health", spec.get("livenessProbe") or {}),
        "securityContext": asked.get("securityContext") or _CONTAINER_SECURITY,
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG, "readOnly": True},
            *(
                {"name": f"object-{number}", "mountPath": f"{SECRETS}/{item}", "readOnly": True}
                for number, item in enumerate(_directories(references))
            ),
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the pod's own
            {"name": "state", "mountPath": _STATE},
            *_external_mounts(spec),
            *(asked.get("volumeMounts") or ()),
        ],
    }
    if spec.get("resources"):
        container["resources"] = {
            name: below for name, below in spec["resources"].items() if name in ("limits", "requests", "claims")
        }
    return container


def _probe(path: str, times: Mapping[str, Any]) -> dict[str, Any]:
    defaults = {"timeoutSeconds": 5, "periodSeconds": 10, "failureThreshold": 3}
    told = {field: times[field] for field in _PROBE_FIELDS if field in times}
    return {"httpGet": {"path": path, "port": METRICS_PORT_NAME, "scheme": "HTTP"}, **defaults, **told}


def _directories(references: tuple[ObjectReference, ...]) -> dict[str, list[ObjectReference]]:
    """Return the objects of each mounted directory, by name.

    A Secret and a ConfigMap of the same name share a directory.
    """
    result: dict[str, list[ObjectReference]] = {}
    for reference in references:
        result.setdefault(reference.name, []).append(reference)
    return result


def _volumes(name: str, references: tuple[ObjectReference, ...], asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"name": "config", "configMap": {"name": f"{component(name)}-config"}}
    kinds = {"Secret": "secret", "ConfigMap": "configMap"}
    for number, objects in enumerate(_directories(references).values()):
        sources = [{kinds[item.kind]: {"name": item.name}} for item in objects]
        yield {"name": f"object-{number}", "projected": {"sources": sources}}
    yield {"name": "tmp", "emptyDir": {"sizeLimit": asked.get("tmpDirSizeLimit", "1Gi")}}
    yield {"name": "state", "emptyDir": {}}


def _external(spec: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    return list((spec.get("externalConfiguration") or {}).get(field) or ())


def _external_variables(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for variable in _external(spec, "env"):
        yield {"name": variable.get("name"), "valueFrom": variable.get("valueFrom")}


def _external_volumes(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for volume in _external(spec, "volumes"):
        kinds = {kind: volume[kind] for kind in ("secret", "configMap") if volume.get(kind)}
        yield {"name": f"ext-{volume.get('name')}", **kinds}


def _external_mounts(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for volume in _external(spec, "volumes"):
        name = volume.get("name")
        yield {"name": f"ext-{name}", "mountPath": f"{EXTERNAL}/{name}", "readOnly": True}
