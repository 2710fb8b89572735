"""Stream events to browsers: made once a second for all viewers together.

No events are made without viewers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from sparkmirror.errors import HandledError
from sparkmirror.events import Event
from sparkmirror.look.page.changes import Changes, Delta
from sparkmirror.look.page.rows import Rows, WantedRows
from sparkmirror.look.page.summary import summary
from sparkmirror.snapshot.snapshot import Snapshot

PERIOD_S = 1.0

MOST_VIEWERS = 64
"""Most viewers: a quarter of the connections that the listener serves.

So the listener always answers requests for metrics.
"""

HISTORY_STEP_S = 15.0
HISTORY_LENGTH = 6
"""Number of earlier snapshots for the doctor's rules over time: over a minute.

A minute suffices for all rules. A snapshot with 10,000 partitions takes megabytes, so that the number is small.
"""

log = logging.getLogger(__name__)


class TooManyViewers(HandledError):
    """Refused viewer: `MOST_VIEWERS` browsers watch already."""


class _Viewer:
    def __init__(self, wanted: WantedRows | None) -> None:
        self.wanted = wanted
        self.knows = False
        """True if the viewer has the table as sent to all viewers."""
        self._next: asyncio.Queue[str | None] = asyncio.Queue(maxsize=1)

    @property
    def is_slow(self) -> bool:
        """True if the viewer has not taken the last message yet."""
        return self._next.full()

    def give(self, text: str) -> None:
        self._next.put_nowait(text)

    def end(self) -> None:
        """End the stream, so that the browser connects again."""
        if self._next.full():
            self._next.get_nowait()
        self._next.put_nowait(None)

    async def take(self) -> str | None:
        return await self._next.get()


class _Table:
    """Table that at least one viewer looks at."""

    def __init__(self, wanted: WantedRows) -> None:
        self._rows = Rows(wanted)
        self.changes = Changes()

    def look(self, snapshot: Snapshot) -> Delta:
        return self.changes.look(self._rows.of(snapshot))


class Feed:
    """Stream of one mirror's events to all viewers; for one event loop."""

    def __init__(self, snapshots: Callable[[], Snapshot], period_s: float = PERIOD_S) -> None:
        self._snapshots = snapshots
        self._period_s = period_s
        self._viewers: set[_Viewer] = set()
        self._tables: dict[WantedRows, _Table] = {}
        self._history: list[Snapshot] = []
        self._snapshot: Snapshot | None = None
        self._said = ""
        self._work: asyncio.Task[None] | None = None
        self._came = asyncio.Event()
        self._tables_in_use = asyncio.Lock()
        self.made = 0
        """Number of snapshots taken for viewers."""
        self.skipped = 0
        """Number of messages skipped because the viewer had not taken the one before."""

    def check_room(self) -> None:
        """Raise `TooManyViewers` if no further viewer is served."""
        if len(self._viewers) >= MOST_VIEWERS:
            raise TooManyViewers

    async def watch(
        self, wanted: WantedRows | None, hello: dict[str, Any], ending: Callable[[], bool] = lambda: False
    ) -> AsyncIterator[str]:
        """Yield the events for one viewer: `hello`, then `now` and `rows` each second.

        All viewers' streams end once `ending` says so about the server.
        """
        viewer = _Viewer(wanted)
        self._viewers.add(viewer)
        try:
            yield "retry: 1000\n" + _event("hello", hello)
            self._came.set()
            if self._work is None:
                self._work = asyncio.create_task(self._run(ending))
                self._work.add_done_callback(_tell_failure)
            while (text := await viewer.take()) is not None:
                yield text
        finally:
            self._viewers.discard(viewer)

    async def rows(self, wanted: WantedRows, numbers: Iterable[int]) -> list[list[object]]:
        """Return a watched table's present rows; empty for an unwatched table."""
        async with self._tables_in_use:
            table = self._tables.get(wanted)
            return table.changes.newest(numbers) if table is not None else []

    async def _run(self, ending: Callable[[], bool]) -> None:
        try:
            while self._viewers and not ending():
                began = time.monotonic()
                async with self._tables_in_use:
                    deltas = await asyncio.to_thread(self._make)
                    self._send(deltas)
                await self._welcome(began + self._period_s)
        finally:
            for viewer in self._viewers:
                viewer.end()
            self._work = self._snapshot = None
            self._tables.clear()
            self._history.clear()

    async def _welcome(self, until: float) -> None:
        """Send the present state to new viewers until the next second begins."""
        while (left := until - time.monotonic()) > 0 and self._viewers:
            try:
                await asyncio.wait_for(self._came.wait(), left)
            except TimeoutError:
                return
            self._came.clear()
            async with self._tables_in_use:
                await asyncio.to_thread(self._open_tables)
                self._send(None)

    def _make(self) -> dict[WantedRows, Delta]:
        """Take a snapshot, make its summary, and return each table's changes.

        Runs in a thread, outside the event loop.
        """
        now = self._snapshot = self._snapshots()
        self.made += 1
        old_enough = [snapshot for snapshot in self._history if now.at_ms - snapshot.at_ms >= HISTORY_STEP_S * 1000]
        self._said = _event("now", summary(now, old_enough))
        if not self._history or now.at_ms - self._history[-1].at_ms >= HISTORY_STEP_S * 1000:
            self._history = [*self._history, now][-HISTORY_LENGTH:]
        wanted = self._wanted()
        for unwatched in self._tables.keys() - wanted:
            del self._tables[unwatched]
        for table in wanted - self._tables.keys():
            self._tables[table] = _Table(table)
        return {table: self._tables[table].look(now) for table in wanted}

    def _open_tables(self) -> None:
        assert self._snapshot is not None  # noqa: S101 - `_make` runs before `_welcome`
        for wanted in self._wanted() - self._tables.keys():
            self._tables[wanted] = _Table(wanted)
            self._tables[wanted].look(self._snapshot)

    def _wanted(self) -> set[WantedRows]:
        return {viewer.wanted for viewer in list(self._viewers) if viewer.wanted is not None}

    def _send(self, deltas: dict[WantedRows, Delta] | None) -> None:
        """Send to all viewers; without deltas only to viewers without a table."""
        texts: dict[tuple[WantedRows, bool], str] = {}
        for viewer in self._viewers:
            if deltas is None and viewer.knows:
                continue
            if viewer.is_slow:
                viewer.knows = False
                self.skipped += 1
                continue
            text = self._said
            if viewer.wanted is not None:
                if viewer.wanted not in self._tables:  # the viewer came after the tables were made
                    continue
                key = viewer.wanted, viewer.knows
                if key not in texts:
                    table = self._tables[viewer.wanted]
                    delta = deltas[viewer.wanted] if deltas is not None and viewer.knows else table.changes.all()
                    texts[key] = _rows_event(viewer.wanted, delta, reset=not viewer.knows)
                text += texts[key]
            viewer.give(text)
            viewer.knows = True


def _rows_event(wanted: WantedRows, delta: Delta, *, reset: bool) -> str:
    return _event(
        "rows",
        {
            "kind": wanted.kind.value,
            "flow": wanted.flow,
            "of": wanted.of,
            "reset": reset,
            "rows": delta.rows,
            "gone": delta.gone,
            "waiting": delta.waiting,
        },
    )


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


def _tell_failure(work: asyncio.Task[None]) -> None:
    error = None if work.cancelled() else work.exception()
    if error is not None:
        log.error("the live page can't get its figures", exc_info=error, extra=Event.REQUEST_FAILED.extra)
