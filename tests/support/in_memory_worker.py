"""A worker that copies nothing: it says that all runs, and keeps offsets in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparkmirror.connect.connector_model import ConnectorSpec, ConnectorStatus, Offset, TargetState, TaskStatus

_STATES = {TargetState.STARTED: "RUNNING", TargetState.PAUSED: "PAUSED", TargetState.STOPPED: "STOPPED"}


class InMemoryWorker:
    """Started connectors run at once; a source connector has as many tasks as it may have, the others one."""

    def __init__(self, worker_id: str) -> None:
        self.worker_id = worker_id
        self.connectors: dict[str, ConnectorSpec] = {}
        self.failed: dict[str, str] = {}
        """Why a connector's first task has failed, by connector; a restart mends it."""
        self.unfit: set[str] = set()
        """Connectors whose configuration can't be run."""
        self.restarted: list[str] = []
        self._reset: set[str] = set()
        self._offsets: dict[str, dict[str, Offset]] = {}

    def apply(self, connectors: Mapping[str, ConnectorSpec]) -> None:
        self.connectors = dict(connectors)

    def stand_by(self) -> None:
        self.connectors = {}

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        self._must_be_known(name)
        self.restarted.append(f"{name} {include_tasks=} {only_failed=}")
        if include_tasks:
            self.failed.pop(name, None)

    def restart_task(self, name: str, task: int) -> None:
        self._must_be_known(name)
        self.restarted.append(f"{name} {task}")
        self.failed.pop(name, None)

    def is_unfit(self, name: str) -> bool:
        return name in self.unfit

    def status(self, name: str) -> ConnectorStatus:
        state = _STATES[self.connectors[name].target_state]
        tasks = [TaskStatus(number, state, self.worker_id) for number in range(len(self.task_configs(name)))]
        if name in self.failed and tasks:
            tasks[0] = replace(tasks[0], state="FAILED", trace=self.failed[name])
        return ConnectorStatus(name=name, state=state, worker_id=self.worker_id, tasks=tuple(tasks))

    def task_configs(self, name: str) -> list[Mapping[str, str]]:
        spec = self.connectors[name]
        if spec.target_state is TargetState.STOPPED:
            return []
        count = int(spec.config.get("tasks.max", "1")) if "MirrorSource" in spec.config["connector.class"] else 1
        return [{**spec.config, "task.class": "sparkmirror", "task.id": str(number)} for number in range(count)]

    def topics(self, name: str) -> set[str]:
        spec = self.connectors[name]
        if name in self._reset or "MirrorSource" not in spec.config["connector.class"]:
            return set()
        return {f"{spec.config['source.cluster.alias']}.{spec.config['topics']}"}

    def reset_topics(self, name: str) -> None:
        self._must_be_known(name)
        self.forget_topics(name)

    def forget_topics(self, name: str) -> None:
        """As a new process, which has written to no topic yet."""
        self._reset.add(name)

    def offsets(self, name: str) -> list[Offset]:
        self._must_be_known(name)
        return list(self._offsets.get(name, {}).values())

    def alter_offsets(self, name: str, offsets: Sequence[Offset]) -> str:
        self._must_be_known(name)
        self.store_offsets(name, offsets)
        return "The offsets for this connector have been altered successfully"

    def store_offsets(self, name: str, offsets: Sequence[Offset]) -> None:
        """As in Connect's topic, where a connector's offsets may be before the connector is."""
        known = self._offsets.setdefault(name, {})
        for partition, offset in offsets:
            key = json.dumps(partition, sort_keys=True)
            if offset is None:
                known.pop(key, None)
            else:
                known[key] = (partition, offset)

    def delete_offsets(self, name: str) -> str:
        self._must_be_known(name)
        self._offsets.pop(name, None)
        return "The offsets for this connector have been reset successfully"

    def _must_be_known(self, name: str) -> None:
        if name not in self.connectors:
            raise KeyError(name)
