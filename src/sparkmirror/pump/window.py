"""Window: bytes in flight over one line, decided from measured answers.

A line is the way between a pump and one broker. Kafka answers a connection's requests in order, so that a line moves at
most the bytes in flight in each round trip. On a short line the usual sizes are enough. On a long line the window
follows bandwidth times delay, up to a memory bound. The module does no I/O: measurements in, windows out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from sparkmirror.clock import now_s

SHORT_S = 0.010
"""Round trip below which a line is short: 4 MiB in each make 400 MB/s."""

GAIN = 2.0
"""Window in units of rate times round trip.

Above 1 the window grows until the rate no longer does: the measured rate is at most window by round trip.
"""

SAMPLE_S = 0.25
"""Shortest time over which a rate is measured.

Two round trips if these are longer.
"""

RATES = 4
"""Number of last rates, of which the highest counts.

So a pause does not shrink the window at once.
"""

ROUND_TRIPS_S = 10.0
"""Time for which a round trip counts, at least.

The shortest counts, as the others include waiting.
"""

MOST_CONNECTIONS = 8
"""Most connections from one flow in one task to one broker and lane."""


class Line(NamedTuple):
    """A line's measurement."""

    round_trip_s: float | None = None
    """Shortest time from a request to the beginning of its answer; None: not measured."""
    bytes_per_s: float = 0.0

    @property
    def is_long(self) -> bool:
        """True if the usual sizes may be too small for the line."""
        return self.round_trip_s is not None and self.round_trip_s >= SHORT_S


class WindowReason(StrEnum):
    """Reason for a window's size."""

    SHORT = "the line is short, so the usual size is enough"
    ENOUGH = "the usual size is enough for what is moved"
    LINE = "twice what is moved in a round trip"
    MEMORY = "the memory of the task allows no more"


class LineWindow(NamedTuple):
    """Bytes in flight over a line, with the reason."""

    size: int
    choice: WindowReason
    needed: int = 0
    """Bytes that the line needs in flight for what is moved; 0 for a short line."""

    @property
    def follows_line(self) -> bool:
        """True if the line's length has a part in the size."""
        return self.choice is not WindowReason.SHORT


def window(line: Line, *, usual: int, most: int, pressure: float = 0.0) -> LineWindow:
    """Decide how many bytes may be in flight, at most `most`.

    On a short line these are the `usual` bytes. `pressure` is 0 while memory is plentiful, and 1 when nothing beyond
    the usual size should be asked for.
    """
    usual = min(usual, most)
    if line.round_trip_s is None or not line.is_long:
        return LineWindow(usual, WindowReason.SHORT)
    wanted = int(GAIN * line.bytes_per_s * line.round_trip_s)
    room = usual + int((most - usual) * (1.0 - min(max(pressure, 0.0), 1.0)))
    if wanted <= usual:
        return LineWindow(usual, WindowReason.ENOUGH, wanted)
    if wanted <= room:
        return LineWindow(wanted, WindowReason.LINE, wanted)
    return LineWindow(room, WindowReason.MEMORY, room)


def connections_for(size: int, each: int, *, partitions: int, before: int = 1) -> int:
    """Return the connection count for a window of `size` bytes.

    Each connection carries `each` bytes. A partition stays on one connection, so more connections than partitions are
    useless. The count falls only to half of `before` or less: a new connection costs more than an idle one.
    """
    # Kafka allows 0 for `fetch.max.bytes` and `max.request.size`.
    wanted = max(min(-(-size // max(each, 1)), MOST_CONNECTIONS), 1)
    if before // 2 < wanted < before:
        wanted = before
    return max(min(wanted, partitions), 1)


def batch_bytes(size: int, *, partitions: int, in_flight: int, most: int) -> int:
    """Return the batch size in bytes with which so many partitions fill a window.

    Each partition has at most `in_flight` batches on the way. The result is twice the window's part: batches are joined
    as they are, so that half of them must be expected not to fit.
    """
    return min(2 * size // max(partitions * in_flight, 1), most)


class LineMeter:
    """Measure one line, from the answers on all its connections."""

    def __init__(self, clock: Callable[[], float] = now_s) -> None:
        self._clock = clock
        self._bytes = 0
        self._since: float | None = None
        self._rates: deque[float] = deque(maxlen=RATES)
        self._shortest: float | None = None
        self._shortest_before: float | None = None
        self._shortest_since = 0.0
        self._dialed: deque[float] = deque(maxlen=MOST_CONNECTIONS)
        """The last dials' round trips."""

    def dialed(self, round_trip_s: float) -> None:
        """Take a small request's round trip while a connection was made.

        Nothing else was in flight on the connection. Under load a near broker's answers wait for one another, and none
        may be as fast as the line. So these round trips count until newer dials replace them.
        """
        self._dialed.append(round_trip_s)

    def answered(self, size: int, waited_s: float, first_s: float | None = None) -> None:
        """Count an answer that came `waited_s` after its request.

        Its first byte came after `first_s`. None: the answer does not tell the round trip, because the broker may have
        waited for records.
        """
        now = self._clock()
        if self._since is None:
            self._since = now - waited_s
        self._bytes += size
        if first_s is not None:
            self._note_round_trip(first_s, now)
        elapsed_s = now - self._since
        if elapsed_s >= max(SAMPLE_S, 2 * (self.round_trip_s or 0.0)):
            self._rates.append(self._bytes / elapsed_s)
            self._bytes, self._since = 0, now

    def _note_round_trip(self, first_s: float, now: float) -> None:
        if now - self._shortest_since > ROUND_TRIPS_S:
            self._shortest_before, self._shortest, self._shortest_since = self._shortest, None, now
        self._shortest = first_s if self._shortest is None else min(self._shortest, first_s)

    @property
    def round_trip_s(self) -> float | None:
        """Shortest round trip in the last dials and latest answers; None: not measured."""
        answers = (each for each in (self._shortest, self._shortest_before) if each is not None)
        return min((*self._dialed, *answers), default=None)

    @property
    def line(self) -> Line:
        return Line(self.round_trip_s, max(self._rates, default=0.0))
