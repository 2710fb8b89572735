"""Turns: each brings one resource to its wanted state once, and writes its status."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

import javaproperties

from sparkmirror.errors import ConfigError
from sparkmirror.events import Event
from sparkmirror.formats.strimzi_status import TIME
from sparkmirror.operator.auto_restarts import AutoRestart, auto_restarts
from sparkmirror.operator.commands import (
    CommandRefused,
    Offsets,
    Restart,
    WarningReason,
    asked_offsets,
    commands,
    connector_spec,
    listed_text,
)
from sparkmirror.operator.connectors import Call, changes, config_digest
from sparkmirror.operator.kube import KubeRefused, object_path, resource_path
from sparkmirror.operator.logger_levels import wanted_levels
from sparkmirror.operator.names import (
    GROUP,
    PLURAL,
    ROLL,
    ROLLED_AT,
    Key,
    annotations_of,
    component,
    is_ours,
    is_paused,
)
from sparkmirror.operator.objects import (
    KINDS,
    STRIMZI_PODS,
    Circumstances,
    desired_objects,
    object_name,
    offsets_map,
    strangers,
)
from sparkmirror.operator.peers import Peers, Sharing
from sparkmirror.operator.plan import Plan, make_plan
from sparkmirror.operator.references import (
    Contents,
    ObjectReference,
    decoded,
    logging_reference,
    mounted_references,
    pod_references,
)
from sparkmirror.operator.resource_status import (
    FAILED,
    ResourceTrouble,
    SeenResource,
    merge_patch,
    ready_pods,
    status_of,
    why_not_ready,
)
from sparkmirror.operator.rest import RestAway, RestRefused

log = logging.getLogger(__name__)

NO_EFFECT = "NoEffect"
"""Reason of a warning about a field that has no effect here."""
SHARED = "GroupShared"
"""Reason of a condition about another resource with the same names."""
_CALM = frozenset((NO_EFFECT, SHARED, FAILED))
"""Reasons that do not end by themselves: turns need not hurry."""

_WAITING = ("PodInitializing", "ContainerCreating")


class Api(Protocol):
    """Kubernetes' API, implemented by `KubeApi`."""

    def get(self, path: str) -> dict[str, Any] | None: ...
    def apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]: ...
    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]: ...
    def create(self, path: str, manifest: Mapping[str, Any]) -> dict[str, Any]: ...
    def delete(self, path: str) -> None: ...


class Rest(Protocol):
    """A resource's REST interface, implemented by `ConnectRest`."""

    def get(self, path: str) -> Any: ...
    def do(self, call: Call) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the operator."""

    class_name: str
    image: str
    version: str
    """API version of the resources that are read, such as `v1`."""
    operator_labels: Mapping[str, str]
    operator_namespace: str


class Condition(NamedTuple):
    """Type and reason of a resource's first condition."""

    type: str
    reason: str


@dataclass(slots=True)
class Memory:
    """Memory of a resource between turns; without it some requests are repeated."""

    put: dict[str, str] = field(default_factory=dict)
    """Digest of each connector's configuration as put last."""
    said: str = ""
    """Last logged trouble."""
    condition: Condition | None = None
    """Condition after the last turn; None for another operator's resource."""


class Turns:
    """Turns for any resource; `rest_of` returns a resource's REST interface."""

    def __init__(self, api: Api, rest_of: Callable[[Key], Rest], settings: Settings, peers: Peers) -> None:
        self._api = api
        self._rest_of = rest_of
        self._peers = peers
        self._settings = settings

    def take(self, key: Key, memory: Memory) -> bool:
        """Take one turn; return True if the next turn may come after the long pause.

        Raises `KubeRefused` if the API can't be asked.
        """
        path = resource_path(f"{GROUP}/{self._settings.version}", PLURAL, key.namespace, key.name)
        resource = self._api.get(path)
        if resource is None or resource["metadata"].get("deletionTimestamp"):
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
        seen = _One(self._api, self._rest_of(key), self._settings, path, resource, key, memory).turn(sharing)
        trouble = why_not_ready(seen)
        if trouble is not None and trouble.message != memory.said:
            log.warning("%s: %s", key, trouble.message, extra=Event.RESOURCE_NOT_READY.extra)
        memory.said = trouble.message if trouble else ""
        before = resource.get("status") or {}
        status = status_of(seen, before)
        memory.condition = Condition(status["conditions"][0]["type"], status["conditions"][0].get("reason", ""))
        patch = merge_patch(status, before)
        if patch is not None:
            self._api.merge(f"{path}/status", patch)
        return all(item.reason in _CALM for item in (*seen.warnings, *([trouble] if trouble else ())))

    def _leave(self, resource: Mapping[str, Any], key: Key) -> None:
        """Remove the objects made for a resource that is no longer this operator's.

        Another operator may take the resource over.
        """
        uid = resource["metadata"].get("uid")
        for _, kind in reversed(KINDS):
            path = object_path(kind, key.namespace, object_name(kind, key.name))
            result = self._api.get(path)
            if result is None or strangers(result, key.name):
                continue
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
        for version in ("v1", "v1beta2"):
            path = resource_path(f"{group}/{version}", plural, key.namespace, component(key.name))
            if self._api.get(path) is not None:
                return (
                    f"Strimzi's own operator runs it (StrimziPodSet {component(key.name)}): two mirrors of one resource"
                    " would copy twice; have Strimzi leave it alone first (docs/deploy/operator.md)"
                )
        for _, kind in KINDS:
            result = self._api.get(object_path(kind, key.namespace, object_name(kind, key.name)))
            if result is not None and (stranger := strangers(result, object_name(kind, key.name))):
                return stranger
        return ""

    def _warn(self, resource: Mapping[str, Any], key: Key, memory: Memory, reason: str) -> None:
        """Warn by an event and a log line: the status belongs to the other manager."""
        if reason == memory.said:
            return
        memory.said = reason
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


class _One:
    """One turn of one resource."""

    def __init__(
        self,
        api: Api,
        rest: Rest,
        settings: Settings,
        path: str,
        resource: dict[str, Any],
        key: Key,
        memory: Memory,
    ) -> None:
        self._api, self._rest, self._settings = api, rest, settings
        self._path, self._resource, self._key, self._memory = path, resource, key, memory
        spec = resource.get("spec")
        self._spec: Mapping[str, Any] = spec if isinstance(spec, dict) else {}

    def turn(self, sharing: Sharing) -> SeenResource:
        """Take the turn as far as possible; return the observations.

        Changes nothing while an older resource shares names with this resource.
        """
        seen = SeenResource(key=self._key, generation=int(self._resource["metadata"].get("generation") or 0))
        if is_paused(self._resource):
            return replace(seen, paused=True)
        deployed = self._api.get(object_path("Deployment", self._key.namespace, component(self._key.name))) or {}
        seen = replace(seen, replicas=_pods(deployed))
        there = int((deployed.get("spec") or {}).get("replicas") or 0)
        if sharing.earlier:
            words = f"{sharing.earlier}, and was created first: this resource is held until it has names of its own"
            return replace(seen, trouble=ResourceTrouble(SHARED, words), wanted=there)
        try:
            contents = self._contents()
            plan = make_plan(self._resource, self._key, contents)
        except ConfigError as error:
            trouble = ResourceTrouble("InvalidResourceException", error.reason + self._about_users(error.reason))
            return replace(seen, trouble=trouble, wanted=there)
        held = [
            ResourceTrouble(SHARED, f"{words}, and is held until it has names of its own") for words in sharing.later
        ]
        warnings = [ResourceTrouble(NO_EFFECT, line) for line in plan.warnings]
        running = [item.name for item in plan.connectors if item.state == "running"]
        seen = replace(seen, wanted=plan.replicas, warnings=[*held, *warnings], running=running)
        try:
            deployed = self._have(plan, contents, deployed)
        except KubeRefused as refused:
            if refused.status in (0, 401, 403, 409) or refused.status >= 500:
                raise
            return replace(seen, trouble=ResourceTrouble("ObjectRefused", str(refused)))
        seen = replace(seen, ready=ready_pods(deployed), replicas=_pods(deployed))
        if plan.replicas == 0:
            return seen
        return self._run(plan, seen)

    # --- objects in Kubernetes ------------------------------------------------------------------

    def _contents(self) -> Contents:
        """Read the pods' Secrets and ConfigMaps; leave out missing ones."""
        mounted = mounted_references(self._spec, self._key.namespace)
        result: dict[ObjectReference, Mapping[str, bytes]] = {}
        for reference in dict.fromkeys((*mounted, *pod_references(self._spec, self._key.namespace))):
            manifest = self._api.get(object_path(reference.kind, self._key.namespace, reference.name))
            if manifest is not None:
                result[reference] = decoded(reference, manifest)
        return result

    def _about_users(self, reason: str) -> str:
        """Return a note on the KafkaUser whose Secret is missing.

        The note tells if the KafkaUser is Ready. Empty if no Secret is missing, or no KafkaUser has the Secret's name.
        """
        for reference in mounted_references(self._spec, self._key.namespace) if "is not there" in reason else ():
            if reference.kind != "Secret" or f"Secret {reference.name} is not there" not in reason:
                continue
            for version in (self._settings.version, "v1", "v1beta2"):
                path = resource_path(f"{GROUP}/{version}", "kafkausers", self._key.namespace, reference.name)
                user = self._api.get(path)
                if user is not None:
                    conditions = (user.get("status") or {}).get("conditions") or ()
                    ready = any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
                    return f"; KafkaUser {reference.name} is there and {'Ready' if ready else 'not Ready'}"
        return ""

    def _have(self, plan: Plan, contents: Contents, deployed: dict[str, Any]) -> dict[str, Any]:
        """Apply the wanted objects; return the Deployment."""
        template = ((deployed.get("spec") or {}).get("template") or {}).get("metadata") or {}
        rolled_at = (template.get("annotations") or {}).get(ROLLED_AT, "")
        roll = annotations_of(self._resource).get(ROLL, "").lower() == "true"
        if roll:
            rolled_at = datetime.now(UTC).strftime(TIME)
        around = Circumstances(
            self._settings.image, self._settings.operator_labels, self._settings.operator_namespace, rolled_at
        )
        for manifest in desired_objects(self._resource, self._key, plan, contents, around):
            deployed = self._api.apply(manifest)
        if roll:
            self._done((ROLL,))
        return deployed

    def _done(self, annotations: Sequence[str]) -> None:
        """Remove the annotations of a done command, as Strimzi does."""
        self._api.merge(self._path, {"metadata": {"annotations": dict.fromkeys(annotations, None)}})

    # --- connectors in the pods -----------------------------------------------------------------

    def _run(self, plan: Plan, seen: SeenResource) -> SeenResource:
        """Bring the connectors in the pods to the plan's state."""
        try:
            there = self._rest.get("/connectors?expand=info&expand=status")
            self._change(plan, there)
            warnings = [*seen.warnings, *self._levels(), *self._obey(plan)]
            shown = self._rest.get("/connectors?expand=status")
        except RestAway as away:
            return replace(seen, trouble=self._not_up() or ResourceTrouble("ConnectUnreachable", str(away)))
        except RestRefused as refused:
            return replace(seen, trouble=ResourceTrouble("ConnectRestException", str(refused)))
        statuses = [shown[name]["status"] for name in sorted(shown)]
        restarts: list[AutoRestart] = []
        for restart, call in self._auto_restarts(plan, statuses):
            restarts.append(restart)
            if call is not None:
                warnings += self._restart(call)
        missing = [item.name for item in plan.connectors if item.name not in shown]
        trouble = ResourceTrouble("ConnectorsMissing", f"not there yet: {', '.join(missing)}") if missing else None
        told = [restart.shown for restart in restarts]
        return replace(seen, connectors=statuses, warnings=warnings, trouble=trouble, restarts=told)

    def _auto_restarts(
        self, plan: Plan, statuses: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[AutoRestart, Call | None]]:
        asked = {item.name: connector_spec(self._spec, item.name).get("autoRestart") or {} for item in plan.connectors}
        return auto_restarts(asked, statuses, self._resource.get("status") or {}, datetime.now(UTC))

    def _restart(self, call: Call) -> Iterator[ResourceTrouble]:
        try:
            self._rest.do(call)
            log.info("%s: %s", self._key, call.why, extra=Event.CONNECTOR_CHANGED.extra)
        except (RestAway, RestRefused) as error:
            yield ResourceTrouble(WarningReason.RESTART, str(error))

    def _change(self, plan: Plan, there: Mapping[str, Mapping[str, Any]]) -> None:
        for call in changes(plan.connectors, there, self._memory.put):
            self._rest.do(call)
            log.info("%s: %s", self._key, call.why, extra=Event.CONNECTOR_CHANGED.extra)
        self._memory.put = {item.name: config_digest(item) for item in plan.connectors}

    def _levels(self) -> Iterator[ResourceTrouble]:
        asked = self._spec.get("logging") or {}
        loggers: Mapping[str, Any] = asked.get("loggers") or {}
        if external := logging_reference(self._spec):
            reference, name = external
            manifest = self._api.get(object_path("ConfigMap", self._key.namespace, reference.name)) or {}
            if name not in (manifest.get("data") or {}):
                yield ResourceTrouble(
                    "LoggingNotFound", f"ConfigMap {reference.name} has no key {name}, which logging names"
                )
                return
            loggers = javaproperties.loads(manifest["data"][name])
        levels = wanted_levels(loggers)
        now = self._rest.get("/admin/loggers") if levels else {}
        for name, level in levels.items():
            if (now.get(name) or {}).get("level") != level:
                self._rest.do(Call("PUT", f"/admin/loggers/{name}?scope=cluster", {"level": level}))

    def _obey(self, plan: Plan) -> Iterator[ResourceTrouble]:
        """Do the annotations' commands; yield a trouble for each failed one.

        The annotation of a failed command stays, and the next turn tries again.
        """
        for command in commands(self._resource, [item.name for item in plan.connectors]):
            if isinstance(command, CommandRefused):
                yield ResourceTrouble(command.reason, str(command))
                continue
            try:
                if isinstance(command, Restart):
                    self._rest.do(command.call)
                    log.info("%s: %s", self._key, command.call.why, extra=Event.CONNECTOR_CHANGED.extra)
                else:
                    self._offsets(command)
                self._done(command.annotations)
            except CommandRefused as refused:
                yield ResourceTrouble(refused.reason, str(refused))
            except RestRefused as refused:
                yield ResourceTrouble(command.reason, str(refused))

    def _offsets(self, command: Offsets) -> None:
        if command.reason is WarningReason.LIST:
            text = listed_text(self._rest.do(Call("GET", command.path)))  # waits for the last offsets of a copy
            self._write_map(command, text)
            said = f"listed in ConfigMap {command.config_map}"
        elif command.reason is WarningReason.ALTER:
            path = object_path("ConfigMap", self._key.namespace, command.config_map)
            manifest = self._api.get(path)
            body = asked_offsets(command, None if manifest is None else manifest.get("data") or {})
            said = (self._rest.do(Call("PATCH", command.path, body)) or {}).get("message", "altered")
        else:
            said = (self._rest.do(Call("DELETE", command.path)) or {}).get("message", "reset")
        log.info("%s: offsets of %s: %s", self._key, command.connector, said, extra=Event.CONNECTOR_OFFSETS.extra)

    def _write_map(self, command: Offsets, text: str) -> None:
        """Write listed offsets into the ConfigMap, creating it if it is missing.

        Other keys and the owners of an existing ConfigMap stay.
        """
        namespace = self._key.namespace
        path = object_path("ConfigMap", namespace, command.config_map)
        if self._api.get(path) is not None:
            self._api.merge(path, {"data": {command.entry: text}})
        else:
            made = offsets_map(self._resource, self._key, command.config_map, command.entry, text)
            self._api.create(object_path("ConfigMap", namespace), made)

    def _not_up(self) -> ResourceTrouble | None:
        """Return why no pod answers, in the words of the pods or of their Deployment.

        None if a pod is ready.
        """
        key = self._key
        path = object_path("Deployment", key.namespace, component(key.name))
        status = (self._api.get(path) or {}).get("status") or {}
        if status.get("readyReplicas"):
            return None
        labels = f"strimzi.io%2Fname%3D{component(key.name)}"
        pods = (self._api.get(f"{object_path('Pod', key.namespace)}?labelSelector={labels}") or {}).get("items") or ()
        for pod in pods:
            for container in (pod.get("status") or {}).get("containerStatuses") or ():
                waiting = (container.get("state") or {}).get("waiting") or {}
                if waiting.get("reason") and waiting["reason"] not in _WAITING:
                    words = f"pod {pod['metadata']['name']}: {waiting['reason']}: {waiting.get('message', '')}"
                    return ResourceTrouble("PodsNotReady", words.rstrip(": "))
        for condition in status.get("conditions") or ():
            if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
                return ResourceTrouble("PodsNotReady", str(condition.get("message")))
        return ResourceTrouble("PodsNotReady", "no pod is ready yet")


def _pods(deployment: Mapping[str, Any]) -> int:
    """Return a Deployment's number of pods."""
    return int((deployment.get("status") or {}).get("replicas") or 0)
