"""A resource's pods.

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
from sparkmirror.operator.plan import ADDRESS_VARIABLE
from sparkmirror.operator.references import ObjectReference
from sparkmirror.operator.workload import Workload

EXTERNAL = "/opt/kafka/external-configuration"
"""Directory in which Strimzi mounts `externalConfiguration`'s volumes."""

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
"""Fields in `template.pod` that are copied to the pod's spec under the same name."""
_PROBE_FIELDS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SOURCES = {"Secret": "secret", "ConfigMap": "configMap"}
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


def pod_template(spec: Mapping[str, Any], key: Key, image: str, workload: Workload, rolled_at: str) -> dict[str, Any]:
    """Return the Deployment's `template`.

    `rolled_at` is the time of the last request for new pods; empty without one.
    """
    asked = dict((spec.get("template") or {}).get("pod") or {})
    metadata = asked.get("metadata") or {}
    stamps = {SETTINGS_HASH: workload.stamp} | ({ROLLED_AT: rolled_at} if rolled_at else {})
    pod: dict[str, Any] = {
        "serviceAccountName": component(key),
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": asked.get("terminationGracePeriodSeconds", _GRACE_S),
        "securityContext": asked.get("securityContext") or _POD_SECURITY,
        "topologySpreadConstraints": asked.get("topologySpreadConstraints") or [_spread(key)],
        "containers": [_container(spec, key, image, workload)],
        "volumes": [*_volumes(key, workload, asked), *_external_volumes(spec), *(asked.get("volumes") or ())],
    }
    pod |= {field: asked[field] for field in _POD_FIELDS if field in asked}
    return {
        "metadata": {
            "labels": {**(metadata.get("labels") or {}), **labels(key)},
            "annotations": {**(metadata.get("annotations") or {}), **stamps},
        },
        "spec": pod,
    }


def _spread(key: Key) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector(key)},
    }


def _container(spec: Mapping[str, Any], key: Key, image: str, workload: Workload) -> dict[str, Any]:
    asked = (spec.get("template") or {}).get("connectContainer") or {}
    container: dict[str, Any] = {
        "name": component(key),
        "image": image,
        "args": list(workload.arguments),
        "env": [
            {"name": ADDRESS_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            *_external_variables(spec),
            *(asked.get("env") or ()),
        ],
        "ports": [
            *([{"name": "rest-api", "containerPort": REST_PORT, "protocol": "TCP"}] if workload.has_rest else []),
            {"name": METRICS_PORT_NAME, "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        "startupProbe": _probe("/health", {"periodSeconds": 5, "failureThreshold": 60}),
        "readinessProbe": _probe("/ready", spec.get("readinessProbe") or {}),
        "livenessProbe": _probe("/health", spec.get("livenessProbe") or {}),
        "securityContext": asked.get("securityContext") or _CONTAINER_SECURITY,
        "volumeMounts": [
            {"name": "config", "mountPath": workload.directory, "readOnly": True},
            *(
                {"name": f"object-{number}", "mountPath": f"{workload.secrets}/{item}", "readOnly": True}
                for number, item in enumerate(_directories(workload.mounted))
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
    """Return each mounted directory's objects, by name.

    A Secret and a ConfigMap with the same name share a directory.
    """
    result: dict[str, list[ObjectReference]] = {}
    for reference in references:
        result.setdefault(reference.name, []).append(reference)
    return result


def _volumes(key: Key, workload: Workload, asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"name": "config", **_file_volume(key, workload)}
    for number, objects in enumerate(_directories(workload.mounted).values()):
        sources = [{_SOURCES[item.kind]: {"name": item.name}} for item in objects]
        yield {"name": f"object-{number}", "projected": {"sources": sources}}
    yield {"name": "tmp", "emptyDir": {"sizeLimit": asked.get("tmpDirSizeLimit", "1Gi")}}
    yield {"name": "state", "emptyDir": {}}


def _file_volume(key: Key, workload: Workload) -> dict[str, Any]:
    if workload.file_from is None:
        return {"configMap": {"name": f"{component(key)}-config"}}
    kind, name = workload.file_from
    items = [{"key": workload.file_key, "path": workload.file_name}]
    return {_SOURCES[kind]: {"secretName" if kind == "Secret" else "name": name, "items": items}}


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
