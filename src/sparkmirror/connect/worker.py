"""Connect worker over one mirror, configured by connectors (`docs/connect.md`)."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from sparkmirror.config import FlowConfig
from sparkmirror.config.declared_providers import declared_providers
from sparkmirror.config.formats.connect_files import PACKAGE, ConnectorRole, WorkerSettings
from sparkmirror.config.providers import resolve
from sparkmirror.config.spark_guards import MASTER
from sparkmirror.connect.active_topics import ActiveTopics
from sparkmirror.connect.connector_model import ConnectorSpec, ConnectorStatus, Offset, TargetState
from sparkmirror.connect.flows import ConnectorPart, Flows, read_flows
from sparkmirror.connect.offsets import ConnectorOffsets, ZeroOffsets
from sparkmirror.connect.server_paths import without_paths
from sparkmirror.connect.status import connector_status, flow_state
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.mirror.engine.progress_display import OnProgress
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.snapshot.history import FlowHistory
from sparkmirror.snapshot.snapshot import Snapshot

LOCAL_TASKS = 8
"""A local Spark's slots if the worker's file does not set `spark.master`.

Tasks mostly wait for the network.
"""

ALTERED = "The offsets for this connector have been altered successfully"
RESET = "The offsets for this connector have been reset successfully"
"""Connect's words for altered and reset offsets."""

FLUSH_S = 5.0
"""Interval at which checkpoint and heartbeat connectors' new offsets are stored."""

LISTED_BYTES = 500_000
"""Longest partition or group list in a task's configuration.

The configuration is one record, and brokers take none above `max.message.bytes`, 1,048,588 bytes by default.
"""

_LOOK_S = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _WorkerState:
    """Connectors applied last, and their flows."""

    specs: Mapping[str, ConnectorSpec]
    flows: Flows


class ConnectWorker:
    """Runner of connectors: `start` it, `apply` the wanted connectors, `close` it.

    Implements `connect.connector_model.ConnectorRunner`. `file` is the worker's file; its keys `spark.*` count once, at
    the start. `use_lease`, `spark` and `on_progress` go to the mirror. `on_end`, if given, gets the error that ended
    the mirror, as this process is useless then.
    """

    def __init__(
        self,
        file: WorkerSettings,
        worker_id: str,
        *,
        use_lease: bool = True,
        spark: SparkSession | None = None,
        on_progress: OnProgress | None = None,
        on_end: Callable[[Exception], None] | None = None,
    ) -> None:
        self.worker_id = worker_id
        self._on_end = on_end
        self._file = file
        nothing = read_flows({}, file)
        config = nothing.config.model_copy(update={"spark": _spark_settings(file)})
        self._mirror = Mirror(config, use_lease=use_lease, spark=spark, on_progress=on_progress)
        self._mirror.observer.mode = "serve"
        self._use_lease = use_lease
        self._lock = threading.Lock()
        self._state = _WorkerState({}, nothing)
        self._said: set[str] = set()
        self._topics = ActiveTopics()
        self._others = ZeroOffsets()
        self._ended_flows: set[str] = set()
        """Flows on which no other process works any more.

        When the connectors change, the set is emptied.
        """
        self._ended = ""
        """Reason if the mirror has ended by itself."""
        self._closing = threading.Event()
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True)
            for name, work in (("mirror", self._run), ("connectors", self._keep))
        ]

    def start(self) -> None:
        """Start the threads, without connectors at first."""
        for thread in self._threads:
            thread.start()

    def close(self, timeout_s: float = 40.0) -> None:
        """End all flows cleanly, so that another worker can continue."""
        self._closing.set()
        self._mirror.stop()
        for thread in self._threads:
            thread.join(timeout_s)

    def _run(self) -> None:
        try:
            self._mirror.run()
        except Exception as error:
            is_told = isinstance(error, SparkMirrorError)
            self._ended = str(error) if is_told else repr(error)
            trace = None if is_told else error
            log.error("the mirror has ended: %s", self._ended, exc_info=trace, extra=Event.MIRROR_ENDED.extra)
            if self._on_end is not None:
                self._on_end(error)

    @property
    def snapshots(self) -> Callable[[], Snapshot]:
        """Function that returns the present snapshot of this process's flows."""
        return self._mirror.observer.snapshot

    @property
    def history(self) -> FlowHistory:
        """Hours of these flows' past."""
        return self._mirror.observer.history

    def show_page(self, address: str) -> None:
        """Tell the processes that stand by where this process's live page is."""
        self._mirror.observer.page = address

    @property
    def tick_age_s(self) -> float:
        """Seconds since the mirror's control loop took its last turn."""
        return self._mirror.tick_age_s

    @property
    def flows(self) -> Sequence[FlowConfig]:
        """Flows that this process works on or stands by for."""
        return [driver.flow for driver in self._mirror.drivers]

    # --- wanted connectors ----------------------------------------------------------------------

    def apply(self, connectors: Mapping[str, ConnectorSpec]) -> None:
        """Replace the wanted connectors; flows start and end in the background."""
        self._topics.keep(connectors)
        self._change(connectors)

    def stand_by(self) -> None:
        """End all flows; the connectors stay, and another process may work for them."""
        self._topics.stand_by()
        self._change({})

    def _change(self, connectors: Mapping[str, ConnectorSpec]) -> None:
        with self._lock:
            flows = read_flows(connectors, self._file)
            self._state = _WorkerState(dict(connectors), flows)
            self._ended_flows = set()
            self._mirror.change(flows.config)
        for line in flows.config.warnings:
            if line not in self._said:
                log.warning("%s", line, extra=Event.CONFIG_WARNING.extra)
        self._said.update(flows.config.warnings)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        """Restart the connector's flow, and so the connector and its tasks together."""
        status = self.status(name)
        failed = status.state == "FAILED" or (include_tasks and any(task.state == "FAILED" for task in status.tasks))
        if failed or not only_failed:
            self._restart(name)

    def restart_task(self, name: str, task: int) -> None:
        """Restart a task's flow. Raises KeyError for an unknown task number."""
        if task not in [known_task.id for known_task in self.status(name).tasks]:
            raise KeyError(f"{name}-{task}")
        self._restart(name)

    def _restart(self, name: str) -> None:
        with self._lock:
            flow = self._state.flows.parts[name].flow
            if self._state.specs[name].target_state is TargetState.STARTED:
                self._mirror.change(self._state.flows.config, restart=[flow])

    # --- status ---------------------------------------------------------------------------------

    def _known(self, name: str) -> tuple[ConnectorSpec, ConnectorPart, FlowConfig | None]:
        state = self._state
        part = state.flows.parts[name]
        return state.specs[name], part, state.flows.known.get(part.flow)

    def is_unfit(self, name: str) -> bool:
        """Tell whether the connector's own configuration prevents its run."""
        return self._state.flows.parts[name].unfit

    def status(self, name: str) -> ConnectorStatus:
        return self._status(self._state, name)

    def _status(self, state: _WorkerState, name: str) -> ConnectorStatus:
        spec, part = state.specs[name], state.flows.parts[name]
        if self._ended:
            return ConnectorStatus(
                name=name,
                state="FAILED",
                worker_id=self.worker_id,
                trace=without_paths(self._ended, spec.config.values()),
            )
        return connector_status(spec, part, flow_state(self._mirror, part.flow), self.worker_id)

    def task_configs(self, name: str) -> list[Mapping[str, str]]:
        """Return each task's configuration.

        A task has its connector's configuration, and the keys that Connect gives to its tasks.
        """
        spec, part, _ = self._known(name)
        if part.role is None:
            return []
        task_class = PACKAGE + part.role.value.replace("Connector", "Task")
        dealt = self._mirror.tasks(part.flow) if part.role is ConnectorRole.SOURCE else []
        configs: list[Mapping[str, str]] = []
        for task in self.status(name).tasks:
            more = {"task.class": task_class}
            if part.role is not ConnectorRole.HEARTBEAT:
                more["task.index"] = str(task.id)
            if part.role is ConnectorRole.SOURCE:
                keys = dealt[task.id] if task.id < len(dealt) else ()
                more |= _listed("task.assigned.partitions", (f"{key.topic}-{key.partition}" for key in keys))
            elif part.role is ConnectorRole.CHECKPOINT:
                driver = self._driver(part.flow)
                more |= _listed("task.assigned.groups", sorted(driver.groups.current) if driver else ())
            configs.append({**spec.config, **more})
        return configs

    def topics(self, name: str) -> set[str]:
        """Return the target topics written since the reset; up to a second late."""
        self._known(name)
        return self._topics.of(name)

    def reset_topics(self, name: str) -> None:
        _, part, _ = self._known(name)
        self._topics.reset(name, self._driver(part.flow))

    # --- offsets --------------------------------------------------------------------------------

    def offsets(self, name: str) -> list[Offset]:
        """Return the connector's offsets in Connect's format.

        Records copied since Connect's topic was written count already. A connector that can't run has its stored
        offsets. Raises `ValueError`, whose message shows no server path, if the connector can't be read.
        """
        spec, part, flow = self._known(name)
        if part.failure:  # the flow is another connector's, which may name other brokers
            flow = read_flows({name: spec}, self._file).known.get(part.flow)
        if flow is None or part.role is None:
            raise ValueError(without_paths(part.failure or f"connector {name} can't be run", spec.config.values()))
        offsets = self._offsets_of(name, flow, part.role)
        return offsets.read_stored() if part.failure else offsets.read()

    def alter_offsets(self, name: str, offsets: Sequence[Offset]) -> str:
        """Set a stopped connector's offsets.

        A source connector's copy continues behind these offsets.
        """
        with self._stopped(name) as stored:
            stored.alter(offsets)
        return ALTERED

    def delete_offsets(self, name: str) -> str:
        """Delete a stopped connector's offsets.

        A source connector's copy begins again.
        """
        with self._stopped(name) as stored:
            stored.reset()
        return RESET

    @contextmanager
    def _stopped(self, name: str) -> Iterator[ConnectorOffsets]:
        """Yield a stopped connector's offsets.

        Raises `ValueError`, whose message shows no server path.
        """
        spec, part, flow = self._known(name)
        try:
            if spec.target_state is not TargetState.STOPPED:
                raise ValueError(f"connector {name} must be stopped before its offsets can be set")
            if flow is None or part.role is None or part.failure:
                raise ValueError(part.failure or f"connector {name} can't be run")
            self._others.forget(name)
            yield self._offsets_of(name, flow, part.role)
        except ValueError as error:
            raise ValueError(without_paths(str(error), spec.config.values())) from error

    def _offsets_of(self, name: str, flow: FlowConfig, role: ConnectorRole) -> ConnectorOffsets:
        return ConnectorOffsets(self._mirror, flow, name, role, use_lease=self._use_lease, ended=self._ended_flows)

    # --- in the background ----------------------------------------------------------------------

    def _driver(self, flow: str) -> FlowDriver | None:
        return next((driver for driver in self._mirror.drivers if driver.name == flow), None)

    def _keep(self) -> None:
        store_at = 0.0
        while not self._closing.wait(_LOOK_S):
            try:
                self._note_topics()
                if time.monotonic() > store_at:
                    store_at = time.monotonic() + FLUSH_S
                    self._store_others()
            except (ConnectionError, SparkMirrorError) as error:
                log.warning(
                    "offsets of connectors can't be stored: %s", error, extra=Event.CONNECTOR_OFFSETS_NOT_STORED.extra
                )
            except Exception:  # the thread must survive any failure
                log.exception("connectors", extra=Event.CONNECTORS_NOT_SERVED.extra)

    def _running(self) -> Iterator[tuple[str, ConnectorRole, FlowConfig, FlowDriver | None]]:
        """Yield name, role, flow and driver for the connectors running in this process."""
        state = self._state
        for name, part in state.flows.parts.items():
            flow = state.flows.known.get(part.flow)
            if flow is None or part.role is None or part.idle or self._status(state, name).state != "RUNNING":
                continue
            yield name, part.role, flow, self._driver(part.flow)

    def _note_topics(self) -> None:
        with self._lock:  # a connector that is deleted meanwhile would be noted again
            for name, role, flow, driver in self._running():
                if role is ConnectorRole.SOURCE and driver is not None:
                    if _copies_as(driver.flow, flow):
                        self._topics.copied(name, driver)
                elif role is ConnectorRole.CHECKPOINT and driver is not None and driver.groups.current:
                    self._topics.written(name, functools.partial(_checkpoints_topic, flow))
                elif role is ConnectorRole.HEARTBEAT:
                    self._topics.written(name, functools.partial(_heartbeats_topic, flow))

    def _store_others(self) -> None:
        for name, role, flow, driver in self._running():
            self._others.store(flow, name, role, driver)


def _listed(key: str, words: Iterable[str]) -> dict[str, str]:
    """Return a task's list under `key`, without what is too much for a record.

    The number of words left out has its own key, since a real worker that takes over reads each word as a partition or
    a group.
    """
    text = ",".join(words)
    encoded = text.encode()
    if len(encoded) <= LISTED_BYTES:
        return {key: text}
    listed = encoded[:LISTED_BYTES].rpartition(b",")[0].decode()
    return {key: listed, f"{key}.left.out": str(text.count(",") - listed.count(","))}


def _copies_as(working: FlowConfig, flow: FlowConfig) -> bool:
    """Tell whether a driver's flow copies as `flow` says.

    A deleted connector's driver continues until it has ended, though another connector may have the name by then.
    """
    return working.model_copy(update={key: getattr(flow, key) for key in ("copies", "group", "heartbeat")}) == flow


def _checkpoints_topic(flow: FlowConfig) -> str:
    return topic_rules(flow).policy.checkpoints_topic(flow.mm2_source)


def _heartbeats_topic(flow: FlowConfig) -> str:
    return topic_rules(flow).policy.heartbeats_topic()


def _spark_settings(file: WorkerSettings) -> dict[str, str]:
    """Return the file's `spark.*` settings over a local Spark's.

    Raises `ConfigError`.
    """
    providers = declared_providers(file.settings.values())
    settings = {MASTER: f"local[{LOCAL_TASKS}]"}
    for key, entry in file.settings.items():
        if key.startswith("spark."):
            try:
                settings[key] = resolve(entry.value, providers).strip()
            except ValueError as error:
                raise entry.error(str(error)) from None
    return settings
