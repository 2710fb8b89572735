"""`sparkmirror serve` from its file to its answers; what it keeps in the cluster is in memory."""

from __future__ import annotations

import json
import signal
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from javaproperties import dumps
from tests.connect.serving import worker_config, worker_settings
from tests.support import mirror_process as mp
from tests.support.in_memory_api import InMemoryTopic
from tests.support.in_memory_worker import InMemoryWorker
from tests.support.rest_cases import connector
from tests.support.snapshot_samples import snapshot

from sparkmirror.cli.serve import serve
from sparkmirror.connect import server, worker
from sparkmirror.connect.basic_auth import EXTENSION, Users
from sparkmirror.connect.server import ConnectServer
from sparkmirror.connect.storage_topic import Take
from sparkmirror.demo.ports import free_ports
from sparkmirror.errors import ConfigError, SetupError
from sparkmirror.snapshot.history import FlowHistory

MODULE = EXTENSION.rpartition(".")[0] + ".PropertyFileLoginModule"
PASSWORD = "hunter2"
Serving = Callable[..., Any]


class _Topic(InMemoryTopic):
    """Of no cluster."""

    def __init__(self, _: object, name: str, take: Take) -> None:
        super().__init__(name, take)

    def create(self, *_: object) -> None:
        """Nothing has to be made."""

    def start(self) -> None:
        """Nothing has to be read."""


class _Lease:
    """Always held."""

    def __init__(self, *_: object) -> None:
        pass

    def held(self) -> bool:
        return True

    def start(self) -> None:
        pass

    def release(self) -> None:
        pass


class _Client:
    """Of the cluster, which is asked for its id."""

    cluster_id = "cluster"

    def __init__(self, *_: object) -> None:
        pass

    def metadata(self, _: object) -> None:
        pass

    def close(self) -> None:
        pass


class _Worker(InMemoryWorker):
    """As the verb makes it."""

    made: ClassVar[list[_Worker]] = []

    def __init__(self, _: object, worker_id: str, *, on_end: Callable[[Exception], None], **__: object) -> None:
        super().__init__(worker_id)
        self.on_end = on_end
        self.error_at_the_end: Exception | None = None
        self.made.append(self)

    snapshots = staticmethod(snapshot)
    history = FlowHistory()

    def show_page(self, address: str) -> None:
        assert address.endswith("/page/")

    def start(self) -> None:
        pass

    def close(self) -> None:
        if self.error_at_the_end is not None:
            self.on_end(self.error_at_the_end)


def _ask(url: str, method: str = "GET", body: object = None, credentials: str = "") -> tuple[int, str]:
    """Status and text."""
    headers = {"Content-Type": "application/json"}
    if credentials:
        headers["Authorization"] = "Basic " + b64encode(credentials.encode()).decode()
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - http
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serving:
    """Start the verb with these settings in its file; it ends as by SIGTERM. Its URL."""
    monkeypatch.delenv("KAFKA_OPTS", raising=False)
    for module, name, stand_in in (
        (server, "StorageTopic", _Topic),
        (server, "Lease", _Lease),
        (server, "ClusterClient", _Client),
        (worker, "ConnectWorker", _Worker),
    ):
        monkeypatch.setattr(module, name, stand_in)

    @contextmanager
    def running(settings: dict[str, str], jaas: Path | None = None) -> Iterator[str]:
        given = {**worker_settings("kafka:9092", "group", free_ports(1)[0]), **settings}
        file = tmp_path / "connect-distributed.properties"
        file.write_text(dumps(given))
        handlers: list[Callable[[], object]] = []
        # Only the main thread may really set them
        monkeypatch.setattr(signal, "signal", lambda _, handler: handlers.append(handler))
        with ThreadPoolExecutor(1) as pool:
            ended = pool.submit(serve, str(file), str(jaas) if jaas else None)

            def answers() -> bool:
                if ended.done():
                    ended.result()
                return _listens(given["listeners"])

            mp.wait_for(answers, 60, "it answers")
            try:
                yield given["listeners"]
            finally:
                handlers[0]()
            ended.result(60)

    return running


def _listens(url: str) -> bool:
    try:
        return bool(_ask(url))
    except OSError:
        return False


def _jaas(directory: Path) -> Path:
    """A JAAS file whose users are ann alone."""
    users, jaas = directory / "users.properties", directory / "jaas.conf"
    users.write_text(f"ann={PASSWORD}\n")
    jaas.write_text(f'KafkaConnect {{\n  {MODULE} required\n  file="{users}";\n}};\n')
    return jaas


@pytest.mark.parametrize("error", [SetupError("Spark has ended; start sparkmirror again"), KeyError("a fault of ours")])
def test_it_ends_with_its_mirror(served: Serving, error: Exception) -> None:
    """Its leases are free by then; whoever started it starts it again."""

    def until_it_ends() -> None:
        with served({}) as url:
            _Worker.made[-1].on_end(error)
            mp.wait_for(lambda: not _listens(url), 60, "it has ended")

    with pytest.raises(type(error)) as caught:
        until_it_ends()
    assert caught.value is error


def test_a_spark_that_ends_because_of_the_stop_is_no_error(served: Serving) -> None:
    """SIGTERM to the process group, as a supervisor sends it, ends the JVM first."""
    with served({}):
        _Worker.made[-1].error_at_the_end = SetupError("Spark has ended; start sparkmirror again")


@pytest.mark.parametrize("named_by", ["KAFKA_OPTS", "--jaas"])
def test_only_users_of_the_jaas_file_are_let_in(
    served: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named_by: str
) -> None:
    jaas = _jaas(tmp_path)
    if named_by == "KAFKA_OPTS":
        monkeypatch.setenv("KAFKA_OPTS", f"-Xmx1g -Djava.security.auth.login.config={jaas}")
    with served({"rest.extension.classes": EXTENSION}, jaas if named_by == "--jaas" else None) as url:
        for path in ("/", "/connectors", "/connectors/shop/config", "/admin/loggers"):
            assert _ask(url + path) == (401, "User cannot access the resource.")
            assert _ask(url + path, credentials="ann:wrong")[0] == 401
            assert _ask(url + path, credentials=f"bob:{PASSWORD}")[0] == 401
        assert _ask(url + "/metrics")[0] == 401
        assert "sparkmirror_lag_records" in _ask(url + "/metrics", credentials=f"ann:{PASSWORD}")[1]
        assert _ask(url + "/connectors", credentials=f"ann:{PASSWORD}") == (200, "[]")


def test_the_page_and_metrics_are_beside_the_interface(served: Serving) -> None:
    """For the routes that FastAPI makes of an included router are its own affair."""
    with served({"response.http.headers.config": "set X-Own: yes"}) as url:
        for path, words in (
            ("/page/", "<!doctype html>"),
            ("/page", "<!doctype html>"),
            ("/page/assets/page.js", "stream"),
            ("/page/snapshot", '"flows"'),
            ("/page/history?flow=A-%3EB", '"samples"'),
            ("/page/rows?kind=groups&flow=A-%3EB&numbers=0", "[]"),
            ("/metrics", "sparkmirror_lag_records"),
        ):
            status, text = _ask(url + path)
            assert (status, words in text) == (200, True), path
        with urllib.request.urlopen(url + "/page/") as answer:  # noqa: S310 - http
            assert answer.headers["x-own"] == "yes"
        for path in ("/page/nothing", "/pages", "/metrics/x", "/pag%65/x", "//page/"):
            assert _ask(url + path)[0] == 404, path
        assert _ask(url + "/page/actions/pause", "POST", {"flow": "A->B"})[0] == 403, "not from the page"


def test_everybody_is_let_in_where_no_users_are_asked_for(served: Serving) -> None:
    with served({}) as url:
        assert _ask(url + "/connectors") == (200, "[]")


@pytest.mark.parametrize("users", ["", "# nobody yet\n", f"ann={PASSWORD}\n"])
def test_a_file_without_users_lets_nobody_act(
    served: Serving, tmp_path: Path, capsys: pytest.CaptureFixture[str], users: str
) -> None:
    """Reading is free, as with Connect; whoever asks from elsewhere than this machine has no buttons."""
    jaas = _jaas(tmp_path)
    (tmp_path / "users.properties").write_text(users)
    given = b64encode(f"ann:{PASSWORD}".encode()).decode()
    with served({"rest.extension.classes": EXTENSION}, jaas) as url:
        request = urllib.request.Request(  # noqa: S310 - http
            url + "/page/events", headers={"X-Forwarded-For": "10.0.0.1", "Authorization": f"Basic {given}"}
        )
        with urllib.request.urlopen(request, timeout=60) as events:  # noqa: S310
            (data,) = [next(events) for line in iter(events.readline, b"\n") if line == b"event: hello\n"]
        hello = json.loads(data.removeprefix(b"data: "))
        assert hello == {"may_act": users.startswith("ann"), "can_act": True}
        assert _ask(url + "/connectors")[0] == (401 if users.startswith("ann") else 200)
    told = "users.properties: has no user: every client is let in" in "".join(capsys.readouterr().err.splitlines())
    assert told is not users.startswith("ann")


def test_users_without_a_jaas_file_are_refused(served: Serving) -> None:
    with (
        pytest.raises(ConfigError, match=r"rest\.extension\.classes: asks for users, but no JAAS file"),
        served({"rest.extension.classes": EXTENSION}),
    ):
        pass


def test_a_server_that_would_answer_everybody_against_its_file(tmp_path: Path) -> None:
    settings = worker_settings("kafka:9092", "group", 8083)
    config = worker_config(tmp_path, {**settings, "rest.extension.classes": EXTENSION})
    with pytest.raises(ConfigError, match="asks for users, but no user was read") as caught:
        ConnectServer(config, InMemoryWorker(config.worker_id))
    assert (caught.value.origin, caught.value.key) == (config.path, "rest.extension.classes")
    assert "--jaas" in str(caught.value)
    ConnectServer(config, InMemoryWorker(config.worker_id), Users({}))  # there are none, as in an empty file


TRACKING, RESET = "Topic tracking is disabled.", "Topic tracking reset is disabled."


@pytest.mark.parametrize(
    ("settings", "shown", "reset"),
    [
        ({}, "", ""),
        ({"topic.tracking.enable": "false"}, TRACKING, TRACKING),
        ({"topic.tracking.allow.reset": "false"}, "", RESET),
        ({"topic.tracking.enable": "false", "topic.tracking.allow.reset": "false"}, TRACKING, TRACKING),
    ],
)
def test_topics_in_use_may_be_kept_to_itself(served: Serving, settings: dict[str, str], shown: str, reset: str) -> None:
    with served(settings) as url:

        def refused(method: str, path: str, usual: int) -> str:
            status, text = _ask(f"{url}/connectors/shop{path}", method)
            if status == usual:
                return ""
            answer = json.loads(text)
            assert (status, answer["error_code"]) == (403, 403)
            return str(answer["message"])

        config = connector("Source", "source:9092", "target:9092")
        mp.wait_for(lambda: _ask(f"{url}/connectors/shop/config", "PUT", config)[0] in (200, 201), 60, "it works")
        assert refused("GET", "/topics", 200) == shown
        assert refused("PUT", "/topics/reset", 202) == reset
