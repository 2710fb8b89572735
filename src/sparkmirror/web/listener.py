"""A listening address, and an HTTP server on it in a thread."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from sparkmirror.errors import ConfigError
from sparkmirror.web.access import ENDING
from sparkmirror.web.browser_guard import BrowserGuard, Trusted
from sparkmirror.web.connections import Connection, ListeningSocket, ServingLoop

_BACKLOG = 128


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening address; without a host all this machine's addresses."""

    scheme: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """`host:port`, an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.address}"


@contextmanager
def listening(listener: Listener, path: str, key: str = "listeners") -> Iterator[socket.socket]:
    """Bind and listen, or raise `ConfigError`."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    with ListeningSocket(family) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((listener.host, listener.port))
            bound.listen(_BACKLOG)
        except OSError as error:
            raise ConfigError(f"can't listen on {listener.url}: {error.strerror}", origin=path, key=key) from None
        yield bound


@contextmanager
def serving(
    app: ASGIApp, bound: socket.socket, tls: ssl.SSLContext | None, trusted: Trusted | None = None
) -> Iterator[None]:
    """Serve the application on the socket, in a thread.

    Browsers' requests for pages of origins that are not `trusted` are refused. Requests that are not HTTP are not
    logged: any client could fill the log with such lines.
    """
    guarded = BrowserGuard(app, trusted or Trusted())

    async def until_the_end(scope: Scope, receive: Receive, send: Send) -> None:
        """Let endless answers know that the server is ending.

        An answer that does not end then is cut off.
        """
        with suppress(asyncio.CancelledError):
            await guarded({**scope, ENDING: lambda: server.should_exit}, receive, send)

    settings = uvicorn.Config(
        until_the_end,
        http=Connection,
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=5,
    )
    settings.load()
    settings.ssl = tls
    server = uvicorn.Server(settings)

    def answer() -> None:
        with asyncio.Runner(loop_factory=ServingLoop) as runner:
            runner.run(server.serve([bound]))

    thread = threading.Thread(target=answer, name="http", daemon=True)
    thread.start()
    try:
        yield
    finally:
        errors = logging.getLogger("uvicorn.error")
        errors.addFilter(_nothing)  # an answer that is cut off now is no error
        server.should_exit = True
        thread.join(10.0)
        errors.removeFilter(_nothing)


def _nothing(_: logging.LogRecord) -> bool:
    return False
