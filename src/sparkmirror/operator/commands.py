"""One-time commands given by annotations: restarts, and changed offsets.

Connectors' offsets are listed, altered or reset.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sparkmirror.errors import HandledError
from sparkmirror.operator.connectors import Call, connector_path
from sparkmirror.operator.names import OFFSETS, OFFSETS_OF, RESTART, RESTART_TASK, annotations_of


class WarningReason(StrEnum):
    """Reason in the `Warning` condition for a failed command, in Strimzi's words."""

    RESTART = "RestartConnector"
    RESTART_TASK = "RestartConnectorTask"
    LIST = "ListOffsets"
    ALTER = "AlterOffsets"
    RESET = "ResetOffsets"
    OFFSETS = "ManageOffsets"


class CommandRefused(HandledError):
    """Error for an annotation's impossible command; the message has the reason."""

    def __init__(self, reason: WarningReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Restart:
    """One request to restart a connector or a task of the connector."""

    reason: WarningReason
    call: Call
    annotations: tuple[str, ...]
    """Annotations to remove once the restart is done."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """Command about one connector's offsets: list, alter or reset.

    The ConfigMap receives listed offsets, and holds the offsets to set.
    """

    reason: WarningReason
    connector: str
    config_map: str
    """The ConfigMap's name; empty for a reset, which needs none."""
    annotations: tuple[str, ...] = (OFFSETS, OFFSETS_OF)

    @property
    def entry(self) -> str:
        """Key in the ConfigMap: the connector's name without the arrow.

        A ConfigMap's keys can't hold an arrow.
        """
        return self.connector.replace("->", "--") + ".json"

    @property
    def path(self) -> str:
        return connector_path(self.connector, "offsets")


Command = Restart | Offsets
_KINDS = {"list": WarningReason.LIST, "alter": WarningReason.ALTER, "reset": WarningReason.RESET}
_FLAGS = ("includeTasks", "onlyFailed")


def commands(resource: Mapping[str, Any], connectors: Collection[str]) -> Iterator[Command | CommandRefused]:
    """Yield the commands in a resource's annotations.

    An impossible command is yielded as `CommandRefused`. `connectors` are the names of the plan's connectors.
    """
    annotations = annotations_of(resource)
    for annotation, read in ((RESTART, _restart), (RESTART_TASK, _restart_task), (OFFSETS, _offsets)):
        if annotation in annotations:
            try:
                yield read(resource, annotations, connectors)
            except CommandRefused as refused:
                yield refused


def _restart(_: Mapping[str, Any], annotations: Mapping[str, str], connectors: Collection[str]) -> Command:
    name, _colon, flags = annotations[RESTART].partition(":")
    asked = [flag.strip() for flag in flags.split(",") if flag.strip()]
    unknown = [flag for flag in asked if flag not in _FLAGS]
    if unknown:
        raise CommandRefused(WarningReason.RESTART, f"{RESTART}: {unknown[0]} is neither of {', '.join(_FLAGS)}")
    _known(WarningReason.RESTART, RESTART, name, connectors)
    query = "&".join(f"{flag}={str(flag in asked).lower()}" for flag in _FLAGS)
    why = f"connector {name} is restarted, as {RESTART} asks"
    call = Call("POST", f"{connector_path(name, 'restart')}?{query}", why=why)
    return Restart(WarningReason.RESTART, call, (RESTART,))


def _restart_task(_: Mapping[str, Any], annotations: Mapping[str, str], connectors: Collection[str]) -> Command:
    name, _colon, number = annotations[RESTART_TASK].rpartition(":")
    if not number.isdigit():
        text = f"{RESTART_TASK}: write CONNECTOR:NUMBER, and not {annotations[RESTART_TASK]}"
        raise CommandRefused(WarningReason.RESTART_TASK, text)
    _known(WarningReason.RESTART_TASK, RESTART_TASK, name, connectors)
    why = f"task {number} of connector {name} is restarted, as {RESTART_TASK} asks"
    call = Call("POST", connector_path(name, "tasks", number, "restart"), why=why)
    return Restart(WarningReason.RESTART_TASK, call, (RESTART_TASK,))


def _offsets(resource: Mapping[str, Any], annotations: Mapping[str, str], connectors: Collection[str]) -> Command:
    asked = annotations[OFFSETS]
    if asked not in _KINDS:
        raise CommandRefused(WarningReason.OFFSETS, f"{OFFSETS}: {asked} is none of {', '.join(_KINDS)}")
    name, reason = annotations.get(OFFSETS_OF, ""), _KINDS[asked]
    if not name:
        text = f"{OFFSETS} is there without {OFFSETS_OF}: write there which connector's offsets are meant"
        raise CommandRefused(reason, text)
    _known(reason, OFFSETS_OF, name, connectors)
    if reason is WarningReason.RESET:
        return Offsets(reason, name, "")
    field, way = ("listOffsets", "toConfigMap") if reason is WarningReason.LIST else ("alterOffsets", "fromConfigMap")
    spec = connector_spec(resource["spec"], name)
    config_map = ((spec.get(field) or {}).get(way) or {}).get("name") or ""
    if not config_map:
        raise CommandRefused(reason, f"{name}: there is no {field}.{way}.name, which says in which ConfigMap")
    return Offsets(reason, name, str(config_map))


def connector_spec(spec: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The connector's own fields in the resource."""
    flow, _, kind = name.rpartition(".")
    field = kind.removeprefix("Mirror")
    field = field[:1].lower() + field[1:]
    for mirror in spec.get("mirrors") or ():
        source = (mirror.get("source") or {}).get("alias") or mirror.get("sourceCluster")
        target = (spec.get("target") or {}).get("alias") or spec.get("connectCluster")
        if flow == f"{source}->{target}":
            return mirror.get(field) or {}
    return {}


def _known(reason: WarningReason, annotation: str, name: str, connectors: Collection[str]) -> None:
    if name not in connectors:
        there = ", ".join(connectors) or "none"
        raise CommandRefused(reason, f"{annotation}: there is no connector {name}; there is {there}")


def listed_text(answer: Mapping[str, Any]) -> str:
    """Format the REST interface's answer for the ConfigMap, easy to read and edit."""
    return json.dumps({"offsets": answer.get("offsets", [])}, indent=2, ensure_ascii=False)


def asked_offsets(command: Offsets, data: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the request to alter offsets, from a ConfigMap's entry.

    Raises `CommandRefused` if the entry is missing or malformed. Numbers are passed on unchanged.
    """
    if data is None:
        raise CommandRefused(command.reason, f"ConfigMap {command.config_map} is not there")
    if command.entry not in data:
        there = ", ".join(sorted(data)) or "none"
        text = f"ConfigMap {command.config_map} has no key {command.entry}; it has {there}"
        raise CommandRefused(command.reason, text)
    try:
        read = json.loads(data[command.entry])
    except ValueError as error:
        text = f"ConfigMap {command.config_map}: {command.entry} is no JSON: {error}"
        raise CommandRefused(command.reason, text) from None
    if not isinstance(read, dict) or not isinstance(read.get("offsets"), list):
        text = f'ConfigMap {command.config_map}: {command.entry} must be {{"offsets": [...]}}, as list writes it'
        raise CommandRefused(command.reason, text)
    return {"offsets": read["offsets"]}
