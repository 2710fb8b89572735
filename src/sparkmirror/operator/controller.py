"""Turns of all resources: one after the other for each, by the side of one another's."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sparkmirror.events import Event
from sparkmirror.operator.kube import KubeRefused
from sparkmirror.operator.names import Key
from sparkmirror.operator.turn import Memory

CALM_S = 30.0
"""Between two turns of a resource that is as it should be and of which nothing is heard."""
BUSY_S = 3.0
"""The same of one that is not."""
LONGEST_S = 60.0
"""After failures in a row the pause doubles up to this."""

log = logging.getLogger(__name__)

Take = Callable[[Key, Memory], bool]


class Controller:
    """`due` has a turn taken soon, `forget` ends a resource's; for any thread. `take` is `Turns.take`."""

    def __init__(self, take: Take, calm_s: float = CALM_S, busy_s: float = BUSY_S) -> None:
        self._take = take
        self._calm_s = calm_s
        self._busy_s = busy_s
        self._lock = threading.Lock()
        self._loops: dict[Key, _Loop] = {}

    def due(self, key: Key) -> None:
        """Something has changed about it."""
        with self._lock:
            loop = self._loops.get(key)
            if loop is None:
                self._loops[key] = _Loop(self._take, key, self._calm_s, self._busy_s)
                self._loops[key].start()
            else:
                loop.wake()

    def due_in(self, namespace: str) -> None:
        """Something has changed there that any resource of the namespace may read."""
        with self._lock:
            keys = [key for key in self._loops if key.namespace == namespace]
        for key in keys:
            self.due(key)

    def forget(self, key: Key) -> None:
        """It is gone."""
        with self._lock:
            loop = self._loops.pop(key, None)
        if loop is not None:
            loop.end()

    def close(self) -> None:
        """End all."""
        with self._lock:
            loops, self._loops = list(self._loops.values()), {}
        for loop in loops:
            loop.end()


class _Loop(threading.Thread):
    def __init__(self, take: Take, key: Key, calm_s: float, busy_s: float) -> None:
        super().__init__(name=str(key), daemon=True)
        self._take_turn = take
        self._key = key
        self._calm_s, self._busy_s = calm_s, busy_s
        self._memory = Memory()
        self._woken = threading.Event()
        self._ended = False
        self._failures = 0

    def wake(self) -> None:
        self._woken.set()

    def end(self) -> None:
        self._ended = True
        self._woken.set()

    def run(self) -> None:
        """Take turns until the end."""
        while not self._ended:
            pause_s = self._turn()
            self._woken.wait(pause_s)

    def _turn(self) -> float:
        """Take one; how long to wait for the next. What happens from now on takes another."""
        self._woken.clear()
        try:
            calm = self._take_turn(self._key, self._memory)
        except KubeRefused as refused:
            log.warning("%s: %s", self._key, refused, extra=Event.TURN_FAILED.extra)
        except Exception:
            log.exception("%s: the turn has failed", self._key, extra=Event.TURN_FAILED.extra)
        else:
            self._failures = 0
            return self._calm_s if calm else self._busy_s
        self._failures += 1
        return min(self._busy_s * 2.0 ** (self._failures - 1), LONGEST_S)
