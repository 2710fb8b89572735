"""A pump's event loop: sockets, timers, and calls from the helper threads."""

from __future__ import annotations

import heapq
import itertools
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from sparkmirror.clock import now_s
from sparkmirror.kafka.wire.channel import Channel

SUSPENDED_S = 2.0
"""Excess over a turn's longest time that shows a suspended or busy process.

After such a turn, unsent data is too old to be sent (R6).
"""


class Watcher(Protocol):
    """A channel's owner."""

    def on_readable(self) -> None:
        """Read from the socket, which has data."""

    def on_writable(self) -> None:
        """Write to the socket, which takes data again."""


class Loop:
    """One thread's event loop; other threads may only call `post`."""

    def __init__(self, clock: Callable[[], float] = now_s) -> None:
        self.clock = clock
        """Clock of all times here."""
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._inbox: deque[Callable[[], None]] = deque()
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_out, False)
        os.set_blocking(self._wake_in, False)
        self._selector.register(self._wake_out, selectors.EVENT_READ, None)
        self._closing = threading.Lock()
        self._closed = False
        self.now = clock()
        """Time at which this turn of the loop began."""
        self._worked_s = time.process_time()
        self.on_suspended: list[Callable[[bool], None]] = []
        """Calls to make first after a turn that took far too long.

        The argument is True if the process was busy all the time, and False if the process was stopped in between.
        """

    def watch(self, channel: Channel, watcher: Watcher) -> None:
        self._selector.register(channel.fileno(), selectors.EVENT_READ, watcher)

    def want_write(self, channel: Channel, watcher: Watcher, wanted: bool) -> None:
        """Begin or stop calling the watcher's `on_writable`."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wanted else 0)
        if self._selector.get_key(channel.fileno()).events != events:
            self._selector.modify(channel.fileno(), events, watcher)

    def unwatch(self, channel: Channel) -> None:
        self._selector.unregister(channel.fileno())

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Call back at `when` by `clock` or later."""
        heapq.heappush(self._timers, (when, next(self._order), call))

    def post(self, call: Callable[[], None]) -> None:
        """Have the loop call back soon; any thread may ask."""
        with self._closing:
            if self._closed:
                return  # the loop takes no more calls, and the descriptor may belong to another file by now
            self._inbox.append(call)
            with suppress(BlockingIOError):  # a full pipe wakes the loop anyway
                os.write(self._wake_in, b"!")

    def turn(self, longest_s: float) -> None:
        """Wait for an event, at most `longest_s`; call watchers, posted calls and timers.

        After a suspension the turn ends with the calls in `on_suspended`.
        """
        wait = longest_s
        if self._timers:
            wait = min(wait, max(self._timers[0][0] - self.clock(), 0.0))
        ready = self._selector.select(0 if self._inbox else wait)
        last, self.now = self.now, self.clock()
        worked, self._worked_s = self._worked_s, time.process_time()
        too_long_s = self.now - last - longest_s - SUSPENDED_S
        if too_long_s > 0:
            busy = self._worked_s - worked > too_long_s
            for call in self.on_suspended:
                call(busy)
            if not busy:
                return
        for key, events in ready:
            watcher: Watcher | None = key.data
            if watcher is None:
                os.read(self._wake_out, 4096)
                continue
            if events & selectors.EVENT_WRITE:
                watcher.on_writable()
            if events & selectors.EVENT_READ:
                watcher.on_readable()
        while self._inbox:
            self._inbox.popleft()()
        while self._timers and self._timers[0][0] <= self.now:
            heapq.heappop(self._timers)[2]()

    def close(self) -> None:
        with self._closing:
            self._closed = True
            self._timers.clear()
            self._inbox.clear()
            self.on_suspended.clear()
            self._selector.close()
            os.close(self._wake_in)
            os.close(self._wake_out)
