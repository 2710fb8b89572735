"""A resource's objects in Kubernetes: they are applied, and its pods looked at."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from sparkmirror.config.formats.strimzi_status import TIME
from sparkmirror.operator.kube import Api, KubeRefused, object_path
from sparkmirror.operator.names import ROLLED_AT, Key, component, selector
from sparkmirror.operator.objects import Circumstances, desired_objects
from sparkmirror.operator.resource_status import ResourceTrouble
from sparkmirror.operator.turn_settings import Settings
from sparkmirror.operator.workload import Workload

_WAITING = ("PodInitializing", "ContainerCreating")


def deployment_of(api: Api, key: Key) -> dict[str, Any]:
    """Return the resource's Deployment; empty if there is none."""
    return api.get(object_path("Deployment", key.namespace, component(key))) or {}


def pod_count(deployment: Mapping[str, Any]) -> int:
    """Return a Deployment's pod count."""
    return int((deployment.get("status") or {}).get("replicas") or 0)


def wanted_count(deployment: Mapping[str, Any]) -> int:
    """Return the number of pods that a Deployment asks for."""
    return int((deployment.get("spec") or {}).get("replicas") or 0)


def apply_objects(
    api: Api,
    settings: Settings,
    resource: Mapping[str, Any],
    key: Key,
    workload: Workload,
    deployed: dict[str, Any],
    *,
    roll: bool = False,
) -> dict[str, Any]:
    """Apply the wanted objects; return the Deployment. `roll` asks for new pods."""
    template = ((deployed.get("spec") or {}).get("template") or {}).get("metadata") or {}
    rolled_at = (template.get("annotations") or {}).get(ROLLED_AT, "")
    if roll:
        rolled_at = datetime.now(UTC).strftime(TIME)
    around = Circumstances(
        image=settings.image,
        class_name=settings.class_name,
        operator_labels=settings.operator_labels,
        operator_namespace=settings.operator_namespace,
        rolled_at=rolled_at,
    )
    for manifest in desired_objects(resource, key, workload, around):
        deployed = api.apply(manifest)
    return deployed


def refused_object(refused: KubeRefused) -> ResourceTrouble:
    """Return the trouble with an object that the API refuses.

    Raises the refusal if another try may succeed.
    """
    if refused.status in (0, 401, 403, 409) or refused.status >= 500:
        raise refused
    return ResourceTrouble("ObjectRefused", str(refused))


def pods_of(api: Api, key: Key) -> list[dict[str, Any]]:
    """Return the resource's pods."""
    labels = quote(",".join(f"{name}={value}" for name, value in selector(key).items()), safe="")
    return (api.get(f"{object_path('Pod', key.namespace)}?labelSelector={labels}") or {}).get("items") or []


def why_not_up(api: Api, key: Key) -> ResourceTrouble | None:
    """Return why no pod answers, in the words of the pods or their Deployment.

    None if a pod is ready.
    """
    status = deployment_of(api, key).get("status") or {}
    if status.get("readyReplicas"):
        return None
    for pod in pods_of(api, key):
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") and waiting["reason"] not in _WAITING:
                words = f"pod {pod['metadata']['name']}: {waiting['reason']}: {waiting.get('message', '')}"
                return ResourceTrouble("PodsNotReady", words.rstrip(": "))
    for condition in status.get("conditions") or ():
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            return ResourceTrouble("PodsNotReady", str(condition.get("message")))
    return ResourceTrouble("PodsNotReady", "no pod is ready yet")
