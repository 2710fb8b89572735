"""Connections that break while partitions wait for them, and partitions that begin at the latest offset."""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from model_broker import FRESH_AFTER_MS, FRESH_MS, IDENTITY, LEADER, OLD_MS, ROUTE, TARGET_ID, Source
from model_pump import Pump, World
from played_run import PRODUCE_VERSION, Broker

from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.position.route import PartitionReading
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.channel import Channel
from sparkmirror.kafka.wire.fetch_session import FetchPosition, FetchSession
from sparkmirror.kafka.wire.produce import Ack, produce_request
from sparkmirror.pump import target_connection
from sparkmirror.pump.intake import Intake
from sparkmirror.pump.limits import Lane
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.source_connection import FetchSize, SourceConnection
from sparkmirror.pump.tally import TrafficMeter
from sparkmirror.pump.target_connection import TargetConnection
from sparkmirror.pump.window import LineMeter


def a_producing_connection(
    lost: list[PartitionCopy], renewing: list[Channel] | None = None, acks: list[Ack] | None = None
) -> TargetConnection:
    return TargetConnection(
        LEADER,
        Loop(),
        client_id="test",
        timeout_ms=1_000,
        max_request_bytes=1 << 20,
        max_in_flight=5,
        dial=lambda connection: None,
        renew=lambda connection, channel: (renewing if renewing is not None else []).append(channel),
        on_ack=lambda copy, ack: (acks if acks is not None else []).append(ack),
        on_unsendable=lambda copy: None,
        on_lost=lambda connection, reason, copies: lost.extend(copies),
        may_send=lambda: True,
        meter=TrafficMeter(),
        line=LineMeter(),
    )


def a_fetched_copy() -> PartitionCopy:
    return a_copy_at_work(FRESH_MS, copied=0)


def a_copy_at_work(timestamp_ms: int, *, copied: int) -> PartitionCopy:
    """So many of its batches are acknowledged, and more are fetched; two may be in flight."""
    pump = Pump(World(Source([(10, timestamp_ms)] * 9)), in_flight=2)
    pump.start()
    pump.fetch(9)
    pump.claim()
    pump.claimed()
    for _ in range(copied):
        pump.send()
        pump.serve()
        pump.receive()
    return pump.copy


def test_a_partition_that_waits_for_a_lost_connection_is_in_doubt() -> None:
    lost: list[PartitionCopy] = []
    connection, copy = a_producing_connection(lost), a_fetched_copy()
    connection.offer(copy)
    connection.failed("gone")
    assert lost == [copy]


def test_a_partition_in_flight_on_another_connection_is_left_to_it() -> None:
    """Its leader has moved while it waited here; what is in flight there is answered there."""
    lost: list[PartitionCopy] = []
    connection, copy = a_producing_connection(lost), a_fetched_copy()
    connection.offer(copy)
    copy.send(1000.0)
    connection.failed("gone")
    assert lost == []
    assert len(copy.in_flight) == 1


def test_latest_is_the_first_look_and_is_claimed_at_once() -> None:
    source = Source([(10, FRESH_MS)] * 4)
    world = World(source)
    copy = PartitionCopy(
        ROUTE,
        IDENTITY,
        1,
        until=None,
        from_latest=True,
        unclean=False,
        fresh_after_ms=FRESH_AFTER_MS,
        max_in_flight=5,
        now=world.now,
        intake=Intake(read_committed=False, codec=None, merge_tiny=False),
    )
    for _ in range(2):
        copy.ask(world.now)
        reading = world.target.partition_reading(source, world.now)
        assert isinstance(reading, PartitionReading)
        copy.take(reading, world.now)
        (claim,) = copy.backlog.claims
        assert (claim.claim.upstream, claim.claim.sequence, claim.claim.announced) == (40, 0, 0)
        source.end += 10  # more arrives before the claim is durable
        copy.doubt("a lost connection", world.now)


def test_a_copy_that_begins_at_its_goal_is_done_once_its_start_is_durable() -> None:
    """Else the next run would begin at another end, and skip what came between."""
    pump = Pump(World(Source([(10, FRESH_MS)] * 4)))
    pump.copy.source.from_latest = True
    pump.start()
    assert pump.claim()
    assert pump.copy.stage.name == "RUNNING"
    assert pump.claimed()
    assert pump.copy.stage.name == "DONE"
    assert [(claim.upstream, claim.announced) for claim in pump.world.target.claims] == [(40, 0)]


def test_a_copy_that_leaves_before_its_start_is_durable_claims_it_first() -> None:
    """The next task would begin at another end."""
    pump = Pump(World(Source([(10, FRESH_MS)] * 4)), until=None)
    pump.copy.source.from_latest = True
    pump.start()
    pump.copy.drop_unsent()
    idle = [pump.copy.is_idle]
    assert pump.claim()
    assert pump.claimed()
    idle.append(pump.copy.is_idle)
    assert idle == [False, True]
    pump.copy.drop_unsent()
    assert not pump.ready().claims


def test_a_copy_from_the_end_begins_where_the_former_task_began() -> None:
    """Its start claim could not be written before it left, and the source has grown since."""
    source = Source([(10, FRESH_MS)] * 4)
    former = Pump(World(source), until=None)
    former.copy.source.from_latest = True
    former.start()
    assert former.claim()
    former.world.target.claims.clear()
    former.copy.doubt("its claim could not be written", former.world.now)
    reported = former.copy.progress.reported
    source.end += 10

    def begins_at(reported: ReportedProgress) -> int | None:
        pump = Pump(World(source), until=None, reported=reported)
        pump.copy.source.from_latest = True
        pump.start()
        return pump.copy.progress.upstream

    assert begins_at(reported) == 40
    assert begins_at(reported._replace(upstream=60)) == 50, "the source's topic is another one"
    source.start = 45
    assert begins_at(reported) == 45


# --- sessions that end ------------------------------------------------------------------------------------


@pytest.fixture
def model_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time that the model's positions were read at: they are not too old to be sent by."""
    monkeypatch.setattr("sparkmirror.pump.target_connection.now_s", lambda: 1000.0)


class EndingSession:
    """A sign-in that is due to be renewed whenever a test says so."""

    renewal_due = False

    def sign_in(self) -> None:
        self.renewal_due = False


class Signed:
    """A channel over such a session, and the broker's end of it."""

    def __init__(self) -> None:
        ours, self.broker = socket.socketpair()
        self.broker.setblocking(False)
        self.session = EndingSession()
        self.channel = Channel(ours, FramePool(1 << 16, keep=1), self.session)

    def sent(self) -> int:
        """Bytes that came since the last look."""
        try:
            return len(self.broker.recv(1 << 20))
        except BlockingIOError:
            return 0


@pytest.mark.usefixtures("model_clock")
def test_a_producing_connection_renews_before_it_sends_and_then_sends() -> None:
    renewing: list[Channel] = []
    connection, signed = a_producing_connection([], renewing), Signed()
    signed.session.renewal_due = True
    connection.connected(signed.channel, 9, 0.001)
    assert renewing == [], "an idle session may end"
    connection.offer(a_fetched_copy())
    connection.pump()
    connection.pump()
    assert renewing == [signed.channel]
    assert (signed.sent(), connection.in_flight) == (0, False)
    signed.channel.renew()
    connection.renewed(signed.channel)
    assert signed.sent() > 0
    assert connection.in_flight


@pytest.mark.usefixtures("model_clock")
def test_a_producing_connection_waits_for_what_is_in_flight() -> None:
    renewing: list[Channel] = []
    lost: list[PartitionCopy] = []
    connection, signed = a_producing_connection(lost, renewing), Signed()
    connection.connected(signed.channel, 9, 0.001)
    connection.offer(a_fetched_copy())
    connection.pump()
    assert signed.sent() > 0
    signed.session.renewal_due = True
    connection.offer(a_fetched_copy())
    connection.pump()
    assert (renewing, signed.sent(), lost) == ([], 0, [])


@pytest.mark.parametrize("succeeds", [True, False])
def test_a_channel_that_is_given_up_while_it_is_renewed_is_closed_by_whoever_renews(succeeds: bool) -> None:
    renewing: list[Channel] = []
    connection, signed = a_producing_connection([], renewing), Signed()
    signed.session.renewal_due = True
    connection.connected(signed.channel, 9, 0.001)
    connection.offer(a_fetched_copy())
    connection.pump()
    connection.failed("this process was suspended")
    assert signed.channel.fileno() >= 0, "another thread is using it"
    if succeeds:
        connection.renewed(signed.channel)
        assert signed.channel.fileno() == -1
    else:
        connection.failed("refused")


def a_fetching_connection(
    signed: Signed, loop: Loop, renewing: list[Channel] | None = None, lost: list[str] | None = None
) -> SourceConnection:
    """It has sent its first request."""
    connection = SourceConnection(
        Lane(LEADER, backfill=False),
        loop,
        dial=lambda connection: None,
        renew=lambda connection, channel: (renewing if renewing is not None else []).append(channel),
        on_fetched=lambda part, frame: None,
        on_refused=lambda connection, error: None,
        on_lost=lambda connection, reason: (lost if lost is not None else []).append(reason),
        next_size=lambda connection: FetchSize(1000, 1000),
        meter=TrafficMeter(),
        line=LineMeter(),
        max_wait_ms=500,
    )
    session = FetchSession(
        13, client_id="test", max_wait_ms=500, min_bytes=1, max_bytes=1000, partition_max_bytes=1000, isolation_level=0
    )
    connection.want(("topic", 0), bytes(15) + b"1", FetchPosition(0, 0, 0))
    connection.connected(signed.channel, session, 0.001)
    assert signed.sent() > 0
    return connection


def nothing_fetched(throttle_ms: int = 0) -> bytes:
    """An answer without a partition."""
    return bytes.fromhex(f"00000011 00000001 00 {throttle_ms:08x} 0000 00000001 01 00")


def test_a_fetching_connection_renews_between_requests() -> None:
    renewing: list[Channel] = []
    signed = Signed()
    connection = a_fetching_connection(signed, Loop(), renewing)
    signed.session.renewal_due = True
    connection.pump()
    assert renewing == [], "an answer is awaited"
    signed.broker.sendall(nothing_fetched())
    connection.on_readable()
    assert (renewing, signed.sent()) == ([signed.channel], 0)
    signed.channel.renew()
    connection.renewed(signed.channel)
    assert signed.sent() > 0


@pytest.mark.parametrize("answers", ["another request", "twice", "nothing"])
def test_an_answer_to_another_fetch_ends_the_connection(answers: str) -> None:
    lost: list[str] = []
    signed = Signed()
    connection = a_fetching_connection(signed, Loop(), lost=lost)
    answer = {
        "another request": nothing_fetched().replace(
            bytes.fromhex("00000011 00000001"), bytes.fromhex("00000011 00000000")
        ),
        "twice": nothing_fetched() * 2,
        "nothing": bytes(4),
    }[answers]
    signed.broker.sendall(answer)
    connection.on_readable()
    assert len(lost) == 1
    assert not connection.is_connected


def test_open_connections_are_counted() -> None:
    """Also while they are renewed by another thread, and when they are lost meanwhile."""
    signed = Signed()
    connection = a_fetching_connection(signed, Loop())
    assert connection.meter.connections == 1
    signed.session.renewal_due = True
    signed.broker.sendall(nothing_fetched())
    connection.on_readable()
    assert connection.meter.connections == 1
    connection.failed("refused")
    connection.renewed(signed.channel)
    assert connection.meter.connections == 0
    connection.close()
    assert connection.meter.connections == 0


def appended_by(request: bytes) -> bytes:
    """The answer to a Produce with one batch: all of it was appended."""
    asked = ProduceRequest.decode(request[4:], version=13, header=True)
    topic = ProduceResponse.TopicProduceResponse
    answer = ProduceResponse(
        responses=[
            topic(
                topic_id=sent.topic_id,
                partition_responses=[
                    topic.PartitionProduceResponse(index=part.index, base_offset=0, log_append_time_ms=-1)
                    for part in sent.partition_data
                ],
            )
            for sent in asked.topic_data
        ]
    )
    answer.API_VERSION = 13
    answer.with_header(correlation_id=asked.header.correlation_id)
    return bytes(answer.encode(framed=True, header=True))


@pytest.mark.usefixtures("model_clock")
@pytest.mark.parametrize("other", [0, 1, -1])
def test_only_the_answer_to_the_oldest_request_is_an_acknowledgement(other: int) -> None:
    """One partition's batch is in flight, and the broker says that it has appended one of a request not sent."""
    acks: list[Ack] = []
    lost: list[PartitionCopy] = []
    connection, copy, signed = a_producing_connection(lost, acks=acks), a_fetched_copy(), Signed()
    connection.offer(copy)
    connection.connected(signed.channel, 13, 0.001)
    answer = bytearray(appended_by(signed.broker.recv(1 << 20)))
    answer[4:8] = struct.pack(">i", struct.unpack(">i", answer[4:8])[0] + other)
    signed.broker.sendall(answer)
    connection.on_readable()
    assert [len(acks), lost] == ([0, [copy]] if other else [1, []])
    assert connection.is_connected is not bool(other)


# --- throttles --------------------------------------------------------------------------------------------


def test_a_fetching_connection_pauses_for_as_long_as_the_broker_says() -> None:
    """Brokers that throttle leave a connection unread for that long: the answer would be overdue."""
    signed, loop = Signed(), Loop()
    connection = a_fetching_connection(signed, loop)
    throttled_at = loop.now
    signed.broker.sendall(nothing_fetched(throttle_ms=5_000))
    connection.on_readable()
    for seconds in (0.0, 1.0, 4.99):
        loop.now = throttled_at + seconds
        connection.pump()
        assert signed.sent() == 0
    loop.now = throttled_at + 5.0
    connection.pump()
    assert signed.sent() > 0


def test_a_throttled_fetching_connection_continues_by_itself() -> None:
    signed, loop = Signed(), Loop()
    connection = a_fetching_connection(signed, loop)
    throttled_at = loop.now
    signed.broker.sendall(nothing_fetched(throttle_ms=200))
    connection.on_readable()
    deadline = time.monotonic() + 10
    while not signed.sent():
        assert time.monotonic() < deadline
        loop.turn(1.0)
    assert loop.now >= throttled_at + 0.2
    loop.close()


def test_an_answer_that_came_after_the_turn_began_makes_no_line_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy turn lasts longer than a short way to the broker."""
    clock = [1000.0]
    monkeypatch.setattr(target_connection, "now_s", lambda: clock[0])
    connection, copy = a_producing_connection([]), a_fetched_copy()
    ours, brokers = socket.socketpair()
    with ours, brokers:
        connection.offer(copy)
        connection.connected(Channel(ours, FramePool(1 << 16, 4)), 13, 10.0)
        monkeypatch.setattr(connection._loop, "now", 1000.04)  # noqa: SLF001 - when the turn began
        clock[0] = 1000.1
        (request,) = connection._requests  # noqa: SLF001
        connection._take([cast("Any", SimpleNamespace(key=key)) for key in request.copies])  # noqa: SLF001
        assert connection._line.round_trip_s == pytest.approx(0.1)  # noqa: SLF001
        connection.close()


@pytest.mark.parametrize("stopped_s", [0.0, 30.0])
def test_what_a_stopped_process_had_in_hand_is_not_sent_when_it_wakes(
    monkeypatch: pytest.MonkeyPatch, stopped_s: float
) -> None:
    """Stopped in the worst moment: it has been decided to send a batch, and the request is being made."""
    clock = [1000.0]
    monkeypatch.setattr(target_connection, "now_s", lambda: clock[0])
    make = produce_request

    def stopped(*arguments: Any) -> Any:
        clock[0] += stopped_s
        return make(*arguments)

    monkeypatch.setattr(target_connection, "produce_request", stopped)
    lost: list[PartitionCopy] = []
    connection, copy = a_producing_connection(lost), a_fetched_copy()
    ours, brokers = socket.socketpair()
    with ours, brokers:
        connection.offer(copy)
        connection.connected(Channel(ours, FramePool(1 << 16, 4)), 13, 0.001)
        brokers.setblocking(False)
        if stopped_s:
            assert lost == [copy]
            assert brokers.recv(1) == b"", "closed, and nothing came"
        else:
            assert lost == []
            assert len(brokers.recv(1 << 16)) > 100
            connection.close()


def test_the_rest_of_a_request_is_not_sent_by_a_process_that_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(target_connection, "now_s", lambda: clock[0])
    lost: list[PartitionCopy] = []
    connection, copy = a_producing_connection(lost), a_fetched_copy()
    ours, brokers = socket.socketpair()
    with ours, brokers:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        channel = Channel(ours, FramePool(1 << 16, 4))
        connection.offer(copy)
        connection.connected(channel, 13, 0.001)
        channel.send([bytes(1 << 20)])
        assert channel.unsent
        monkeypatch.setattr(connection._loop, "now", clock[0])  # noqa: SLF001 - a turn has begun; then it is stopped
        clock[0] += 30.0
        brokers.recv(1 << 20)
        connection.on_writable()
        assert lost == [copy]


class Sending:
    """A connection to a broker that answers when told to, and partitions that send over it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = [1000.0]
        monkeypatch.setattr(target_connection, "now_s", lambda: self.clock[0])
        self.lost: dict[PartitionCopy, bool] = {}
        self.acknowledged: list[PartitionCopy] = []
        self.connection = a_producing_connection([])
        monkeypatch.setattr(self.connection, "_on_lost", lambda _, reason, copies: self.lost.update(copies))
        monkeypatch.setattr(self.connection, "_on_ack", self._on_ack)
        self.broker = Broker()
        self.connection.connected(Channel(self.broker.near, FramePool(1 << 16, 4)), PRODUCE_VERSION, 0.001)
        self.at(1000.0)

    def _on_ack(self, copy: PartitionCopy, ack: Ack) -> None:
        copy.acknowledge(ack, self.clock[0])
        self.acknowledged.append(copy)

    def at(self, now: float) -> None:
        self.clock[0] = self.connection._loop.now = now  # noqa: SLF001

    def offer(self, *copies: PartitionCopy) -> None:
        for copy in copies:
            self.connection.offer(copy)
        self.connection.pump()

    @property
    def sent(self) -> list[set[int]]:
        """Of each request in flight, the partitions."""
        requests = self.connection._requests  # noqa: SLF001
        return [{copy.route.partition for copy in request.copies.values()} for request in requests]

    def answer(self, throttle_ms: int = 0) -> None:
        """The oldest request, as a broker does whose quota is exceeded, or not."""
        self.broker.requests(ProduceRequest, PRODUCE_VERSION)
        copies = self.connection._requests[0].copies.values()  # noqa: SLF001
        parts = [
            ProduceResponse.TopicProduceResponse.PartitionProduceResponse(
                index=copy.route.partition,
                error_code=0,
                base_offset=copy.in_flight[0].downstream,
                log_append_time_ms=-1,
                log_start_offset=0,
            )
            for copy in copies
        ]
        topic = ProduceResponse.TopicProduceResponse(topic_id=UUID(bytes=TARGET_ID), partition_responses=parts)
        self.broker.answer(ProduceResponse(responses=[topic], throttle_time_ms=throttle_ms), PRODUCE_VERSION)
        self.connection.on_readable()


def partitions(*at_work: PartitionCopy) -> tuple[PartitionCopy, ...]:
    """The same as partitions 0, 1, … of one topic."""
    for number, copy in enumerate(at_work):
        copy.route = replace(ROUTE, partition=number)
    return at_work


def test_guarded_batches_are_pipelined(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(monkeypatch)
    zero, one = partitions(*(a_copy_at_work(FRESH_MS, copied=1) for _ in range(2)))
    sending.offer(zero)
    sending.offer(one)
    assert sending.sent == [{0}, {0}, {1}, {1}]


@pytest.mark.parametrize("copied", [0, 1])
def test_an_unguarded_batch_waits_until_nothing_is_in_flight(monkeypatch: pytest.MonkeyPatch, copied: int) -> None:
    """Behind another request it would be read late, also by a broker whose client has gone since (R5).

    The live tail goes first, but it may not keep the backfill from its turn.
    """
    sending = Sending(monkeypatch)
    fresh, old, too = partitions(
        a_copy_at_work(FRESH_MS, copied=1), *(a_copy_at_work(OLD_MS, copied=copied) for _ in range(2))
    )
    old.source.backfilling = too.source.backfilling = True
    sending.offer(fresh)
    assert sending.sent == [{0}, {0}]
    sending.offer(old, too)
    sending.answer()
    sending.offer(fresh)
    assert sending.sent == [{0}], "nothing else goes meanwhile, else its turn would never come"
    sending.answer()
    assert sending.sent == [{0, 1, 2}, {0}], "all that is ready goes in one request, and what is guarded may follow"
    sending.answer()
    sending.offer(old)
    assert sending.sent == [{0}], "and the next old batches wait for it"


def test_unguarded_batches_are_not_sent_into_a_mute_however_long(monkeypatch: pytest.MonkeyPatch) -> None:
    sending = Sending(monkeypatch)
    (old,) = partitions(a_copy_at_work(OLD_MS, copied=1))
    sending.offer(old)
    sending.answer(throttle_ms=600_000)
    monkeypatch.setattr(old.trust, "confirmed_at", 1e9)
    sending.at(1000.0 + 600.0 - 0.1)
    sending.offer(old)
    assert sending.sent == []
    sending.at(1000.0 + 600.0)
    sending.offer(old)
    assert sending.sent == [{0}]


def test_unguarded_batches_fill_a_request_up_to_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a long line one request at a time must carry what several did."""
    sending = Sending(monkeypatch)
    monkeypatch.setattr(sending.connection, "_max_request_bytes", 200)
    fresh = partitions(*(a_copy_at_work(FRESH_MS, copied=1) for _ in range(3)))
    for copy in fresh:
        monkeypatch.setattr(copy, "sendable", lambda _, copy=copy: not copy.in_flight)
    sending.offer(*fresh)
    assert sending.sent == [{0}, {1}, {2}]
    sending = Sending(monkeypatch)
    monkeypatch.setattr(sending.connection, "_max_request_bytes", 200)
    sending.offer(*partitions(*(a_copy_at_work(OLD_MS, copied=1) for _ in range(3))))
    assert sending.sent == [{0, 1, 2}]


@pytest.mark.parametrize("timestamp_ms", [FRESH_MS, OLD_MS])
def test_a_lost_connection_tells_which_batches_were_pipelined(
    monkeypatch: pytest.MonkeyPatch, timestamp_ms: int
) -> None:
    sending = Sending(monkeypatch)
    zero, one = partitions(*(a_copy_at_work(timestamp_ms, copied=1) for _ in range(2)))
    sending.offer(zero, one)
    sending.connection.failed("gone")
    pipelined = timestamp_ms == FRESH_MS  # of each partition the second batch was
    assert sending.lost == {zero: pipelined, one: pipelined}
