"""TLS under a channel and a connection: the same bytes, ends noticed, and refusals in plain words."""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.kafka.wire.answer_bounds import fetch_bound
from sparkmirror.kafka.wire.buffers import Frame, FramePool
from sparkmirror.kafka.wire.channel import Channel, ChannelClosed
from sparkmirror.kafka.wire.rpc import BrokerUnreachable, RpcConnection, TlsRefused, connect
from sparkmirror.kafka.wire.tls import RECORD, TlsChannel, full_records, open_channel

BLOCK = 1 << 18
TIMEOUT_S = 20.0
HOST = "127.0.0.1"

AUTHORITY = trustme.CA()


def server_context(name: str = HOST) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert(name).configure_cert(context)
    return context


def client_context(authority: trustme.CA = AUTHORITY) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    return context


SERVER, CLIENT = server_context(), client_context()


class Connection:
    """A channel over TLS and the broker's end of it; neither blocks."""

    def __init__(self, send_buffer: int = 0) -> None:
        ours, theirs = socket.socketpair()
        if send_buffer:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        broker: list[ssl.SSLSocket] = []
        greeting = threading.Thread(target=lambda: broker.append(SERVER.wrap_socket(theirs, server_side=True)))
        greeting.start()
        self.socket = CLIENT.wrap_socket(ours, server_hostname=HOST)
        greeting.join()
        (self.broker,) = broker
        self.broker.setblocking(False)
        self.pool = FramePool(BLOCK, keep=4)
        self.channel = open_channel(self.socket, self.pool)
        self.channel.bound = fetch_bound(0, 1)

    def say(self, data: bytes, got: list[bytes]) -> None:
        """The broker sends these bytes, and the channel receives all the while."""
        while data:
            with contextlib.suppress(ssl.SSLWantWriteError):
                data = data[self.broker.send(data) :]
            got += map(taken, self.channel.receive())

    def arrived(self) -> bytes:
        """What has come at the broker by now."""
        data = b""
        with contextlib.suppress(ssl.SSLWantReadError):
            while part := self.broker.recv(1 << 16):
                data += part
        return data

    def close(self) -> None:
        self.channel.close()
        self.broker.close()


def taken(frame: Frame) -> bytes:
    data = bytes(frame.view)
    frame.release()
    return data


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def pattern(size: int) -> bytes:
    return (b"".join(struct.pack(">i", number) for number in range(size // 4 + 1)))[:size]


@pytest.fixture
def connection() -> Iterator[Connection]:
    made = Connection()
    yield made
    made.close()


# --- in -----------------------------------------------------------------------------------------------


def test_what_kind_of_channel_a_socket_gets(connection: Connection) -> None:
    assert type(connection.channel) is TlsChannel
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert type(open_channel(ours, connection.pool)) is Channel


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=8), st.data())
def test_frames_arrive_whole_however_they_are_cut_into_records(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(framed, frames))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8), "cuts"))
    connection = Connection()
    got: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        connection.say(stream[start:end], got)
        whole = [sum(4 + len(frame) for frame in frames[: count + 1]) for count in range(len(frames))]
        assert got == frames[: sum(one <= end for one in whole)]
    connection.close()
    assert connection.pool.in_use == 0


@pytest.mark.parametrize("size", [RECORD - 5, RECORD - 4, RECORD, BLOCK, 3 << 20])
def test_large_frames_arrive_whole(connection: Connection, size: int) -> None:
    got: list[bytes] = []
    connection.say(framed(pattern(size)) + framed(b"next"), got)
    assert got == [pattern(size), b"next"]


def test_nothing_stays_behind_that_a_selector_does_not_show(connection: Connection) -> None:
    """OpenSSL decrypts a whole record when its first byte is asked for."""
    frames = [b"%d" % number for number in range(500)]
    connection.broker.send(b"".join(map(framed, frames)))
    assert select.select([connection.channel], [], [], 1)[0]
    assert list(map(taken, connection.channel.receive())) == frames
    assert not select.select([connection.channel], [], [], 0)[0]
    assert connection.socket.pending() == 0


def test_an_end_is_noticed_and_what_came_before_it_is_given(connection: Connection) -> None:
    connection.broker.send(framed(b"last") + b"\x00")
    connection.broker.close()
    receiving = connection.channel.receive()
    assert taken(next(receiving)) == b"last"
    with pytest.raises(ChannelClosed, match="closed the connection"):
        next(receiving)


def test_an_orderly_end_is_an_end(connection: Connection) -> None:
    connection.broker.send(framed(b"last"))
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.broker.unwrap()  # sends close_notify, and would wait for ours
    receiving = connection.channel.receive()
    assert taken(next(receiving)) == b"last"
    with pytest.raises(ChannelClosed):
        next(receiving)


def test_bytes_that_were_changed_on_the_way_are_refused() -> None:
    connection = Connection()
    raw = socket.socket(fileno=connection.broker.detach())
    raw.send(b"\x17\x03\x03\x00\x20" + bytes(32))
    with pytest.raises(ChannelClosed, match=r"(?i)\bmac\b|decryption"):
        list(connection.channel.receive())
    raw.close()
    connection.channel.close()


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


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.sampled_from([0, 1, 3, 700, RECORD - 4, RECORD, 50_000]), max_size=6), max_size=5))
def test_requests_go_out_whole_through_a_tiny_buffer(requests: list[list[int]]) -> None:
    connection = Connection(send_buffer=1)
    expected = b""
    data = b""
    for number, sizes in enumerate(requests):
        buffers = [bytes([number * 10 + at]) * size for at, size in enumerate(sizes)]
        connection.channel.send(buffers)
        expected += framed(b"".join(buffers))
        if number % 2:
            data += connection.arrived()
    data += delivered(connection)
    connection.close()
    assert data == expected


def test_what_the_socket_does_not_take_waits_and_continues_where_it_stopped() -> None:
    connection = Connection(send_buffer=1)
    batch = pattern(3 << 20)
    connection.channel.send([b"head", memoryview(batch), b"tail"])
    assert connection.channel.unsent
    connection.channel.send([b"second"])
    assert delivered(connection) == framed(b"head" + batch + b"tail") + framed(b"second")
    connection.close()


def test_both_ways_at_once() -> None:
    """Answers are read while a request is stuck half sent, as between a pump and a busy broker."""
    connection = Connection(send_buffer=1)
    batch, answer = pattern(1 << 20), pattern(1 << 20)[::-1]
    connection.channel.send([b"head", memoryview(batch)])
    assert connection.channel.unsent
    got: list[bytes] = []
    connection.say(framed(answer), got)
    assert got == [answer]
    assert delivered(connection) == framed(b"head" + batch)
    connection.close()


def test_sending_to_a_peer_that_is_gone_is_noticed(connection: Connection) -> None:
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


@given(st.lists(st.sampled_from([0, 1, 61, 5000, RECORD - 1, RECORD, RECORD + 1, 40_000]), max_size=12))
def test_small_buffers_share_records_and_large_ones_are_not_copied(sizes: list[int]) -> None:
    buffers = [bytes([at]) * size for at, size in enumerate(sizes)]
    pieces = list(full_records(buffers))
    assert b"".join(pieces) == b"".join(buffers)
    if sizes and sizes[0] >= RECORD:
        assert len(pieces[0]) == sizes[0]
    small = [len(piece) < RECORD for piece in pieces]
    assert not any(one and two for one, two in itertools.pairwise(small))
    for piece in pieces:
        assert piece
        assert len(piece) <= RECORD or any(piece.obj is buffer for buffer in buffers)


# --- refusals -----------------------------------------------------------------------------------------

Script = Callable[[socket.socket], None]


@contextlib.contextmanager
def serving(script: Script) -> Iterator[int]:
    """A server for one connection, on the port given."""
    with socket.create_server((HOST, 0)) as server:

        def run() -> None:
            with contextlib.suppress(OSError), server.accept()[0] as sock:
                sock.settimeout(2 * TIMEOUT_S)
                script(sock)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield int(server.getsockname()[1])
        thread.join(3 * TIMEOUT_S)
        assert not thread.is_alive()


def tls_server(context: ssl.SSLContext) -> Script:
    def script(sock: socket.socket) -> None:
        with context.wrap_socket(sock, server_side=True) as encrypted:
            encrypted.recv(1)

    return script


def hang_up_on(sock: socket.socket) -> None:
    sock.recv(1)


def say_nothing_to(sock: socket.socket) -> None:
    while sock.recv(1 << 16):
        pass


def refusal(script: Script, context: ssl.SSLContext) -> str:
    started = time.monotonic()
    with serving(script) as port, pytest.raises(TlsRefused) as caught:
        RpcConnection.dial(HOST, port, client_id="test", timeout_s=TIMEOUT_S, tls=context)
    assert time.monotonic() - started < TIMEOUT_S
    line = str(caught.value)
    assert line.startswith(f"{HOST}:{port}: ")
    assert "\n" not in line
    return line


def test_a_certificate_that_nobody_vouches_for() -> None:
    assert "certificate is not trusted" in refusal(tls_server(SERVER), client_context(trustme.CA()))


def test_a_certificate_for_another_host() -> None:
    line = refusal(tls_server(server_context("broker.example")), CLIENT)
    assert "certificate is not for this host" in line
    assert "ssl.endpoint.identification.algorithm" in line


def test_another_host_is_fine_where_it_is_not_looked_at() -> None:
    context = client_context()
    context.check_hostname = False
    with serving(tls_server(server_context("broker.example"))) as port:
        connect(HOST, port, timeout_s=TIMEOUT_S, tls=context).close()


def test_a_broker_that_hangs_up_in_the_handshake() -> None:
    assert "hung up during the TLS handshake" in refusal(hang_up_on, CLIENT)


def test_what_does_not_speak_tls() -> None:
    def script(sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        sock.recv(1000)

    assert "check the port and security.protocol" in refusal(script, CLIENT)


def test_no_version_in_common() -> None:
    modern = client_context()
    modern.minimum_version = ssl.TLSVersion.TLSv1_3
    old = server_context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert "check ssl.enabled.protocols" in refusal(tls_server(old), modern)


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_broker_that_wants_to_know_who_we_are(newest: ssl.TLSVersion) -> None:
    """With TLS 1.3 it says so only after the handshake."""
    strict = server_context()
    AUTHORITY.configure_trust(strict)
    strict.verify_mode = ssl.CERT_REQUIRED
    strict.maximum_version = newest
    assert "check ssl.keystore" in refusal(tls_server(strict), CLIENT)


def test_a_silent_broker_is_given_up_in_time() -> None:
    started = time.monotonic()
    with (
        serving(say_nothing_to) as port,
        pytest.raises(BrokerUnreachable, match="no answer to the TLS handshake") as caught,
    ):
        connect(HOST, port, timeout_s=1, tls=CLIENT)
    assert not isinstance(caught.value, TlsRefused)
    assert time.monotonic() - started < 10


def test_speaking_in_clear_to_a_tls_port_is_explained() -> None:
    def script(sock: socket.socket) -> None:
        sock.recv(1000)
        sock.sendall(b"\x15\x03\x03\x00\x02\x02\x50")

    with serving(script) as port, pytest.raises(BrokerUnreachable, match=r"security\.protocol = SSL"):
        RpcConnection.dial(HOST, port, client_id="test", timeout_s=TIMEOUT_S)
