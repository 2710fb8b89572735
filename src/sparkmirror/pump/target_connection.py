"""Connection that produces to one target broker.

Up to five requests are in flight. Each request has at most one batch per partition.

A broker reads a connection's next request only when it has answered the one before, and when that answer's throttle has
ended (KIP-219), also if the client has gone meanwhile. A batch that the leader's state does not guard must not arrive
late (R5): so it is sent only while nothing is in flight, and while the broker does not mute the connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sparkmirror.clock import now_s
from sparkmirror.kafka.wire.answer_bounds import produce_bound
from sparkmirror.kafka.wire.channel import Channel, ChannelClosed
from sparkmirror.kafka.wire.primitives import Garbled, check_answer
from sparkmirror.kafka.wire.produce import Ack, TopicPartitionKey, produce_request, read_answer, topic_field
from sparkmirror.pump.broker_connection import BrokerConnection
from sparkmirror.pump.loop import SUSPENDED_S, Loop
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.tally import TrafficMeter
from sparkmirror.pump.window import LineMeter

MAX_PARTITIONS_PER_REQUEST = 256

UNGUARDED_BYTES = 16 << 20
"""Most bytes in a request with unguarded batches.

Such a request is alone in flight, and fills a long line's window. Far below the brokers' default for
`socket.request.max.bytes`, 100 MB.
"""


class _Request(NamedTuple):
    correlation_id: int
    copies: dict[TopicPartitionKey, PartitionCopy]
    sent_at: float
    bytes: int
    pipelined: bool
    """True if other requests were in flight, or the broker muted the connection."""


class _SendQueue:
    """Partitions with a batch to send, in order of arrival, the live tail first."""

    def __init__(self) -> None:
        self._live: dict[PartitionCopy, None] = {}
        self._backfill: dict[PartitionCopy, None] = {}

    def __bool__(self) -> bool:
        return bool(self._live or self._backfill)

    def add(self, copy: PartitionCopy) -> None:
        if copy not in self._live and copy not in self._backfill:
            (self._backfill if copy.backfilling else self._live)[copy] = None

    def discard(self, copy: PartitionCopy) -> None:
        self._live.pop(copy, None)
        self._backfill.pop(copy, None)

    def in_order(self) -> list[PartitionCopy]:
        return [*self._live, *self._backfill]

    def clear(self) -> None:
        self._live.clear()
        self._backfill.clear()


class TargetConnection(BrokerConnection):
    """Connection that produces to one target broker."""

    def __init__(
        self,
        broker: int,
        loop: Loop,
        *,
        client_id: str,
        timeout_ms: int,
        max_request_bytes: int,
        max_in_flight: int,
        dial: Callable[[TargetConnection], None],
        renew: Callable[[BrokerConnection, Channel], None],
        on_ack: Callable[[PartitionCopy, Ack], None],
        on_unsendable: Callable[[PartitionCopy], None],
        on_lost: Callable[[TargetConnection, str, Mapping[PartitionCopy, bool]], None],
        may_send: Callable[[], bool],
        meter: TrafficMeter,
        line: LineMeter,
    ) -> None:
        super().__init__(f"target broker {broker}", loop, lambda: dial(self), renew, meter)
        self.broker = broker
        self._client_id = client_id.encode()
        self._timeout_ms = timeout_ms
        self._max_request_bytes = max_request_bytes
        self._max_in_flight = max_in_flight
        self._unguarded_bytes = max(max_request_bytes, min(max_in_flight * max_request_bytes, UNGUARDED_BYTES))
        self._on_ack = on_ack
        self._on_unsendable = on_unsendable
        self._on_lost = on_lost
        self._may_send = may_send
        self._line = line
        self.dealt = 0
        """Number of partitions that send over this connection."""
        self._version = 0
        self._requests: deque[_Request] = deque()
        self._correlation_id = 0
        self._ready = _SendQueue()
        self._muted_until = 0.0
        """Time until which the broker is left alone."""
        self._mute_ends_at = 0.0
        """Time at which the broker reads the connection again, however far off."""
        self._drains = False
        """True while an unguarded batch waits until nothing is in flight."""
        self._sending_since = 0.0

    def offer(self, copy: PartitionCopy) -> None:
        """Take note that a partition has a batch to send."""
        self._ready.add(copy)

    def withdraw(self, copy: PartitionCopy) -> None:
        """Send no further batch from a partition; batches in flight stay."""
        self._ready.discard(copy)

    @property
    def busy_partitions(self) -> int:
        """Number of partitions with a batch in flight here."""
        return len({copy for request in self._requests for copy in request.copies.values()})

    def connected(self, channel: Channel, version: int, round_trip_s: float) -> None:
        """Begin to send over the channel that the connection has asked for.

        `version` is Produce's version.
        """
        self._line.dialed(round_trip_s)
        if self._take_channel(channel):
            channel.in_time = self._is_in_time
            self._version = version
            self.pump()

    def pump(self) -> None:
        """Send all ready batches, as far as the limit on requests in flight allows."""
        if not self._ready or self._renewing:
            return
        if self._channel is None:
            self._ask_for_channel()
            return
        if self._loop.now < self._muted_until:
            self._loop.at(self._muted_until, self.pump)
            return
        if self._channel.renewal_due:
            if not self._requests:
                self._start_renewal(self._channel)
            return
        if self._drains and self._must_wait:
            if not self._requests:
                self._loop.at(self._mute_ends_at, self.pump)
            return
        try:
            while self._ready and len(self._requests) < self._max_in_flight and self._may_send():
                if not self._send_one(self._channel):
                    break
            self._loop.want_write(self._channel, self, self._channel.unsent)
        except ChannelClosed as error:
            self._lose(str(error))

    @property
    def _must_wait(self) -> bool:
        """True if the broker would not read a request at once."""
        return bool(self._requests) or now_s() < self._mute_ends_at

    def _send_one(self, channel: Channel) -> bool:
        now = now_s()  # not the loop's time, as the process may have been stopped since the turn began (R6)
        size, most_bytes = 0, self._max_request_bytes
        pipelined, self._drains = self._must_wait, False
        batches: dict[bytes, dict[int, memoryview]] = {}
        copies: dict[TopicPartitionKey, PartitionCopy] = {}
        again: list[PartitionCopy] = []
        for copy in self._ready.in_order():
            if not copy.sendable(now) or not copy.is_led_by(self.broker):
                self._ready.discard(copy)
                self._on_unsendable(copy)
                continue
            if not copy.is_guarded(now):
                if pipelined:
                    self._drains = True
                    break
                most_bytes = self._unguarded_bytes
            batch_size = len(copy.queue[0].view)
            if copies and (size + batch_size > most_bytes or len(copies) >= MAX_PARTITIONS_PER_REQUEST):
                break
            self._ready.discard(copy)
            batch = copy.send(now)
            size += batch_size
            assert copy.reading is not None  # noqa: S101 - it is sendable
            field = topic_field(self._version, copy.route.target_topic, copy.reading.target_topic_id)
            batches.setdefault(field, {})[copy.route.partition] = batch.view
            copies[field, copy.route.partition] = copy
            if copy.queue:
                again.append(copy)
        for copy in again:
            if copy.sendable(now):
                self._ready.add(copy)
        if not copies:
            return False
        self._correlation_id += 1
        self._sending_since = now
        self._requests.append(_Request(self._correlation_id, copies, now, size, pipelined))
        self.meter.requests += 1
        channel.bound = produce_bound(max(request.bytes for request in self._requests))
        channel.send(produce_request(self._version, self._correlation_id, self._client_id, self._timeout_ms, batches))
        return True

    def on_writable(self) -> None:
        self._sending_since = self._loop.now
        super().on_writable()

    def _is_in_time(self) -> bool:
        """True if the process was not stopped since the decision to send (R6).

        A process may be stopped at any moment.
        """
        return now_s() - self._sending_since < SUSPENDED_S

    def check(self, timeout_s: float) -> None:
        """Give the connection up if the oldest answer is overdue.

        Time for which the broker muted the pump does not count.
        """
        if self._requests:
            since = max(self._requests[0].sent_at, self._muted_until)
            if self._loop.now - since > timeout_s:
                self._lose(f"{self.peer} did not acknowledge in {timeout_s:.0f} s")

    def on_readable(self) -> None:
        channel = self._channel
        if channel is None:
            return
        try:
            for frame in channel.receive():
                try:
                    if not self._requests:
                        raise Garbled("an answer to a Produce that was not sent")
                    check_answer(frame.view, self._requests[0].correlation_id)
                    _, acks, throttle_ms = read_answer(self._version, frame.view)
                finally:
                    frame.release()
                if throttle_ms:
                    self._mute_ends_at = now_s() + throttle_ms / 1000
                    self._muted_until = self._throttle(throttle_ms)
                self._take(acks)
        except (ChannelClosed, Garbled) as error:
            self._lose(str(error))
            return
        self.pump()

    def _take(self, acks: Iterable[Ack]) -> None:
        """Hand out the oldest request's acknowledgements.

        Raises `Garbled` unless the broker answers each of the request's partitions exactly once; then all batches in
        flight are in doubt.
        """
        request = self._requests[0]
        waited_s = now_s() - request.sent_at  # the answer may have come after the turn began
        for ack in acks:
            copy = request.copies.pop(ack.key, None)
            if copy is None:
                raise Garbled("an answer to a Produce names a partition that it was not asked for")
            self._on_ack(copy, ack)
        if request.copies:
            raise Garbled("an answer to a Produce leaves out a partition")
        self._requests.popleft()
        self.meter.answered(request.bytes, waited_s)
        self._line.answered(request.bytes, waited_s, waited_s)

    def _lose(self, reason: str) -> None:
        self._lost = True
        self.meter.errors += 1
        self._hang_up()
        hit: dict[PartitionCopy, bool] = {}
        for request in self._requests:
            for copy in request.copies.values():
                hit[copy] = hit.get(copy, False) or request.pipelined
        # A waiting partition whose leader has moved may have batches in flight at the former leader.
        waiting = [copy for copy in self._ready.in_order() if copy not in hit and not copy.in_flight]
        hit |= dict.fromkeys(waiting, False)
        self._requests.clear()
        self._ready.clear()
        self._on_lost(self, f"{self.peer}: {reason}", hit)

    @property
    def unsent(self) -> bool:
        """True if the kernel has a request only in part."""
        return self._channel is not None and self._channel.unsent

    @property
    def in_flight(self) -> bool:
        return bool(self._requests)

    def close(self) -> None:
        self._hang_up()
        self._requests.clear()
        self._ready.clear()
