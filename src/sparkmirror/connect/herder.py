"""Connect's rules for connectors, over the storage topics and the worker.

The process with the lease leads: its herder alone writes the topics, and hands the wanted connectors to its worker.
Every process answers reading requests from the topics.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from sparkmirror.connect.config_log import (
    ConfigState,
    connector_records,
    logger_records,
    removal_records,
    target_records,
    task_records,
)
from sparkmirror.connect.connector_model import (
    ConnectorRunner,
    ConnectorSpec,
    ConnectorStatus,
    Offset,
    TargetState,
    TaskStatus,
)
from sparkmirror.connect.errors import STALE, RestError, as_text, bad_request, conflict, not_found
from sparkmirror.connect.first_starts import FirstStarts
from sparkmirror.connect.loadable import Loadable
from sparkmirror.connect.masking import is_secret, masked, unmasked
from sparkmirror.connect.offset_checks import OffsetRefused, check_offsets
from sparkmirror.connect.plugin_versions import ANY_VERSION, VersionRange
from sparkmirror.connect.plugins import PACKAGE, find_class
from sparkmirror.connect.plugins import not_found as class_not_found
from sparkmirror.connect.server_paths import without_paths
from sparkmirror.connect.status_log import StatusState, leader_record, status_records, topic_records
from sparkmirror.connect.storage_topic import StorageTopic
from sparkmirror.connect.validation import Validation, validate
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event

log = logging.getLogger(__name__)

Config = Mapping[str, str | None]

_PUBLISH_S = 0.5
_INVALID_HINT = (
    "You can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
)
_NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
    "connector by issuing a 'PUT' request to the '/connectors/{}/stop' endpoint"
)


class Herder:
    """Connect's herder: `start` it, ask it, and `close` it at the end.

    `leads` tells whether this process has the lease. `url` is this process's address. `resolve` puts in config
    providers' values.
    """

    def __init__(
        self,
        worker: ConnectorRunner,
        configs: StorageTopic,
        statuses: StorageTopic,
        config_state: ConfigState,
        status_state: StatusState,
        leads: Callable[[], bool],
        url: str,
        on_log_level: Callable[[str, str], object],
        resolve: Callable[[str], str] = str,
        loadable: Loadable | None = None,
    ) -> None:
        self._worker = worker
        self._configs, self._statuses = configs, statuses
        self._config_state, self._status_state = config_state, status_state
        self._leads = leads
        self._url = url
        self._on_log_level = on_log_level
        self._resolve = resolve
        self._loadable = loadable or Loadable()
        self._writing = threading.RLock()
        self._closing = threading.Event()
        self._leading = False
        self._applied: Mapping[str, ConnectorSpec] | None = {}
        """Connectors that the worker works for; None if an attempt to change them failed."""
        self._unwritten: dict[str, str] = {}
        """Reason by the part of the topics that can't be written."""
        self._levels: dict[str, str] = {}
        self._starts = FirstStarts(status_state)
        self._altering: set[str] = set()
        """Connectors with offsets that are being altered.

        The worker's connectors stay as they are meanwhile.
        """
        self._thread = threading.Thread(target=self._run, name="connect-herder", daemon=True)

    def start(self) -> None:
        """Lead, or stand by to lead, in the background.

        Log levels from before have no effect in this process (KIP-976).
        """
        self._levels = dict(self._config_state.log_levels)
        self._thread.start()

    def close(self) -> None:
        """Stop, and retract this process's URL as the leader's; leave the worker alone."""
        self._closing.set()
        self._thread.join(5.0)
        self._note_starts(self._starts.end())
        if self._leading and self.leader_url == self._url:
            try:
                self._statuses.append([leader_record(None)])
            except (ConnectionError, SparkMirrorError) as error:
                log.warning("%s", error, extra=Event.STATUS_NOT_WRITTEN.extra)

    @property
    def leads(self) -> bool:
        """True if this process leads and its worker knows all connectors."""
        return self._leading and self._leads()

    @property
    def leader_url(self) -> str:
        """The leader's URL; empty if unknown."""
        return self._status_state.leader

    @property
    def trouble(self) -> str:
        """Reason why a storage topic can't be followed now; empty if all is well."""
        return self._configs.trouble or self._statuses.trouble

    # Reading

    def names(self) -> list[str]:
        return list(self._config_state.configs)

    def info(self, name: str) -> dict[str, object]:
        """Return Connect's `ConnectorInfo` for a connector."""
        if name not in self._config_state.configs:
            raise not_found(f"Connector {name} not found")
        return self._info(name, self._config_state.configs[name])

    def config(self, name: str) -> dict[str, str]:
        if name not in self._config_state.configs:
            raise not_found(f"Connector {name} not found")
        return masked(self._config_state.configs[name])

    def tasks(self, name: str) -> list[dict[str, object]]:
        if name not in self._config_state.configs:
            raise not_found(f"Connector {name} not found")
        tasks = self._config_state.tasks.get(name, [])
        return [
            {"id": {"connector": name, "task": number}, "config": masked(config)} for number, config in enumerate(tasks)
        ]

    def status(self, name: str) -> ConnectorStatus:
        status = self._own_status(name) if self.leads else self._status_state.status(name)
        if status is None:
            raise not_found(f"No status found for connector {name}")
        return status

    def task_status(self, name: str, task: int) -> TaskStatus:
        try:
            return next(task_status for task_status in self.status(name).tasks if task_status.id == task)
        except (RestError, StopIteration):
            raise not_found(f"No status found for task {name}-{task}") from None

    def topics(self, name: str) -> list[str]:
        used = set(self._status_state.used.get(name, ()))
        if self.leads and name in self._config_state.configs:
            with suppress(KeyError):  # a worker that stands by meanwhile knows no connector
                used |= self._worker.topics(name)
        return sorted(used)

    def reset_topics(self, name: str) -> None:
        with self._writing:
            if name in self._config_state.configs:
                with self._led_worker(name) as worker:
                    worker.reset_topics(name)
                self._forget_topics(name)

    # Changing

    def validate(self, config: Config) -> Validation:
        """Check a configuration; raise `RestError` for a missing or unknown class."""
        stated = config.get("connector.class")
        if stated is None:
            shown = masked({key: value or "" for key, value in config.items()})
            raise bad_request(f"Connector config {as_text(shown)} contains no connector type")
        if find_class(stated) is None:
            raise bad_request(class_not_found(stated))
        try:
            resolved = {key: self._resolved(key, value) for key, value in config.items()}
            VersionRange(resolved.get("connector.plugin.version") or ANY_VERSION).check()
        except ValueError as error:
            raise bad_request(str(error)) from None
        return validate(resolved, config, self._loadable)

    def create(self, name: str, config: Config, initial: TargetState | None) -> dict[str, object]:
        return self._put(name, config, initial, replace=False)[1]

    def put(self, name: str, config: Config) -> tuple[bool, dict[str, object]]:
        """Set a connector's whole configuration.

        Returns True for a new connector, and Connect's `ConnectorInfo`.
        """
        return self._put(name, config, None, replace=True)

    def patch(self, name: str, changes: Config) -> dict[str, object]:
        """Set some of a connector's settings; null removes a setting."""
        with self._writing:
            stored = self._config_state.configs.get(name)
            if stored is None:
                raise not_found(f"Connector {name} not found")
            merged: dict[str, str | None] = {**stored, **self._meant(changes, stored)}
            return self._put(
                name, {key: value for key, value in merged.items() if value is not None}, None, replace=True
            )[1]

    def delete(self, name: str) -> None:
        with self._writing:
            if name not in self._config_state.configs:
                raise not_found(f"Connector {name} not found")
            self._write(removal_records(name))

    def set_target(self, name: str, target: TargetState) -> None:
        """Pause, resume or stop a connector.

        A connector that resumes after a stop goes last in the queue: another connector may have taken over its work.
        """
        with self._writing:
            self._must_be_known(name, "Unknown connector {}")
            stopping, stopped = target is TargetState.STOPPED, self._config_state.targets[name] is TargetState.STOPPED
            tasks = task_records(name, []) if stopping else []
            again = connector_records(name, self._config_state.configs[name]) if stopped and not stopping else []
            self._write([*tasks, *again, *target_records(name, target)])

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Restart a connector; return its status with RESTARTING for the restarted parts."""
        self._must_be_known(name, "Unknown connector: {}")
        with self._led_worker(name) as worker:
            before = self._own_status(name)
            if before is None:
                raise not_found(f"Status for connector {name} not found")
            if records := self._starts.again(name):
                self._note_starts(records)
                with self._writing:
                    self._apply(self._config_state.specs())
            else:
                worker.restart(name, include_tasks=include_tasks, only_failed=only_failed)

        def state(now: str, concerned: bool) -> str:
            return "RESTARTING" if concerned and (not only_failed or now == "FAILED") else now

        tasks = tuple(
            TaskStatus(task.id, state(task.state, include_tasks), task.worker_id, task.trace) for task in before.tasks
        )
        return ConnectorStatus(
            name=name, state=state(before.state, True), worker_id=before.worker_id, trace=before.trace, tasks=tasks
        )

    def restart_task(self, name: str, task: int) -> None:
        self._must_be_known(name, "Unknown connector: {}")
        with self._led_worker(name) as worker:
            status = self._own_status(name)
            if status is None or task not in (task_status.id for task_status in status.tasks):
                raise not_found(f"Unknown task: {name}-{task}")
            worker.restart_task(name, task)

    def offsets(self, name: str) -> list[Offset]:
        self._must_be_known(name, "Connector {} not found")
        with self._led_worker(name) as worker:
            try:
                return worker.offsets(name)
            except ValueError as error:
                raise bad_request(str(error)) from None

    def alter_offsets(self, name: str, offsets: Sequence[Offset]) -> str:
        """Set a stopped connector's offsets; return a sentence about the result."""
        with self._altered_worker(name) as (worker, class_name):
            try:
                check_offsets(class_name.removeprefix(PACKAGE), offsets)
            except OffsetRefused as error:
                raise bad_request(str(error)) from None
            try:
                return worker.alter_offsets(name, offsets)
            except ValueError as error:
                raise bad_request(str(error)) from None

    def delete_offsets(self, name: str) -> str:
        """Delete a stopped connector's offsets; return a sentence about the result."""
        with self._altered_worker(name) as (worker, _):
            try:
                return worker.delete_offsets(name)
            except ValueError as error:
                raise bad_request(str(error)) from None

    def set_cluster_log_level(self, name: str, level: str) -> None:
        self._append(logger_records([(name, level)]))

    # Internals

    @contextmanager
    def _led_worker(self, name: str) -> Iterator[ConnectorRunner]:
        """Yield the worker; refuse the request with 409 if this process leads no longer.

        The lease may also be lost meanwhile: a worker that stands by knows no connector, so its refusals say nothing.
        A cluster that can't be asked is told with 500, as by Connect.
        """
        if not self.leads:
            raise conflict(STALE)
        try:
            yield self._worker
        except (KeyError, RestError) as error:
            if self.leads:
                raise
            raise conflict(STALE) from error
        except (ConnectionError, SparkMirrorError) as error:
            own = self._config_state.configs.get(name, {}).values()
            words = f"A cluster of connector {name} can't be asked: {without_paths(str(error), own)}"
            raise RestError(500, words) from error

    @contextmanager
    def _altered_worker(self, name: str) -> Iterator[tuple[ConnectorRunner, str]]:
        """Yield the worker and the class of a stopped connector, to alter its offsets.

        Its clusters may take long to answer. Requests for other connectors are written and answered meanwhile; the
        worker hears about them at the end.
        """
        with self._writing, self._led_worker(name):
            class_name = self._stopped_class(name)
            if name in self._altering:
                raise conflict(f"The offsets of connector {name} are being altered; try again")
            self._altering.add(name)
        try:
            with self._led_worker(name) as worker:
                yield worker, class_name
        finally:
            with self._writing:
                self._altering.discard(name)

    def _stopped_class(self, name: str) -> str:
        """Return a stopped connector's class; refuse the request if it isn't stopped."""
        self._must_be_known(name, "Connector {} not found")
        if self._config_state.targets[name] is not TargetState.STOPPED or self._config_state.tasks.get(name):
            raise bad_request(_NOT_STOPPED.format(name))
        return find_class(self._config_state.configs[name].get("connector.class", "")) or ""

    def _resolved(self, key: str, value: str | None) -> str | None:
        """Return the value to check, with config providers' values put in.

        Secrets stay references, and so do plug-in versions, which a message would repeat.
        """
        return value if value is None or is_secret(key) or key.endswith("plugin.version") else self._resolve(value)

    def _must_be_known(self, name: str, message: str) -> None:
        if name not in self._config_state.configs:
            raise not_found(message.format(name))

    def _meant(self, config: Config, stored: Mapping[str, str]) -> dict[str, str | None]:
        try:
            return unmasked(config, stored)
        except ValueError as error:
            raise bad_request(str(error)) from None

    def _put(
        self, name: str, config: Config, initial: TargetState | None, *, replace: bool
    ) -> tuple[bool, dict[str, object]]:
        with self._writing:
            known = name in self._config_state.configs
            meant = self._meant(config, self._config_state.configs.get(name, {}))
            errors = self.validate(meant).errors
            if errors:
                lines = [
                    f"Connector configuration is invalid and contains the following {len(errors)} error(s):",
                    *errors,
                    _INVALID_HINT,
                ]
                raise bad_request("\n".join(lines))
            if known and not replace:
                raise conflict(f"Connector {name} already exists")
            settings = {key: value for key, value in meant.items() if value is not None}
            # The answer is made before the worker knows the tasks, as Connect's answer is.
            answer = self._info(name, settings)
            # A connector that could not run goes last in the queue: another may have taken over its work by now.
            place = self._config_state.places[name] if known and not self._is_unfit(name) else None
            self._write(connector_records(name, settings, initial, place))
            return not known, answer

    def _info(self, name: str, config: Mapping[str, str]) -> dict[str, object]:
        tasks = self._config_state.tasks.get(name, [])
        return {
            "name": name,
            "config": masked(config),
            "tasks": [{"connector": name, "task": number} for number in range(len(tasks))],
            "type": "source" if find_class(config.get("connector.class", "")) else "unknown",
        }

    def _is_unfit(self, name: str) -> bool:
        try:
            return self._worker.is_unfit(name)
        except KeyError:  # the worker does not know the connector yet
            return False

    def _own_status(self, name: str) -> ConnectorStatus | None:
        try:
            return self._worker.status(name)
        except KeyError:
            return None

    def _write(self, records: list[tuple[bytes, bytes | None]]) -> None:
        """Append to the configuration topic, then update the worker and the status topic."""
        if not self.leads:  # the lease may be lost since the request came
            raise conflict(STALE)
        self._append(records)
        if not self.leads:  # the append may take longer than the lease: the records count for the next leader
            raise conflict(STALE)
        if not self._altering:  # else the next turn after the alteration applies it
            self._apply(self._config_state.specs())
        self._publish()

    def _apply(self, specs: Mapping[str, ConnectorSpec]) -> None:
        self._applied = None
        allowed, records = self._starts.begin(specs, time.monotonic())
        self._note_starts(records)
        self._worker.apply(allowed)
        self._applied = specs

    def _note_starts(self, records: list[tuple[bytes, bytes | None]]) -> None:
        """Write records on first starts; a connector starts also if they can't be written."""
        if records:
            self._publish_part("first starts of connectors", lambda: self._statuses.append(records))

    def _append(self, records: list[tuple[bytes, bytes | None]]) -> None:
        try:
            self._configs.append(records)
        except (ConnectionError, SparkMirrorError) as error:
            raise RestError(
                500,
                "Failed to write to config topic; this may be due to a transient error and the request can be safely "
                f"retried ({error})",
            ) from error

    def _forget_topics(self, name: str) -> None:
        if records := topic_records(self._status_state, name, set()):
            try:
                self._statuses.append(records)
            except (ConnectionError, SparkMirrorError) as error:
                raise RestError(500, f"Failed to write to status topic ({error})") from error

    def _publish(self) -> None:
        """Write the worker's states and tasks that differ from the topics.

        Nothing is written by a process that leads no longer. A record that the brokers refuse holds no other
        connector's records back.
        """
        with self._writing:
            specs = self._config_state.specs()
            wanted = {name: status for name in specs if (status := self._own_status(name)) is not None}
            self._publish_part("states of the connectors", lambda: self._publish_states(wanted))
            for name in wanted:
                self._publish_part(f"tasks of connector {name}", functools.partial(self._publish_tasks, name))

    def _publish_part(self, part: str, publish: Callable[[], None]) -> None:
        """Call `publish` if this process still leads; log a new reason why it can't write."""
        if not self._leads():
            return
        try:
            publish()
        except KeyError:  # the connector was removed in between
            return
        except (ConnectionError, SparkMirrorError) as error:
            if self._unwritten.get(part) != str(error):
                log.warning("%s can't be written: %s", part, error, extra=Event.STATUS_NOT_WRITTEN.extra)
            self._unwritten[part] = str(error)
        else:
            self._unwritten.pop(part, None)

    def _publish_states(self, wanted: Mapping[str, ConnectorStatus]) -> None:
        """Write this process's URL, and the connectors' states and topics."""
        records = [leader_record(self._url)] if self._status_state.leader != self._url else []
        records += status_records(self._status_state, wanted, 1)
        for name in {*wanted, *self._status_state.used}:
            # Topics that an earlier leader has recorded stay in the topic until a reset.
            known = self._status_state.used.get(name, set())
            used = known | self._worker.topics(name) if name in wanted else set()
            records += topic_records(self._status_state, name, used)
        if records:
            self._statuses.append(records)

    def _publish_tasks(self, name: str) -> None:
        tasks = [dict(task) for task in self._worker.task_configs(name)]
        if tasks != self._config_state.tasks.get(name, []):
            self._configs.append(task_records(name, tasks))

    def _run(self) -> None:
        while not self._closing.wait(_PUBLISH_S if self._leading else 0.1):
            try:
                self._step()
            except Exception:
                log.exception(
                    "the mirror could not be brought up to date with the connectors; it is tried again",
                    extra=Event.CONNECTORS_NOT_SERVED.extra,
                )

    def _step(self) -> None:
        for name, level in self._config_state.log_levels.items():
            if self._levels.get(name) != level:
                self._levels[name] = level
                self._on_log_level(name, level)
        leads = self._leads()
        if leads and not self._leading:
            self._configs.catch_up()
            with self._writing:
                self._apply(self._config_state.specs())
                self._leading = True
            log.info("this process works for the connectors", extra=Event.CONNECTORS_LED.extra)
        elif not leads and (self._leading or self._applied != {}):
            with self._writing:  # a request that began while this process led applies its change first
                if self._altering:
                    return
                self._applied = None
                self._worker.stand_by()
                self._applied = {}
                self._leading = False
            log.info("another process works for the connectors", extra=Event.CONNECTORS_NOT_LED.extra)
        if self._leading:
            with self._writing:
                # A record may be in the topic though its writer heard of a failure, and another process may have led
                # for a moment: what the topic says counts.
                specs = self._config_state.specs()
                if specs != self._applied and not self._altering:
                    self._apply(specs)
                self._note_starts(self._starts.proven(time.monotonic()))
            self._publish()
