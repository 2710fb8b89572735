"""Requests that wait for a cluster, in their own threads.

A cluster that does not answer is given up only after a while. All other requests' threads stay free meanwhile, and so
do most of these threads, as few work for one connector.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sparkmirror.connect.errors import RestError

THREADS = 32
MOST_OF_ONE = 2
"""Most requests of one connector that may wait for its clusters."""

T = TypeVar("T")


class ClusterRequests:
    """Pool of threads; `most_of_one` bounds the requests of one connector."""

    def __init__(self, most_of_one: int | None = None) -> None:
        self._most_of_one = most_of_one
        self._pool = ThreadPoolExecutor(THREADS, "cluster-request")
        self._lock = threading.Lock()
        self._waiting = Counter[str]()

    async def run(self, connector: str, ask: Callable[[], T]) -> T:
        """Return the result of `ask`; raise `RestError` with 503 beyond the bound."""
        with self._lock:
            if self._most_of_one is not None and self._waiting[connector] >= self._most_of_one:
                words = (
                    f"{self._most_of_one} requests wait for the clusters of connector {connector} already; try again"
                )
                raise RestError(503, words)
            self._waiting[connector] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, ask)
        finally:
            with self._lock:
                self._waiting[connector] -= 1
                if not self._waiting[connector]:
                    del self._waiting[connector]
