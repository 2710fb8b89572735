"""The records of `config.storage.topic`, in Connect's own format, and what they add up to.

Keys are `connector-NAME`, `task-NAME-N`, `commit-NAME` and `target-state-NAME`; values are JSON without a schema.
A real worker's topic is read as it is, and a real worker reads ours. Other records of Connect's (session keys,
fencing, restarts) are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.connect.model import ConnectorSpec, TargetState

Record = tuple[bytes, bytes | None]

CONNECTOR, TASK, COMMIT, TARGET_STATE = "connector-", "task-", "commit-", "target-state-"
LOGGER = "logger-cluster-"


@dataclass
class ConfigState:
    """What the records up to now say: the connectors, what each is asked to be, and their tasks' configurations."""

    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    targets: dict[str, TargetState] = field(default_factory=dict)
    tasks: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """By connector; one whose task records are incomplete has none."""
    log_levels: dict[str, str] = field(default_factory=dict)
    """Of loggers, as they were set for the whole cluster."""
    _uncommitted: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)

    def take(self, key: bytes | None, value: bytes | None) -> bool:
        """Take in the next record; False if it says nothing about connectors, or can't be read."""
        try:
            name = (key or b"").decode()
            content = None if value is None else json.loads(value)
            return self._take(name, content)
        except (ValueError, KeyError, TypeError, AttributeError):
            return False

    def _take(self, key: str, content: Mapping[str, object] | None) -> bool:
        # "connector-" also begins no other key; "restart-connector-…" and "tasks-fencing-…" begin otherwise.
        if key.startswith(TARGET_STATE):
            self._take_target(key.removeprefix(TARGET_STATE), content)
        elif key.startswith(CONNECTOR):
            self._take_connector(key.removeprefix(CONNECTOR), content)
        elif key.startswith(TASK):
            name, _, number = key.removeprefix(TASK).rpartition("-")
            if content is not None:
                self._uncommitted.setdefault(name, {})[int(number)] = _properties(content)
        elif key.startswith(COMMIT) and content is not None:
            self._commit(key.removeprefix(COMMIT), int(str(content["tasks"])))
        elif key.startswith(LOGGER) and content is not None:
            self.log_levels[key.removeprefix(LOGGER)] = str(content["level"])
        else:
            return False
        return True

    def _take_connector(self, name: str, content: Mapping[str, object] | None) -> None:
        if content is None:
            for table in (self.configs, self.tasks, self._uncommitted):
                table.pop(name, None)
        else:
            self.configs[name] = _properties(content)
            self.targets.setdefault(name, TargetState.STARTED)

    def _take_target(self, name: str, content: Mapping[str, object] | None) -> None:
        if content is None:
            self.targets.pop(name, None)
            if name in self.configs:
                self.targets[name] = TargetState.STARTED
        else:
            self.targets[name] = TargetState(str(content.get("state.v2") or content["state"]))

    def _commit(self, name: str, count: int) -> None:
        """Tasks count together, when the commit comes; compaction may have taken some of an older set."""
        update = self._uncommitted.pop(name, {})
        if set(range(count)) <= set(update):
            self.tasks[name] = [update[number] for number in range(count)]
        else:
            self.tasks.pop(name, None)

    def specs(self) -> dict[str, ConnectorSpec]:
        """All connectors that there shall be."""
        return {
            name: ConnectorSpec(name, dict(config), self.targets.get(name, TargetState.STARTED))
            for name, config in self.configs.copy().items()
        }


def _properties(content: Mapping[str, object]) -> dict[str, str]:
    properties = content["properties"]
    if not isinstance(properties, dict):
        raise TypeError("properties are no object")
    return {str(key): str(value) for key, value in properties.items() if value is not None}


def connector_records(name: str, config: Mapping[str, str], target: TargetState | None = None) -> list[Record]:
    """A connector's configuration, behind what it is asked to be, where that is said."""
    stated = [] if target is None else target_records(name, target)
    return [*stated, _record(CONNECTOR + name, {"properties": dict(config)})]


def removal_records(name: str) -> list[Record]:
    """That a connector is to be no more."""
    return [_record(CONNECTOR + name, None), _record(TARGET_STATE + name, None)]


def target_records(name: str, target: TargetState) -> list[Record]:
    """What a connector is asked to be; old workers, which know no STOPPED, take it for PAUSED (KIP-875)."""
    known_to_all = TargetState.PAUSED if target is TargetState.STOPPED else target
    return [_record(TARGET_STATE + name, {"state": known_to_all.value, "state.v2": target.value})]


def task_records(name: str, tasks: Sequence[Mapping[str, str]]) -> list[Record]:
    """The configurations of all tasks of a connector, and the commit that makes them count."""
    records = [_record(f"{TASK}{name}-{number}", {"properties": dict(task)}) for number, task in enumerate(tasks)]
    return [*records, _record(COMMIT + name, {"tasks": len(tasks)})]


def logger_records(levels: Iterable[tuple[str, str]]) -> list[Record]:
    """Levels of loggers, for the whole cluster (KIP-976)."""
    return [_record(LOGGER + name, {"level": level}) for name, level in levels]


def _record(key: str, content: Mapping[str, object] | None) -> Record:
    value = None if content is None else json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    return key.encode(), value
