"""What is watched, by kopf: each event only says for whom a turn is due."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import kopf

from sparkmirror.errors import SetupError
from sparkmirror.operator.controller import Controller
from sparkmirror.operator.kube import ApiAccess, KubeApi, KubeRefused
from sparkmirror.operator.names import GROUP, MANAGER, PLURAL, VERSIONS, Key


def cluster_access() -> ApiAccess:
    """The API of the cluster that this pod runs in, else of the current context of KUBECONFIG. Raises `SetupError`."""
    settings = kopf.OperatorSettings()
    for login in (kopf.login_with_service_account, kopf.login_with_kubeconfig):
        access = login(settings=settings, logger=logging.getLogger(__name__))
        if access is not None:
            return access
    raise SetupError("there is no Kubernetes: neither a service account's token nor a KUBECONFIG is there")


def served_version(api: KubeApi) -> str:
    """The version of the resources that is read. Raises `SetupError` if there are none."""
    try:
        served = {item for item in VERSIONS if _serves(api, item)}
    except KubeRefused as refused:
        raise SetupError(str(refused)) from None
    for version in VERSIONS:
        if version in served:
            return version
    raise SetupError(f"Kubernetes knows no {PLURAL}.{GROUP}: install Strimzi's CustomResourceDefinition of it")


def _serves(api: KubeApi, version: str) -> bool:
    result = api.get(f"/apis/{GROUP}/{version}")
    return result is not None and any(item.get("name") == PLURAL for item in result.get("resources") or ())


def registry(controller: Controller, version: str) -> kopf.OperatorRegistry:
    """The handlers. They keep nothing in the resources: no finalizer, no annotation."""
    handlers = kopf.OperatorRegistry()

    @kopf.on.event(GROUP, version, PLURAL, registry=handlers)
    def resource(*, event: kopf.RawEvent, name: str, namespace: str | None, **_: Any) -> None:
        key = Key(namespace or "", name)
        if event["type"] == "DELETED":
            controller.forget(key)
        else:
            controller.due(key)

    @kopf.on.event("v1", "secrets", registry=handlers)
    @kopf.on.event("v1", "configmaps", registry=handlers)
    def read(*, namespace: str | None, labels: kopf.Labels, **_: Any) -> None:
        if labels.get("app.kubernetes.io/managed-by") != MANAGER:
            controller.due_in(namespace or "")

    @kopf.on.event("apps", "v1", "deployments", labels={"app.kubernetes.io/managed-by": MANAGER}, registry=handlers)
    def made(*, namespace: str | None, labels: kopf.Labels, **_: Any) -> None:
        controller.due(Key(namespace or "", labels.get("app.kubernetes.io/instance", "")))

    return handlers


def watch(
    handlers: kopf.OperatorRegistry,
    access: Callable[[], ApiAccess],
    namespaces: Sequence[str],
    stop: threading.Event,
    health_port: int | None = None,
) -> None:
    """Watch until stopped. Without namespaces all of them. `/healthz` is answered on the port, if there is one."""

    @kopf.on.login(registry=handlers)
    def login(**_: Any) -> Any:
        return access()

    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.networking.connect_timeout = 10
    settings.watching.server_timeout = 300
    settings.execution.max_workers = 4
    asyncio.run(
        kopf.operator(
            registry=handlers,
            settings=settings,
            standalone=True,
            clusterwide=not namespaces,
            namespaces=list(namespaces),
            liveness_endpoint=f"http://0.0.0.0:{health_port}/healthz" if health_port else None,
            stop_flag=stop,
        )
    )
