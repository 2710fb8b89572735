"""The status that the operator writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.operated import KEY

from sparkmirror.operator.resource_status import ResourceTrouble, SeenResource, merge_patch, ready_pods, status_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUNS = {"name": "c", "connector": {"state": "RUNNING"}, "tasks": [{"id": 0, "state": "RUNNING"}]}
FAILED = {
    "name": "c",
    "connector": {"state": "RUNNING"},
    "tasks": [{"id": 0, "state": "FAILED", "trace": "why\nand where"}],
}
JOINING = {"name": "c", "connector": {"state": "UNASSIGNED", "trace": "joining"}, "tasks": []}


def conditions(status: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(item["type"], item.get("reason", ""), item["lastTransitionTime"][11:19]) for item in status["conditions"]]


def test_it_is_ready() -> None:
    status = status_of(SeenResource(key=KEY, generation=3, replicas=2, wanted=2, ready=2, connectors=[RUNS]), {}, NOW)
    assert conditions(status) == [("Ready", "", "00:00:00")]
    assert status["observedGeneration"] == 3
    assert status["replicas"] == 2
    assert status["connectors"] == [RUNS]
    assert status["url"] == "http://ours-mirrormaker2-api.kafka.svc:8083"
    assert (
        status["labelSelector"]
        == "strimzi.io/cluster=ours,strimzi.io/name=ours-mirrormaker2,strimzi.io/kind=KafkaMirrorMaker2"
    )
    assert [item["class"].rpartition(".")[2] for item in status["connectorPlugins"]] == [
        "MirrorSourceConnector",
        "MirrorCheckpointConnector",
        "MirrorHeartbeatConnector",
    ]


def test_a_failed_task_makes_it_not_ready_in_strimzis_words() -> None:
    status = status_of(SeenResource(key=KEY, generation=1, wanted=1, connectors=[FAILED]), {}, NOW)
    assert status["conditions"][0]["message"] == "One or more connectors are in FAILED state: c: why"
    assert conditions(status)[0][:2] == ("NotReady", "ConnectorsFailed")


def test_a_condition_keeps_its_time_as_long_as_it_says_the_same() -> None:
    warned = SeenResource(
        key=KEY, generation=1, wanted=1, ready=1, connectors=[RUNS], warnings=[ResourceTrouble("NoEffect", "x")]
    )
    first = status_of(warned, {}, NOW)
    later = NOW + timedelta(hours=1)
    assert status_of(warned, first, later) == first
    assert merge_patch(status_of(warned, first, later), first) is None
    failed = SeenResource(
        key=KEY, generation=1, wanted=1, connectors=[FAILED], warnings=[ResourceTrouble("NoEffect", "x")]
    )
    assert conditions(status_of(failed, first, later)) == [
        ("NotReady", "ConnectorsFailed", "01:00:00"),
        ("Warning", "NoEffect", "00:00:00"),
    ]


def test_no_replicas_no_address() -> None:
    before = status_of(SeenResource(key=KEY, generation=1, replicas=1, wanted=1, ready=1, connectors=[RUNS]), {}, NOW)
    status = status_of(SeenResource(key=KEY, generation=2), before, NOW)
    assert (status["replicas"], status["connectors"]) == (0, [])
    patch = merge_patch(status, before)
    assert patch is not None
    assert patch["status"]["url"] is None
    assert patch["status"]["connectors"] == []


def test_while_pods_do_not_answer_the_last_states_stay() -> None:
    before = status_of(SeenResource(key=KEY, generation=1, replicas=1, wanted=1, ready=1, connectors=[RUNS]), {}, NOW)
    away = SeenResource(
        key=KEY, generation=1, replicas=1, wanted=1, trouble=ResourceTrouble("PodsNotReady", "no pod is ready yet")
    )
    status = status_of(away, before, NOW)
    assert status["connectors"] == [RUNS]
    assert conditions(status)[0][:2] == ("NotReady", "PodsNotReady")


def test_paused() -> None:
    before = status_of(SeenResource(key=KEY, generation=1, replicas=1, wanted=1, ready=1, connectors=[RUNS]), {}, NOW)
    status = status_of(SeenResource(key=KEY, generation=2, paused=True), before, NOW)
    assert conditions(status) == [("ReconciliationPaused", "", "00:00:00")]
    assert (status["observedGeneration"], status["replicas"], status["connectors"]) == (2, 1, [RUNS])


def ready(**more: Any) -> tuple[str, str, str]:
    """Type, reason and message of the first condition: one pod, one connector that shall run."""
    usual = SeenResource(key=KEY, generation=1, wanted=1, ready=1, connectors=[RUNS], running=["c"])
    condition = status_of(replace(usual, **more), {}, NOW)["conditions"][0]
    return condition["type"], condition.get("reason", ""), condition.get("message", "")


def test_it_is_ready_when_what_shall_run_does() -> None:
    assert ready()[0] == "Ready"
    assert ready(connectors=[JOINING]) == ("NotReady", "ConnectorsNotRunning", "c is UNASSIGNED: joining")
    restarting = {**RUNS, "tasks": [{"id": 0, "state": "RESTARTING"}]}
    assert ready(connectors=[restarting]) == ("NotReady", "ConnectorsNotRunning", "c is RESTARTING")
    assert ready(connectors=[JOINING], running=[])[0] == "Ready", "a connector that is to be paused need not run"
    assert ready(wanted=2) == ("NotReady", "PodsNotReady", "1 of 2 pods are ready")
    assert ready(wanted=0, ready=0, connectors=[])[0] == "Ready"


def test_a_failure_is_told_before_what_follows_from_it() -> None:
    assert ready(ready=0, connectors=[JOINING, FAILED])[1] == "ConnectorsFailed"
    assert ready(ready=0, connectors=[JOINING])[1] == "ConnectorsNotRunning"


def test_a_failures_time_stays_when_its_words_change() -> None:
    first = status_of(SeenResource(key=KEY, generation=1, wanted=1, connectors=[FAILED]), {}, NOW)
    later = {**FAILED, "tasks": [{"id": 0, "state": "FAILED", "trace": "another"}]}
    status = status_of(
        SeenResource(key=KEY, generation=1, wanted=1, connectors=[later]), first, NOW + timedelta(hours=1)
    )
    assert conditions(status) == [("NotReady", "ConnectorsFailed", "00:00:00")]
    assert status["conditions"][0]["message"].endswith("c: another")


@pytest.mark.parametrize(
    ("generation", "status", "expected"),
    [
        (2, {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}, 2),
        (2, {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}, 0),
        (2, {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "readyReplicas": 2}, 0),
        (2, {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "readyReplicas": 3}, 2),
        (1, {}, 0),
    ],
    ids=["all", "not seen yet", "only old ones", "one old one left", "new"],
)
def test_pods_that_are_to_be_replaced_do_not_count(generation: int, status: dict[str, int], expected: int) -> None:
    assert ready_pods({"metadata": {"generation": generation}, "status": status}) == expected
