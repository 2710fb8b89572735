"""A `KafkaMirrorMaker2`'s turn: its objects, and the connectors in its pods."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import javaproperties

from sparkmirror.errors import ConfigError
from sparkmirror.events import Event
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
from sparkmirror.operator.deployed import (
    apply_objects,
    deployment_of,
    pod_count,
    refused_object,
    wanted_count,
    why_not_up,
)
from sparkmirror.operator.kube import Api, KubeRefused, object_path, resource_path
from sparkmirror.operator.logger_levels import wanted_levels
from sparkmirror.operator.names import GROUP, ROLL, Key, annotations_of, is_paused
from sparkmirror.operator.objects import offsets_map
from sparkmirror.operator.peers import Sharing
from sparkmirror.operator.plan import Plan, make_plan
from sparkmirror.operator.references import (
    Contents,
    logging_reference,
    mounted_references,
    pod_references,
    read_references,
)
from sparkmirror.operator.resource_status import (
    NO_EFFECT,
    ResourceTrouble,
    SeenResource,
    TurnOutcome,
    held_trouble,
    holding_warnings,
    outcome_of,
    ready_pods,
)
from sparkmirror.operator.rest import Rest, RestAway, RestRefused
from sparkmirror.operator.turn_settings import Memory, Settings
from sparkmirror.operator.workload import connect_workload

log = logging.getLogger(__name__)


class ConnectTurn:
    """One `KafkaMirrorMaker2`'s turn."""

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

    def turn(self, sharing: Sharing) -> TurnOutcome:
        """Take the turn as far as possible; return the new status.

        Changes nothing while an older resource shares names with this resource.
        """
        seen = self._seen(sharing)
        return outcome_of(seen, self._resource.get("status") or {})

    def _seen(self, sharing: Sharing) -> SeenResource:
        seen = SeenResource(key=self._key, generation=int(self._resource["metadata"].get("generation") or 0))
        if is_paused(self._resource):
            return replace(seen, paused=True)
        deployed = deployment_of(self._api, self._key)
        seen = replace(seen, replicas=pod_count(deployed))
        there = wanted_count(deployed)
        if sharing.earlier:
            return replace(seen, trouble=held_trouble(sharing), wanted=there)
        try:
            contents = self._contents()
            plan = make_plan(self._resource, self._key, contents)
        except ConfigError as error:
            trouble = ResourceTrouble("InvalidResourceException", error.reason + self._about_users(error.reason))
            return replace(seen, trouble=trouble, wanted=there)
        warnings = [ResourceTrouble(NO_EFFECT, line) for line in plan.warnings]
        running = [item.name for item in plan.connectors if item.state == "running"]
        seen = replace(seen, wanted=plan.replicas, warnings=[*holding_warnings(sharing), *warnings], running=running)
        try:
            deployed = self._have(plan, contents, deployed)
        except KubeRefused as refused:
            return replace(seen, trouble=refused_object(refused))
        seen = replace(seen, ready=ready_pods(deployed), replicas=pod_count(deployed))
        if plan.replicas == 0:
            return seen
        return self._run(plan, seen)

    # --- objects in Kubernetes ------------------------------------------------------------------

    def _contents(self) -> Contents:
        """Read the pods' Secrets and ConfigMaps; leave out missing ones."""
        namespace = self._key.namespace
        named = (*mounted_references(self._spec, namespace), *pod_references(self._spec, namespace))
        return read_references(self._api, namespace, named)

    def _about_users(self, reason: str) -> str:
        """Return a note on the KafkaUser whose Secret is missing.

        The note tells if the KafkaUser is Ready. Empty if no Secret is missing, or no KafkaUser has the Secret's name.
        """
        for reference in mounted_references(self._spec, self._key.namespace) if "is not there" in reason else ():
            if reference.kind != "Secret" or f"Secret {reference.name} is not there" not in reason:
                continue
            for version in ("v1", "v1beta2"):
                path = resource_path(f"{GROUP}/{version}", "kafkausers", self._key.namespace, reference.name)
                user = self._api.get(path)
                if user is not None:
                    conditions = (user.get("status") or {}).get("conditions") or ()
                    ready = any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
                    return f"; KafkaUser {reference.name} is there and {'Ready' if ready else 'not Ready'}"
        return ""

    def _have(self, plan: Plan, contents: Contents, deployed: dict[str, Any]) -> dict[str, Any]:
        """Apply the wanted objects; return the Deployment."""
        roll = annotations_of(self._resource).get(ROLL, "").lower() == "true"
        workload = connect_workload(self._spec, self._key, plan, contents)
        deployed = apply_objects(self._api, self._settings, self._resource, self._key, workload, deployed, roll=roll)
        if roll:
            self._done((ROLL,))
        return deployed

    def _done(self, annotations: Sequence[str]) -> None:
        """Remove a done command's annotations, as Strimzi does."""
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
            return replace(
                seen, trouble=why_not_up(self._api, self._key) or ResourceTrouble("ConnectUnreachable", str(away))
            )
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

        A failed command's annotation stays, and the next turn tries again.
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

        An existing ConfigMap's other keys and owners stay.
        """
        namespace = self._key.namespace
        path = object_path("ConfigMap", namespace, command.config_map)
        if self._api.get(path) is not None:
            self._api.merge(path, {"data": {command.entry: text}})
        else:
            made = offsets_map(self._resource, self._key, command.config_map, command.entry, text)
            self._api.create(object_path("ConfigMap", namespace), made)
