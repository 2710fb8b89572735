"""Turns: each brings one resource to its wanted state once, and writes its status."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from sparkmirror.config.formats.strimzi_status import TIME
from sparkmirror.events import Event
from sparkmirror.operator.connect_turn import ConnectTurn
from sparkmirror.operator.kube import Api, kind_path, object_path, resource_path
from sparkmirror.operator.mirror_turn import MirrorTurn
from sparkmirror.operator.names import CLASS, MIRROR, STRIMZI, Key, annotations_of, component, is_ours
from sparkmirror.operator.objects import KINDS, STRIMZI_PODS, object_name, strangers
from sparkmirror.operator.peers import Peers, Sharing
from sparkmirror.operator.pod_flows import AskPod, pod_snapshot
from sparkmirror.operator.resource_status import TurnOutcome, merge_patch
from sparkmirror.operator.rest import Rest
from sparkmirror.operator.turn_settings import Condition, Memory, Settings

log = logging.getLogger(__name__)


class Turns:
    """Turns for any resource.

    `rest_of` returns a KafkaMirrorMaker2's REST interface, `ask` asks a Mirror's pod for its snapshot.
    """

    def __init__(
        self,
        api: Api,
        rest_of: Callable[[Key], Rest],
        settings: Settings,
        peers: Peers,
        ask: AskPod = pod_snapshot,
    ) -> None:
        self._api = api
        self._rest_of = rest_of
        self._ask = ask
        self._peers = peers
        self._settings = settings

    def take(self, key: Key, memory: Memory) -> bool:
        """Take one turn; return True if the next turn may come after the long pause.

        Raises `KubeRefused` if the API can't be asked.
        """
        path = kind_path(key, self._settings.versions[key.kind])
        resource = self._api.get(path)
        if resource is None:
            self._peers.miss(key)  # the watch may have missed its end
        if resource is None or resource["metadata"].get("deletionTimestamp"):
            memory.condition = None
            return True
        if not is_ours(resource, self._settings.class_name):
            self._leave(resource, key)
            memory.condition = None
            return True
        if rival := self._rival(key):
            memory.condition = Condition("LeftAlone", "")
            self._warn(resource, key, memory, rival)
            return True
        sharing = self._peers.sharing(key, resource)
        status, trouble, calm = self._turn(path, resource, key, memory, sharing)
        if trouble is not None and trouble.message != memory.said:
            log.warning("%s: %s", key, trouble.message, extra=Event.RESOURCE_NOT_READY.extra)
        memory.said = trouble.message if trouble else ""
        first = status["conditions"][0]
        kind = first["type"] if first["status"] == "True" else f"Not{first['type']}"
        memory.condition = Condition(kind, first.get("reason", ""))
        patch = merge_patch(status, resource.get("status") or {})
        if patch is not None:
            self._api.merge(f"{path}/status", patch)
        return calm

    def _turn(self, path: str, resource: dict[str, Any], key: Key, memory: Memory, sharing: Sharing) -> TurnOutcome:
        if key.kind is MIRROR:
            return MirrorTurn(self._api, self._ask, self._settings, resource, key).turn(sharing)
        return ConnectTurn(self._api, self._rest_of(key), self._settings, path, resource, key, memory).turn(sharing)

    def _leave(self, resource: Mapping[str, Any], key: Key) -> None:
        """Remove the objects made for a resource that is no longer this operator's.

        Another operator may take the resource over.
        """
        uid = resource["metadata"].get("uid")
        for _, kind in reversed(KINDS):
            path = object_path(kind, key.namespace, object_name(kind, key))
            result = self._api.get(path)
            if result is None or strangers(result, key.name):
                continue
            if annotations_of(result).get(CLASS, self._settings.class_name) != self._settings.class_name:
                continue  # made by the other class's operator
            owners = result["metadata"].get("ownerReferences") or ()
            if any(owner.get("uid") == uid for owner in owners):
                self._api.delete(path)
                log.info(
                    "%s: %s is removed: the resource is no longer this operator's",
                    key,
                    kind,
                    extra=Event.OBJECT_REMOVED.extra,
                )

    def _rival(self, key: Key) -> str:
        """Return the reason to leave the resource alone: another manager runs it.

        Empty without one. The resource is assigned to this operator.
        """
        group, plural = STRIMZI_PODS
        for version in ("v1", "v1beta2") if key.kind is STRIMZI else ():
            path = resource_path(f"{group}/{version}", plural, key.namespace, component(key))
            if self._api.get(path) is not None:
                return (
                    f"Strimzi's own operator runs it (StrimziPodSet {component(key)}): two mirrors of one resource"
                    " would copy twice; have Strimzi leave it alone first (docs/deploy/operator.md)"
                )
        for _, kind in KINDS:
            result = self._api.get(object_path(kind, key.namespace, object_name(kind, key)))
            if result is not None and (stranger := strangers(result, object_name(kind, key))):
                return stranger
        return ""

    def _warn(self, resource: Mapping[str, Any], key: Key, memory: Memory, reason: str) -> None:
        """Warn by an event and a log line: the status belongs to the other manager."""
        if reason == memory.said:
            return
        log.warning("%s: left alone: %s", key, reason, extra=Event.RESOURCE_LEFT_ALONE.extra)
        metadata = resource["metadata"]
        now = datetime.now(UTC).strftime(TIME)
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{key.name}-", "namespace": key.namespace},
            "involvedObject": {
                "apiVersion": resource["apiVersion"],
                "kind": resource["kind"],
                "name": key.name,
                "namespace": key.namespace,
                "uid": metadata.get("uid"),
            },
            "type": "Warning",
            "reason": "LeftAlone",
            "message": reason,
            "source": {"component": "sparkmirror-operator"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        self._api.create(object_path("Event", key.namespace), event)
        memory.said = reason
