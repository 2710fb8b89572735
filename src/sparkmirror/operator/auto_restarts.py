"""Restart failed connectors automatically, by the resource's `autoRestart`.

The pauses are Strimzi's. sparkmirror retries failures without restarts, too; a restart begins the connector's flow
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sparkmirror.config.formats.strimzi_status import TIME, failed_message
from sparkmirror.operator.connectors import Call, connector_path

_LONGEST_PAUSE = timedelta(minutes=60)


@dataclass(frozen=True, slots=True)
class AutoRestart:
    """Number of a connector's restarts since its first failure, and time of the last."""

    connector: str
    count: int
    at: datetime

    @property
    def pause(self) -> timedelta:
        """Pause before the next restart.

        After as long a time without a failure the restarts are forgotten.
        """
        return min(timedelta(minutes=self.count**2 + self.count), _LONGEST_PAUSE)

    @property
    def shown(self) -> dict[str, Any]:
        """Entry of `autoRestartStatuses` in the status."""
        return {"connectorName": self.connector, "count": self.count, "lastRestartTimestamp": self.at.strftime(TIME)}


def auto_restarts(
    asked: Mapping[str, Mapping[str, Any]],
    connectors: Sequence[Mapping[str, Any]],
    before: Mapping[str, Any],
    now: datetime,
) -> Iterator[tuple[AutoRestart, Call | None]]:
    """Yield the restarts to remember, each with a request if the restart is due now.

    `asked`: each connector's `autoRestart`; `connectors`: the connectors' statuses; `before`: the resource's status.
    """
    earlier = {item.connector: item for item in _read(before)}
    for status in connectors:
        name = status["name"]
        wanted, last = asked.get(name) or {}, earlier.get(name)
        if not wanted.get("enabled"):
            continue
        if not failed_message([status]):
            if last is not None and now - last.at <= last.pause:
                yield last, None
            continue
        most = wanted.get("maxRestarts")
        count = last.count if last is not None else 0
        if last is not None and (now - last.at < last.pause or (most is not None and count >= most)):
            yield last, None
        elif most is None or count < most:
            why = f"connector {name} has failed and is restarted, the {count + 1}. time (autoRestart)"
            path = f"{connector_path(name, 'restart')}?includeTasks=true&onlyFailed=true"
            yield AutoRestart(name, count + 1, now), Call("POST", path, why=why)


def _read(status: Mapping[str, Any]) -> Iterator[AutoRestart]:
    """Read a status' restarts; Strimzi's own operator writes fractions of seconds."""
    for item in status.get("autoRestartStatuses") or ():
        with suppress(KeyError, TypeError, ValueError):  # restarts that can't be read are forgotten
            at = datetime.fromisoformat(item["lastRestartTimestamp"])
            yield AutoRestart(item["connectorName"], int(item["count"]), at if at.tzinfo else at.replace(tzinfo=UTC))
