"""The application, asked over a real socket."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fastapi import APIRouter, FastAPI
from tests.support.snapshot_samples import flow, snapshot

from sparkmirror.errors import ConfigError
from sparkmirror.look.metrics.app import build_app
from sparkmirror.snapshot.snapshot import ClusterFigures, FlowState, Role, Snapshot
from sparkmirror.web.listener import Listener, listening, serving


@contextmanager
def served(app: FastAPI) -> Iterator[int]:
    with listening(Listener("http", "127.0.0.1", 0), "test") as bound, serving(app, bound, None):
        yield bound.getsockname()[1]


def get(port: int, path: str) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.headers["content-type"], answer.read()
    finally:
        connection.close()


def test_metrics_and_health() -> None:
    with served(build_app(snapshot)) as port:
        status, kind, body = get(port, "/metrics")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert b"sparkmirror_build_info" in body
        assert json.loads(get(port, "/health")[2]) == {"status": "alive"}
        assert json.loads(get(port, "/ready")[2]) == {"status": "ready", "flows": []}


def test_figures_that_cannot_be_told_are_an_error_of_one_line() -> None:
    def fails() -> Snapshot:
        raise RuntimeError("private words")

    with served(build_app(fails)) as port:
        status, _, body = get(port, "/metrics")
    assert (status, body.count(b"\n")) == (500, 1)
    assert b"private words" not in body


def test_not_ready_while_a_flow_joins() -> None:
    with served(build_app(lambda: snapshot(flow(state=FlowState.JOINING)))) as port:
        assert get(port, "/ready")[0] == 503


@pytest.mark.parametrize("away", ["source", "target"])
@pytest.mark.parametrize("role", [Role.LEADER, Role.STANDBY])
def test_alive_and_not_ready_while_a_cluster_is_away(away: str, role: Role) -> None:
    """Another process could not reach it either, so no probe is to end this one."""
    silent = ClusterFigures(alias="A", away="cluster A has not answered", away_since_ms=1)
    state = FlowState.UNREACHABLE if role is Role.LEADER else FlowState.STANDING_BY
    one = flow(state=state, role=role, **{away: silent})
    with served(build_app(lambda: snapshot(one))) as port:
        assert get(port, "/health")[0] == 200
        assert get(port, "/ready")[0] == 503


@pytest.mark.parametrize(("role", "status"), [(Role.JOINING, 503), (Role.STANDBY, 200)])
def test_not_ready_while_the_lease_is_refused(role: Role, status: int) -> None:
    with served(build_app(lambda: snapshot(flow(state=FlowState.STANDING_BY, role=role)))) as port:
        assert get(port, "/ready")[0] == status


def test_more_routers() -> None:
    router = APIRouter()
    router.add_api_route("/page", lambda: "here")
    with served(build_app(snapshot, routers=[router])) as port:
        assert json.loads(get(port, "/page")[2]) == "here"


def test_a_port_in_use_is_named_with_its_option() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Listener("http", "127.0.0.1", taken.getsockname()[1])
        with pytest.raises(ConfigError, match="--metrics-port"), listening(address, "command line", "--metrics-port"):
            pass


@pytest.mark.parametrize(("age_s", "status"), [(299.0, 200), (301.0, 503)])
def test_a_control_loop_that_stands_still_is_not_healthy(age_s: float, status: int) -> None:
    with served(build_app(snapshot, tick_age_s=lambda: age_s)) as port:
        assert get(port, "/health")[0] == status
