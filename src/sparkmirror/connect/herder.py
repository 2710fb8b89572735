"""What the requests do: Connect's rules for connectors, over the storage topics and whoever runs the connectors.

The one process with the lease works: it writes the topics, and gives its worker what there shall be. Every process
answers what stands in the topics.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.connect.config_log import (
    ConfigState,
    connector_records,
    logger_records,
    removal_records,
    target_records,
    task_records,
)
from sparkmirror.connect.errors import STALE, RestError, bad_request, conflict, not_found
from sparkmirror.connect.java_maps import java_text
from sparkmirror.connect.loadable import Loadable
from sparkmirror.connect.masking import is_secret, masked, unmasked
from sparkmirror.connect.model import ConnectorRunner, ConnectorStatus, Offset, TargetState, TaskStatus
from sparkmirror.connect.offset_checks import OffsetRefused, check_offsets
from sparkmirror.connect.plugin_versions import ANY_VERSION, VersionRange
from sparkmirror.connect.plugins import PACKAGE, find_class
from sparkmirror.connect.plugins import not_found as class_not_found
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
    """`start`, then answer; `close` at the end. `leads` says whether this process is the one that works."""

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
        self._levels: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name="connect-herder", daemon=True)

    def start(self) -> None:
        """Take up the work, or stand by, in the background."""
        self._thread.start()

    def close(self) -> None:
        """End, and let nobody look for this process; the worker is left as it is."""
        self._closing.set()
        self._thread.join(5.0)
        if self._leading and self.leader_url == self._url:
            try:
                self._statuses.append([leader_record(None)])
            except (ConnectionError, SparkMirrorError) as error:
                log.warning("%s", error, extra=Event.STATUS_NOT_WRITTEN.extra)

    @property
    def leads(self) -> bool:
        """Whether this process works, and its worker has been told of all connectors."""
        return self._leading and self._leads()

    @property
    def leader_url(self) -> str:
        """Where the process is that works, as far as is known; nothing if that is unknown."""
        return self._status_state.leader

    @property
    def trouble(self) -> str:
        """Why requests can't be answered as they should at present; nothing if they can."""
        return self._configs.trouble or self._statuses.trouble

    # What there is

    def names(self) -> list[str]:
        return list(self._config_state.configs)

    def info(self, name: str) -> dict[str, object]:
        """Connect's `ConnectorInfo`."""
        if name not in self._config_state.configs:
            raise not_found(f"Connector {name} not found")
        return self._info(name, self._config_state.configs[name])

    def config(self, name: str) -> dict[str, str]:
        if name not in self._config_state.configs:
            raise not_found(f"Connector {name} not found")
        return masked(self._config_state.configs[name])

    def tasks(self, name: str) -> list[dict[str, object]]:
        """Each task's id and configuration."""
        if name not in self._config_state.configs:
            raise not_found(f"Connector {name} not found")
        tasks = self._config_state.tasks.get(name, [])
        return [
            {"id": {"connector": name, "task": number}, "config": masked(config)} for number, config in enumerate(tasks)
        ]

    def status(self, name: str) -> ConnectorStatus:
        found = self._own_status(name) if self.leads else self._status_state.status(name)
        if found is None:
            raise not_found(f"No status found for connector {name}")
        return found

    def task_status(self, name: str, task: int) -> TaskStatus:
        try:
            return next(one for one in self.status(name).tasks if one.id == task)
        except (RestError, StopIteration):
            raise not_found(f"No status found for task {name}-{task}") from None

    def topics(self, name: str) -> list[str]:
        used = set(self._status_state.used.get(name, ()))
        if self.leads and name in self._config_state.configs:
            used |= self._worker.topics(name)
        return sorted(used)

    def reset_topics(self, name: str) -> None:
        with self._writing:
            if name in self._config_state.configs:
                self._worker.reset_topics(name)
                self._forget_topics(name)

    # Changing it

    def validate(self, config: Config) -> Validation:
        """Check it; raises `RestError` for a class that is missing or unknown."""
        stated = config.get("connector.class")
        if stated is None:
            shown = masked({key: value or "" for key, value in config.items()})
            raise bad_request(f"Connector config {java_text(shown, copied=True)} contains no connector type")
        if find_class(stated) is None:
            raise bad_request(class_not_found(stated))
        try:
            resolved = {key: self._resolved(key, value) for key, value in config.items()}
            VersionRange(resolved.get("connector.plugin.version") or ANY_VERSION).check()
        except ValueError as error:
            raise bad_request(str(error)) from None
        return validate(resolved, config, self._loadable)

    def create(self, name: str, config: Config, initial: TargetState | None) -> dict[str, object]:
        """A new connector."""
        return self._put(name, config, initial, replace=False)[1]

    def put(self, name: str, config: Config) -> tuple[bool, dict[str, object]]:
        """A connector's whole configuration; and whether it is new."""
        return self._put(name, config, None, replace=True)

    def patch(self, name: str, changes: Config) -> dict[str, object]:
        """Some of a connector's settings; null takes one out."""
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
        """Pause, resume or stop it. Who was stopped has given its place up: others may be at its work by now."""
        with self._writing:
            self._must_be_known(name, "Unknown connector {}")
            stopping, stopped = target is TargetState.STOPPED, self._config_state.targets[name] is TargetState.STOPPED
            tasks = task_records(name, []) if stopping else []
            anew = connector_records(name, self._config_state.configs[name]) if stopped and not stopping else []
            self._write([*tasks, *anew, *target_records(name, target)])

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Start it again; returns what is being restarted."""
        self._must_be_known(name, "Unknown connector: {}")
        before = self._own_status(name)
        if before is None:
            raise not_found(f"Status for connector {name} not found")
        self._worker.restart(name, include_tasks=include_tasks, only_failed=only_failed)

        def state(now: str, concerned: bool) -> str:
            return "RESTARTING" if concerned and (not only_failed or now == "FAILED") else now

        tasks = tuple(
            TaskStatus(one.id, state(one.state, include_tasks), one.worker_id, one.trace) for one in before.tasks
        )
        return ConnectorStatus(name, state(before.state, True), before.worker_id, before.trace, tasks)

    def restart_task(self, name: str, task: int) -> None:
        self._must_be_known(name, "Unknown connector: {}")
        status = self._own_status(name)
        if status is None or task not in (one.id for one in status.tasks):
            raise not_found(f"Unknown task: {name}-{task}")
        self._worker.restart_task(name, task)

    def offsets(self, name: str) -> list[Offset]:
        self._must_be_known(name, "Connector {} not found")
        return self._worker.offsets(name)

    def alter_offsets(self, name: str, offsets: Sequence[Offset]) -> str:
        """Set how far a stopped connector is; what was done."""
        with self._writing:
            class_name = self._stopped_class(name)
            try:
                check_offsets(class_name.removeprefix(PACKAGE), offsets)
            except OffsetRefused as error:
                raise bad_request(str(error)) from None
            try:
                return self._worker.alter_offsets(name, offsets)
            except ValueError as error:
                raise bad_request(str(error)) from None

    def delete_offsets(self, name: str) -> str:
        """Forget how far a stopped connector is; what was done."""
        with self._writing:
            self._stopped_class(name)
            try:
                return self._worker.delete_offsets(name)
            except ValueError as error:
                raise bad_request(str(error)) from None

    def set_cluster_log_level(self, name: str, level: str) -> None:
        """Set a logger's level in every process."""
        self._append(logger_records([(name, level)]))

    # How it is done

    def _stopped_class(self, name: str) -> str:
        """The class of a connector whose offsets may be changed."""
        self._must_be_known(name, "Connector {} not found")
        if self._config_state.targets[name] is not TargetState.STOPPED or self._config_state.tasks.get(name):
            raise bad_request(_NOT_STOPPED.format(name))
        return find_class(self._config_state.configs[name].get("connector.class", "")) or ""

    def _resolved(self, key: str, value: str | None) -> str | None:
        """A value to be checked, from its config provider: but no secret, and nothing that a message would repeat."""
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
            # What it answers is of before its tasks are known, as Connect's answer is.
            answer = self._info(name, settings)
            # Who could not run had nothing to lose, and must not take what another is at by now.
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
        except KeyError:  # it was not told of it yet
            return False

    def _own_status(self, name: str) -> ConnectorStatus | None:
        try:
            return self._worker.status(name)
        except KeyError:
            return None

    def _write(self, records: list[tuple[bytes, bytes | None]]) -> None:
        """Write to the configurations, and let the worker and the other topic follow."""
        if not self.leads:  # since the request came
            raise conflict(STALE)
        self._append(records)
        self._worker.apply(self._config_state.specs())
        self._publish()

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
        """Write what the worker says of itself, where it is not what the topics say; only the leader does."""
        with self._writing:
            specs = self._config_state.specs()
            wanted = {name: status for name in specs if (status := self._own_status(name)) is not None}
            try:
                for name in wanted:
                    tasks = [dict(task) for task in self._worker.task_configs(name)]
                    if tasks != self._config_state.tasks.get(name, []):
                        self._configs.append(task_records(name, tasks))
                records = status_records(self._status_state, wanted, 1)
                for name in {*wanted, *self._status_state.used}:
                    # What it has written to before this process came is in the topic, and stays there until a reset.
                    known = self._status_state.used.get(name, set())
                    used = known | self._worker.topics(name) if name in wanted else set()
                    records += topic_records(self._status_state, name, used)
                if self._status_state.leader != self._url:
                    records.append(leader_record(self._url))
                if records:
                    self._statuses.append(records)
            except KeyError:  # it was removed in between
                return
            except (ConnectionError, SparkMirrorError) as error:
                log.warning("%s", error, extra=Event.STATUS_NOT_WRITTEN.extra)

    def _run(self) -> None:
        while not self._closing.wait(_PUBLISH_S if self._leading else 0.1):
            try:
                self._step()
            except Exception:
                log.exception(
                    "what the connectors do could not be brought up to date; it is tried again",
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
            log.info("this process works for the connectors", extra=Event.CONNECTORS_LED.extra)
            self._worker.apply(self._config_state.specs())
            self._leading = True
        elif self._leading and not leads:
            log.info("another process works for the connectors", extra=Event.CONNECTORS_NOT_LED.extra)
            self._leading = False
            self._worker.apply({})
        if self._leading:
            self._publish()
