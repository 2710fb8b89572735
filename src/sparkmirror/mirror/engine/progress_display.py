"""Show a mirror's progress, a few times a second at most."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from sparkmirror.snapshot.snapshot import Snapshot

OnProgress = Callable[[Snapshot], None]

_PROGRESS_S, _LONGEST_PROGRESS_S = 0.5, 2.0
_PROGRESS_SHARE = 0.005
"""Share of a core for showing progress.

With many partitions progress is shown less often.
"""


class MakeSnapshot(Protocol):
    """Makes a snapshot; with `newest` the snapshot is made now."""

    def __call__(self, *, newest: bool = False) -> Snapshot: ...


class ProgressDisplay:
    """The caller's function that shows the progress, and when it is due."""

    def __init__(self, snapshot: MakeSnapshot, on_progress: OnProgress | None) -> None:
        self._snapshot = snapshot
        self._on_progress = on_progress
        self._due_at = 0.0
        self._ticked = time.monotonic()

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
        self._on_progress(self._snapshot(newest=now))
        cost_s = time.thread_time() - began
        self._due_at = time.monotonic() + min(max(_PROGRESS_S, cost_s / _PROGRESS_SHARE), _LONGEST_PROGRESS_S)
