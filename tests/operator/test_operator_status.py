"""The status that the operator writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from operated import KEY

from sparkmirror.operator.resource_status import ResourceTrouble, SeenResource, has_failed, merge_patch, status_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUNS = {"name": "c", "connector": {"state": "RUNNING"}, "tasks": [{"id": 0, "state": "RUNNING"}]}
FAILED = {"name": "c", "connector": {"state": "RUNNING"}, "tasks": [{"id": 0, "state": "FAILED", "trace": "why"}]}


def conditions(status: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(item["type"], item.get("reason", ""), item["lastTransitionTime"][11:19]) for item in status["conditions"]]


def test_it_is_ready() -> None:
    status = status_of(SeenResource(key=KEY, generation=3, replicas=2, wanted=2, connectors=[RUNS]), {}, NOW)
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
    assert status["conditions"][0]["message"] == "One or more connectors are in FAILED state"
    assert conditions(status)[0][:2] == ("NotReady", "ConnectorsFailed")
    assert has_failed([FAILED])
    assert not has_failed([RUNS])


def test_a_condition_keeps_its_time_as_long_as_it_says_the_same() -> None:
    warned = SeenResource(
        key=KEY, generation=1, wanted=1, connectors=[RUNS], warnings=[ResourceTrouble("NoEffect", "x")]
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
    before = status_of(SeenResource(key=KEY, generation=1, replicas=1, wanted=1, connectors=[RUNS]), {}, NOW)
    status = status_of(SeenResource(key=KEY, generation=2), before, NOW)
    assert (status["replicas"], status["connectors"]) == (0, [])
    patch = merge_patch(status, before)
    assert patch is not None
    assert patch["status"]["url"] is None
    assert patch["status"]["connectors"] == []


def test_while_pods_do_not_answer_the_last_states_stay() -> None:
    before = status_of(SeenResource(key=KEY, generation=1, replicas=1, wanted=1, connectors=[RUNS]), {}, NOW)
    away = SeenResource(
        key=KEY, generation=1, replicas=1, wanted=1, trouble=ResourceTrouble("PodsNotReady", "no pod is ready yet")
    )
    status = status_of(away, before, NOW)
    assert status["connectors"] == [RUNS]
    assert conditions(status)[0][:2] == ("NotReady", "PodsNotReady")


def test_paused() -> None:
    before = status_of(SeenResource(key=KEY, generation=1, replicas=1, wanted=1, connectors=[RUNS]), {}, NOW)
    status = status_of(SeenResource(key=KEY, generation=2, paused=True), before, NOW)
    assert conditions(status) == [("ReconciliationPaused", "", "00:00:00")]
    assert (status["observedGeneration"], status["replicas"], status["connectors"]) == (2, 1, [RUNS])
