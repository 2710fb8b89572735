"""Start of Spark beside the mirror's loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress

from pyspark.sql import SparkSession

from sparkmirror.engine.session import open_session, starts_early


class SparkStart:
    """Start of one Spark session: `begin`, then `wait`, at the end `close`.

    A session of the caller's, `given`, needs no start and stays open.
    """

    def __init__(self, settings: Mapping[str, str], given: SparkSession | None) -> None:
        self._settings = settings
        self._given = given
        self._session: Future[SparkSession] | None = None

    @property
    def is_begun(self) -> bool:
        """True once `begin` was called."""
        return self._session is not None

    @property
    def is_early(self) -> bool:
        """True if Spark starts while the process still stands by.

        On this machine a waiting Spark costs memory only, and spares a takeover the wait for Spark's start.
        """
        return starts_early(self._settings)

    def begin(self, slots: int) -> None:
        """Start Spark in a thread that doesn't hold up the end of the process."""
        session: Future[SparkSession] = Future()

        def start() -> None:
            try:
                session.set_result(self._given or open_session(self._settings, slots))
            except Exception as error:
                session.set_exception(error)

        threading.Thread(target=start, name="spark", daemon=True).start()
        self._session = session

    def wait(self, turn: Callable[[], bool]) -> SparkSession | None:
        """Wait for Spark; raise the start's error.

        `turn` waits a moment, and returns True to give up; then the result is None.
        """
        if self._session is None:
            return None
        while not self._session.done():
            if turn():
                return None
        return self._session.result()

    def now(self) -> SparkSession | None:
        """Return the session if Spark is up."""
        up = self._session is not None and self._session.done() and self._session.exception() is None
        return self._session.result() if self._session is not None and up else None

    def close(self) -> None:
        """Stop the session that was started here."""
        if self._session is not None and self._session.done() and self._given is None:
            with suppress(Exception):  # the JVM may have ended already
                self._session.result().stop()
