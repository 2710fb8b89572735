"""The line is as long and as narrow as it is told to be, and passes everything on unchanged and in order."""

from __future__ import annotations

import hashlib
import os
import random
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from lab import KafkaCluster
from lab.distance import Distance, DistanceProxy
from lab.relay import MARGIN_BYTES, QUEUE_S
from tests.support.started import started

from sparkmirror.demo.ports import free_ports
from sparkmirror.errors import SetupError

SOON_S = 30.0
NOT_LATER_S = 0.025
"""A busy machine's lateness, for the best of several tries."""

ORPHAN_LINE = """
import sys, time
from lab.distance import Distance, DistanceProxy

line = DistanceProxy({int(sys.argv[1]): int(sys.argv[2])}, Distance(100))
line.start()
print(line.pid, flush=True)
time.sleep(600)
"""


class FarServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class EchoFromAfar(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(1 << 20):
            self.request.sendall(data)
        self.request.sendall(b"bye")


class Hoard(socketserver.BaseRequestHandler):
    """A server that reads nothing until it is told to, and then answers with the digest of it all."""

    may_read = threading.Event()

    def handle(self) -> None:
        self.may_read.wait(SOON_S)
        digest = hashlib.sha256()
        while data := self.request.recv(1 << 20):
            digest.update(data)
        self.request.sendall(digest.digest())


@pytest.fixture
def line() -> Iterator[DistanceProxy]:
    """Return a line of no length before a server that returns what it gets, and says bye at the end of it."""
    with FarServer(("127.0.0.1", 0), EchoFromAfar) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        with DistanceProxy({free_ports(1)[0]: server.server_address[1]}, Distance()) as line:
            yield line
        server.shutdown()


@pytest.fixture
def line_to_hoard() -> Iterator[DistanceProxy]:
    """Return a line of 100 ms before a server that does not read."""
    Hoard.may_read.clear()
    with FarServer(("127.0.0.1", 0), Hoard) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        with DistanceProxy({free_ports(1)[0]: server.server_address[1]}, Distance(100, bytes_per_s=400e6)) as line:
            yield line
        Hoard.may_read.set()
        server.shutdown()


def connect(line: DistanceProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", line.ports[0]), SOON_S)


def read(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = connection.recv(min(size - len(data), 1 << 20))
        assert chunk, f"ended after {len(data)} of {size} bytes"
        data += chunk
    return bytes(data)


def echo_s(connection: socket.socket, word: bytes) -> float:
    began = time.monotonic()
    connection.sendall(word)
    assert read(connection, len(word)) == word
    return time.monotonic() - began


def stream_s(connection: socket.socket, data: bytes) -> float:
    """Send `data` and read it back at the same time; return the seconds until the last byte is there."""
    began = time.monotonic()
    threading.Thread(target=connection.sendall, args=(data,), daemon=True).start()
    assert hashlib.sha256(read(connection, len(data))).digest() == hashlib.sha256(data).digest()
    return time.monotonic() - began


def send_until_stopped(connection: socket.socket, data: bytes) -> int:
    """Send until nothing more is taken for a second; return the number of bytes."""
    connection.settimeout(1.0)
    sent = 0
    with suppress(TimeoutError):
        while sent < len(data):
            sent += connection.send(data[sent : sent + 1_000_000])
    return sent


def wait_until_empty(line: DistanceProxy) -> None:
    deadline = time.monotonic() + SOON_S
    while line.traffic().connections:
        assert time.monotonic() < deadline, line.traffic()
        time.sleep(0.01)


@pytest.mark.parametrize("round_trip_ms", [0, 40, 100, 250])
def test_an_echo_takes_a_round_trip(line: DistanceProxy, round_trip_ms: int) -> None:
    line.become(Distance(round_trip_ms))
    with connect(line) as connection:
        first = echo_s(connection, b"x")
        assert first >= 2 * round_trip_ms / 1e3, "a handshake takes a round trip, too"
        seconds = [echo_s(connection, b"ping" * 100) for _ in range(10)]
    assert round_trip_ms / 1e3 <= min(seconds) <= round_trip_ms / 1e3 + NOT_LATER_S


def test_distance_costs_time_and_no_throughput(line: DistanceProxy) -> None:
    """300 MB there and back: at a window of a megabyte they would take half a minute."""
    line.become(Distance(100))
    with connect(line) as connection:
        echo_s(connection, b"x")
        assert stream_s(connection, random.Random(1).randbytes(100_000_000) * 3) < 20


def test_order_is_kept_under_jitter_on_many_connections(line: DistanceProxy) -> None:
    line.become(Distance(20, jitter_ms=15))
    connections = [connect(line) for _ in range(8)]
    data = [os.urandom(2_000_000 + number) for number in range(8)]
    threads = [
        threading.Thread(target=connection.sendall, args=(sent,), daemon=True)
        for connection, sent in zip(connections, data, strict=True)
    ]
    for thread in threads:
        thread.start()
    for connection, sent in zip(connections, data, strict=True):
        assert read(connection, len(sent)) == sent
        connection.close()
    wait_until_empty(line)
    assert line.traffic().passed == 2 * sum(map(len, data)) + 8 * len(b"bye")


def test_jitter_is_within_its_bounds(line: DistanceProxy) -> None:
    line.become(Distance(20, jitter_ms=40))
    with connect(line) as connection:
        echo_s(connection, b"x")
        seconds = [echo_s(connection, b"ping") for _ in range(12)]
    assert 0.02 <= min(seconds) <= 0.02 + 2 * 0.04 + NOT_LATER_S
    assert max(seconds) - min(seconds) > 0.02


def test_connections_share_the_bandwidth_and_directions_do_not(line: DistanceProxy) -> None:
    line.become(Distance(40, bytes_per_s=20e6))
    connections = [connect(line) for _ in range(4)]
    data = os.urandom(5_000_000)  # 20 MB there and 20 MB back, at the same time
    began = time.monotonic()
    took = []

    def stream(connection: socket.socket) -> None:
        stream_s(connection, data)
        took.append(time.monotonic() - began)

    threads = [threading.Thread(target=stream, args=(connection,)) for connection in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(took) == 4
    assert 0.95 < max(took) < 3
    assert min(took) > 0.7, "nobody is served at another's cost"


def test_a_full_line_makes_others_wait_for_its_queue_only(line: DistanceProxy) -> None:
    """And not for all that one connection has on its way, which is a quarter of a second each way here."""
    line.become(Distance(40, bytes_per_s=20e6))
    with connect(line) as busy, connect(line) as other:
        echo_s(other, b"x")
        streaming = threading.Thread(target=stream_s, args=(busy, os.urandom(20_000_000)))
        streaming.start()
        time.sleep(0.2)
        seconds = [echo_s(other, b"ping") for _ in range(3)]
        assert streaming.is_alive()
        streaming.join()
    assert 0.04 <= min(seconds) <= 0.04 + 2 * QUEUE_S + 0.05


def test_a_receiver_that_does_not_read_stops_its_sender(line_to_hoard: DistanceProxy) -> None:
    """And loses nothing by it."""
    with connect(line_to_hoard) as connection:
        data = os.urandom(20_000_000) * 5
        sent = send_until_stopped(connection, data)
        assert sent < len(data)
        in_flight = line_to_hoard.traffic().in_flight
        # 50 ms of 400 MB/s, its queue of 20 ms, and a margin; one portion may be taken beyond that.
        assert 20e6 < in_flight < 400e6 * 0.07 + MARGIN_BYTES + 2.1e6
        Hoard.may_read.set()
        connection.settimeout(SOON_S)
        connection.sendall(data[sent:])
        connection.shutdown(socket.SHUT_WR)
        assert read(connection, 32) == hashlib.sha256(data).digest()


def test_the_end_of_one_direction_comes_late_and_leaves_the_other_open(line: DistanceProxy) -> None:
    line.become(Distance(100))
    with connect(line) as connection:
        echo_s(connection, b"x")
        began = time.monotonic()
        connection.sendall(b"all there is")
        connection.shutdown(socket.SHUT_WR)
        assert read(connection, 15) == b"all there isbye"
        assert connection.recv(1) == b""
        assert time.monotonic() - began >= 0.1
    wait_until_empty(line)


def test_a_lost_connection_is_lost_both_ways_with_all_that_was_on_its_way() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        route = {free_ports(1)[0]: listener.getsockname()[1]}
        with DistanceProxy(route, Distance(2_000)) as line, connect(line) as client:
            server, _ = listener.accept()
            with server:
                client.sendall(b"lost on its way")
                while not line.traffic().in_flight:
                    time.sleep(0.01)
                line.lose_connections()
                for end in (client, server):
                    end.settimeout(SOON_S)
                    with pytest.raises(ConnectionResetError):
                        end.recv(1)
            assert line.traffic().connections == 0
            with connect(line):
                assert listener.accept()


def test_connections_are_lost_at_random(line: DistanceProxy) -> None:
    line.become(Distance(mean_life_s=0.2))
    lives = []
    for _ in range(6):
        began = time.monotonic()
        with connect(line) as connection, pytest.raises(ConnectionResetError):
            connection.recv(1)
        lives.append(time.monotonic() - began)
    assert 0.2 < sum(lives) < 10
    assert len({round(life, 2) for life in lives}) > 1


def test_a_server_that_is_away_is_a_reset() -> None:
    nobody, port = free_ports(2)
    with DistanceProxy({port: nobody}, Distance(40)) as line, pytest.raises(ConnectionResetError):
        connect(line).recv(1)


def test_a_client_that_goes_is_gone_at_the_server_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        route = {free_ports(1)[0]: listener.getsockname()[1]}
        with DistanceProxy(route, Distance(20)) as line:
            client = connect(line)
            server, _ = listener.accept()
            client.close()
            with server:
                server.settimeout(SOON_S)
                assert server.recv(1) == b""
            wait_until_empty(line)


def test_it_ends_with_the_process_that_started_it() -> None:
    command = [sys.executable, "-c", ORPHAN_LINE, *map(str, free_ports(2))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert psutil.pid_exists(pid)
        owner.kill()
    deadline = time.monotonic() + SOON_S
    while psutil.pid_exists(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_ends_at_the_end_of_a_with(line: DistanceProxy) -> None:
    pid = line.pid
    connection = connect(line)
    echo_s(connection, b"x")
    line.close()
    with pytest.raises(ConnectionResetError):
        connection.recv(1)
    assert not psutil.pid_exists(pid)
    with pytest.raises(RuntimeError, match="not played"):
        line.traffic()


def test_a_taken_port_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=f"on ports {port}"):
            DistanceProxy({port: 1}, Distance()).start()
    assert "Address already in use" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["round_trip_ms", "jitter_ms", "bytes_per_s", "mean_life_s"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_distance_that_can_not_be(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        Distance(**{name: value})


@pytest.mark.broker
def test_a_broker_at_the_end_of_a_line(tmp_path: Path, topic_name: str) -> None:
    """Its near address is near, and a client of the far one is never sent to the near one."""
    cluster = KafkaCluster(tmp_path / "cluster", distance=Distance(150))
    with started(cluster):
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        admin.create_topics([NewTopic(topic_name, 1, 1)])
        admin.close()
        far, near = (
            KafkaProducer(bootstrap_servers=servers, acks="all")
            for servers in (cluster.far_servers, cluster.bootstrap_servers)
        )
        for producer in (far, near):
            producer.send(topic_name, b"first", partition=0).get(SOON_S)
        began = time.monotonic()
        assert far.send(topic_name, b"from afar", partition=0).get(SOON_S).offset == 2
        assert time.monotonic() - began >= 0.15
        assert cluster.line.traffic().connections
        passed = cluster.line.traffic().passed
        near.send(topic_name, bytes(100_000), partition=0).get(SOON_S)
        assert cluster.line.traffic().passed - passed < 100_000
        consumer = KafkaConsumer(bootstrap_servers=cluster.far_servers, auto_offset_reset="earliest")
        part = TopicPartition(topic_name, 0)
        consumer.assign([part])
        values: list[bytes] = []
        while len(values) < 4:
            values += [record.value for records in consumer.poll(1000).values() for record in records]
        assert values == [b"first", b"first", b"from afar", bytes(100_000)]
        for client in (far, near, consumer):
            client.close()
    cluster.cleanup()
