"""Requests that no client means well with: each has an answer, none a 5xx, and the interface continues."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.connectors import worker_file
from tests.support.in_memory_api import InMemoryApi, in_memory_api
from tests.support.rest_cases import connector
from tests.support.served_api import ServedApi, served_api

from sparkmirror.cli.log_lines import PlainLines
from sparkmirror.config.model import ProviderConfig
from sparkmirror.config.providers import resolve
from sparkmirror.connect.body_limit import LIMIT_BYTES
from sparkmirror.connect.flows import read_flows
from sparkmirror.web import connections
from sparkmirror.web.connections import MOST, ListeningSocket

SOURCE = connector("Source", "source:9092", "target:9092")
BODIES = [
    ("PUT", "/connector-plugins/MirrorSourceConnector/config/validate"),
    ("POST", "/connectors"),
    ("PUT", "/connectors/new/config"),
    ("PATCH", "/connectors/shop/config"),
    ("PATCH", "/connectors/shop/offsets"),
    ("PUT", "/admin/loggers/sparkmirror.nobody"),
]


@pytest.fixture
def api() -> Iterator[InMemoryApi]:
    """An interface with one connector, `shop`, which is stopped."""
    with in_memory_api() as opened:
        assert (
            opened.ask("POST", "/connectors", {"name": "shop", "config": SOURCE, "initial_state": "STOPPED"})[0] == 201
        )
        yield opened


@pytest.fixture(scope="module")
def served() -> Iterator[ServedApi]:
    """One that runs, over HTTP."""
    with served_api() as opened:
        assert opened.api.ask("PUT", "/connectors/shop/config", SOURCE)[0] == 201
        yield opened


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"config":' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"offsets":[{"partition":' + b'{"a":' * 50 + b"1" + b"}" * 50 + b"}]}",
        b"",
        b"null",
        b'"text"',
        b"17",
        b"{",
        b"\xff\xfe{}",
        b'{"name":"\xc3\x28"}',
        b'{"level":NaN}',
        b'{"level":-Infinity}',
        b'{"level":1e999}',
        b'{"level":' + b"9" * 5_000 + b"}",
        b'{"level":[1,2]}',
        b'{"name":"x","config":{"topics":{"a":1}}}',
        b'{"name":"x","config":[]}',
        b'{"offsets":{}}',
        b'{"offsets":[1]}',
        b'{"offsets":[{"partition":[],"offset":1}]}',
        b'{"offsets":[{"partition":{"cluster":"a","topic":"t","partition":99999999999999999999},"offset":{"offset":1}}]}',
        b'{"offsets":[{"partition":{"cluster":"a","topic":"t","partition":0},"offset":{"offset":1e308}}]}',
        b'{"offsets":[{"partition":{"cluster":"a","topic":"t","partition":0},"offset":{"offset":1.5}}]}',
    ],
    ids=lambda body: body[:30].decode("latin-1"),
)
def test_bodies_that_make_no_sense_are_refused(api: InMemoryApi, body: bytes) -> None:
    for method, path in BODIES:
        status, said = api.ask(method, path, body)
        assert status in (400, 404), (method, path, said)
        assert isinstance(said, dict)
        assert said["error_code"] == status
    assert api.ask("GET", "/connectors") == (200, ["shop"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "config", "offsets", "partition", "offset", "level", "topics", "tasks.max", ""])
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60)
@given(method_and_path=st.sampled_from(BODIES), body=JSON)
def test_any_json(served: ServedApi, method_and_path: tuple[str, str], body: object) -> None:
    assert served.api.ask(*method_and_path, body)[0] < 500


def test_of_a_name_that_comes_twice_the_last_counts(api: InMemoryApi) -> None:
    """As Jackson reads it."""
    body = json.dumps({"name": "x", "config": SOURCE})[:-1] + ', "name": "y"}'
    assert api.ask("POST", "/connectors", body.encode())[0] == 201
    assert api.ask("GET", "/connectors") == (200, ["shop", "y"])


@pytest.mark.parametrize("name", ["a\r\nb", "a\r\n", "\na", "a\0", "\x1b[2J", "a\x7f", "a\x85b", "a\x9bb"])
def test_a_name_with_control_characters_is_refused(api: InMemoryApi, name: str) -> None:
    codes = ", ".join(str(ord(letter)) for letter in name if ord(letter) < 32 or 127 <= ord(letter) < 160)
    words = f"String may not contain control sequences but had the following ASCII chars: {codes}"
    status, said = api.ask("PUT", f"/connectors/{quote(name)}/config", SOURCE)
    assert status == 400
    assert words in str(said)
    checked = api.ask("PUT", "/connector-plugins/MirrorSource/config/validate", {**SOURCE, "name": name})[1]
    assert words in json.dumps(checked)
    if name.strip("".join(map(chr, range(0x21)))) == name:  # as Connect, which trims the name of a body
        assert api.ask("POST", "/connectors", {"name": name, "config": SOURCE})[0] == 400
    assert api.ask("GET", "/connectors") == (200, ["shop"])


def test_names_that_connect_takes_are_taken(api: InMemoryApi) -> None:
    for name in ("αβγ", "a b", "n" * 300, "a/b", "a\\b", "\U0001f600", "..", "%"):
        assert api.ask("PUT", f"/connectors/{quote(name, safe='')}/config", SOURCE)[0] == 201, name
        assert api.ask("DELETE", f"/connectors/{quote(name, safe='')}")[0] == 204
    for blank in ("%20", "%20%20"):
        status, said = api.ask("PUT", f"/connectors/{blank}/config", SOURCE)
        assert (status, "String may not be empty" in str(said)) == (400, True)


@pytest.mark.full
@pytest.mark.alone
def test_a_megabyte_of_anything_takes_no_time() -> None:
    """Some once took hours, in which nobody else in the process could do anything."""
    spaces = " " * 900_000
    providers = (ProviderConfig(name="file", kind="FileConfigProvider"),)
    with in_memory_api(lambda text: resolve(text, providers)) as api:
        for more in (
            {"topics": f"a{spaces}b"},
            {"connector.plugin.version": "[1],[2]," * 100_000},
            {"connector.plugin.version": "1.a" * 300_000},
            {"source.cluster.sasl.jaas.config": f"a required{spaces}x"},
            {"source.cluster.sasl.jaas.config": "a required" + " x=y" * 200_000},
            {"topics": "${file:" * 100_000},
            {"topics": "${file" + ":" * 900_000},
            {"topics": " ," * 400_000},
            {"topics": "(" * 900_000},
            {"topics": "(a|" * 300_000},
            {"topics": ",".join(f"topic{number}" for number in range(80_000))},
            {"source.cluster.bootstrap.servers": "a:1," * 200_000 + "a:1"},
            {"replication.factor": "9" * 900_000},
            {"source.cluster.alias": "a" * 900_000},
            {f"key.{number}": "" for number in range(50_000)},
        ):
            started = time.monotonic()
            for method, path in (
                ("PUT", "/connector-plugins/MirrorSource/config/validate"),
                ("PUT", "/connectors/x/config"),
            ):
                assert api.ask(method, path, {**SOURCE, "name": "x", **more})[0] < 500
            read_flows(api.worker.connectors, worker_file())
            assert time.monotonic() - started < 60, next(iter(more))


# --- over HTTP ----------------------------------------------------------------------------------


def test_a_long_body_is_refused(served: ServedApi) -> None:
    fitting = json.dumps({"level": "x" * (LIMIT_BYTES - 13)}).encode()
    assert len(fitting) == LIMIT_BYTES
    assert served.ask("PUT", "/admin/loggers/a", fitting)[0] == 404  # no such level
    for method, path in (*BODIES, ("GET", "/connectors"), ("PUT", "/connectors/shop/pause")):
        status, said = served.ask(method, path, fitting + b" ")
        assert status == 413
        assert "1,048,576 bytes" in said
    # What was not read resets the connection, and may outrun the answer, or the rest of it.
    with contextlib.suppress(ConnectionError, http.client.IncompleteRead):
        assert served.ask("POST", "/connectors", b"x" * (LIMIT_BYTES * 20))[0] == 413
    assert served.ask("GET", "/connectors") == (200, '["shop"]')


def test_a_body_without_an_end_is_refused(served: ServedApi) -> None:
    with served.connect() as client:
        client.sendall(_head("POST", "/connectors", "transfer-encoding: chunked"))
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        with contextlib.suppress(ConnectionError):
            for _ in range(20 * LIMIT_BYTES // 0x10000):
                client.sendall(chunk)
        with contextlib.suppress(ConnectionError):
            assert client.recv(100).startswith(b"HTTP/1.1 413 ")
    assert served.ask("GET", "/connectors") == (200, '["shop"]')


@pytest.mark.parametrize(
    ("request_", "statuses"),
    [
        (b"GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 3, (200, 200, 200)),
        (b"GET / HTTP/1.1\r\nhost: [\r\n\r\n", (400,)),
        (
            b"POST /connectors HTTP/1.1\r\nhost: [\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
            (400,),
        ),
        (b"HEAD /connectors HTTP/1.1\r\nhost: a\r\n\r\n", (200,)),
        (b"OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n", (404,)),
        (b"OPTIONS /connectors HTTP/1.1\r\nhost: a\r\n\r\n", (200,)),
        (b"FROB /connectors HTTP/1.1\r\nhost: a\r\n\r\n", (405,)),
        (b"PATCH /connectors/shop HTTP/1.1\r\nhost: a\r\n\r\n", (405,)),
        (b"TRACE /connectors HTTP/1.1\r\nhost: a\r\n\r\n", (405,)),
        (b"CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n", (404,)),
        (b"GET http://a/connectors HTTP/1.1\r\nhost: a\r\n\r\n", (404,)),
        (b"GET /connectors/%ff%fe HTTP/1.1\r\nhost: a\r\n\r\n", (404,)),
        (b"GET /connectors/%ed%a0%80/status HTTP/1.1\r\nhost: a\r\n\r\n", (404,)),
        (b"GET /connectors/%zz HTTP/1.1\r\nhost: a\r\n\r\n", (404,)),
        (b"GET //../..//etc/passwd HTTP/1.1\r\nhost: a\r\n\r\n", (404,)),
        (b"GET /connectors?expand=%ff&expand=%0d%0a HTTP/1.1\r\nhost: a\r\n\r\n", (200,)),
        (b"GET / HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n", (200,)),
        (b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 1_000_000 + b"\r\n\r\n", (400,)),
        (b"GET /" + b"y" * 1_000_000 + b" HTTP/1.1\r\nhost: a\r\n\r\n", (400,)),
        (b"GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999999999999999\r\n\r\n", (400,)),
        (b"GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999999\r\n\r\n", (413,)),
        (b"GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx", (400,)),
        (b"GET / HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\n\r\n", (415,)),
        (b"POST /connectors HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}", (415,)),
        (
            b"PUT /connectors/x/config HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            (415,),
        ),
        (b"PATCH /connectors/shop/config HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}", (415,)),
        (b"PUT /connectors/shop/pause HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n", (202,)),
        (b"GET / HTTP/1.1\r\nhost: a\r\ncontent-type: \xff;;=\r\n\r\n", (415,)),
        (b"GET / HTTP/1.1\r\nhost: a\r\naccept: \xff\r\n\r\n", (406,)),
        (b"GET / HTTP/x.9\r\nhost: a\r\n\r\n", (400,)),
        (b"\x16\x03\x01\x02\x00\x01\x00", (400,)),
        (b"\r\n\r\n\0\0\0", (400,)),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else "",
)
def test_requests_that_are_none(served: ServedApi, request_: bytes, statuses: tuple[int, ...]) -> None:
    answered = served.exchange(request_, len(statuses))
    assert [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", answered)] == list(statuses)
    assert served.ask("GET", "/connectors") == (200, '["shop"]')


def _head(method: str, path: str, *headers: str) -> bytes:
    lines = (f"{method} {path} HTTP/1.1", "host: a", "content-type: application/json", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def test_slow_connections_hold_up_nobody(served: ServedApi) -> None:
    """500 of them, each of which sends a byte at a time: of a head, of a body, or reads no answer."""
    stop = threading.Event()
    plugin = "/connector-plugins/MirrorSourceConnector/config"
    begun = [
        b"GET / HTTP/1.1\r\nx: ",
        _head("POST", "/connectors", "content-length: 1000") + b"{",
        _head("POST", "/connectors", "transfer-encoding: chunked") + b"1\r\n{\r\n",
        _head("GET", plugin) * 3,
    ]
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(served.connect()) for _ in range(500)]
        for number, one in enumerate(slow):
            with contextlib.suppress(OSError):
                one.sendall(begun[number % len(begun)])

        def drip() -> None:
            while not stop.wait(0.5):
                for one in slow:
                    with contextlib.suppress(OSError):
                        one.send(b"x")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        try:
            for _ in range(8):
                started = time.monotonic()
                assert served.ask("GET", "/connectors") == (200, '["shop"]')
                assert time.monotonic() - started < connections.PATIENCE_S / 2
            assert served.ask("PATCH", "/connectors/shop/config", b'{"tasks.max": "3"}')[0] == 200
        finally:
            stop.set()
            thread.join()
        assert len(served.open_connections()) <= MOST + 1


def test_who_keeps_us_waiting_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE_S", 0.5)
    begun = [
        b"",
        b"GET",
        _head("POST", "/connectors", "content-length: 1000"),
        _head("GET", "/") + b"G",
        _head("POST", "/x", "transfer-encoding: chunked") + b"1\r\n{\r\n",
    ]
    with served_api() as served:
        for sent in begun:
            with served.connect() as client:
                client.settimeout(10)
                client.sendall(sent)
                started = time.monotonic()
                with contextlib.suppress(ConnectionResetError):
                    while client.recv(10_000):
                        pass
                assert 0.2 < time.monotonic() - started < 5, sent
        assert served.ask("GET", "/connectors")[0] == 200


def test_who_does_not_agree_on_tls_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HANDSHAKE_S", 0.5)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    with served_api(tls) as served, served.connect() as client:
        client.settimeout(10)
        client.sendall(b"\x16\x03\x01")
        started = time.monotonic()
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""
        assert 0.2 < time.monotonic() - started < 5


def test_no_more_sockets_are_open_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_OPEN", 2)
    with ListeningSocket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(10)
        clients = [socket.create_connection(listening.getsockname()) for _ in range(4)]
        first, _ = listening.accept()
        listening.accept()[0].close()
        second, _ = listening.accept()
        with pytest.raises(ConnectionAbortedError):
            listening.accept()
        assert clients[3].recv(1) == b""
        for one in (first, second, *clients):
            one.close()


# --- what is logged -----------------------------------------------------------------------------


@pytest.mark.parametrize("control", ["\n", "\r\n", "\x1b[31m", "\0", "\x7f", "\x9b", "\u2028", "\t"])
def test_no_control_character_reaches_a_log_line(control: str, caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("sparkmirror.test")
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Kept()
    handler.addFilter(PlainLines())
    log.addHandler(handler)
    name = f"shop{control}2026-01-01 00:00:00,000 WARNING all is lost"
    log.warning("connector %s: %d%%", name, 7)
    log.warning(f"connector {name}: 100%")
    try:
        raise ValueError(name)
    except ValueError:
        log.exception("connector %s", name)
    log.removeHandler(handler)
    assert [len(line.splitlines()) for line in lines[:2]] == [1, 1]
    assert lines[0] == f"connector {name.replace(control, repr(control)[1:-1])}: 7%"
    for line in lines:
        assert not {letter for letter in line if ord(letter) < 32 or 127 <= ord(letter) < 160} - {"\n"}
        assert not [one for one in line.split("\n")[1:] if not one.startswith("  ")], line
