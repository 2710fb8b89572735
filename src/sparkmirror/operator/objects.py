"""Desired Kubernetes objects: a pure function of resource and workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkmirror.operator.names import (
    CLASS,
    MANAGER,
    METRICS_PORT,
    METRICS_PORT_NAME,
    REST_PORT,
    Key,
    component,
    labels,
    selector,
    service,
)
from sparkmirror.operator.pod import pod_template
from sparkmirror.operator.workload import Workload

KINDS = (
    ("v1", "ServiceAccount"),
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("policy/v1", "PodDisruptionBudget"),
    ("apps/v1", "Deployment"),
)
"""The objects' versions and kinds, in the order of creation.

Kubernetes removes the objects together with their owner, the resource.
"""
_STRATEGIES = {
    "RollingUpdate": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    "Recreate": {"type": "Recreate"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Further inputs to the desired objects, besides the resource and its workload."""

    image: str
    class_name: str
    operator_labels: Mapping[str, str]
    """Labels on the operator's own pods, which may use the REST interface."""
    operator_namespace: str
    rolled_at: str = ""
    """Time of the last request for new pods; empty without one."""


def desired_objects(
    resource: Mapping[str, Any], key: Key, workload: Workload, around: Circumstances
) -> list[dict[str, Any]]:
    """Return all objects, ordered as in `KINDS`."""
    spec = resource["spec"]
    return [
        _object(resource, key, kind, body, around.class_name)
        for kind, body in zip(
            KINDS,
            (
                {},
                {"data": {workload.file_name: workload.file} if workload.file else {}},
                {"spec": _service(key, workload)},
                {"spec": _network_policy(key, workload, around)},
                {"spec": _budget(spec, key)},
                {"spec": _deployment(spec, key, workload, around)},
            ),
            strict=True,
        )
    ]


def object_name(kind: str, key: Key) -> str:
    return {"ConfigMap": f"{component(key)}-config", "Service": service(key)}.get(kind, component(key))


def offsets_map(resource: Mapping[str, Any], key: Key, name: str, entry: str, text: str) -> dict[str, Any]:
    """Return a new ConfigMap with a connector's listed offsets."""
    metadata = {"name": name, "namespace": key.namespace, "ownerReferences": [owner_of(resource)]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {entry: text}}


def owner_of(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the owner reference to a resource.

    By this reference Kubernetes removes a deleted resource's objects.
    """
    metadata = resource["metadata"]
    return {
        "apiVersion": resource["apiVersion"],
        "kind": resource["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": False,
        "blockOwnerDeletion": False,
    }


def _object(
    resource: Mapping[str, Any], key: Key, kind: tuple[str, str], body: dict[str, Any], class_name: str
) -> dict[str, Any]:
    asked = _asked_metadata(resource["spec"], kind[1])
    metadata: dict[str, Any] = {
        "name": object_name(kind[1], key),
        "namespace": key.namespace,
        "labels": {**(asked.get("labels") or {}), **labels(key)},
        "annotations": {**(asked.get("annotations") or {}), CLASS: class_name},
        "ownerReferences": [owner_of(resource)],
    }
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, **body}


def _asked_metadata(spec: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    fields = {
        "Deployment": ("deployment", "podSet"),
        "Service": ("apiService",),
        "PodDisruptionBudget": ("podDisruptionBudget",),
        "ServiceAccount": ("serviceAccount",),
    }
    template = spec.get("template") or {}
    return next((template[item].get("metadata") or {} for item in fields.get(kind, ()) if template.get(item)), {})


def _service(key: Key, workload: Workload) -> dict[str, Any]:
    """Return the Service's spec, which includes pods that are not ready.

    The reason may be a connector, and a changed configuration must still reach the pods.
    """
    rest = {"name": "rest-api", "port": REST_PORT, "targetPort": "rest-api", "protocol": "TCP"}
    metrics = {"name": METRICS_PORT_NAME, "port": METRICS_PORT, "targetPort": METRICS_PORT_NAME, "protocol": "TCP"}
    return {
        "type": "ClusterIP",
        "publishNotReadyAddresses": True,
        "selector": selector(key),
        "ports": [rest, metrics] if workload.has_rest else [metrics],
    }


def _network_policy(key: Key, workload: Workload, around: Circumstances) -> dict[str, Any]:
    """Return the NetworkPolicy's spec.

    The REST interface has no passwords, so it is open only to the other pods, and to the operator in its namespace.
    """
    namespace = {"matchLabels": {"kubernetes.io/metadata.name": around.operator_namespace}}
    rest = {
        "from": [
            {"podSelector": {"matchLabels": selector(key)}},
            {"podSelector": {"matchLabels": dict(around.operator_labels)}, "namespaceSelector": namespace},
        ],
        "ports": [{"port": REST_PORT, "protocol": "TCP"}],
    }
    metrics = {"ports": [{"port": METRICS_PORT, "protocol": "TCP"}]}
    return {
        "podSelector": {"matchLabels": selector(key)},
        "policyTypes": ["Ingress"],
        "ingress": [rest, metrics] if workload.has_rest else [metrics],
    }


def _budget(spec: Mapping[str, Any], key: Key) -> dict[str, Any]:
    asked = (spec.get("template") or {}).get("podDisruptionBudget") or {}
    return {"maxUnavailable": asked.get("maxUnavailable", 1), "selector": {"matchLabels": selector(key)}}


def _deployment(spec: Mapping[str, Any], key: Key, workload: Workload, around: Circumstances) -> dict[str, Any]:
    strategy = ((spec.get("template") or {}).get("deployment") or {}).get("deploymentStrategy", "RollingUpdate")
    return {
        "replicas": workload.replicas,
        "revisionHistoryLimit": 3,
        "strategy": _STRATEGIES.get(strategy, _STRATEGIES["RollingUpdate"]),
        "selector": {"matchLabels": selector(key)},
        "template": pod_template(spec, key, around.image, workload, around.rolled_at),
    }


def strangers(result: Mapping[str, Any], name: str) -> str:
    """Return the reason why an object is foreign; empty if this operator manages it.

    The object has a name that this operator would use. Strimzi's own objects are never touched.
    """
    managed = ((result.get("metadata") or {}).get("labels") or {}).get("app.kubernetes.io/managed-by", "")
    if managed == MANAGER:
        return ""
    kind = result.get("kind", "object")
    return f"{kind} {name} exists, and this operator does not manage it" + (f": {managed} does" if managed else "")


STRIMZI_PODS = ("core.strimzi.io", "strimzipodsets")
"""Group and plural of StrimziPodSet, the object in which Strimzi runs a resource."""
