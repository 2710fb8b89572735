"""Thousands of made-up requests to each HTTP application: no 5xx, no trace, none late, and memory that stays flat."""

from __future__ import annotations

import gc
import json
import random
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import quote

import psutil
import pytest
from tests.support.rest_cases import connector
from tests.support.served_api import served_api
from tests.support.snapshot_samples import snapshot

from sparkmirror.cli.metrics import metrics_served
from sparkmirror.config import MirrorConfig
from sparkmirror.demo.ports import free_ports

SHORT, LONG = 2_000, 10_000
LATE_S = 30.0
GROWTH = 40_000_000
SOURCE = connector("Source", "source:9092", "target:9092")

METHODS = ["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "FROB", "get"]
NAMES = ["shop", "a b", "αβγ", "..", ".", "%", "a/b", "x\r\ny", "\0", "", "root", "sparkmirror", "0", "-1", "9" * 400]
WORDS = [
    "",
    "a",
    "\0",
    "\x1b[2J",
    "null",
    "true",
    "-1",
    "1e9",
    "é",
    "\U0001f600",
    "${env:HOME}",
    "'",
    "<b>",
    "A->B",
    "*",
]
HOSTS = [
    "127.0.0.1",
    "localhost:8083",
    "a",
    "[",
    "[::1",
    "[::1]:80",
    "evil.example",
    "",
    "a:b",
    "x" * 300,
    "\xff",
    "a b",
]
ORIGINS = ["http://127.0.0.1", "null", "http://[", "http://evil.example", "", "x", "http://a:b", "https://é"]
TYPES = ["application/json", "text/plain", "application/json; charset=utf-8", "", ";", "\xff", "multipart/form-data"]
SITES = ["same-origin", "cross-site", "none", "same-site", "x", ""]
REST_PATHS = [
    "GET /", "GET /health", "GET /connectors", "GET /connectors?expand=status&expand=info", "GET /connectors?expand={}",
    "POST /connectors", "GET /connectors/{}", "DELETE /connectors/{}", "GET /connectors/{}/config",
    "PUT /connectors/{}/config", "PATCH /connectors/{}/config", "GET /connectors/{}/status", "GET /connectors/{}/tasks",
    "GET /connectors/{}/tasks/{}/status", "POST /connectors/{}/tasks/{}/restart", "PUT /connectors/{}/pause",
    "POST /connectors/{}/restart?includeTasks={}&onlyFailed={}", "PUT /connectors/{}/resume", "PUT /connectors/{}/stop",
    "GET /connectors/{}/offsets", "PATCH /connectors/{}/offsets", "DELETE /connectors/{}/offsets",
    "GET /connectors/{}/topics", "PUT /connectors/{}/topics/reset", "GET /connector-plugins?connectorsOnly={}",
    "GET /connector-plugins/{}/config?version={}", "PUT /connector-plugins/MirrorSource/config/validate",
    "GET /admin/loggers", "GET /admin/loggers/{}", "PUT /admin/loggers/{}?scope={}", "GET /{}", "GET {}", "OPTIONS *",
]  # fmt: skip
"""Each with the method that it has."""
PAGE_PATHS = [
    "GET /", "GET /metrics", "GET /health", "GET /ready", "GET /snapshot", "GET /assets/{}", "GET /assets/page.js",
    "GET /events?kind={}&flow={}", "GET /events?kind=topics&flow=A-%3EB", "GET /{}", "GET {}", "OPTIONS *",
    "GET /history?flow={}&since_s={}", "GET /rows?kind={}&flow={}&numbers={}",
    "GET /rows?kind=topics&flow=A-%3EB&numbers={}",
    "GET /rows?kind=groups&flow={}&numbers=1&of={}", "POST /actions/pause", "POST /actions/resume",
    "POST /actions/throttle",
]  # fmt: skip
FIELDS = ["name", "config", "offsets", "partition", "offset", "level", "topics", "flow", "bytes_per_s", "initial_state"]


class Maker:
    """Requests of a seed, as they are sent."""

    def __init__(self, seed: int, paths: list[str]) -> None:
        self._chance = random.Random(seed)
        self._paths = paths

    def one(self) -> bytes:
        chance = self._chance
        method, _, path = chance.choice(self._paths).partition(" ")
        method = chance.choice(METHODS) if chance.random() < 0.2 else method
        path = re.sub(r"\{\}", lambda _: self._part(), path)
        body = self._body() if method in ("PUT", "POST", "PATCH") or chance.random() < 0.1 else b""
        headers = [("Host", chance.choice(HOSTS) if chance.random() < 0.1 else "127.0.0.1")]
        if chance.random() < 0.1:
            headers.append(("Origin", chance.choice(ORIGINS)))
        if chance.random() < 0.1:
            headers.append(("Sec-Fetch-Site", chance.choice(SITES)))
        if chance.random() < 0.3:
            headers.append(("X-Sparkmirror-Page", "1"))
        headers.append(("Content-Type", chance.choice(TYPES) if chance.random() < 0.2 else TYPES[0]))
        if chance.random() < 0.1:
            headers.append(("Accept", chance.choice([*TYPES, "*/*"])))
        if chance.random() < 0.05:
            headers.append((f"X-{chance.randrange(9)}", "y" * chance.choice([0, 10, 10_000, 100_000])))
        length = len(body) if chance.random() < 0.98 else chance.choice(["-1", "x", 10**20, "1, 2"])
        headers += [("Content-Length", str(length))] if body or chance.random() < 0.5 else []
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "Connection: close"]
        return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body

    def _part(self) -> str:
        text = NAMES[0] if self._chance.random() < 0.4 else self._chance.choice(NAMES + WORDS)
        return quote(text, safe="") if self._chance.random() < 0.8 else re.sub(r"[\s\0]", "%zz", text)

    def _body(self) -> bytes:
        chance = self._chance
        kind = chance.randrange(6)
        if kind == 0:
            return chance.choice([b"", b"{", b"null", b"[]", b"\xff\xfe", b"[" * 5_000, b'{"a":' * 3_000, b"NaN"])
        if kind == 1:
            return json.dumps({"name": chance.choice(NAMES), "config": self._config()}).encode()
        if kind == 2:
            return json.dumps(self._config()).encode()
        if kind == 3:
            return json.dumps({"level": chance.choice(["INFO", "warn", "x", 1])}).encode()
        return json.dumps(self._value(3)).encode()

    def _config(self) -> dict[str, object]:
        chance = self._chance
        changed = {key: self._value(1) for key in chance.sample([key for key in SOURCE if key != "tasks.max"], 2)}
        odd = {chance.choice(WORDS): self._value(1)}
        return {**SOURCE, **(changed if chance.random() < 0.5 else {}), **(odd if chance.random() < 0.3 else {})}

    def _value(self, depth: int) -> object:
        chance = self._chance
        kind = chance.randrange(8 if depth else 5)
        if kind < 5:
            return [None, chance.random() < 0.5, chance.randrange(-5, 2**70), chance.choice(WORDS), 1e308][kind]
        inner = [self._value(depth - 1) for _ in range(chance.randrange(4))]
        if kind == 5:
            return inner
        return {chance.choice(FIELDS + WORDS): value for value in inner}


def answer(port: int, request: bytes) -> int:
    """Status; 0 where the server hung up. Of a stream that has no end only the head is read."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        received = b""
        try:
            client.sendall(request)
            while (part := client.recv(1 << 16)) and b"text/event-stream" not in received:
                received += part if len(received) < 1 << 12 else b""
        except ConnectionError:
            pass
    status = re.match(rb"HTTP/1\.1 (\d+) ", received)
    return int(status[1]) if status else 0


@contextmanager
def rest() -> Iterator[int]:
    with served_api() as served:
        assert served.api.ask("PUT", "/connectors/shop/config", SOURCE)[0] == 201
        yield served.port


@contextmanager
def page() -> Iterator[int]:
    (port,) = free_ports(1)
    with metrics_served(port, None, MirrorConfig(path="mm2.properties", flows=()), snapshot):
        yield port


@pytest.mark.parametrize("requests", [SHORT, pytest.param(LONG, marks=pytest.mark.full)])
@pytest.mark.parametrize(("served", "paths"), [(rest, REST_PATHS), (page, PAGE_PATHS)], ids=["rest", "page"])
def test_no_request_is_too_much(
    served: Callable[[], Iterator[int]], paths: list[str], requests: int, caplog: pytest.LogCaptureFixture
) -> None:
    maker, process = Maker(requests, paths), psutil.Process()
    seen, slowest, warm = Counter[int](), 0.0, 0
    with served() as port:  # type: ignore[attr-defined]
        for number in range(requests):
            request = maker.one()
            began = time.monotonic()
            status = answer(port, request)
            took = time.monotonic() - began
            slowest = max(slowest, took)
            seen[status] += 1
            assert status < 500, request
            assert took < LATE_S, request
            if number == requests // 4:
                gc.collect()
                warm = process.memory_info().rss
        assert answer(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") == 200
        gc.collect()
        grown = process.memory_info().rss - warm
    print(dict(seen), f"slowest {slowest:.2f} s, {grown / 1e6:.1f} MB more")
    assert grown < GROWTH
    assert not [record for record in caplog.records if record.exc_info]
    assert sum(seen[status] for status in (200, 201, 202, 204)) > requests / 6, "they are not all nonsense"
    assert {400, 403, 404} <= set(seen)
