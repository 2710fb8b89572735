"""Blocking calls against brokers that answer, answer slowly, wrongly or not at all."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka.protocol.metadata import ApiVersionsResponse, MetadataRequest, MetadataResponse

from sparkmirror.kafka.wire.rpc import BrokerUnreachable, RpcConnection, UnsupportedBroker, connect

TIMEOUT_S = 1.0
SLACK_S = 2.0
METADATA = 3

Script = Callable[[socket.socket], None]
Serve = Callable[[Script], int]


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def request(sock: socket.socket) -> bytes:
    """The next request, without its size."""
    (size,) = struct.unpack(">i", sock.recv(4, socket.MSG_WAITALL))
    return sock.recv(size, socket.MSG_WAITALL)


def greet(sock: socket.socket, *, metadata: tuple[int, int] = (0, 12), error: int = 0, after_s: float = 0) -> None:
    """Answer ApiVersions some seconds after it was asked: Metadata is all this broker speaks."""
    asked = request(sock)
    time.sleep(after_s)
    assert asked[:4] == struct.pack(">hh", 18, 0)
    response = ApiVersionsResponse(
        error_code=error,
        api_keys=[ApiVersionsResponse.ApiVersion(api_key=METADATA, min_version=metadata[0], max_version=metadata[1])],
    )
    response.API_VERSION = 0
    response.with_header(correlation_id=struct.unpack(">i", asked[4:8])[0])
    sock.sendall(framed(bytes(response.encode(header=True))))


def until_gone(sock: socket.socket) -> None:
    """Say no more, but stay."""
    while sock.recv(1 << 16):
        pass


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Runs a broker of one connection that follows a script; gives its port."""
    threads: list[threading.Thread] = []
    servers: list[socket.socket] = []

    def start(script: Script) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def run() -> None:
            with contextlib.suppress(OSError), server.accept()[0] as sock:
                script(sock)

        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        return int(server.getsockname()[1])

    yield start
    for server in servers:
        server.close()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def dial(port: int) -> RpcConnection:
    return RpcConnection.dial("127.0.0.1", port, client_id="us->eu", timeout_s=TIMEOUT_S)


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """What happens inside takes no longer than one call may."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < TIMEOUT_S + SLACK_S


# --- calls --------------------------------------------------------------------------------------------


def metadata_request() -> object:
    return MetadataRequest(topics=None)


def test_a_call_is_answered_in_the_newest_version_of_both(serve: Serve) -> None:
    asked: list[bytes] = []

    def script(sock: socket.socket) -> None:
        greet(sock, metadata=(4, 9))
        asked.append(request(sock))
        response = MetadataResponse(cluster_id="the cluster", brokers=[], topics=[])
        response.API_VERSION = 9
        response.with_header(correlation_id=2)
        sock.sendall(framed(bytes(response.encode(header=True))))
        until_gone(sock)

    connection = dial(serve(script))
    answer = connection.call(metadata_request())
    connection.close()
    assert answer.cluster_id == "the cluster"
    head = MetadataRequest.decode(asked[0], version=9, header=True).header
    assert (head.request_api_version, head.correlation_id, head.client_id) == (9, 2, "us->eu")


def test_a_raw_exchange_carries_frames(serve: Serve) -> None:
    def script(sock: socket.socket) -> None:
        greet(sock)
        for _ in range(2):
            asked = request(sock)
            sock.sendall(framed(asked[4:8] + asked[::-1]))

    connection = dial(serve(script))
    for number in (b"\0\0\0\2", b"\0\0\0\3"):
        answer = connection.exchange_raw([b"\0\2ad", memoryview(b"\0\0\0\0bo"), b"dy"])
        assert bytes(answer) == number + b"ydob" + number[::-1] + b"da\2\0", "the connection numbers its requests"
    connection.close()


@pytest.mark.parametrize("answered", [b"\0\0\0\1", b"\0\0\0\3", b"\0\0"], ids=["late", "early", "none"])
def test_an_answer_to_another_request_ends_the_connection(serve: Serve, answered: bytes) -> None:
    """As a broker's late answer would be, or a proxy's that mixes up its clients."""

    def script(sock: socket.socket) -> None:
        greet(sock)
        request(sock)
        sock.sendall(framed(answered))
        until_gone(sock)

    connection = dial(serve(script))
    for _ in range(2):
        with pytest.raises(BrokerUnreachable):
            connection.exchange_raw([bytes(8)])
    assert connection.socket.fileno() == -1


def test_versions_that_both_speak(serve: Serve) -> None:
    def script(sock: socket.socket) -> None:
        greet(sock, metadata=(4, 9))
        until_gone(sock)

    connection = dial(serve(script))
    assert connection.version(METADATA, (0, 20), "Metadata") == 9
    assert connection.version(METADATA, (2, 7), "Metadata") == 7
    assert connection.version(METADATA, (9, 12), "Metadata") == 9
    for key, ours in ((METADATA, (10, 12)), (METADATA, (0, 3)), (99, (0, 5))):
        with pytest.raises(UnsupportedBroker, match=f"sparkmirror v{ours[0]} to v{ours[1]}"):
            connection.version(key, ours, "Metadata")
    connection.close()


def test_a_broker_that_refuses_the_first_question(serve: Serve) -> None:
    with pytest.raises(UnsupportedBroker, match="error 35"):
        dial(serve(lambda sock: greet(sock, error=35)))


# --- no answer ----------------------------------------------------------------------------------------


def test_a_refused_connection_names_the_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with in_time(), pytest.raises(BrokerUnreachable, match=rf"^127\.0\.0\.1:{port}: Connection refused$"):
        dial(port)


def test_an_unknown_host_is_named() -> None:
    with pytest.raises(BrokerUnreachable, match=r"^no-such-host\.invalid:9092: \S"):
        connect("no-such-host.invalid", 9092, timeout_s=5)


def test_a_broker_that_never_speaks(serve: Serve) -> None:
    with in_time(), pytest.raises(BrokerUnreachable, match="timed out"):
        dial(serve(until_gone))


def test_a_broker_that_hangs_up(serve: Serve) -> None:
    def script(sock: socket.socket) -> None:
        greet(sock)
        request(sock)
        sock.sendall(framed(b"12345678")[:7])

    connection = dial(serve(script))
    with in_time(), pytest.raises(BrokerUnreachable, match="closed the connection"):
        connection.call(metadata_request())
    connection.close()


@pytest.mark.parametrize("announced", [b"", struct.pack(">i", 1 << 20)], ids=["the size", "the frame"])
def test_the_timeout_bounds_a_whole_call(serve: Serve, announced: bytes) -> None:
    """A peer that drips gets no more time than a silent one."""
    done = threading.Event()

    def drip(sock: socket.socket) -> None:
        greet(sock)
        request(sock)
        sock.sendall(announced)
        while not done.wait(TIMEOUT_S * 0.4):
            sock.sendall(b"\x00")

    connection = dial(serve(drip))
    with in_time(), pytest.raises(BrokerUnreachable, match="timed out"):
        connection.call(metadata_request())
    done.set()
    connection.close()


class Downpour(socket.socket):
    """A socket with one more byte of an endless frame each time it is asked: it never has to wait."""

    def __init__(self) -> None:
        super().__init__()
        self._given = 0
        self.ends = time.monotonic() + TIMEOUT_S + 2 * SLACK_S

    def sendall(self, *_: object) -> None:
        pass

    def recv_into(self, buffer: Any, *_: object) -> int:
        if time.monotonic() > self.ends:
            raise ConnectionResetError("it rained for too long")
        self._given += 1
        time.sleep(0.001)
        buffer[0] = 1 if self._given == 2 else 0  # the second byte of a size of 64 KiB
        return 1


def test_the_timeout_bounds_a_call_whose_answer_never_pauses() -> None:
    with Downpour() as sock, in_time(), pytest.raises(BrokerUnreachable, match="timed out"):
        RpcConnection(sock, "us->eu", TIMEOUT_S)


def test_a_broker_that_does_not_read(serve: Serve) -> None:
    done = threading.Event()

    def script(sock: socket.socket) -> None:
        greet(sock)
        done.wait(10)

    connection = dial(serve(script))
    with in_time(), pytest.raises(BrokerUnreachable, match="timed out"):
        connection.exchange_raw([bytes(1 << 26)])
    done.set()
    connection.close()


def test_what_no_broker_says_is_refused(serve: Serve) -> None:
    def script(sock: socket.socket) -> None:
        request(sock)
        sock.sendall(struct.pack(">i", -5))
        until_gone(sock)

    with in_time(), pytest.raises(BrokerUnreachable):
        dial(serve(script))


# --- sockets ------------------------------------------------------------------------------------------


def test_a_socket_gives_up_on_data_that_nobody_acknowledges(serve: Serve) -> None:
    """R6: the kernel must not deliver a buffered request minutes later."""
    sock = connect("127.0.0.1", serve(until_gone), timeout_s=TIMEOUT_S, send_buffer=1 << 17, receive_buffer=1 << 17)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 5000
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= 1 << 17
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= 1 << 17
    sock.close()


def test_a_socket_that_is_handed_over_stays_open(serve: Serve) -> None:
    def script(sock: socket.socket) -> None:
        greet(sock)
        sock.sendall(b"still there")

    sock = dial(serve(script)).socket
    assert sock.recv(11, socket.MSG_WAITALL) == b"still there"
    sock.close()


def test_the_round_trip_is_the_shortest_answer(serve: Serve) -> None:
    def script(sock: socket.socket) -> None:
        for slow_s in (0.2, 0.05, 0.2):
            greet(sock, after_s=slow_s)
        until_gone(sock)

    connection = dial(serve(script))
    assert connection.round_trip_s >= 0.2
    connection.ask_versions()
    connection.ask_versions()
    assert 0.05 <= connection.round_trip_s < 0.2
    connection.close()
