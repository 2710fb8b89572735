"""What is done at intervals beside the copying, each duty in a thread of its own.

As MirrorMaker 2's `Scheduler` (`mm2.md` 3.1): at a fixed rate, and nothing that a duty raises ends its schedule. Only
the process that holds the flow's lease does it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event

STANDING_BY_S = 0.5
"""How often a process without the lease looks whether it has got it."""

LONGEST_RETRY_S = 30.0
"""A turn that failed is tried again after its interval, then twice that and so on, up to so long."""

LAST_TURNS_S = 5.0
"""How long the duties have to end."""

_DOUBLINGS = 10

log = logging.getLogger(__name__)


class DutyTurns(Protocol):
    """Made, run and closed in one thread."""

    def run(self) -> None:
        """One turn; raises `ConnectionError` or `SparkMirrorError` where a cluster or a setting stands in its way."""

    def close(self) -> None:
        """Hang up."""


@runtime_checkable
class FinishingDuty(DutyTurns, Protocol):
    """One whose last turn is not like the others."""

    def finish(self) -> None:
        """The last turn; raises as `run`."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a duty is done."""

    name: str
    interval_s: float
    make: Callable[[], DutyTurns]
    delayed: bool = False
    """The first turn comes after one interval, not at once."""
    at_end: bool = False
    """One more turn when the process gives up its work in good order."""


@dataclass(slots=True)
class Record:
    """How a duty has done so far."""

    succeeded_ms: int | None = None
    """When its last good turn ended, in milliseconds since 1970."""
    took_s: float | None = None
    """How long that took."""
    failures: int = 0
    """Turns that failed."""


class Duties:
    """Those of one flow: `start` them, look at `failing`, `close` them."""

    def __init__(self, flow: str, schedules: Sequence[Schedule], held: Callable[[], bool]) -> None:
        self._flow = flow
        self._held = held
        self._failing: dict[str, str] = {}
        self._records = {schedule.name: Record() for schedule in schedules}
        self.schedules = tuple(schedules)
        self._kept = [_Kept(self, schedule) for schedule in schedules]

    @property
    def failing(self) -> Mapping[str, str]:
        """Duties whose last turn failed, and why in one line."""
        return dict(self._failing)

    def record(self, name: str) -> Record:
        """How a duty has done so far; one that the flow does not have has done nothing."""
        return self._records.get(name, Record())

    def start(self) -> None:
        for kept in self._kept:
            kept.thread.start()

    def close(self, within_s: float = LAST_TURNS_S) -> None:
        """End all, with a last turn of those that want one, these in their order; then the lease may be given up."""
        deadline = time.monotonic() + within_s
        at_end = [kept for kept in self._kept if kept.schedule.at_end]
        for kept in self._kept:
            if kept not in at_end:
                kept.closing.set()
        for kept in at_end:
            kept.closing.set()
            kept.join(deadline)
        for kept in self._kept:
            kept.join(deadline)

    def held(self) -> bool:
        """Whether it is for this process to do anything."""
        return self._held()

    def failed(self, name: str, why: str) -> None:
        """Tell once why a duty does not work."""
        if self._failing.get(name) != why:
            log.warning("flow %s: %s: %s", self._flow, name, why, extra=Event.DUTY_FAILED.extra)
        self._failing[name] = why
        self._records[name].failures += 1

    def worked(self, name: str, took_s: float) -> None:
        """Tell if it did not before."""
        record = self._records[name]
        record.succeeded_ms, record.took_s = int(time.time() * 1000), took_s
        if self._failing.pop(name, None) is not None:
            log.info("flow %s: %s: works again", self._flow, name, extra=Event.DUTY_RECOVERED.extra)


class _Kept:
    """One duty and its thread."""

    def __init__(self, duties: Duties, schedule: Schedule) -> None:
        self.schedule = schedule
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self._keep, name=schedule.name, daemon=True)
        self._duties = duties
        self._duty: DutyTurns | None = None

    def join(self, deadline: float) -> None:
        if self.thread.is_alive():
            self.thread.join(max(deadline - time.monotonic(), 0))

    def _keep(self) -> None:
        schedule = self.schedule
        due = time.monotonic() + (schedule.interval_s if schedule.delayed else 0.0)
        failures = 0
        try:
            while not self.closing.wait(max(due - time.monotonic(), 0.0)):
                if not self._duties.held():
                    self._hang_up()
                    due = time.monotonic() + STANDING_BY_S
                    continue
                failures = 0 if self._turn(last=False) else failures + 1
                now = time.monotonic()
                pause_s = min(schedule.interval_s * 2 ** min(failures - 1, _DOUBLINGS), LONGEST_RETRY_S)
                due = now + pause_s if failures else max(due + schedule.interval_s, now)
            if schedule.at_end and self._duties.held():
                self._turn(last=True)
        finally:
            self._hang_up()

    def _turn(self, *, last: bool) -> bool:
        began = time.monotonic()
        try:
            if self._duty is None:
                self._duty = self.schedule.make()
            if last and isinstance(self._duty, FinishingDuty):
                self._duty.finish()
            else:
                self._duty.run()
        except (ConnectionError, SparkMirrorError) as error:
            self._duties.failed(self.schedule.name, str(error))
            return False
        except Exception as error:  # what we did not think of: begin anew, and the next turn may go well
            self._duties.failed(self.schedule.name, repr(error))
            self._hang_up()
            return False
        self._duties.worked(self.schedule.name, time.monotonic() - began)
        return True

    def _hang_up(self) -> None:
        duty, self._duty = self._duty, None
        if duty is not None:
            duty.close()
