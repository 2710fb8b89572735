"""A cluster that does not answer delays no request but those that ask it, and those are answered in one line."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from tests.support.rest_cases import connector
from tests.support.served_api import ServedApi, served_api

from sparkmirror.connect.cluster_requests import MOST_OF_ONE
from sparkmirror.connect.connector_model import TargetState
from sparkmirror.errors import ClusterUnreachable

SOURCE = connector("Source", "source:9092", "target:9092")
REQUESTS = 60
QUICK_S = 10.0
OFFSETS = {
    "offsets": [{"partition": {"cluster": "a", "topic": "compared", "partition": 0}, "offset": {"offset": 5}}],
}


@pytest.fixture
def served() -> Iterator[ServedApi]:
    """Two connectors, both stopped: `silent` has a cluster that can be made to be silent, `shop` has not."""
    with served_api() as opened:
        for name in ("silent", "shop"):
            body = json.dumps({"name": name, "config": SOURCE, "initial_state": "STOPPED"}).encode()
            assert opened.ask("POST", "/connectors", body)[0] == 201
        yield opened


@contextmanager
def silence(monkeypatch: pytest.MonkeyPatch, target: object, method: str, *of: str) -> Iterator[threading.Event]:
    """Have calls of a method wait, all or those whose first argument is among `of`; the event is set at the first."""
    asked, ended = threading.Event(), threading.Event()
    real = getattr(target, method)

    def waits(first: object, *more: object) -> object:
        if not of or first in of:
            asked.set()
            assert ended.wait(60)
            raise ClusterUnreachable("no broker of source:9092 answers")
        return real(first, *more)

    with monkeypatch.context() as patched:
        patched.setattr(target, method, waits)
        try:
            yield asked
        finally:
            ended.set()


def quickly(served: ServedApi, method: str, path: str, status: int) -> None:
    began = time.monotonic()
    assert served.ask(method, path)[0] == status
    assert time.monotonic() - began < QUICK_S, path


def test_many_ask_for_offsets_of_a_silent_cluster(
    served: ServedApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with ThreadPoolExecutor(REQUESTS) as pool:
        with silence(monkeypatch, served.api.worker, "offsets", "silent") as asked:
            waiting = [pool.submit(served.ask, "GET", "/connectors/silent/offsets") for _ in range(REQUESTS)]
            assert asked.wait(20)
            for path in ("/connectors", "/connectors/shop/offsets", "/connectors/silent/status", "/"):
                quickly(served, "GET", path, 200)
            quickly(served, "PUT", "/connectors/silent/pause", 202)
        answers = [one.result(60) for one in waiting]
    assert sorted(status for status, _ in answers) == [500] * MOST_OF_ONE + [503] * (REQUESTS - MOST_OF_ONE)
    for status, text in answers:
        said = json.loads(text)
        assert said["error_code"] == status
        words = (
            "no broker of source:9092 answers" if status == 500 else "wait for the clusters of connector silent already"
        )
        assert words in said["message"]
        assert "\n" not in said["message"]
    assert not [record for record in caplog.records if record.exc_info or record.levelname == "ERROR"]


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_offsets_are_altered_while_others_continue(
    served: ServedApi, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """What is asked meanwhile is written at once; the worker's flows stay as they are until the end."""
    worker = served.api.worker

    def state_of_shop() -> TargetState:
        return worker.connectors["shop"].target_state

    named = {"PATCH": "alter_offsets", "DELETE": "delete_offsets"}[method]
    with ThreadPoolExecutor(1) as pool:
        with silence(monkeypatch, worker, named, "silent") as asked:
            body = json.dumps(OFFSETS).encode() if method == "PATCH" else None
            altering = pool.submit(served.ask, method, "/connectors/silent/offsets", body)
            assert asked.wait(20)
            quickly(served, "PUT", "/connectors/shop/resume", 202)
            quickly(served, "PUT", "/connectors/silent/resume", 202)
            quickly(served, "PUT", "/connectors/silent/stop", 204)
            quickly(served, "GET", "/connectors", 200)
            assert served.ask(method, "/connectors/silent/offsets", body)[0] == 409
            time.sleep(1.2)  # some turns of the herder
            assert state_of_shop() is TargetState.STOPPED
        status, text = altering.result(60)
    assert (status, "no broker of source:9092 answers" in text) == (500, True)
    deadline = time.monotonic() + 20
    while state_of_shop() is not TargetState.STARTED:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert served.ask(method, "/connectors/silent/offsets", body)[0] == 200


def test_the_workers_own_cluster_is_silent(served: ServedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(REQUESTS) as pool:
        with silence(monkeypatch, served.api.configs, "append") as asked:
            waiting = [pool.submit(served.ask, "PUT", "/connectors/shop/pause") for _ in range(REQUESTS)]
            assert asked.wait(20)
            for path in ("/connectors", "/connectors/shop/status", "/", "/admin/loggers/root"):
                quickly(served, "GET", path, 200)
        assert {one.result(60)[0] for one in waiting} <= {500, 202}, "some come when it answers again"


def test_no_path_of_the_server_is_told(served: ServedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> list[object]:
        raise ClusterUnreachable(f"/opt/worker/stores/{name}.pem can't be read")

    monkeypatch.setattr(served.api.worker, "offsets", refuse)
    status, text = served.ask("GET", "/connectors/shop/offsets")
    assert (status, json.loads(text)["message"]) == (
        500,
        "A cluster of connector shop can't be asked: shop.pem can't be read",
    )
