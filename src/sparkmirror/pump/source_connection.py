"""Connection that fetches from a source broker, with one request in flight.

Each connection has one incremental session (KIP-227).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.wire.buffers import Frame
from sparkmirror.kafka.wire.channel import Channel, ChannelClosed
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.fetch_session import (
    FetchedPartition,
    FetchPosition,
    FetchSession,
)
from sparkmirror.kafka.wire.primitives import Garbled, check_answer
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.broker_connection import BrokerConnection
from sparkmirror.pump.limits import Lane
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.tally import TrafficMeter
from sparkmirror.pump.verdicts import explanation
from sparkmirror.pump.window import LineMeter

SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors for a lost session, after which a new session is asked for at once.

A broker forgets sessions when the broker restarts or keeps too many (KIP-227); the next request begins a session. A
second refusal in a row is followed by a pause, too.
"""

TRIES = 3
"""Number of refused requests in a row after which the partitions are told.

A single refusal may be a bad moment at the broker.
"""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
"""First and longest pause after a refused request; pauses double."""

HELD_BACK_WAIT_MS = 10
"""Broker's longest wait while a partition is held back, or expected.

The wait is short because the partition must be asked for soon.
"""


MEASURED_BYTES = 256 << 10
"""An answer of this size tells the round trip.

For a smaller answer the broker may have waited until there were records.
"""


class FetchSize(NamedTuple):
    """Most bytes that one fetch may ask for."""

    answer: int
    partition: int
    prompt: bool = False
    """True if the broker should not wait long for records."""


class Fetched(Protocol):
    """Callback for one partition's part of an answer.

    A callback that keeps the records must hold the frame.
    """

    def __call__(self, part: FetchedPartition, frame: Frame) -> None: ...


class SourceConnection(BrokerConnection):
    """Connection that fetches from one source broker, for one lane.

    `next_size` tells how much the next request may ask for, None for no request now.
    """

    def __init__(
        self,
        lane: Lane,
        loop: Loop,
        *,
        dial: Callable[[SourceConnection], None],
        renew: Callable[[BrokerConnection, Channel], None],
        on_fetched: Fetched,
        on_refused: Callable[[SourceConnection, int], None],
        on_lost: Callable[[SourceConnection, str], None],
        next_size: Callable[[SourceConnection], FetchSize | None],
        meter: TrafficMeter,
        line: LineMeter,
        max_wait_ms: int,
    ) -> None:
        super().__init__(f"source broker {lane.broker}", loop, lambda: dial(self), renew, meter)
        self.lane = lane
        self._on_fetched = on_fetched
        self._on_refused = on_refused
        self._on_lost = on_lost
        self._next_size = next_size
        self._line = line
        self._max_wait_ms = max_wait_ms
        self._session: FetchSession | None = None
        self._asked_at: float | None = None
        self._asked_wait_ms = 0
        """Broker's longest wait for the request in flight."""
        self._first_at: float | None = None
        """Time at which the answer began to come."""
        self.asked_bytes = 0
        """Most bytes in the answer under way; 0: no request is in flight."""
        self.dealt: set[TopicPartition] = set()
        """Partitions dealt to this connection, fetched at present or not."""
        self._correlation_id = 0
        self._wanted: dict[TopicPartition, tuple[bytes, FetchPosition]] = {}
        self.held_back: set[TopicPartition] = set()
        """Partitions not fetched only because of full queues."""
        self.not_before = 0.0
        """Earliest time for the next request, after a throttle or a refused request."""
        self._alarm = 0.0
        """Time at which to call `pump` next after a call that was too early."""
        self._refusals = 0
        """Number of requests in a row that the broker refused as a whole."""
        self.refusal = ""
        """Reason for the refusals while request after request is refused."""

    def want(self, key: TopicPartition, topic_id: bytes, position: FetchPosition) -> None:
        self.held_back.discard(key)
        if self._wanted.get(key) != (topic_id, position):
            self._wanted[key] = topic_id, position
            if self._session is not None:
                self._session.want(key[0], topic_id, key[1], position)

    def forget(self, key: TopicPartition) -> None:
        """Stop fetching a partition for now."""
        self.held_back.discard(key)
        if self._wanted.pop(key, None) is not None and self._session is not None:
            self._session.forget(*key)

    def hold_back(self, key: TopicPartition) -> None:
        """Stop fetching a partition until the partition's queue is shorter."""
        self.forget(key)
        self.held_back.add(key)

    def asks_for(self, key: TopicPartition) -> bool:
        """True if an answer under way may have the partition's records."""
        return self._asked_at is not None and self._session is not None and self._session.asks_for(key)

    @property
    def is_prompt(self) -> bool:
        """True if the next request can be sent at once, or nearly."""
        return self.is_connected and (self._asked_at is None or self._asked_wait_ms <= HELD_BACK_WAIT_MS)

    def connected(self, channel: Channel, session: FetchSession, round_trip_s: float) -> None:
        """Begin to fetch over the channel that the connection has asked for."""
        self._line.dialed(round_trip_s)
        if not self._take_channel(channel):
            return
        self._session = session
        for (topic, partition), (topic_id, position) in self._wanted.items():
            session.want(topic, topic_id, partition, position)
        self.pump()

    def pump(self) -> None:
        """Send the next request if a partition is wanted and the limits allow a fetch."""
        if self._asked_at is not None or self._renewing or not self._wanted:
            return
        if self._channel is None or self._session is None:
            self._ask_for_channel()
            return
        if self._loop.now < self.not_before:
            if self._alarm != self.not_before:
                self._alarm = self.not_before
                self._loop.at(self._alarm, self.pump)
            return
        size = self._next_size(self)
        if size is None:
            return
        if self._channel.renewal_due:
            self._start_renewal(self._channel)
            return
        self._correlation_id += 1
        self._asked_at, self._first_at, self.asked_bytes = self._loop.now, None, size.answer
        self.meter.requests += 1
        self._session.max_bytes, self._session.partition_max_bytes = size.answer, size.partition
        short = size.prompt or self.held_back
        self._asked_wait_ms = min(self._max_wait_ms, HELD_BACK_WAIT_MS) if short else self._max_wait_ms
        self._session.max_wait_ms = self._asked_wait_ms
        try:
            request = self._session.request(self._correlation_id)
            self._channel.bound = self._session.bound
            self._channel.send([request])
            self._loop.want_write(self._channel, self, self._channel.unsent)
        except ChannelClosed as error:
            self._lose(str(error))

    def check(self, timeout_s: float) -> None:
        """Give the connection up if an answer is overdue."""
        if self._asked_at is not None and self._loop.now - self._asked_at > timeout_s:
            self._lose(f"{self.peer} did not answer a fetch in {timeout_s:.0f} s")

    def on_readable(self) -> None:
        channel, session = self._channel, self._session
        if channel is None or session is None:
            return
        if self._first_at is None:
            self._first_at = self._loop.now
        try:
            for frame in channel.receive():
                try:
                    if self._asked_at is None:
                        raise Garbled("an answer to a Fetch that was not sent")
                    check_answer(frame.view, self._correlation_id)
                    self._measure(len(frame.view), self._asked_at, self._first_at)
                    self._asked_at, self.asked_bytes = None, 0
                    self._take(session, frame)
                finally:
                    frame.release()
        except (ChannelClosed, Garbled) as error:
            self._lose(str(error))
            return
        self.pump()

    def _measure(self, size: int, asked_at: float, first_at: float) -> None:
        waited_s = self._loop.now - asked_at
        self.meter.answered(size, waited_s)
        self._line.answered(size, waited_s, first_at - asked_at if size >= MEASURED_BYTES else None)

    def _take(self, session: FetchSession, frame: Frame) -> None:
        head, parts = session.read(frame.view)
        if head.throttle_ms:
            self.not_before = max(self.not_before, self._throttle(head.throttle_ms))
        if session.accept(head):
            self._refusals, self.refusal = 0, ""
            for part in parts:
                self._on_fetched(part, frame)
        else:
            self._refused(head.error)

    def _refused(self, error: int) -> None:
        """Pause after a request refused as a whole, longer each time; give the reason."""
        self._refusals += 1
        if self._refusals == 1 and error in SESSION_ERRORS:
            return
        pause_s = min(FIRST_PAUSE_S * 2 ** min(self._refusals - 1, 8), LONGEST_PAUSE_S)
        self.not_before = max(self.not_before, self._loop.now + pause_s)
        if self._refusals >= TRIES:
            words = f"{error_name(error)}, {explanation(error)}".rstrip(", ")
            self.refusal = f"{self.peer} refuses to be fetched from: {words}"
            self._on_refused(self, error)

    def _lose(self, reason: str) -> None:
        self._lost = True
        self.meter.errors += 1
        self.close()
        self._on_lost(self, f"{self.peer}: {reason}")

    def close(self) -> None:
        self._hang_up()
        self._session = None
        self._asked_at, self.asked_bytes = None, 0
