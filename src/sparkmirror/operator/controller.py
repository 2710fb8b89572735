"""All resources' turns: in sequence for each resource, in parallel across them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sparkmirror.events import Event
from sparkmirror.operator.kube import KubeRefused
from sparkmirror.operator.names import Key
from sparkmirror.operator.turn_settings import Condition, Memory

CALM_S = 30.0
"""Pause between two turns for a resource in its wanted state, without events."""
BUSY_S = 3.0
"""Pause between two turns for a resource that is not yet in its wanted state."""
LONGEST_S = 60.0
"""Longest pause: after consecutive failures the pause doubles up to it."""

log = logging.getLogger(__name__)

Take = Callable[[Key, Memory], bool]


class Controller:
    """Scheduler of turns, with one thread for each resource; thread-safe.

    `due` schedules a turn soon, `forget` ends a resource's turns. `take` is `Turns.take`.
    """

    def __init__(self, take: Take, calm_s: float = CALM_S, busy_s: float = BUSY_S) -> None:
        self._take = take
        self._calm_s = calm_s
        self._busy_s = busy_s
        self._lock = threading.Lock()
        self._loops: dict[Key, _Loop] = {}
        self._counts = _TurnCounts()

    @property
    def counts(self) -> tuple[int, int]:
        """Number of turns so far, and of failed turns."""
        return self._counts.turns, self._counts.failures

    def conditions(self) -> dict[Key, Condition]:
        """Return type and reason of each resource's condition, at its last turn.

        Resources that are not this operator's are left out.
        """
        with self._lock:
            memories = {key: loop.memory for key, loop in self._loops.items()}
        return {key: memory.condition for key, memory in memories.items() if memory.condition is not None}

    def due(self, key: Key) -> None:
        """Schedule a turn soon: something about the resource has changed."""
        with self._lock:
            loop = self._loops.get(key)
            if loop is None:
                self._loops[key] = _Loop(self._take, key, self._calm_s, self._busy_s, self._counts)
                self._loops[key].start()
            else:
                loop.wake()

    def forget(self, key: Key) -> None:
        """End a deleted resource's turns."""
        with self._lock:
            loop = self._loops.pop(key, None)
        if loop is not None:
            loop.end()

    def close(self) -> None:
        """End all resources' turns."""
        with self._lock:
            loops, self._loops = list(self._loops.values()), {}
        for loop in loops:
            loop.end()


class _TurnCounts:
    """Count all turns, thread-safe; those for deleted resources, too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.turns = 0
        self.failures = 0

    def add(self, *, failed: bool) -> None:
        with self._lock:
            self.turns += 1
            self.failures += failed


class _Loop(threading.Thread):
    def __init__(self, take: Take, key: Key, calm_s: float, busy_s: float, counts: _TurnCounts) -> None:
        super().__init__(name=str(key), daemon=True)
        self._take_turn = take
        self._key = key
        self._calm_s, self._busy_s = calm_s, busy_s
        self.memory = Memory()
        self._counts = counts
        self._woken = threading.Event()
        self._ended = False
        self._failures = 0

    def wake(self) -> None:
        self._woken.set()

    def end(self) -> None:
        self._ended = True
        self._woken.set()

    def run(self) -> None:
        while not self._ended:
            pause_s = self._turn()
            self._woken.wait(pause_s)

    def _turn(self) -> float:
        """Take one turn; return the pause before the next, in seconds.

        Any event from the turn's start on causes another turn at once.
        """
        self._woken.clear()
        try:
            calm = self._take_turn(self._key, self.memory)
        except KubeRefused as refused:
            log.warning("%s: %s", self._key, refused, extra=Event.TURN_FAILED.extra)
        except Exception:
            log.exception("%s: the turn has failed", self._key, extra=Event.TURN_FAILED.extra)
        else:
            self._counts.add(failed=False)
            self._failures = 0
            return self._calm_s if calm else self._busy_s
        self._counts.add(failed=True)
        self._failures += 1
        return min(self._busy_s * 2.0 ** (self._failures - 1), LONGEST_S)
