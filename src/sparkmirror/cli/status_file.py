"""The file that `run --status-file` writes, from the start of a run to its end."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sparkmirror.config import MirrorConfig
from sparkmirror.config.formats import Reading
from sparkmirror.config.formats.strimzi_status import FlowStatus, StatusFile
from sparkmirror.errors import ConfigError, SparkMirrorError

if TYPE_CHECKING:
    from sparkmirror.snapshot.snapshot import Flow, Snapshot


class RunStatus:
    """Writer of the status file, a context manager.

    Does nothing without a path.
    """

    def __init__(self, reading: Reading, path: str | None) -> None:
        if path is not None and not reading.resources:
            raise ConfigError(f"is for Strimzi's resources, and {reading.path} is none", origin="--status-file")
        self._file = StatusFile(path, reading.resources) if path is not None else None

    def __enter__(self) -> Self:
        return self

    def runs(self, config: MirrorConfig) -> None:
        """Take the configuration that the file results in."""
        if self._file is not None:
            self._file.tasks = {flow.name: flow.tasks_max for flow in config.flows}

    def changes(self, reading: Reading, config: MirrorConfig) -> None:
        """Take the configuration of a file that was changed during the run."""
        if self._file is not None:
            self._file.resources = reading.resources
        self.runs(config)

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Write the present status, if a write is due."""
        if self._file is not None and self._file.is_due:
            self._file.show([_status(flow) for flow in snapshot().flows])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            problem = str(error) if isinstance(error, SparkMirrorError) else kind.__name__ if kind else ""
            self._file.ended(problem, kind.__name__ if kind else "")


def _status(flow: Flow) -> FlowStatus:
    return FlowStatus(
        flow=flow.flow,
        state=": ".join(filter(None, (flow.state.value, flow.reason))),
        partitions=sum(len(topic.partitions) for topic in flow.topics),
        parked=(
            *(f"{topic.topic}-{partition.partition}: {partition.reason}" for topic, partition in flow.parked),
            *(f"{topic.topic}: {topic.refused}" for topic in flow.topics if topic.refused),
        ),
        failing=tuple(f"{duty.duty}: {duty.failing}" for duty in flow.duties if duty.failing),
    )
