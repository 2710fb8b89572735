"""The REST interface without a broker: the real herder and application over storage in memory."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote

from fastapi import FastAPI
from starlette.types import ASGIApp, Message
from tests.support.in_memory_worker import InMemoryWorker

from sparkmirror.config import ClusterConfig
from sparkmirror.connect.api import build_api, routers
from sparkmirror.connect.config_log import ConfigState
from sparkmirror.connect.herder import Herder
from sparkmirror.connect.loadable import Loadable
from sparkmirror.connect.loggers import Loggers
from sparkmirror.connect.manners import CrossOrigin, Manners
from sparkmirror.connect.status_log import StatusState
from sparkmirror.connect.storage_topic import Record, StorageTopic, Take

URL = "http://worker:8083"


class InMemoryTopic(StorageTopic):
    """What is written is taken at once, and kept in `records`; `broken` is raised instead, if it is set."""

    def __init__(self, name: str, take: Take) -> None:
        nobody = ClusterConfig(alias="nobody", bootstrap_servers=("127.0.0.1:1",))
        super().__init__(nobody, name, take)
        self._keep = take
        self.records: list[Record] = []
        self.broken: Exception | None = None

    def append(self, records: Sequence[Record]) -> None:
        if self.broken is not None:
            raise self.broken
        for key, value in records:
            self.records.append((key, value))
            self._keep(key, value, len(self.records) - 1)

    def catch_up(self) -> None:
        """All was taken when it was written."""


@dataclass
class InMemoryApi:
    """Ask it; `configs` and `statuses` are its storage."""

    app: ASGIApp
    api: FastAPI
    """What is in it: the paths."""
    herder: Herder
    worker: InMemoryWorker
    configs: InMemoryTopic
    statuses: InMemoryTopic

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        """Status and JSON, None if there is none; a body that is no bytes is sent as JSON."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        status, answer = asyncio.run(asgi_answer(self.app, method, path, content))
        return status, json.loads(answer) if answer else None


@contextmanager
def in_memory_api(
    resolve: Callable[[str], str] = str,
    *,
    admin: bool = True,
    loadable: Loadable | None = None,
    leads: Callable[[], bool] = lambda: True,
    stored: Sequence[Record] = (),
    on_log_level: Callable[[str, str], object] = lambda *_: None,
) -> Iterator[InMemoryApi]:
    """An interface whose process works while it `leads`; `resolve` is that of its config providers.

    `stored` is in the config topic when the process starts.
    """
    config_state, status_state = ConfigState(), StatusState()
    configs, statuses = InMemoryTopic("configs", config_state.take), InMemoryTopic("statuses", status_state.take)
    configs.append(stored)
    worker, loggers = InMemoryWorker("worker:8083"), Loggers()
    herder = Herder(worker, configs, statuses, config_state, status_state, leads, URL, on_log_level, resolve, loadable)
    paths = routers(herder, loggers if admin else None, "cluster", "commit", topic_tracking=True, topic_reset=True)
    api = build_api(paths)
    app = Manners(api, [route for router in paths for route in router.routes], CrossOrigin())
    herder.start()
    try:
        while not herder.leads:
            time.sleep(0.01)
        yield InMemoryApi(app, api, herder, worker, configs, statuses)
    finally:
        herder.close()


async def asgi_answer(
    app: ASGIApp, method: str, path: str, body: bytes = b"", content_type: str = "application/json"
) -> tuple[int, bytes]:
    """Send a request as the HTTP server does; status and body of the answer."""
    bare, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(bare),
        "raw_path": bare.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"worker:8083"), (b"content-length", b"%d" % len(body))]
        + [(b"content-type", content_type.encode())] * bool(content_type),
        "server": ("worker", 8083),
        "client": ("client", 1),
    }
    messages: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        messages.append(message)

    try:
        await app(scope, receive, send)
    except Exception:  # what the application could not foresee is raised again after it was answered
        if not messages:
            raise
    status = next(message["status"] for message in messages if message["type"] == "http.response.start")
    return status, b"".join(message.get("body", b"") for message in messages)
