"""Threads for blocking work, to keep a pump's loop free.

Connecting, reading positions, making claims durable, looking at copies at rest and telling about moves have a thread
each.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from kafka.errors import KafkaError

from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.sasl import SaslError
from sparkmirror.pump.loop import Loop

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class Background:
    """One thread that does pieces of work in turn, and hands each outcome to the loop.

    No other thread asks `clients` anything.
    """

    def __init__(self, loop: Loop, name: str, clients: Iterable[ClusterClient]) -> None:
        self._loop = loop
        self._clients = clients
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def do(
        self, work: Callable[[], Result], then: Callable[[Result], None], failed: Callable[[Exception], None]
    ) -> None:
        """Run `work` in the thread, then `then` or `failed` in the loop."""

        def run() -> None:
            try:
                result = work()
            except Exception as error:  # any error goes to the loop, which decides
                if not isinstance(error, OSError | KafkaError | SaslError | SparkMirrorError):
                    log.exception("%s failed", self._thread.name, extra=Event.BACKGROUND_WORK_FAILED.extra)
                caught = error
                self._loop.post(lambda: failed(caught))
            else:
                self._loop.post(lambda: then(result))

        self._work.put(run)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()

    def close(self) -> None:
        """Close the clients after the work asked for so far, and take no more work.

        Returns at once; running work ends by its own timeouts.
        """

        def hang_up() -> None:
            for client in self._clients:
                client.close()

        self._work.put(hang_up)
        self._work.put(None)
