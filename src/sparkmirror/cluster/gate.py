"""Who was refused waits before asking again: for all connections of this process to one broker together.

A broker that refuses a password refuses it to every client of ours, and each would ask again at once; accounts are
locked by that, and logs filled. So one asks, and the others are told what it heard, until the pause is over.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sparkmirror.config.model import ClusterConfig
from sparkmirror.wire.rpc import AccessRefused

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 10.0
"""How long after a mend a broker may be asked again; pauses double up to it."""


class Gate:
    """The way to one broker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refusal: AccessRefused | None = None
        self._pause_s = 0.0
        self._closed_until = 0.0

    @contextmanager
    def passage(self) -> Iterator[None]:
        """Dial within; raises the last refusal again while it is too early to ask."""
        with self._lock:
            if self._refusal is not None:
                if time.monotonic() < self._closed_until:
                    raise type(self._refusal)(str(self._refusal))
                self._closed_until = time.monotonic() + self._pause_s  # the others wait for what we hear
        try:
            yield
        except AccessRefused as error:
            with self._lock:
                self._refusal = error
                self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
                self._closed_until = time.monotonic() + self._pause_s
            raise
        with self._lock:
            self._refusal, self._pause_s = None, 0.0


@functools.lru_cache(maxsize=1024)
def gate(config: ClusterConfig, host: str, port: int) -> Gate:
    """The gate of a broker, for those who are known to it by this configuration."""
    return Gate()
