"""The operator's own metrics, and its health check."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from contextlib import closing

import pytest
from tests.support import mirror_process as mp

from sparkmirror.errors import SetupError
from sparkmirror.operator.controller import Controller
from sparkmirror.operator.health import Health, answering, metrics_text
from sparkmirror.operator.kube import KubeRefused
from sparkmirror.operator.names import Key
from sparkmirror.operator.turn_settings import Condition, Memory

CONDITIONS = {
    Key("kafka", "shop"): Condition("Ready", ""),
    Key("kafka", "bills"): Condition("NotReady", "ConnectorsFailed"),
    Key("kafka", "mail"): Condition("NotReady", "ConnectorsFailed"),
    Key("kafka", "foreign"): None,
}
AWAY = Key("kafka", "away")


def take(key: Key, memory: Memory) -> bool:
    if key == AWAY:
        raise KubeRefused(500, "away")
    memory.condition = CONDITIONS[key]
    return True


def test_resources_are_counted_by_condition() -> None:
    with closing(Controller(take, busy_s=60)) as controller:
        for key in (*CONDITIONS, AWAY):
            controller.due(key)
        mp.wait_for(lambda: controller.counts == (5, 1), 10, "each has had a turn")
        lines = metrics_text(controller).decode().splitlines()
        assert [line for line in lines if not line.startswith("#")] == [
            "sparkmirror_operator_reconciliations_total 5",
            "sparkmirror_operator_reconciliations_failed_total 1",
            'sparkmirror_operator_resources{condition="NotReady",reason="ConnectorsFailed"} 2',
            'sparkmirror_operator_resources{condition="Ready",reason=""} 1',
            'sparkmirror_operator_resource_ready{namespace="kafka",name="bills",kind="KafkaMirrorMaker2"} 0',
            'sparkmirror_operator_resource_ready{namespace="kafka",name="mail",kind="KafkaMirrorMaker2"} 0',
            'sparkmirror_operator_resource_ready{namespace="kafka",name="shop",kind="KafkaMirrorMaker2"} 1',
        ]
        controller.forget(Key("kafka", "bills"))
        text = metrics_text(controller).decode()
        assert "bills" not in text
        assert "reconciliations_total 5" in text, "a counter never falls"


def get(health: Health, path: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{health.port}{path}", timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_it_is_healthy_before_a_turn_can_be_taken() -> None:
    with answering(0, "127.0.0.1") as health:
        assert get(health, "/healthz") == (200, b"ok\n")
        assert get(health, "/metrics") == (200, b"")
        assert get(health, "/")[0] == 404
        with closing(Controller(take)) as controller:
            health.controller = controller
            assert b"sparkmirror_operator_reconciliations_total 0" in get(health, "/metrics?x=1")[1]


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=f"can't listen on port {port}"), answering(port, "127.0.0.1"):
            pass
