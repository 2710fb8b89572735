"""Watches by kopf: each event only tells which resources are due for a turn."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import kopf

from sparkmirror.errors import SetupError
from sparkmirror.events import Event
from sparkmirror.operator.controller import Controller
from sparkmirror.operator.kube import PAGE, ApiAccess, KubeApi, KubeRefused, resource_path
from sparkmirror.operator.names import MANAGER, RESOURCE_KINDS, Key, ResourceKind, key_of, key_of_labels
from sparkmirror.operator.peers import Peers
from sparkmirror.operator.references import read_references

log = logging.getLogger(__name__)

LOOK_S = 30.0
"""Pause between two looks for a kind's definition that is missing, in seconds."""

_DEPLOYMENTS = ("apps", "v1", "deployments")


def cluster_access() -> ApiAccess:
    """Return access to Kubernetes' API.

    This pod's cluster, or else KUBECONFIG's current context. Raises `SetupError` without either.
    """
    settings = kopf.OperatorSettings()
    for login in (kopf.login_with_service_account, kopf.login_with_kubeconfig):
        access = login(settings=settings, logger=logging.getLogger(__name__))
        if access is not None:
            return access
    raise SetupError("there is no Kubernetes: neither a service account's token nor a KUBECONFIG is there")


def awaited_versions(api: KubeApi, stop: threading.Event, pause_s: float = 10.0) -> dict[ResourceKind, str]:
    """Return each served kind's version, once there is any.

    Empty if `stop` is set first. Raises `SetupError` if the API refuses.
    """
    versions = served_versions(api)
    for kind in (kind for kind in RESOURCE_KINDS if kind not in versions):
        log.warning(
            "Kubernetes knows no %s: %s has its CustomResourceDefinition; the operator looks for it again by itself",
            kind.definition,
            kind.provider,
            extra=Event.DEFINITION_MISSING.extra,
        )
    while not versions and not stop.wait(pause_s):
        versions = served_versions(api)
    return versions


def served_versions(api: KubeApi) -> dict[ResourceKind, str]:
    """Return the version of each kind to read, among the served versions.

    Raises `SetupError` if the API refuses.
    """
    try:
        served = {
            kind: version
            for kind in RESOURCE_KINDS
            for version in reversed(kind.versions)
            if _serves(api, kind, version)
        }
    except KubeRefused as refused:
        raise SetupError(str(refused)) from None
    return served


def _serves(api: KubeApi, kind: ResourceKind, version: str) -> bool:
    result = api.get(f"/apis/{kind.group}/{version}")
    return result is not None and any(item.get("name") == kind.plural for item in result.get("resources") or ())


def known_peers(
    api: KubeApi, versions: Mapping[ResourceKind, str], namespaces: Sequence[str], class_name: str
) -> Peers:
    """Return all peers.

    Needed before the first turn: a turn must know the other resources. Raises `SetupError` if the API refuses.
    """
    peers = Peers(class_name, lambda namespace, reference: read_references(api, namespace, (reference,)))
    see_all(peers, api, versions, namespaces)
    return peers


def see_all(peers: Peers, api: KubeApi, versions: Mapping[ResourceKind, str], namespaces: Sequence[str]) -> None:
    """Have the peers know all resources. Raises `SetupError` if the API refuses."""
    try:
        for kind, version in versions.items():
            group = f"{kind.group}/{version}"
            paths = [f"/apis/{group}/{kind.plural}"]
            if namespaces:
                paths = [resource_path(group, kind.plural, namespace) for namespace in namespaces]
            for resource in (item for path in paths for item in api.items(path)):
                peers.see(key_of(resource, kind), resource)
    except KubeRefused as refused:
        raise SetupError(str(refused)) from None


def registry(controller: Controller, versions: Mapping[ResourceKind, str], peers: Peers) -> kopf.OperatorRegistry:
    """Return the handlers; they store no finalizer and no annotation in resources.

    Secrets and ConfigMaps are not watched: a cluster may have gigabytes, and each turn reads the few named objects.
    """
    handlers = kopf.OperatorRegistry()
    for kind, version in versions.items():
        _watch_kind(handlers, controller, peers, kind, version)

    @kopf.on.event(*_DEPLOYMENTS, registry=handlers)
    def made(*, namespace: str | None, labels: kopf.Labels, **_: Any) -> None:
        key = key_of_labels(namespace or "", labels)
        if peers.knows(key):  # a deleted resource's objects go after it
            controller.due(key)

    return handlers


def _watch_kind(
    handlers: kopf.OperatorRegistry, controller: Controller, peers: Peers, kind: ResourceKind, version: str
) -> None:
    wanted: dict[Key, bytes] = {}

    @kopf.on.event(kind.group, version, kind.plural, registry=handlers)
    def resource(*, event: kopf.RawEvent, **_: Any) -> None:
        tree = event["object"]
        key = key_of(tree, kind)
        gone = event["type"] == "DELETED"
        sharing = peers.see(key, None if gone else tree)
        if gone:
            wanted.pop(key, None)
            controller.forget(key)
        elif wanted.get(key) != (now := _asked_for(tree)):
            # A turn writes the status: were that a reason for the next turn, changing figures would have no pause.
            wanted[key] = now
            controller.due(key)
        for other in sharing:
            controller.due(other)


def _asked_for(tree: Mapping[str, Any]) -> bytes:
    """Return a digest of everything but the status that a turn depends on."""
    metadata = tree["metadata"]
    own = [metadata.get(name) for name in ("uid", "annotations", "deletionTimestamp")]
    return hashlib.sha256(json.dumps([*own, tree.get("spec")], sort_keys=True).encode()).digest()


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


def watch_kinds(
    controller: Controller,
    api: KubeApi,
    peers: Peers,
    versions: dict[ResourceKind, str],
    access: Callable[[], ApiAccess],
    namespaces: Sequence[str],
    stop: threading.Event,
    pause_s: float = LOOK_S,
) -> None:
    """Watch these kinds until `stop` is set, and further kinds once they are served.

    `versions` gets the further kinds.
    """
    while not stop.is_set():
        ended = threading.Event()
        looking = threading.Thread(
            target=_look, args=(api, peers, versions, namespaces, stop, ended, pause_s), name="definitions", daemon=True
        )
        handlers = registry(controller, versions, peers)
        looking.start()
        try:
            watch(handlers, access, namespaces, ended)
        finally:
            ended.set()
            looking.join(10.0)


def _look(
    api: KubeApi,
    peers: Peers,
    versions: dict[ResourceKind, str],
    namespaces: Sequence[str],
    stop: threading.Event,
    ended: threading.Event,
    pause_s: float,
) -> None:
    """End the watch at `stop`, or when a further kind is served."""
    asked = time.monotonic()
    while not stop.wait(0.2) and not ended.is_set():
        if len(versions) == len(RESOURCE_KINDS) or time.monotonic() - asked < pause_s:
            continue
        asked = time.monotonic()
        with suppress(SetupError):  # the watch tells of an API that does not answer
            further = {kind: version for kind, version in served_versions(api).items() if kind not in versions}
            see_all(peers, api, further, namespaces)
            if further:
                names = ", ".join(kind.definition for kind in further)
                log.info("Kubernetes has %s now", names, extra=Event.DEFINITION_FOUND.extra)
                versions |= further
                break
    ended.set()
