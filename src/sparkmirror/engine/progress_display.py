"""Display of a mirror's progress, a few times a second at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.engine.progress import FlowProgress, ProgressMeter

OnProgress = Callable[[Sequence[FlowProgress]], None]

_PROGRESS_S, _LONGEST_PROGRESS_S = 0.5, 2.0
_PROGRESS_SHARE = 0.005
"""Share of a core for showing progress.

With many partitions progress is shown less often.
"""


class ProgressDisplay:
    """Meters of all flows, and the caller's function that shows what they read."""

    def __init__(
        self,
        drivers: Callable[[], Sequence[FlowDriver]],
        state: Callable[[FlowDriver], str],
        on_progress: OnProgress | None,
    ) -> None:
        """Prepare the display; `state` returns a state as `ProgressMeter.read` takes it."""
        self.meters: dict[str, ProgressMeter] = {}
        self._drivers = drivers
        self._state = state
        self._on_progress = on_progress
        self._due_at = 0.0
        self._ticked = time.monotonic()
        for driver in drivers():
            self.renew(driver)

    def renew(self, driver: FlowDriver) -> None:
        """Give a new driver a meter."""
        self.meters[driver.name] = ProgressMeter(driver)

    @property
    def tick_age_s(self) -> float:
        """Seconds since `show` was called."""
        return time.monotonic() - self._ticked

    def show(self, *, now: bool = False) -> None:
        """Show the progress, if due or `now`."""
        self._ticked = time.monotonic()
        if self._on_progress is None or (not now and time.monotonic() < self._due_at):
            return
        began = time.thread_time()
        self._on_progress([self.meters[driver.name].read(self._state(driver)) for driver in self._drivers()])
        cost_s = time.thread_time() - began
        self._due_at = time.monotonic() + min(max(_PROGRESS_S, cost_s / _PROGRESS_SHARE), _LONGEST_PROGRESS_S)
