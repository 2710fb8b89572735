"""Records of `config.storage.topic` in Connect's format, and the resulting state.

Keys are `connector-NAME`, `task-NAME-N`, `commit-NAME` and `target-state-NAME`; values are JSON without a schema.
sparkmirror reads a real Connect worker's topic, and a real worker reads sparkmirror's topic. Connect's other records
(session keys, fencing, restarts) are left alone.

A connector's place in the queue for its two clusters is the offset of the record that created the connector. The topic
is compacted, so that only a connector's last record is sure to be there. A record that changes a connector therefore
states the place next to `properties`, where a real worker doesn't look. A record without a place is a creation, or a
real worker's, and its own offset is the place. So each process, also a later one, derives the same order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.connect.connector_model import ConnectorSpec, TargetState

Record = tuple[bytes, bytes | None]

CONNECTOR, TASK, COMMIT, TARGET_STATE = "connector-", "task-", "commit-", "target-state-"
LOGGER = "logger-cluster-"
PLACE = "sparkmirror-place"


@dataclass(kw_only=True)
class ConfigState:
    """Result of the records so far: connectors, target states, task configurations."""

    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    targets: dict[str, TargetState] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    """Place in the queue, by connector; an older connector has a lower place."""
    tasks: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """Task configurations by connector.

    A connector with incomplete task records is absent.
    """
    log_levels: dict[str, str] = field(default_factory=dict)
    """Level by logger, as set for the whole cluster."""
    _uncommitted: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)

    def take(self, key: bytes | None, value: bytes | None, offset: int) -> bool:
        """Apply the record at `offset`; return False if it is unrelated or unreadable."""
        try:
            name = (key or b"").decode()
            content = None if value is None else json.loads(value)
            return self._take(name, content, offset)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return False

    def _take(self, key: str, content: Mapping[str, object] | None, offset: int) -> bool:
        # No other key of Connect begins with "connector-": "restart-connector-…", "tasks-fencing-…" begin otherwise.
        if key.startswith(TARGET_STATE):
            self._take_target(key.removeprefix(TARGET_STATE), content)
        elif key.startswith(CONNECTOR):
            self._take_connector(key.removeprefix(CONNECTOR), content, offset)
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

    def _take_connector(self, name: str, content: Mapping[str, object] | None, offset: int) -> None:
        if content is None:
            for table in (self.configs, self.tasks, self.places, self._uncommitted):
                table.pop(name, None)
        else:
            properties, place = _properties(content), content.get(PLACE)
            self.places[name] = place if type(place) is int else offset
            self.configs[name] = properties
            self.targets.setdefault(name, TargetState.STARTED)

    def _take_target(self, name: str, content: Mapping[str, object] | None) -> None:
        if content is None:
            self.targets.pop(name, None)
            if name in self.configs:
                self.targets[name] = TargetState.STARTED
        else:
            self.targets[name] = TargetState(str(content.get("state.v2") or content["state"]))

    def _commit(self, name: str, count: int) -> None:
        """Make the uncommitted task configurations count, all together.

        An incomplete set, of which compaction has taken records, removes the connector's tasks.
        """
        update = self._uncommitted.pop(name, {})
        if set(range(count)) <= set(update):
            self.tasks[name] = [update[number] for number in range(count)]
        else:
            self.tasks.pop(name, None)

    def specs(self) -> dict[str, ConnectorSpec]:
        """Return the wanted connectors, by name."""
        return {
            name: ConnectorSpec(
                name=name,
                config=dict(config),
                target_state=self.targets.get(name, TargetState.STARTED),
                place=self.places.get(name, 0),
            )
            for name, config in self.configs.copy().items()
        }


def _properties(content: Mapping[str, object]) -> dict[str, str]:
    properties = content["properties"]
    if not isinstance(properties, dict):
        raise TypeError("properties are no object")
    return {str(key): str(value) for key, value in properties.items() if value is not None}


def connector_records(
    name: str, config: Mapping[str, str], target: TargetState | None = None, place: int | None = None
) -> list[Record]:
    """Return a connector's configuration record, after its target state.

    No target state record exists if `target` is None. `place` is the place in the queue that the connector keeps; None
    gives the last place, as for a new connector.
    """
    stated = [] if target is None else target_records(name, target)
    kept = {} if place is None else {PLACE: place}
    return [*stated, _record(CONNECTOR + name, {"properties": dict(config), **kept})]


def removal_records(name: str) -> list[Record]:
    """Return the tombstones that delete a connector and its target state."""
    return [_record(CONNECTOR + name, None), _record(TARGET_STATE + name, None)]


def target_records(name: str, target: TargetState) -> list[Record]:
    """Return a connector's target state record.

    Old workers, without STOPPED, read PAUSED in its place (KIP-875).
    """
    known_to_all = TargetState.PAUSED if target is TargetState.STOPPED else target
    return [_record(TARGET_STATE + name, {"state": known_to_all.value, "state.v2": target.value})]


def task_records(name: str, tasks: Sequence[Mapping[str, str]]) -> list[Record]:
    """Return a connector's task configuration records, and their commit.

    The tasks count once the commit is read.
    """
    records = [_record(f"{TASK}{name}-{number}", {"properties": dict(task)}) for number, task in enumerate(tasks)]
    return [*records, _record(COMMIT + name, {"tasks": len(tasks)})]


def logger_records(levels: Iterable[tuple[str, str]]) -> list[Record]:
    """Return the logger level records for the whole cluster (KIP-976)."""
    return [_record(LOGGER + name, {"level": level}) for name, level in levels]


def _record(key: str, content: Mapping[str, object] | None) -> Record:
    value = None if content is None else json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    return key.encode(), value
