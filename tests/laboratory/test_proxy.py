"""The proxy passes everything on unchanged, and breaks the network in the ways that it says."""

from __future__ import annotations

import os
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from lab import KafkaCluster
from lab.proxy import Proxy

SOON_S = 30.0
A_WHILE_S = 0.4


class EchoServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(65536):
            self.request.sendall(data)
        self.request.sendall(b"bye")


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Return a proxy before a server that returns what it gets, and says bye at the end of it."""
    with EchoServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        with Proxy(server.server_address[1]) as proxy:
            yield proxy
        server.shutdown()


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), SOON_S)


def read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        assert chunk, f"ended after {len(data)} of {size} bytes"
        data += chunk
    return data


def assert_alive(connection: socket.socket, word: bytes) -> None:
    connection.sendall(word)
    assert read(connection, len(word)) == word


def wait_until_unused(proxies: list[Proxy]) -> None:
    deadline = time.monotonic() + SOON_S
    while any(proxy.connections for proxy in proxies):
        assert time.monotonic() < deadline, [proxy.connections for proxy in proxies]
        time.sleep(0.01)


def test_bytes_pass_unchanged_both_ways_at_the_same_time(proxy: Proxy) -> None:
    sent = [os.urandom(3_000_000), os.urandom(2_000_000)]
    connections = [connect(proxy) for _ in sent]
    for connection, data in zip(connections, sent, strict=True):
        threading.Thread(target=connection.sendall, args=(data,), daemon=True).start()
    for connection, data in zip(connections, sent, strict=True):
        assert read(connection, len(data)) == data
    assert proxy.connections == 2


def test_the_end_of_one_direction_leaves_the_other_open(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        connection.sendall(b"all there is")
        connection.shutdown(socket.SHUT_WR)
        assert read(connection, 15) == b"all there isbye"
        assert connection.recv(1) == b""
    wait_until_unused([proxy])


def test_cut_resets_and_refuses_until_healed(proxy: Proxy) -> None:
    connection = connect(proxy)
    assert_alive(connection, b"before")
    proxy.cut()
    assert proxy.connections == 0
    with pytest.raises(ConnectionResetError):
        connection.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    proxy.heal()
    assert_alive(connect(proxy), b"after")


def test_a_black_hole_swallows_without_a_word_and_gives_it_back(proxy: Proxy) -> None:
    old = connect(proxy)
    assert_alive(old, b"before")
    proxy.stall()
    new = connect(proxy)
    for connection in (old, new):
        connection.sendall(b"into the dark")
        connection.settimeout(A_WHILE_S)
        with pytest.raises(TimeoutError):
            connection.recv(1)
    proxy.heal()
    for connection in (old, new):
        connection.settimeout(SOON_S)
        assert read(connection, 13) == b"into the dark"


def test_slow_is_as_slow_as_asked(proxy: Proxy) -> None:
    connection = connect(proxy)

    def echo_s() -> float:
        began = time.monotonic()
        assert_alive(connection, os.urandom(20_000))  # 40,000 bytes there and back
        return time.monotonic() - began

    proxy.slow(40_000)
    slowed = echo_s()
    assert slowed > 0.8
    proxy.heal()
    assert min(echo_s() for _ in range(5)) < slowed / 2


def test_dropped_connections_can_be_made_again_at_once(proxy: Proxy) -> None:
    connection = connect(proxy)
    assert_alive(connection, b"before")
    proxy.drop_connections()
    with pytest.raises(ConnectionResetError):
        connection.recv(1)
    assert_alive(connect(proxy), b"after")


def test_a_server_that_is_away_is_a_reset(proxy: Proxy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with Proxy(port) as dangling, pytest.raises(ConnectionResetError), connect(dangling) as connection:
        connection.recv(1)


def test_closed_and_started_again(proxy: Proxy) -> None:
    connection = connect(proxy)
    proxy.stall()
    proxy.close()
    with pytest.raises(ConnectionResetError):
        connection.recv(1)
    with pytest.raises(RuntimeError, match="does not run"):
        proxy.cut()
    proxy.start()
    assert_alive(connect(proxy), b"whole again")


@pytest.mark.full
@pytest.mark.broker
def test_clients_meet_brokers_through_their_proxies(tmp_path: Path, topic_name: str) -> None:
    """And nobody else does: brokers talk to each other directly."""
    with KafkaCluster(tmp_path / "cluster", brokers=2, proxied=True, heap_mb=384) as cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        admin.create_topics([NewTopic(topic_name, 1, 2)])
        known = {(broker["broker_id"], broker["port"]) for broker in admin.describe_cluster()["brokers"]}
        assert known == {(broker.node_id, broker.advertised_port) for broker in cluster.brokers}
        assert all(broker.proxy and broker.proxy.port != broker.port for broker in cluster.brokers)
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
        producer.send(topic_name, b"before", partition=0).get(SOON_S)
        for broker in cluster.brokers:
            assert broker.proxy
            broker.proxy.cut()
        late = producer.send(topic_name, b"while nobody gets through", partition=0)
        time.sleep(2)
        assert not late.is_done
        for broker in cluster.brokers:
            assert broker.proxy
            broker.proxy.heal()
        assert late.get(30).offset == 1
        in_sync = admin.describe_topics([topic_name])[0]["partitions"][0]["isr_nodes"]
        assert sorted(in_sync) == [1, 2]
        consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers)
        part = TopicPartition(topic_name, 0)
        assert consumer.end_offsets([part])[part] == 2
        for client in (consumer, producer, admin):
            client.close()
        # The follower still fetches from the leader; if that went through a proxy it would be seen here.
        wait_until_unused([broker.proxy for broker in cluster.brokers if broker.proxy])
    cluster.cleanup()
