"""A channel over a socket pair: frames whole, requests whole, and an end that is always noticed."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.kafka.wire.answer_bounds import AnswerBound
from sparkmirror.kafka.wire.buffers import POOLED_SHARE, Frame, FramePool
from sparkmirror.kafka.wire.channel import Channel, ChannelClosed

POOLED_FROM = 64 * 1024
BLOCK = POOLED_SHARE * POOLED_FROM


class Connection:
    """A channel and the broker's end of it, which doesn't block either."""

    def __init__(self, send_buffer: int = 0) -> None:
        ours, self.broker = socket.socketpair()
        if send_buffer:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        self.broker.setblocking(False)
        self.pool = FramePool(BLOCK, keep=4)
        self.channel = Channel(ours, self.pool)
        self.channel.bound = AnswerBound("Fetch", 1 << 28)

    def answers(self, data: bytes) -> list[bytes]:
        """What the channel receives when these bytes have come."""
        self.broker.sendall(data)
        return list(map(taken, self.channel.receive()))

    def arrived(self) -> bytes:
        """What has come at the broker by now."""
        data = b""
        while True:
            try:
                part = self.broker.recv(1 << 16)
            except BlockingIOError:
                return data
            if not part:
                return data
            data += part

    def close(self) -> None:
        self.channel.close()
        self.broker.close()


def taken(frame: Frame) -> bytes:
    data = bytes(frame.view)
    frame.release()
    return data


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


@pytest.fixture
def connection() -> Iterator[Connection]:
    made = Connection()
    yield made
    made.close()


# --- in -----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=8), st.data())
def test_frames_arrive_whole_however_they_are_cut(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(framed, frames))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8), "cuts"))
    connection = Connection()
    got: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += connection.answers(stream[start:end])
        whole = [sum(4 + len(frame) for frame in frames[: count + 1]) for count in range(len(frames))]
        assert got == frames[: sum(one <= end for one in whole)]
    connection.close()
    assert connection.pool.in_use == 0


def test_a_frame_arrives_byte_by_byte(connection: Connection) -> None:
    stream = framed(b"") + framed(b"first") + framed(b"second")
    got = [frame for at in range(len(stream)) for frame in connection.answers(stream[at : at + 1])]
    assert got == [b"", b"first", b"second"]


@pytest.mark.parametrize("size", [POOLED_FROM - 1, POOLED_FROM, BLOCK, BLOCK + 1])
def test_large_frames_arrive_whole(connection: Connection, size: int) -> None:
    frame = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    stream = framed(frame) + framed(b"next")
    got: list[bytes] = []
    for start in range(0, len(stream), 10_000):
        got += connection.answers(stream[start : start + 10_000])
    assert got == [frame, b"next"]


def test_a_frame_that_is_held_keeps_its_bytes(connection: Connection) -> None:
    size = POOLED_FROM
    connection.broker.sendall(framed(b"a" * size))
    (kept,) = connection.channel.receive()
    assert connection.answers(framed(b"b" * size)) == [b"b" * size]
    assert connection.answers(framed(b"c" * size)) == [b"c" * size]
    assert bytes(kept.view) == b"a" * size
    assert connection.pool.in_use == BLOCK


@pytest.mark.parametrize("size", [-1, -(2**31), 2**30 + 1, struct.unpack(">i", b"HTTP")[0]])
def test_what_no_broker_says_is_refused(connection: Connection, size: int) -> None:
    connection.broker.sendall(struct.pack(">i", size))
    with pytest.raises(ChannelClosed, match="check that this is a Kafka broker"):
        list(connection.channel.receive())
    assert connection.pool.in_use == 0


def test_what_came_before_the_end_is_given(connection: Connection) -> None:
    connection.broker.sendall(framed(b"last") + b"\x00")
    connection.broker.close()
    receiving = connection.channel.receive()
    assert taken(next(receiving)) == b"last"
    with pytest.raises(ChannelClosed, match="closed the connection"):
        next(receiving)


def test_half_a_frame_is_given_back_with_the_channel(connection: Connection) -> None:
    assert connection.answers(framed(b"a" * 100)[:50]) == []
    assert connection.pool.in_use == 100
    connection.channel.close()
    connection.channel.close()
    assert connection.pool.in_use == 0


# --- out ----------------------------------------------------------------------------------------------


def delivered(connection: Connection) -> bytes:
    """All that the channel had to send; fails if it doesn't come to an end."""
    data = connection.arrived()
    for _ in range(100_000):
        if not connection.channel.unsent:
            return data + connection.arrived()
        connection.channel.flush()
        data += connection.arrived()
    pytest.fail("the channel never finished")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.sampled_from([0, 1, 3, 700, 5000]), max_size=6), max_size=6))
def test_requests_go_out_whole_through_a_tiny_buffer(requests: list[list[int]]) -> None:
    connection = Connection(send_buffer=1)
    expected = b""
    data = b""
    for number, sizes in enumerate(requests):
        buffers = [bytes([number + at]) * size for at, size in enumerate(sizes)]
        connection.channel.send(buffers)
        expected += framed(b"".join(buffers))
        if number % 2:
            data += connection.arrived()
    data += delivered(connection)
    connection.close()
    assert data == expected


def test_what_the_socket_does_not_take_waits() -> None:
    connection = Connection(send_buffer=1)
    batch = bytes(1 << 20)
    connection.channel.send([b"head", memoryview(batch), b"tail"])
    assert connection.channel.unsent
    assert delivered(connection) == framed(b"head" + batch + b"tail")
    connection.close()


@pytest.mark.parametrize("count", [1022, 1023, 1024, 1025, 5000])
def test_a_request_may_have_more_buffers_than_the_system_takes_at_once(connection: Connection, count: int) -> None:
    buffers = [bytearray(b"%04d" % number) for number in range(count)]
    connection.channel.send(buffers)
    assert delivered(connection) == framed(b"".join(buffers))


@pytest.mark.parametrize("buffers", [[], [b""], [b""] * 2000, [b"", b"a", b""]])
def test_empty_buffers_hold_nothing_up(connection: Connection, buffers: list[bytes]) -> None:
    connection.channel.send(buffers)
    assert not connection.channel.unsent
    assert connection.arrived() == framed(b"".join(buffers))


def test_sending_to_a_closed_peer_is_noticed(connection: Connection) -> None:
    connection.broker.close()
    with pytest.raises(ChannelClosed):
        connection.channel.send([b"request"])


def test_an_end_while_requests_wait_is_noticed() -> None:
    connection = Connection(send_buffer=1)
    connection.channel.send([bytes(1 << 20)])
    connection.broker.close()
    with pytest.raises(ChannelClosed):
        connection.channel.flush()
    connection.close()
    assert not connection.channel.unsent


def test_large_answers_together_take_no_more_than_the_pool_admits() -> None:
    """Each broker sends one that it may: a single one comes, and the next is refused when it is announced."""
    pool = FramePool(BLOCK, keep=1, most=3 * BLOCK)
    pairs = [socket.socketpair() for _ in range(3)]
    channels = [Channel(ours, pool) for ours, _ in pairs]
    for channel, (_, theirs) in zip(channels, pairs, strict=True):
        channel.bound = AnswerBound("Fetch", 1 << 28)
        theirs.setblocking(False)
    first, second, third = channels
    pairs[0][1].send(struct.pack(">i", 2 * BLOCK) + b"x" * 100)
    pairs[1][1].send(struct.pack(">i", 2 * BLOCK) + b"x" * 100)
    assert not [*first.receive(), *second.receive()], "both may begin while little has come"
    held = pool.adopt(bytearray(3 * BLOCK))
    pairs[0][1].send(b"x")
    with pytest.raises(ChannelClosed, match="and all answers together would take more than 786,432"):
        list(first.receive())
    pairs[2][1].send(struct.pack(">i", BLOCK + 1))
    with pytest.raises(ChannelClosed, match="an answer to Fetch of 262,145 bytes, and all answers together"):
        list(third.receive())
    held.release()
    pairs[1][1].send(b"x")
    assert not list(second.receive())
    for channel, (_, theirs) in zip(channels, pairs, strict=True):
        channel.close()
        theirs.close()
    assert pool.in_use == 0


def test_a_small_answer_comes_however_much_is_held(connection: Connection) -> None:
    """As acknowledgements must."""
    connection.pool.most = 0
    assert connection.answers(framed(b"ack")) == [b"ack"]
