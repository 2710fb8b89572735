"""Desired Kubernetes objects of a resource: a pure function of resource and plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkmirror.operator.names import (
    MANAGER,
    METRICS_PORT,
    METRICS_PORT_NAME,
    REST_PORT,
    Key,
    api_service,
    component,
    labels,
    selector,
)
from sparkmirror.operator.plan import Plan
from sparkmirror.operator.pod import WORKER_FILE, pod_template
from sparkmirror.operator.references import Contents, digest, mounted_references

KINDS = (
    ("v1", "ServiceAccount"),
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("policy/v1", "PodDisruptionBudget"),
    ("apps/v1", "Deployment"),
)
"""Versions and kinds of the objects, in the order of creation.

Kubernetes removes the objects together with their owner, the resource.
"""
_STRATEGIES = {
    "RollingUpdate": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    "Recreate": {"type": "Recreate"},
}


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Further inputs of the desired objects, besides the resource and its plan."""

    image: str
    operator_labels: Mapping[str, str]
    """Labels of the operator's own pods, which may use the REST interface."""
    operator_namespace: str
    rolled_at: str = ""
    """Time of the last request for new pods; empty without one."""


def desired_objects(
    resource: Mapping[str, Any], key: Key, plan: Plan, contents: Contents, around: Circumstances
) -> list[dict[str, Any]]:
    """Return all objects, in the order of `KINDS`.

    `contents` holds the mounted Secrets and ConfigMaps, and others whose change needs new pods.
    """
    spec = resource["spec"]
    return [
        _object(resource, key, kind, body, spec)
        for kind, body in zip(
            KINDS,
            (
                {},
                {"data": {WORKER_FILE: plan.worker_file}},
                {"spec": _service(key.name)},
                {"spec": _network_policy(key.name, around)},
                {"spec": _budget(spec, key.name)},
                {"spec": _deployment(spec, key, plan, contents, around)},
            ),
            strict=True,
        )
    ]


def object_name(kind: str, name: str) -> str:
    """Return the name of the resource's object of this kind."""
    return {"ConfigMap": f"{component(name)}-config", "Service": api_service(name)}.get(kind, component(name))


def offsets_map(resource: Mapping[str, Any], key: Key, name: str, entry: str, text: str) -> dict[str, Any]:
    """Return a new ConfigMap with a connector's listed offsets."""
    metadata = {"name": name, "namespace": key.namespace, "ownerReferences": [owner_of(resource)]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {entry: text}}


def owner_of(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return the owner reference to a resource.

    By this reference Kubernetes removes the objects of a deleted resource.
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
    resource: Mapping[str, Any], key: Key, kind: tuple[str, str], body: dict[str, Any], spec: Mapping[str, Any]
) -> dict[str, Any]:
    asked = _asked_metadata(spec, kind[1])
    metadata: dict[str, Any] = {
        "name": object_name(kind[1], key.name),
        "namespace": key.namespace,
        "labels": {**(asked.get("labels") or {}), **labels(key.name)},
        "ownerReferences": [owner_of(resource)],
    }
    if asked.get("annotations"):
        metadata["annotations"] = asked["annotations"]
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


def _service(name: str) -> dict[str, Any]:
    """Return the Service's spec, which includes pods that are not ready.

    The reason may be a connector, and a changed configuration must still reach the pods.
    """
    return {
        "type": "ClusterIP",
        "publishNotReadyAddresses": True,
        "selector": selector(name),
        "ports": [
            {"name": "rest-api", "port": REST_PORT, "targetPort": "rest-api", "protocol": "TCP"},
            {"name": METRICS_PORT_NAME, "port": METRICS_PORT, "targetPort": METRICS_PORT_NAME, "protocol": "TCP"},
        ],
    }


def _network_policy(name: str, around: Circumstances) -> dict[str, Any]:
    """Return the NetworkPolicy's spec.

    The REST interface has no passwords, so it is open only to the other pods, and to the operator in its namespace.
    """
    namespace = {"matchLabels": {"kubernetes.io/metadata.name": around.operator_namespace}}
    return {
        "podSelector": {"matchLabels": selector(name)},
        "policyTypes": ["Ingress"],
        "ingress": [
            {
                "from": [
                    {"podSelector": {"matchLabels": selector(name)}},
                    {"podSelector": {"matchLabels": dict(around.operator_labels)}, "namespaceSelector": namespace},
                ],
                "ports": [{"port": REST_PORT, "protocol": "TCP"}],
            },
            {"ports": [{"port": METRICS_PORT, "protocol": "TCP"}]},
        ],
    }


def _budget(spec: Mapping[str, Any], name: str) -> dict[str, Any]:
    asked = (spec.get("template") or {}).get("podDisruptionBudget") or {}
    return {"maxUnavailable": asked.get("maxUnavailable", 1), "selector": {"matchLabels": selector(name)}}


def _deployment(
    spec: Mapping[str, Any], key: Key, plan: Plan, contents: Contents, around: Circumstances
) -> dict[str, Any]:
    strategy = ((spec.get("template") or {}).get("deployment") or {}).get("deploymentStrategy", "RollingUpdate")
    mounted = mounted_references(spec, key.namespace)
    return {
        "replicas": plan.replicas,
        "revisionHistoryLimit": 3,
        "strategy": _STRATEGIES.get(strategy, _STRATEGIES["RollingUpdate"]),
        "selector": {"matchLabels": selector(key.name)},
        "template": pod_template(
            spec, key, around.image, mounted, digest(contents, plan.worker_file), around.rolled_at
        ),
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
