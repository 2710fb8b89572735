"""Records of `status.storage.topic` in Connect's own format.

The records hold connectors' and tasks' states, and the topics in use. So each process answers for all processes, and a
real Connect worker that takes over finds its own format. Two keys are not Connect's: the record under
`sparkmirror-leader` has the leading process's URL, those under `sparkmirror-start-` are from `first_starts`. A real
worker logs that the records are unreadable.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from sparkmirror.connect.connector_model import ConnectorStatus, TaskStatus
from sparkmirror.connect.plugins import VERSION

Record = tuple[bytes, bytes | None]
Key = TypeVar("Key", str, int)

CONNECTOR, TASK, TOPIC, TOPIC_SEPARATOR = "status-connector-", "status-task-", "status-topic-", ":connector-"
LEADER, START = "sparkmirror-leader", "sparkmirror-start-"


@dataclass(frozen=True)
class _StoredState:
    state: str
    worker_id: str
    trace: str


@dataclass(kw_only=True)
class StatusState:
    """Result of the records so far."""

    connectors: dict[str, _StoredState] = field(default_factory=dict)
    tasks: dict[str, dict[int, _StoredState]] = field(default_factory=dict)
    used: dict[str, set[str]] = field(default_factory=dict)
    """Topics in use, by connector."""
    leader: str = ""
    """The leading process's URL."""
    starts: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Configuration's digest and its starts that no worker has outlived, by connector."""

    def take(self, key: bytes | None, value: bytes | None, _: int = 0) -> bool:
        """Apply the next record at any offset; return False if unrelated or unreadable."""
        try:
            content = None if value is None else json.loads(value)
            return self._take((key or b"").decode(), content)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return False

    def _take(self, key: str, content: Mapping[str, str] | None) -> bool:
        if key.startswith(CONNECTOR):
            _put(self.connectors, key.removeprefix(CONNECTOR), content)
        elif key.startswith(TASK):
            name, _, number = key.removeprefix(TASK).rpartition("-")
            _put(self.tasks.setdefault(name, {}), int(number), content)
        elif key.startswith(TOPIC):
            topic, _, name = key.removeprefix(TOPIC).partition(TOPIC_SEPARATOR)
            used = self.used.setdefault(name, set())
            used.discard(topic) if content is None else used.add(topic)
        elif key == LEADER:
            self.leader = content["url"] if content else ""
        elif key.startswith(START):
            self._take_start(key.removeprefix(START), content)
        else:
            return False
        return True

    def _take_start(self, name: str, content: Mapping[str, str] | None) -> None:
        if content is None:
            self.starts.pop(name, None)
        else:
            self.starts[name] = content["config"], int(content["starts"])

    def status(self, name: str) -> ConnectorStatus | None:
        """Return a connector's status; None if unknown."""
        known = self.connectors.get(name)
        if known is None:
            return None
        tasks = tuple(
            TaskStatus(number, task.state, task.worker_id, task.trace)
            for number, task in sorted(self.tasks.get(name, {}).copy().items())
        )
        return ConnectorStatus(name=name, state=known.state, worker_id=known.worker_id, trace=known.trace, tasks=tasks)


def _put(table: dict[Key, _StoredState], key: Key, content: Mapping[str, str] | None) -> None:
    if content is None or content["state"] == "DESTROYED":
        table.pop(key, None)
    else:
        table[key] = _StoredState(content["state"], content["worker_id"], content.get("trace") or "")


def status_records(state: StatusState, wanted: Mapping[str, ConnectorStatus], generation: int) -> list[Record]:
    """Return the records that turn `state` into `wanted`, without further connectors."""
    records: list[Record] = []
    for name in {*state.connectors, *state.tasks} - set(wanted):
        records += [_record(f"{TASK}{name}-{number}", None) for number in state.tasks.get(name, ())]
        records += [_record(CONNECTOR + name, None)] if name in state.connectors else []
    for name, status in wanted.items():
        before = state.status(name)
        known = {} if before is None else {task.id: task for task in before.tasks}
        if before is None or (before.state, before.worker_id, before.trace) != (
            status.state,
            status.worker_id,
            status.trace,
        ):
            records.append(_state_record(CONNECTOR + name, status, generation))
        records += [
            _state_record(f"{TASK}{name}-{task.id}", task, generation)
            for task in status.tasks
            if known.get(task.id) != task
        ]
        gone = set(known) - {task.id for task in status.tasks}
        records += [_record(f"{TASK}{name}-{number}", None) for number in sorted(gone)]
    return records


def topic_records(state: StatusState, name: str, used: set[str]) -> list[Record]:
    """Return the records that turn a connector's topics in use into `used`."""
    known = state.used.get(name, set())
    now_ms = int(time.time() * 1000)
    added = [
        _record(
            _topic_key(topic, name),
            {"topic": {"name": topic, "connector": name, "task": 0, "discoverTimestamp": now_ms}},
        )
        for topic in sorted(used - known)
    ]
    return [*added, *(_record(_topic_key(topic, name), None) for topic in sorted(known - used))]


def leader_record(url: str | None) -> Record:
    """Return the record with the leading process's URL; None retracts the URL."""
    return _record(LEADER, None if url is None else {"url": url})


def start_record(name: str, digest: str = "", starts: int = 0) -> Record:
    """Return the record of a configuration's starts, or of their removal."""
    return _record(START + name, {"config": digest, "starts": starts} if digest else None)


def _topic_key(topic: str, name: str) -> str:
    return f"{TOPIC}{topic}{TOPIC_SEPARATOR}{name}"


def _state_record(key: str, status: ConnectorStatus | TaskStatus, generation: int) -> Record:
    content = {
        "state": status.state,
        "trace": status.trace or None,
        "worker_id": status.worker_id,
        "generation": generation,
        "version": VERSION,
    }
    return _record(key, content)


def _record(key: str, content: Mapping[str, object] | None) -> Record:
    value = None if content is None else json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    return key.encode(), value
