"""A schema registry that is played, by HTTP or HTTPS, for what no real one does here: sign-ins, TLS, faults."""

from __future__ import annotations

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class PlayedRegistry:
    """Answers by path: a status and what is said; `paths` are those that were asked, with what was signed in by."""

    def __init__(self, answers: dict[str, tuple[int, object]], context: ssl.SSLContext | None = None) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str | None]] = []
        self.demanded: str | None = None
        """The Authorization that it takes; None: anybody may ask."""
        self.busy = 0
        """So many questions are answered with 503 first."""
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.answer(self)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                registry.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://localhost:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Say what is said there."""
        signed = handler.headers.get("Authorization")
        self.asked.append((handler.path, signed))
        status, said = self.answers.get(handler.path, (404, {"error_code": 40403, "message": "Schema not found"}))
        if self.demanded is not None and signed != self.demanded:
            status, said = 401, {"error_code": 401, "message": "Unauthorized"}
        if self.busy:
            self.busy -= 1
            status, said = 503, "busy"
        content = said if isinstance(said, bytes) else json.dumps(said).encode()
        handler.send_response(status)
        if status == 302:
            handler.send_header("Location", str(said))
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def schema(text: Any, kind: str = "AVRO", references: list[dict[str, object]] | None = None) -> tuple[int, object]:
    """The answer for one."""
    body = {"schema": text if isinstance(text, str) else json.dumps(text), "references": references or []}
    return 200, body if kind == "AVRO" else {**body, "schemaType": kind}
