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
from typing import Protocol

from sparkmirror.errors import SparkMirrorError

STANDING_BY_S = 0.5
"""How often a process without the lease looks whether it has got it."""

LONGEST_RETRY_S = 30.0
"""A turn that failed is tried again after so long, or sooner if it would be due."""

END_S = 5.0
"""How long the duties have to end."""

log = logging.getLogger(__name__)


class Duty(Protocol):
    """Made, run and closed in one thread."""

    def run(self) -> None:
        """One turn; raises `ConnectionError` or `SparkMirrorError` where a cluster or a setting stands in its way."""

    def close(self) -> None:
        """Hang up."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a duty is done."""

    name: str
    interval_s: float
    make: Callable[[], Duty]
    delayed: bool = False
    """The first turn comes after one interval, not at once."""
    at_end: bool = False
    """One more turn when the process gives up its work in good order."""


class Duties:
    """Those of one flow: `start` them, look at `failing`, `close` them."""

    def __init__(self, flow: str, schedules: Sequence[Schedule], held: Callable[[], bool]) -> None:
        self._flow = flow
        self._held = held
        self._closing = threading.Event()
        self._failing: dict[str, str] = {}
        self._threads = [
            threading.Thread(target=self._keep, args=(schedule,), name=f"{schedule.name} {flow}", daemon=True)
            for schedule in schedules
        ]

    @property
    def failing(self) -> Mapping[str, str]:
        """Duties whose last turn failed, and why in one line."""
        return dict(self._failing)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End all within `END_S`, with a last turn of those that want one; then the lease may be given up."""
        self._closing.set()
        deadline = time.monotonic() + END_S
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(deadline - time.monotonic(), 0))

    def _keep(self, schedule: Schedule) -> None:
        duty: Duty | None = None
        due = time.monotonic() + (schedule.interval_s if schedule.delayed else 0.0)
        try:
            while not self._closing.wait(max(due - time.monotonic(), 0.0)):
                if not self._held():
                    _close(duty)
                    duty = None
                    due = time.monotonic() + STANDING_BY_S
                    continue
                duty, done = self._turn(schedule, duty)
                now = time.monotonic()
                due = max(due + schedule.interval_s, now) if done else now + min(schedule.interval_s, LONGEST_RETRY_S)
            if schedule.at_end and self._held():
                duty, _ = self._turn(schedule, duty)
        finally:
            _close(duty)

    def _turn(self, schedule: Schedule, duty: Duty | None) -> tuple[Duty | None, bool]:
        try:
            duty = duty or schedule.make()
            duty.run()
        except Exception as error:  # also what we did not think of: the next turn may go well
            why = str(error) if isinstance(error, ConnectionError | SparkMirrorError) else repr(error)
            if self._failing.get(schedule.name) != why:
                log.warning("flow %s: %s: %s", self._flow, schedule.name, why)
            self._failing[schedule.name] = why
            _close(duty)
            return None, False
        if self._failing.pop(schedule.name, None) is not None:
            log.info("flow %s: %s: works again", self._flow, schedule.name)
        return duty, True


def _close(duty: Duty | None) -> None:
    if duty is not None:
        duty.close()
