"""Requests that another process answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from starlette.types import Receive, Scope, Send
from tests.connect.in_memory_api import URL, asgi_answer

from sparkmirror.connect.forwarding import Forwarding
from sparkmirror.demo.ports import free_ports


class _Leader(BaseHTTPRequestHandler):
    """Answers with the request's line."""

    def do_PUT(self) -> None:
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
