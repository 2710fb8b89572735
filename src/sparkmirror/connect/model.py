"""What the REST interface knows of connectors, and what it asks of whoever runs them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

Offset = tuple[Mapping[str, object], Mapping[str, object] | None]
"""A source partition and its source offset, as a connector defines them; an offset of None is to be removed."""


class TargetState(StrEnum):
    """What a connector is asked to be: Connect's values, as they stand in its configuration topic."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True)
class ConnectorSpec:
    """One connector that there shall be. `config` has secrets and provider references as they were given."""

    name: str
    config: Mapping[str, str]
    target_state: TargetState
    place: int = 0
    """The lower it is, the longer it has been there: of two for the same work the lower one has it."""


@dataclass(frozen=True)
class TaskStatus:
    """One task: `state` is one of RUNNING, PAUSED, FAILED, UNASSIGNED and RESTARTING, `trace` says why it failed."""

    id: int
    state: str
    worker_id: str
    trace: str = ""


@dataclass(frozen=True)
class ConnectorStatus:
    """A connector and its tasks: `state` is one of RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED and RESTARTING."""

    name: str
    state: str
    worker_id: str
    trace: str = ""
    tasks: tuple[TaskStatus, ...] = field(default=())
    type: str = "source"


class ConnectorRunner(Protocol):
    """Whoever runs connectors. A name that was never applied is a KeyError; `name` is a connector's everywhere.

    Its methods are called from the threads of the HTTP server, several at once.
    """

    worker_id: str
    """`host:port` of this worker's interface, as other workers and people reach it."""

    def apply(self, connectors: Mapping[str, ConnectorSpec]) -> None:
        """Take the whole of what there shall be, after each change. Returns soon, whatever it starts or stops."""

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        """Start the connector again, and its tasks if told to; only what has failed if told to."""

    def restart_task(self, name: str, task: int) -> None:
        """Start one task again."""

    def is_unfit(self, name: str) -> bool:
        """Whether the connector can't be run as it is configured, whoever else is there."""

    def status(self, name: str) -> ConnectorStatus:
        """How the connector and its tasks are."""

    def task_configs(self, name: str) -> list[Mapping[str, str]]:
        """The configuration of each task, by its number."""

    def topics(self, name: str) -> set[str]:
        """The topics at the target that the connector has written to since they were reset."""

    def reset_topics(self, name: str) -> None:
        """Forget the topics that the connector has written to."""

    def offsets(self, name: str) -> list[Offset]:
        """How far the connector is, by source partition."""

    def alter_offsets(self, name: str, offsets: Sequence[Offset]) -> str:
        """Set how far a stopped connector is; what was done, in a sentence. ValueError: what can't be set, and why."""

    def delete_offsets(self, name: str) -> str:
        """Forget how far a stopped connector is; what was done, in a sentence. ValueError: why that can't be."""
