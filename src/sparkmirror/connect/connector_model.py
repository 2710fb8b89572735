"""Connectors as the REST interface knows them, and their runner's protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

Offset = tuple[Mapping[str, object], Mapping[str, object] | None]
"""Source partition and source offset in a connector's own format.

The offset None removes the stored offset.
"""


class TargetState(StrEnum):
    """A connector's wanted state, with Connect's values from its configuration topic."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, kw_only=True)
class ConnectorSpec:
    """Wanted connector.

    `config` has secrets and provider references as the client gave them.
    """

    name: str
    config: Mapping[str, str]
    target_state: TargetState
    place: int = 0
    """Place in the queue; an older connector has a lower place.

    The connector with the lowest place has the work that several connectors ask for.
    """
    held: str = ""
    """Reason why the connector may not start; empty if it may."""


@dataclass(frozen=True)
class TaskStatus:
    """One task's status.

    `state` is RUNNING, PAUSED, FAILED, UNASSIGNED or RESTARTING; `trace` is the reason for a failure.
    """

    id: int
    state: str
    worker_id: str
    trace: str = ""


@dataclass(frozen=True, kw_only=True)
class ConnectorStatus:
    """A connector's status, and its tasks'.

    `state` is RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED or RESTARTING.
    """

    name: str
    state: str
    worker_id: str
    trace: str = ""
    tasks: tuple[TaskStatus, ...] = field(default=())
    type: str = "source"


class ConnectorRunner(Protocol):
    """Protocol for the worker that runs connectors.

    `name` is a connector's name everywhere; a name that was never applied raises KeyError. The HTTP server's threads
    call the methods, several at once.
    """

    worker_id: str
    """Address `host:port` of this worker's REST interface for workers and clients."""

    def apply(self, connectors: Mapping[str, ConnectorSpec]) -> None:
        """Replace the wanted connectors; called after each change.

        Returns soon: connectors start and stop in the background.
        """

    def stand_by(self) -> None:
        """End all work; what was said about the connectors stays.

        For example a reset of their topics.
        """

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        """Restart the connector.

        `include_tasks` restarts its tasks, too; `only_failed` restarts only failed parts.
        """

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task."""

    def is_unfit(self, name: str) -> bool:
        """Tell whether the connector's own configuration prevents its run."""

    def status(self, name: str) -> ConnectorStatus:
        """Return the status of the connector and its tasks."""

    def task_configs(self, name: str) -> list[Mapping[str, str]]:
        """Return each task's configuration, in the order of task numbers."""

    def topics(self, name: str) -> set[str]:
        """Return the target topics that the connector has written to since the reset."""

    def reset_topics(self, name: str) -> None:
        """Forget the target topics that the connector has written to."""

    def offsets(self, name: str) -> list[Offset]:
        """Return the connector's offset for each source partition.

        Raises `ValueError` with the reason if the configuration does not tell where the offsets are.
        """

    def alter_offsets(self, name: str, offsets: Sequence[Offset]) -> str:
        """Set a stopped connector's offsets; return a sentence about the result.

        Raises `ValueError` with the reason for an offset that can't be set.
        """

    def delete_offsets(self, name: str) -> str:
        """Delete a stopped connector's offsets; return a sentence about the result.

        Raises `ValueError` with the reason if the offsets can't be deleted.
        """
