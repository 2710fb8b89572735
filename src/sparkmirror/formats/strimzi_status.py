"""The `status` of a `KafkaMirrorMaker2`, as the operator writes it, in a file beside the resource's own."""

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
from sparkmirror.errors import ConfigError
from sparkmirror.formats.connect import PACKAGE, ConnectorRole
from sparkmirror.formats.reading import Resource

EVERY_S = 5.0
"""How often the file is written at most."""

FAILED_MESSAGE = "One or more connectors are in FAILED state"
"""The operator's own words, which scripts look for."""

_KINDS = {role.value: "source" for role in ConnectorRole}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatus:
    """What a status tells about a flow that runs."""

    flow: str
    state: str
    """As `engine.snapshot.FlowState` has it, and why after a colon, where that is not plain."""
    partitions: int = 0
    parked: tuple[str, ...] = ()
    """One line for each partition, or topic, that can't be copied now."""
    failing: tuple[str, ...] = ()
    """One line for each duty whose last turn failed."""


class StatusFile:
    """Keeps one file up to date. `tasks` says how many tasks a flow may have."""

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
        """Whether the last time it was shown is long enough ago."""
        return time.monotonic() >= self._next

    def show(self, flows: Iterable[FlowStatus]) -> None:
        """Write it if something has changed."""
        self._next = time.monotonic() + EVERY_S
        statuses = {flow.flow: flow for flow in flows}
        self._write([self._running(resource, statuses) for resource in self.resources])

    def ended(self, problem: str = "", reason: str = "") -> None:
        """Write it for the last time: nothing runs any more, because of `problem` if there is one."""
        statuses = []
        for resource in self.resources:
            condition = self._condition(resource, "NotReady" if problem else "Ready", reason, problem)
            statuses.append(self._status(resource, [condition], [], 0))
        self._write(statuses)

    def _running(self, resource: Resource, statuses: Mapping[str, FlowStatus]) -> dict[str, Any]:
        connectors = [self._connector(*one, statuses.get(one[0])) for one in resource.connectors]
        mine = [statuses[flow] for flow in dict.fromkeys(one[0] for one in resource.connectors) if flow in statuses]
        waiting = [f"{flow.flow}: {flow.state}" for flow in mine if _waits(flow) or flow.state == "finding out"]
        if any(one["connector"]["state"] == "FAILED" for one in connectors):
            ready = self._condition(resource, "NotReady", "ConnectorsFailed", FAILED_MESSAGE)
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
        """Its time is kept for as long as it says the same."""
        key = f"{resource.name} {'Warning' if kind == 'Warning' else 'Ready'} {message if kind == 'Warning' else ''}"
        said = f"{kind} {reason}"
        if self._since.get(key, ("", ""))[0] != said:
            self._since[key] = (said, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
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
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            beside.write_text(text, "utf-8")
            beside.replace(self._path)
        except OSError as error:
            raise ConfigError(
                f"can't be written: {error.strerror}", where="--status-file", key=str(self._path)
            ) from None
        self._written = text


def _waits(flow: FlowStatus) -> bool:
    """Tell whether this process copies nothing along it now."""
    return flow.state in ("joining", "starting") or flow.state.startswith("standing by")
