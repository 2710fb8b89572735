"""Fetching from one source broker: one incremental session, one request in flight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sparkmirror.cluster.error_codes import error_name
from sparkmirror.pump.leg import Leg
from sparkmirror.pump.limits import Lane
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.tally import LegMeter
from sparkmirror.pump.verdicts import explanation
from sparkmirror.wire.buffers import Frame
from sparkmirror.wire.channel import Channel, ChannelClosed
from sparkmirror.wire.fetch import (
    FetchedPartition,
    FetchPosition,
    FetchSession,
)
from sparkmirror.wire.primitives import Garbled
from sparkmirror.wire.topic_partition import TopicPartition

SESSION_ERRORS = frozenset({70, 71, 106})
"""FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR: brokers forget sessions when
they restart or keep too many (KIP-227), so the next request, which begins a session, goes out at once."""

TRIES = 3
"""After so many refused requests in a row the partitions are told; a single one may be a broker's bad moment."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
"""Between refused requests; pauses double."""

HELD_BACK_WAIT_MS = 10
"""The broker's longest wait while a partition is held back: it must get in again soon."""


class Fetched(Protocol):
    """Takes one partition's part of an answer; it must hold the frame if it keeps the records."""

    def __call__(self, part: FetchedPartition, frame: Frame) -> None: ...


class SourceLeg(Leg):
    """One connection that fetches."""

    def __init__(
        self,
        lane: Lane,
        loop: Loop,
        *,
        dial: Callable[[SourceLeg], None],
        renew: Callable[[Leg, Channel], None],
        on_fetched: Fetched,
        on_refused: Callable[[SourceLeg, int], None],
        on_lost: Callable[[SourceLeg, str], None],
        may_fetch: Callable[[Lane], bool],
        meter: LegMeter,
        max_wait_ms: int,
    ) -> None:
        super().__init__(f"source broker {lane.broker}", loop, lambda: dial(self), renew, meter)
        self.lane = lane
        self._on_fetched = on_fetched
        self._on_refused = on_refused
        self._on_lost = on_lost
        self._may_fetch = may_fetch
        self._max_wait_ms = max_wait_ms
        self._session: FetchSession | None = None
        self._asked_at: float | None = None
        self._correlation_id = 0
        self._wanted: dict[TopicPartition, tuple[bytes, FetchPosition]] = {}
        self.held_back: set[TopicPartition] = set()
        """Partitions that would be fetched if their queues weren't full."""
        self.not_before = 0.0
        """No request before then: the throttle's, the broker's own, or the pause after a refused one."""
        self._alarm = 0.0
        """When `pump` is called next, if it was too early."""
        self._refusals = 0
        """Requests that were answered with an error of their own, one after the other."""
        self.refusal = ""
        """Why nothing comes, while request after request is refused."""
        self.max_bytes: int | None = None
        """The most that one fetch may ask for, if less than the session's own."""

    def want(self, key: TopicPartition, topic_id: bytes, position: FetchPosition) -> None:
        """Fetch this partition from there."""
        self.held_back.discard(key)
        if self._wanted.get(key) != (topic_id, position):
            self._wanted[key] = topic_id, position
            if self._session is not None:
                self._session.want(key[0], topic_id, key[1], position)

    def forget(self, key: TopicPartition) -> None:
        """Don't fetch it for now."""
        self.held_back.discard(key)
        if self._wanted.pop(key, None) is not None and self._session is not None:
            self._session.forget(*key)

    def hold_back(self, key: TopicPartition) -> None:
        """Don't fetch it until its queue is shorter."""
        self.forget(key)
        self.held_back.add(key)

    def connected(self, channel: Channel, session: FetchSession) -> None:
        """Here is the channel that was asked for."""
        if not self._take_channel(channel):
            return
        self._session = session
        for (topic, partition), (topic_id, position) in self._wanted.items():
            session.want(topic, topic_id, partition, position)
        self.pump()

    def pump(self) -> None:
        """Send the next request, if there is something to fetch and room for it."""
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
        if not self._may_fetch(self.lane):
            return
        if self._channel.renewal_due:
            self._start_renewal(self._channel)
            return
        self._correlation_id += 1
        self._asked_at = self._loop.now
        self.meter.requests += 1
        self._session.limit = self.max_bytes
        self._session.max_wait_ms = HELD_BACK_WAIT_MS if self.held_back else self._max_wait_ms
        try:
            self._channel.send([self._session.request(self._correlation_id)])
            self._loop.want_write(self._channel, self, self._channel.unsent)
        except ChannelClosed as error:
            self._lose(str(error))

    def check(self, timeout_s: float) -> None:
        """Give the connection up if its answer is overdue."""
        if self._asked_at is not None and self._loop.now - self._asked_at > timeout_s:
            self._lose(f"{self.peer} did not answer a fetch in {timeout_s:.0f} s")

    def on_readable(self) -> None:
        channel, session = self._channel, self._session
        if channel is None or session is None:
            return
        try:
            for frame in channel.receive():
                if self._asked_at is not None:
                    self.meter.answered(len(frame.view), self._loop.now - self._asked_at)
                self._asked_at = None
                try:
                    self._take(session, frame)
                finally:
                    frame.release()
        except (ChannelClosed, Garbled) as error:
            self._lose(str(error))
            return
        self.pump()

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
        """The whole request was: ask later, later each time, and say why nothing comes."""
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
        self._asked_at = None
