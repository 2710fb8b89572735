"""Watches by kopf: each event only tells which resources are due for a turn."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import kopf

from sparkmirror.errors import SetupError
from sparkmirror.events import Event
from sparkmirror.operator.controller import Controller
from sparkmirror.operator.kube import PAGE, ApiAccess, KubeApi, KubeRefused, resource_path
from sparkmirror.operator.names import GROUP, MANAGER, PLURAL, VERSIONS, Key
from sparkmirror.operator.peers import Peers

log = logging.getLogger(__name__)

_DEPLOYMENTS = ("apps", "v1", "deployments")


def cluster_access() -> ApiAccess:
    """Return access to the API of Kubernetes.

    The cluster of this pod, or else the current context of KUBECONFIG. Raises `SetupError` without either.
    """
    settings = kopf.OperatorSettings()
    for login in (kopf.login_with_service_account, kopf.login_with_kubeconfig):
        access = login(settings=settings, logger=logging.getLogger(__name__))
        if access is not None:
            return access
    raise SetupError("there is no Kubernetes: neither a service account's token nor a KUBECONFIG is there")


def awaited_version(api: KubeApi, stop: threading.Event, pause_s: float = 10.0) -> str:
    """Return the version of the resources to read, once there is any.

    Empty if `stop` is set first. Raises `SetupError` if the API refuses.
    """
    version = served_version(api)
    if not version:
        log.warning(
            "Kubernetes knows no %s.%s: install Strimzi's CustomResourceDefinition of it; the operator waits for it",
            PLURAL,
            GROUP,
            extra=Event.DEFINITION_MISSING.extra,
        )
    while not version and not stop.wait(pause_s):
        version = served_version(api)
    return version


def served_version(api: KubeApi) -> str:
    """Return the version of the resources to read; empty without any.

    Raises `SetupError` if the API refuses.
    """
    try:
        served = {item for item in VERSIONS if _serves(api, item)}
    except KubeRefused as refused:
        raise SetupError(str(refused)) from None
    return next((version for version in VERSIONS if version in served), "")


def _serves(api: KubeApi, version: str) -> bool:
    result = api.get(f"/apis/{GROUP}/{version}")
    return result is not None and any(item.get("name") == PLURAL for item in result.get("resources") or ())


def known_peers(api: KubeApi, version: str, namespaces: Sequence[str], class_name: str) -> Peers:
    """Return all peers.

    Needed before the first turn: a turn must know the other resources. Raises `SetupError` if the API refuses.
    """
    peers = Peers(class_name)
    paths = [f"/apis/{GROUP}/{version}/{PLURAL}"]
    if namespaces:
        paths = [resource_path(f"{GROUP}/{version}", PLURAL, namespace) for namespace in namespaces]
    try:
        for resource in (item for path in paths for item in api.items(path)):
            peers.see(_key(resource), resource)
    except KubeRefused as refused:
        raise SetupError(str(refused)) from None
    return peers


def _key(resource: Mapping[str, Any]) -> Key:
    return Key(resource["metadata"].get("namespace") or "", resource["metadata"]["name"])


def registry(controller: Controller, version: str, peers: Peers) -> kopf.OperatorRegistry:
    """Return the handlers; they store no finalizer and no annotation in resources.

    Secrets and ConfigMaps are not watched: a cluster may have gigabytes, and each turn reads the few named objects.
    """
    handlers = kopf.OperatorRegistry()

    @kopf.on.event(GROUP, version, PLURAL, registry=handlers)
    def resource(*, event: kopf.RawEvent, **_: Any) -> None:
        tree = event["object"]
        key = _key(tree)
        gone = event["type"] == "DELETED"
        sharing = peers.see(key, None if gone else tree)
        if gone:
            controller.forget(key)
        else:
            controller.due(key)
        for other in sharing:
            controller.due(other)

    @kopf.on.event(*_DEPLOYMENTS, registry=handlers)
    def made(*, namespace: str | None, labels: kopf.Labels, **_: Any) -> None:
        controller.due(Key(namespace or "", labels.get("app.kubernetes.io/instance", "")))

    return handlers


def watch_settings() -> kopf.OperatorSettings:
    """Return kopf's settings, by which the server selects and pages."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.networking.connect_timeout = 10
    settings.watching.server_timeout = 300
    settings.watching.chunk_size = PAGE
    settings.watching.label_selectors[_DEPLOYMENTS] = f"app.kubernetes.io/managed-by={MANAGER}"
    settings.execution.max_workers = 4
    # It would list every definition of a resource and every namespace, and keep them watched
    settings.scanning.disabled = True
    return settings


def watch(
    handlers: kopf.OperatorRegistry,
    access: Callable[[], ApiAccess],
    namespaces: Sequence[str],
    stop: threading.Event,
) -> None:
    """Watch these namespaces, or all without any, until `stop` is set."""

    @kopf.on.login(registry=handlers)
    def login(**_: Any) -> Any:
        return access()

    settings = watch_settings()
    asyncio.run(
        kopf.operator(
            registry=handlers,
            settings=settings,
            standalone=True,
            clusterwide=not namespaces,
            namespaces=list(namespaces),
            stop_flag=stop,
        )
    )
