"""Requests that another process answers."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from lab import Authority
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from tests.connect.serving import worker_config, worker_settings
from tests.support.in_memory_api import URL, asgi_answer

from sparkmirror.config import ClusterConfig
from sparkmirror.connect.forwarding import Forwarding
from sparkmirror.connect.manners import CrossOrigin, Manners
from sparkmirror.demo.ports import free_ports
from sparkmirror.kafka.cluster.tls_contexts import server_context, ssl_context


class _Leader(BaseHTTPRequestHandler):
    """Answers with the request's line, and the type of its body if there is one."""

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        typed = [self.headers["Content-Type"]] if self.headers.get("Content-Length", "0") != "0" else []
        content = " ".join([self.requestline, *typed]).encode()
        self.send_response(202)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Not in the tests' output."""


@contextmanager
def _leading(tls: ClusterConfig | None = None, client_auth: str = "none") -> Iterator[str]:
    """The URL of the process that works; it speaks https with the stores of `tls`."""
    with HTTPServer(("127.0.0.1", 0), _Leader) as server:
        if tls is not None:
            server.socket = server_context(tls, client_auth).wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def leader() -> Iterator[str]:
    """The URL of the process that works."""
    with _leading() as url:
        yield url


def _stores(authority: Authority, directory: Path, trusted: Authority) -> ClusterConfig:
    """As a worker's file has them for its https listeners."""
    https = {
        "listeners": "https://127.0.0.1:8083",
        "listeners.https.ssl.keystore.type": "PEM",
        "listeners.https.ssl.keystore.location": str(authority.issue(directory / "https.pem")),
        "listeners.https.ssl.truststore.type": "PEM",
        "listeners.https.ssl.truststore.location": str(trusted.certificate),
    }
    config = worker_config(directory, {**worker_settings("kafka:9092", "group", 8083), **https})
    return config.cluster.model_copy(update={"security_protocol": "SSL", "ssl": config.https})


async def _nothing(_: Scope, __: Receive, ___: Send) -> None:
    raise AssertionError("this process does not work")


def test_processes_speak_without_a_proxy(leader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_ports(1)[0]}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    app = Forwarding(_nothing, lambda: False, lambda: leader, URL)
    answer = asyncio.run(asgi_answer(app, "PUT", "/connectors/shop/pause?why=x"))
    assert answer == (202, b"PUT /connectors/shop/pause?why=x HTTP/1.1")


def test_a_name_with_a_slash_is_sent_on_as_it_came(leader: str) -> None:
    app = Forwarding(_nothing, lambda: False, lambda: leader, URL)
    mannerly = Manners(app, [Route("/connectors/{name}/offsets", _nothing)], CrossOrigin())
    answer = asyncio.run(asgi_answer(mannerly, "GET", "/connectors/a%2Fb%25/offsets"))
    assert answer == (202, b"GET /connectors/a%2Fb%25/offsets HTTP/1.1")


@pytest.mark.parametrize("stated", ["", "application/json", "text/plain"])
def test_a_body_of_no_stated_type_is_json_as_at_the_leader(leader: str, stated: str) -> None:
    app = Forwarding(_nothing, lambda: False, lambda: leader, URL)
    answer = asyncio.run(asgi_answer(app, "PUT", "/connectors/shop/config", b"{}", stated))
    assert answer == (202, f"PUT /connectors/shop/config HTTP/1.1 {stated or 'application/json'}".encode())


@pytest.mark.parametrize("client_auth", ["none", "required"])
def test_processes_speak_https_with_their_listeners_stores(
    authority: Authority, tmp_path: Path, client_auth: str
) -> None:
    stores = _stores(authority, tmp_path, authority)
    with _leading(stores, client_auth) as url:
        app = Forwarding(_nothing, lambda: False, lambda: url, URL, lambda: _context(stores))
        answer = asyncio.run(asgi_answer(app, "PUT", "/connectors/shop/pause"))
        assert answer == (202, b"PUT /connectors/shop/pause HTTP/1.1")


def test_a_process_whose_certificate_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    stores = _stores(authority, tmp_path, Authority(tmp_path / "another"))
    with _leading(stores) as url:
        app = Forwarding(_nothing, lambda: False, lambda: url, URL, lambda: _context(stores))
        status, body = asyncio.run(asgi_answer(app, "PUT", "/connectors/shop/pause"))
    assert status == 500
    message = json.loads(body)["message"]
    assert "IO Error trying to forward REST request" in message
    assert "CERTIFICATE_VERIFY_FAILED" in message


def _context(stores: ClusterConfig) -> ssl.SSLContext:
    context = ssl_context(stores)
    assert context is not None
    return context
