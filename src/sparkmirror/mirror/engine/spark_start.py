"""Start Spark next to the mirror's loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkmirror.mirror.engine.session import demand_pinned_threads, start_spark, starts_early


class SparkStart:
    """Start Spark: `begin`, then `wait`, at the end `close`.

    The Spark behind a caller's session, `given`, needs no start and continues.
    """

    def __init__(self, settings: Mapping[str, str], given: SparkSession | None) -> None:
        self._settings = settings
        self._given = given
        self._context: Future[SparkContext] | None = None
        self._is_closed = threading.Event()

    @property
    def is_begun(self) -> bool:
        return self._context is not None

    @property
    def is_early(self) -> bool:
        """True if Spark starts while the process still stands by.

        On this machine a waiting Spark costs memory only, and spares a takeover the wait for Spark's start.
        """
        return starts_early(self._settings)

    def begin(self, slots: int) -> None:
        """Start Spark in a thread that doesn't hold up the process's end."""
        context: Future[SparkContext] = Future()

        def start() -> None:
            try:
                demand_pinned_threads()
                context.set_result(self._given.sparkContext if self._given else start_spark(self._settings, slots))
            except Exception as error:
                context.set_exception(error)
            if self._is_closed.is_set():
                self._stop()

        threading.Thread(target=start, name="spark", daemon=True).start()
        self._context = context

    def wait(self, turn: Callable[[], bool]) -> SparkContext | None:
        """Wait for Spark; raise the start's error.

        `turn` waits a moment, and returns True to give up; then the result is None.
        """
        if self._context is None:
            return None
        while not self._context.done():
            if turn():
                return None
        return self._context.result()

    def now(self) -> SparkContext | None:
        """Return the context if Spark is up."""
        up = self._context is not None and self._context.done() and self._context.exception() is None
        return self._context.result() if self._context is not None and up else None

    def close(self) -> None:
        """Stop the Spark that was started here, or is still being started."""
        self._is_closed.set()
        self._stop()

    def _stop(self) -> None:
        if self._context is not None and self._context.done() and self._given is None:
            with suppress(Exception):  # the JVM may have ended already
                self._context.result().stop()
