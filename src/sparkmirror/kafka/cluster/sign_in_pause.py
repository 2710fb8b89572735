"""Pause after a refused sign-in, shared by a process's connections to a broker.

A broker that refuses a password refuses all the process's clients, and each client would try again at once: such tries
lock accounts and fill logs. So a single client asks, and until the pause is over the other clients get the refusal that
this client got.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sparkmirror.config.model import ClusterConfig
from sparkmirror.kafka.wire.rpc import AccessRefused

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 10.0
"""Longest pause; pauses double up to it.

So a broker whose refusal was mended is asked again at most this long afterwards.
"""


class SignInPause:
    """Pause before the next sign-in at one broker, after a refused sign-in."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._refusal: AccessRefused | None = None
        self._pause_s = 0.0
        self._paused_until = 0.0

    @contextmanager
    def passage(self) -> Iterator[None]:
        """Dial within this context; raise the last refusal again during the pause."""
        with self._lock:
            if self._refusal is not None:
                if self._clock() < self._paused_until:
                    raise type(self._refusal)(str(self._refusal))
                self._paused_until = self._clock() + self._pause_s  # other clients wait for this client's answer
        try:
            yield
        except AccessRefused as error:
            with self._lock:
                self._refusal = error
                self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
                self._paused_until = self._clock() + self._pause_s
            raise
        with self._lock:
            self._refusal, self._pause_s = None, 0.0


@functools.lru_cache(maxsize=1024)
def sign_in_pause(config: ClusterConfig, host: str, port: int) -> SignInPause:
    """Return the pause at a broker, shared by all clients with this configuration."""
    return SignInPause()
