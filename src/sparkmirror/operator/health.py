"""The operator's `/healthz` and `/metrics` over HTTP."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sparkmirror.errors import SetupError
from sparkmirror.operator.controller import Controller
from sparkmirror.web.series import CONTENT_TYPE, Families, exposition, labels

_PREFIX = "sparkmirror_operator"


def metrics_text(controller: Controller) -> bytes:
    """Return the operator's metrics in Prometheus' text format."""
    families = Families()
    total, failed = controller.counts
    families.declare(f"{_PREFIX}_reconciliations_total", "counter", "Turns of all resources.").add("", total)
    families.declare(
        f"{_PREFIX}_reconciliations_failed_total",
        "counter",
        "Turns that failed: Kubernetes' API refused a request or did not answer, or the operator has a fault.",
    ).add("", failed)
    conditions = controller.conditions()
    resources = families.declare(f"{_PREFIX}_resources", "gauge", "Resources by condition and reason.")
    for (kind, reason), count in sorted(Counter(conditions.values()).items()):
        resources.add(labels(condition=kind, reason=reason), count)
    ready = families.declare(f"{_PREFIX}_resource_ready", "gauge", "1 if a resource is Ready, or else 0.")
    for key, (kind, _) in sorted(conditions.items(), key=lambda item: str(item[0])):
        ready.add(labels(namespace=key.namespace, name=key.name, kind=key.kind.name), int(kind == "Ready"))
    return exposition(families.values())


@dataclass(slots=True)
class Health:
    """Answers by path.

    No metrics without a controller: the operator takes no turns yet.
    """

    controller: Controller | None = None
    port: int = 0
    """Listening port; 0 without a server."""

    def answer(self, path: str) -> bytes | None:
        """Return the answer for a path; None for an unknown path."""
        if path == "/healthz":
            return b"ok\n"
        if path == "/metrics":
            return metrics_text(self.controller) if self.controller else b""
        return None


@contextmanager
def answering(port: int | None, host: str = "") -> Iterator[Health]:
    """Answer on this port in a thread; do nothing without a port.

    Port 0 is any free port. Raises `SetupError` if the port is taken.
    """
    health = Health()
    if port is None:
        yield health
        return

    class Handler(BaseHTTPRequestHandler):
        timeout = 10.0

        def do_GET(self) -> None:
            body = health.answer(self.path.partition("?")[0])
            self.send_response(404 if body is None else 200)
            body = body if body is not None else b"there are /healthz and /metrics\n"
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing: probes ask every few seconds."""

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise SetupError(f"--health-port: can't listen on port {port}: {error.strerror}") from None
    health.port = int(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, name="health", daemon=True)
    thread.start()
    try:
        yield health
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10.0)
