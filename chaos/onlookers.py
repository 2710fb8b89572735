"""Those who look on meanwhile: a scraper of the mirror's metrics, a browser's connection to its live page, a reader of
its snapshot.

They ask whichever mirror is kept running. No counter of a process may fall from a scrape to the next, each event of
the page must be JSON, and what metrics and snapshot say must be so (`words.py`).
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlencode

from prometheus_client.parser import text_string_to_metric_families

from chaos.truth import Truth
from chaos.words import FLOW, FalseWords, Judge, Word, of_metrics, of_snapshot

_EVERY_S = 1.0
_AGAIN_S = 0.5
_TIMEOUT_S = 5.0
_PAGE_TIMEOUT_S = 15.0
"""The page sends something at least every few seconds, also if nothing has changed."""
_MOST_NOTES = 10
_LEAST_SHARE = 0.25
"""Of the scrapes; the mirror is down, or paused, a good part of a round."""
_OK = 200
_STARTED = "sparkmirror_start_timestamp_seconds"
_DATA = b"data:"
_EVENTS = "/events?" + urlencode({"kind": "partitions", "flow": FLOW})

Series = tuple[str, frozenset[tuple[str, str]]]


@dataclass(slots=True)
class Seen:
    """What they saw in a round."""

    asked: int = 0
    """Scrapes begun."""
    scrapes: int = 0
    updates: int = 0
    """Events of the live page."""
    falls: list[str] = field(default_factory=list)
    """The first counters that fell, with both values."""
    unreadable: list[str] = field(default_factory=list)
    """The first answers that were neither metrics nor JSON, and why."""
    judged: int = 0
    """Times at which it was said that something is whole, which were compared with the truth."""
    false: FalseWords = field(default_factory=FalseWords)
    """Of these, what was not so."""

    @property
    def good(self) -> bool:
        """Whether they saw enough, and nothing wrong."""
        wrong = self.falls or self.unreadable or self.false.count
        return self.scrapes > _LEAST_SHARE * self.asked and self.updates > 0 and not wrong


class Onlookers:
    """All of them; as a context, until its end. `port` returns the port at which the mirror listens now."""

    def __init__(self, port: Callable[[], int], truth: Truth) -> None:
        self._judge = Judge(truth)
        self._judging = threading.Lock()
        self.seen = Seen(false=self._judge.false)
        self._port = port
        self._before: Mapping[Series, float] = {}
        self._started: float | None = None
        self._closing = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(act, pause_s), name=name, daemon=True)
            for name, act, pause_s in (
                ("scraper", self._scrape, _EVERY_S),
                ("browser", self._watch, _AGAIN_S),
                ("reader", self._read, _EVERY_S),
            )
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, act: Callable[[], None], pause_s: float) -> None:
        while not self._closing.wait(pause_s):
            try:
                act()
            except (OSError, http.client.HTTPException):
                continue  # it is down, paused, or was killed in the middle of an answer
            except Exception as error:
                self._note(self.seen.unreadable, repr(error))

    def _scrape(self) -> None:
        self.seen.asked += 1
        at = time.monotonic()
        status, text = fetched(self._port(), "/metrics")
        if status == _OK:
            self.note_scrape(text, at)
        else:
            self._note(self.seen.unreadable, f"metrics: status {status}")

    def _read(self) -> None:
        status, text = fetched(self._port(), "/snapshot")
        if status == _OK:
            self.note_snapshot(text)
        else:
            self._note(self.seen.unreadable, f"snapshot: status {status}")

    def note_snapshot(self, text: str) -> None:
        """Have it judged what the snapshot says."""
        try:
            word = of_snapshot(text)
        except (ValueError, LookupError) as error:
            self._note(self.seen.unreadable, f"snapshot: {error!r}")
            return
        if word is not None:
            self._hear(word)

    def _hear(self, word: Word) -> None:
        with self._judging:
            self._judge.hear(word)
            self.seen.judged = self._judge.judged

    def note_scrape(self, text: str, at: float) -> None:
        """Compare its counters with what the same process told last, and have it judged what it says; it was asked for
        at that time of the monotonic clock."""
        try:
            samples = [
                (family.type, sample.name, frozenset(sample.labels.items()), sample.value)
                for family in text_string_to_metric_families(text)
                for sample in family.samples
            ]
        except ValueError as error:
            self._note(self.seen.unreadable, f"metrics: {error}")
            return
        started = next((value for _, name, _, value in samples if name == _STARTED), None)
        if started is None:
            self._note(self.seen.unreadable, f"metrics without {_STARTED}")
            return
        self._hear(of_metrics(at, [(name, labels, value) for _, name, labels, value in samples]))
        counters = {(name, labels): value for kind, name, labels, value in samples if kind == "counter"}
        before = self._before if started == self._started else {}
        for (name, labels), now in counters.items():
            last = before.get((name, labels), now)
            if now < last:
                words = ",".join(f'{label}="{value}"' for label, value in sorted(labels))
                self._note(self.seen.falls, f"{name}{{{words}}} fell from {last:g} to {now:g}")
        self.seen.scrapes += 1
        self._started, self._before = started, {**before, **counters}  # one may be missing meanwhile

    def _watch(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port(), timeout=_PAGE_TIMEOUT_S)
        try:
            connection.request("GET", _EVENTS)
            answer = connection.getresponse()
            if answer.status != _OK:
                self._note(self.seen.unreadable, f"page: status {answer.status}")
            while not self._closing.is_set() and (line := answer.readline()):
                if line.startswith(_DATA) and line.endswith(b"\n"):  # else the process ended within the line
                    self.note_event(line.removeprefix(_DATA).decode())
        finally:
            connection.close()

    def note_event(self, text: str) -> None:
        """Count it if it can be read."""
        try:
            json.loads(text)
        except ValueError as error:
            self._note(self.seen.unreadable, f"page: {error}")
        else:
            self.seen.updates += 1

    @staticmethod
    def _note(notes: list[str], words: str) -> None:
        if len(notes) < _MOST_NOTES:
            notes.append(f"{time.strftime('%H:%M:%S')} {words}")


def fetched(port: int, path: str) -> tuple[int, str]:
    """Return status and text of what the mirror at that port answers. Raises OSError, HTTPException."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
