"""Duties: work at intervals next to the copying, each in its own thread.

Like MirrorMaker 2's `Scheduler` (`mm2.md` 3.1): turns come at a fixed rate, and no exception ends a duty's schedule.
Only the process that holds the flow's lease does the duties.
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
"""Seconds between looks at the lease while a process stands by."""

LONGEST_RETRY_S = 30.0
"""Longest pause before a failed turn is repeated, in seconds.

The pause is the duty's interval after the first failure, and doubles with each further failure.
"""

LAST_TURNS_S = 5.0
"""Seconds that the duties have to end."""

_DOUBLINGS = 10

log = logging.getLogger(__name__)


class DutyTurns(Protocol):
    """A duty at work; made, run and closed in the same thread."""

    def run(self) -> None:
        """Take one turn.

        Raises `ConnectionError` or `SparkMirrorError` if a cluster or a setting is in the way.
        """

    def close(self) -> None:
        """Close the connections."""


@runtime_checkable
class FinishingDuty(DutyTurns, Protocol):
    """A duty whose last turn differs from the turns before."""

    def finish(self) -> None:
        """Take the last turn; raises like `run`."""


@runtime_checkable
class WritingDuty(DutyTurns, Protocol):
    """A duty that counts what it writes: records, or groups' offsets."""

    written: int
    """Number written by the last good turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A duty's name, interval and maker."""

    name: str
    interval_s: float
    make: Callable[[], DutyTurns]
    delayed: bool = False
    """True if the first turn comes after an interval, not at once."""
    at_end: bool = False
    """True for one more turn when the process gives up its work in good order."""


@dataclass(slots=True)
class DutyRecord:
    """A duty's successes and failures so far."""

    succeeded_ms: int | None = None
    """The last good turn's end, in milliseconds since 1970."""
    took_s: float | None = None
    """The last good turn's duration, in seconds."""
    failures: int = 0
    """Failed turns."""
    written: int | None = None
    """Records written by all good turns.

    None without a good turn, and for duties without the attribute `written`.
    """


class Duties:
    """A flow's duties: `start`, look at `failing`, `close`."""

    def __init__(self, flow: str, schedules: Sequence[Schedule], held: Callable[[], bool]) -> None:
        self._flow = flow
        self._held = held
        self._failing: dict[str, str] = {}
        self._records = {schedule.name: DutyRecord() for schedule in schedules}
        self.schedules = tuple(schedules)
        self._threads = [_DutyThread(self, schedule) for schedule in schedules]
        self._at_end = [duty_thread for duty_thread in self._threads if duty_thread.schedule.at_end]

    @property
    def failing(self) -> Mapping[str, str]:
        """Duties whose last turn failed, with the reason in a single line."""
        return dict(self._failing)

    @property
    def at_work(self) -> bool:
        """True until the last turns have ended.

        A last turn may outlast the time that `close` gives it.
        """
        return any(duty_thread.thread.is_alive() for duty_thread in self._at_end)

    def wait(self) -> None:
        """Wait until the last turns have ended, however long they take."""
        for duty_thread in self._at_end:
            duty_thread.join()

    def record(self, name: str) -> DutyRecord:
        """Return a duty's record; empty for a duty that the flow does not have."""
        return self._records.get(name, DutyRecord())

    def start(self) -> None:
        for duty_thread in self._threads:
            duty_thread.thread.start()

    def close(self, within_s: float = LAST_TURNS_S) -> None:
        """End all duties; the lease may be given up when none is `at_work`.

        Duties with `at_end` take a last turn, in the schedules' order.
        """
        deadline = time.monotonic() + within_s
        for duty_thread in self._threads:
            if duty_thread not in self._at_end:
                duty_thread.closing.set()
        for duty_thread in self._at_end:
            duty_thread.closing.set()
            duty_thread.join(deadline)
        for duty_thread in self._threads:
            duty_thread.join(deadline)

    def held(self) -> bool:
        """True if this process holds the lease and may act."""
        return self._held()

    def failed(self, name: str, why: str) -> None:
        """Log once why a duty fails."""
        if self._failing.get(name) != why:
            log.warning("flow %s: %s: %s", self._flow, name, why, extra=Event.DUTY_FAILED.extra)
        self._failing[name] = why
        self._records[name].failures += 1

    def worked(self, name: str, took_s: float, written: int | None = None) -> None:
        """Log a success only after a failure."""
        record = self._records[name]
        if written is not None:
            record.written = (record.written or 0) + written
        record.succeeded_ms, record.took_s = int(time.time() * 1000), took_s
        if self._failing.pop(name, None) is not None:
            log.info("flow %s: %s: works again", self._flow, name, extra=Event.DUTY_RECOVERED.extra)


class _DutyThread:
    """One duty and its thread."""

    def __init__(self, duties: Duties, schedule: Schedule) -> None:
        self.schedule = schedule
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self._run, name=schedule.name, daemon=True)
        self._duties = duties
        self._duty: DutyTurns | None = None

    def join(self, deadline: float | None = None) -> None:
        if self.thread.is_alive():
            self.thread.join(None if deadline is None else max(deadline - time.monotonic(), 0))

    def _run(self) -> None:
        schedule = self.schedule
        due = time.monotonic() + (schedule.interval_s if schedule.delayed else 0.0)
        failures = 0
        try:
            while not self.closing.wait(max(due - time.monotonic(), 0.0)):
                if not self._duties.held():
                    self._close_duty()
                    due = time.monotonic() + STANDING_BY_S
                    continue
                failures = 0 if self._turn(last=False) else failures + 1
                now = time.monotonic()
                pause_s = min(schedule.interval_s * 2 ** min(failures - 1, _DOUBLINGS), LONGEST_RETRY_S)
                due = now + pause_s if failures else max(due + schedule.interval_s, now)
            if schedule.at_end and self._duties.held():
                self._turn(last=True)
        finally:
            self._close_duty()

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
        except Exception as error:  # an unforeseen error: a new duty may do better
            self._duties.failed(self.schedule.name, repr(error))
            self._close_duty()
            return False
        written = self._duty.written if isinstance(self._duty, WritingDuty) else None
        self._duties.worked(self.schedule.name, time.monotonic() - began, written)
        return True

    def _close_duty(self) -> None:
        duty, self._duty = self._duty, None
        if duty is not None:
            duty.close()
