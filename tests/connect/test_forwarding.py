"""Requests that another process answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from tests.connect.in_memory_api import URL, asgi_answer

from sparkmirror.connect.forwarding import Forwarding
from sparkmirror.connect.manners import CrossOrigin, Manners
from sparkmirror.demo.ports import free_ports


class _Leader(BaseHTTPRequestHandler):
    """Answers with the request's line."""

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        content = self.requestline.encode()
        self.send_response(202)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Not in the tests' output."""


@pytest.fixture
def leader() -> Iterator[str]:
    """The URL of the process that works."""
    with HTTPServer(("127.0.0.1", 0), _Leader) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


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
