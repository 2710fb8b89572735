"""A `KafkaMirrorMaker2` resource's status, as the operator writes it.

The status goes into a file next to the resource's own.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from sparkmirror import __version__
from sparkmirror.config.formats.connect_files import PACKAGE, ConnectorRole
from sparkmirror.config.formats.reading import Resource
from sparkmirror.errors import ConfigError

TIME = "%Y-%m-%dT%H:%M:%SZ"
"""Time format in a status."""

EVERY_S = 5.0
"""Shortest time between two writes to the file, in seconds."""

_FAILED_MESSAGE = "One or more connectors are in FAILED state"
"""Message from Strimzi's operator, which scripts look for."""

_KINDS = {role.value: "source" for role in ConnectorRole}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatus:
    """A running flow's state, for a status."""

    flow: str
    state: str
    """State as in `engine.snapshot.FlowState`; if need be, a colon and the reason."""
    partitions: int = 0
    parked: tuple[str, ...] = ()
    """Partitions, or topics, that can't be copied now, a line each."""
    failing: tuple[str, ...] = ()
    """Duties that failed in their last turn, a line each."""


def failed_message(connectors: Iterable[Mapping[str, Any]]) -> str:
    """Return Strimzi's message about failures, with the first failure's cause.

    `connectors` are the REST interface's statuses. Empty if no connector and no task has failed.
    """
    for item in connectors:
        for part in (item.get("connector") or {}, *(item.get("tasks") or ())):
            if part.get("state") == "FAILED":
                lines = str(part.get("trace") or "").splitlines()
                return f"{_FAILED_MESSAGE}: {item.get('name')}" + (f": {lines[0]}" if lines else "")
    return ""


class StatusFile:
    """Status file, kept up to date; `tasks` has each flow's most tasks."""

    def __init__(self, path: str, resources: Sequence[Resource]) -> None:
        self._path = Path(path)
        self.resources = resources
        self._worker = f"{socket.gethostname()}:{os.getpid()}"
        self._since: dict[str, tuple[str, str]] = {}
        self._written = ""
        self._next = 0.0
        self.tasks: Mapping[str, int] = {}

    @property
    def is_due(self) -> bool:
        """True if `show` was last called long enough ago."""
        return time.monotonic() >= self._next

    def show(self, flows: Iterable[FlowStatus]) -> None:
        """Write the file if something has changed."""
        self._next = time.monotonic() + EVERY_S
        statuses = {flow.flow: flow for flow in flows}
        self._write([self._running(resource, statuses) for resource in self.resources])

    def ended(self, problem: str = "", reason: str = "") -> None:
        """Write the file for the last time: no flow runs any more.

        `problem` is the problem that ended the run; empty: none.
        """
        statuses = []
        for resource in self.resources:
            condition = self._condition(resource, "NotReady" if problem else "Ready", reason, problem)
            statuses.append(self._status(resource, [condition], [], 0))
        self._write(statuses)

    def _running(self, resource: Resource, statuses: Mapping[str, FlowStatus]) -> dict[str, Any]:
        connectors = [self._connector(*connector, statuses.get(connector[0])) for connector in resource.connectors]
        mine = [
            statuses[flow]
            for flow in dict.fromkeys(connector[0] for connector in resource.connectors)
            if flow in statuses
        ]
        waiting = [f"{flow.flow}: {flow.state}" for flow in mine if _waits(flow) or _word(flow) in _NOT_COPYING]
        if message := failed_message(connectors):
            ready = self._condition(resource, "NotReady", "ConnectorsFailed", message)
        elif waiting:
            ready = self._condition(resource, "NotReady", "NotCopyingYet", "; ".join(waiting))
        else:
            ready = self._condition(resource, "Ready")
        warnings = [
            self._condition(resource, "Warning", "DutyFails", f"{flow.flow}: {line}")
            for flow in mine
            for line in flow.failing
        ]
        return self._status(resource, [ready, *warnings], connectors, 1)

    def _connector(self, flow: str, name: str, wanted: str, status: FlowStatus | None) -> dict[str, Any]:
        role = ConnectorRole(name.rpartition(".")[2])
        state, trace = "RUNNING", ""
        if wanted != "running":
            state = wanted.upper()
        elif status is None or _waits(status):
            state = "UNASSIGNED"
        elif role is ConnectorRole.SOURCE and status.parked:
            state, trace = "FAILED", "\n".join(status.parked)
        partitions = status.partitions if status is not None and state in ("RUNNING", "FAILED") else 0
        count = min(self.tasks.get(flow, 1), partitions) if role is ConnectorRole.SOURCE else int(state == "RUNNING")
        shown = {"state": state, "worker_id": self._worker} | ({"trace": trace} if trace else {})
        tasks = [{"id": number, "state": "RUNNING", "worker_id": self._worker} for number in range(count)]
        return {"name": name, "connector": shown, "tasks": tasks, "type": _KINDS[role.value]}

    def _condition(self, resource: Resource, kind: str, reason: str = "", message: str = "") -> dict[str, Any]:
        """Return a condition; its time stays for as long as the condition says the same."""
        key = f"{resource.name} {'Warning' if kind == 'Warning' else 'Ready'} {message if kind == 'Warning' else ''}"
        said = f"{kind} {reason}"
        if self._since.get(key, ("", ""))[0] != said:
            self._since[key] = (said, datetime.now(UTC).strftime(TIME))
        condition = {"type": kind, "status": "True", "lastTransitionTime": self._since[key][1]}
        return condition | ({"reason": reason} if reason else {}) | ({"message": message} if message else {})

    def _status(
        self, resource: Resource, conditions: list[dict[str, Any]], connectors: list[dict[str, Any]], replicas: int
    ) -> dict[str, Any]:
        name = resource.name
        status = {
            "conditions": conditions,
            "observedGeneration": int((resource.document.get("metadata") or {}).get("generation") or 0),
            "connectors": connectors,
            "connectorPlugins": [
                {"class": PACKAGE + role.value, "type": "source", "version": __version__} for role in ConnectorRole
            ],
            "labelSelector": f"strimzi.io/cluster={name},strimzi.io/name={name}-mirrormaker2,"
            "strimzi.io/kind=KafkaMirrorMaker2",
            "replicas": replicas,
        }
        return {**resource.document, "status": status}

    def _write(self, documents: list[dict[str, Any]]) -> None:
        text = yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=120)
        if text == self._written:
            return
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            draft.write_text(text, "utf-8")
            draft.replace(self._path)
        except OSError as error:
            raise ConfigError(
                f"can't be written: {error.strerror}", origin="--status-file", key=str(self._path)
            ) from None
        self._written = text


_NOT_COPYING = ("finding out", "unreachable")
"""States in which a flow that this process works on does not copy, or not surely."""


def _waits(flow: FlowStatus) -> bool:
    return _word(flow) in ("joining", "starting", "wrong cluster", "standing by")


def _word(flow: FlowStatus) -> str:
    return flow.state.partition(":")[0]
