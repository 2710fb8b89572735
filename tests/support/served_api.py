"""The REST interface in memory behind the real HTTP server, on a port of this machine."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
from tests.support.in_memory_api import InMemoryApi, in_memory_api

from sparkmirror.connect.body_limit import BodyLimit
from sparkmirror.web.listener import Listener, listening, serving


@dataclass
class ServedApi:
    """Ask it over HTTP; `api` is what answers."""

    api: InMemoryApi
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, str]:
        """Status and text, over a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            with contextlib.suppress(ConnectionError):  # it may be answered before all was sent
                connection.request(method, path, body, {"content-type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def exchange(self, request: bytes, answers: int) -> bytes:
        """Send this; what comes back until there are so many answers, or nothing more comes."""
        answer = b""
        with self.connect() as client:
            client.settimeout(10.0)
            with contextlib.suppress(OSError):
                client.sendall(request)
            with contextlib.suppress(OSError):
                while answer.count(b"HTTP/1.1 ") < answers and (part := client.recv(1 << 16)):
                    answer += part
        return answer

    def open_connections(self) -> list[int]:
        """File descriptors of the server's side."""
        time.sleep(0.2)  # what was aborted is closed in the loop's next turn
        found = psutil.Process(os.getpid()).net_connections("tcp")
        return [one.fd for one in found if one.laddr.port == self.port and one.status == "ESTABLISHED"]


@contextmanager
def served_api(tls: ssl.SSLContext | None = None) -> Iterator[ServedApi]:
    """On this machine only; `ask` speaks no TLS."""
    listener = Listener("http", "127.0.0.1", 0)
    with (
        in_memory_api() as api,
        listening(listener, "worker.properties") as bound,
        serving(BodyLimit(api.app), bound, tls),
    ):
        yield ServedApi(api, bound.getsockname()[1])
