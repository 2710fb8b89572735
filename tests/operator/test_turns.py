"""Whole turns of the operator: a Kubernetes API in memory, and the real REST interface over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.operated import CHECKPOINT, KEY, PATH, SOURCE, MemoryApi, config_map, resource, secret, turns
from tests.support.served_api import ServedApi

from sparkmirror.operator.kube import KubeRefused, object_path
from sparkmirror.operator.names import CLASS
from sparkmirror.operator.rest import ConnectRest

PARTITION: dict[str, object] = {"cluster": "us", "partition": 0, "topic": "orders"}
OFFSET: dict[str, object] = {"partition": PARTITION, "offset": {"offset": 41}}

NEGATIVE = json.dumps({"offsets": [{**OFFSET, "offset": {"offset": -1}}]})


def rest(served: ServedApi) -> ConnectRest:
    return ConnectRest(served.url)


def stopped(spec: dict[str, Any]) -> None:
    spec["mirrors"][0]["sourceConnector"] |= {
        "state": "stopped",
        "listOffsets": {"toConfigMap": {"name": "offsets"}},
        "alterOffsets": {"fromConfigMap": {"name": "offsets"}},
    }


def test_from_nothing_to_ready(served: ServedApi) -> None:
    api = MemoryApi(resource(), secret())
    turn = turns(api, rest(served))
    assert turn()
    assert api.conditions() == [("Ready", "")]
    assert [item["name"] for item in api.status["connectors"]] == [CHECKPOINT, SOURCE]
    assert [item["connector"]["state"] for item in api.status["connectors"]] == ["RUNNING", "RUNNING"]
    assert api.of("Deployment", "ours-mirrormaker2")["spec"]["replicas"] == 2
    status = api.status
    turn()
    assert api.status == status


def test_a_resource_without_the_annotation_is_not_touched(served: ServedApi) -> None:
    other = resource()
    other["metadata"]["annotations"] = {CLASS: "another"}
    api = MemoryApi(other, secret())
    assert turns(api, rest(served))()
    assert api.changes == 0
    assert served.api.worker.connectors == {}


def test_what_was_made_goes_when_the_resource_is_no_longer_ours(served: ServedApi) -> None:
    api = MemoryApi(resource(), secret())
    turn = turns(api, rest(served))
    turn()
    del api.objects[PATH]["metadata"]["annotations"][CLASS]
    assert turn()
    assert set(api.objects) == {PATH, object_path("Secret", KEY.namespace, "mirror-user")}


def test_never_beside_strimzis_own(served: ServedApi) -> None:
    api = MemoryApi(resource(), secret())
    path = "/apis/core.strimzi.io/v1beta2/namespaces/kafka/strimzipodsets/ours-mirrormaker2"
    api.objects[path] = {"kind": "StrimziPodSet", "metadata": {}}
    turn = turns(api, rest(served))
    turn()
    turn()
    assert "status" not in api.objects[PATH], "that is Strimzi's"
    events = [item for item in api.objects.values() if item["kind"] == "Event"]
    assert ["Strimzi's own operator runs it" in item["message"] for item in events] == [True]
    assert api.changes == 1
    assert served.api.worker.connectors == {}
    del api.objects[path]
    turn()
    assert api.conditions() == [("Ready", "")]


def test_an_event_that_the_api_refuses_is_tried_again(served: ServedApi) -> None:
    theirs = {"kind": "Deployment", "metadata": {"name": "ours-mirrormaker2", "labels": {}}, "spec": {}}
    api = MemoryApi(resource(), secret(), theirs)
    turn = turns(api, rest(served))
    events = object_path("Event", KEY.namespace)
    api.refused[events] = KubeRefused(500, "not now")
    with pytest.raises(KubeRefused):
        turn()
    api.refused.clear()
    turn()
    turn()
    assert len([path for path in api.objects if path.startswith(events)]) == 1


def test_an_object_of_somebody_elses_is_not_overwritten(served: ServedApi) -> None:
    theirs = {"kind": "Deployment", "metadata": {"name": "ours-mirrormaker2", "labels": {}}, "spec": {}}
    api = MemoryApi(resource(), secret(), theirs)
    turns(api, rest(served))()
    assert api.of("Deployment", "ours-mirrormaker2") == theirs


def test_paused_nothing_is_done(served: ServedApi) -> None:
    api = MemoryApi(resource(pause_reconciliation="true"), secret())
    assert turns(api, rest(served))()
    assert api.conditions() == [("ReconciliationPaused", "")]
    assert api.changes == 1
    assert served.api.worker.connectors == {}


def test_what_is_wrong_is_told_and_what_runs_continues(served: ServedApi) -> None:
    api = MemoryApi(resource(), secret())
    turn = turns(api, rest(served))
    turn()
    deployed = api.of("Deployment", "ours-mirrormaker2")
    api.objects[PATH]["spec"]["mirrors"][0]["sourceConnector"]["state"] = "asleep"
    assert not turn()
    assert api.conditions() == [("NotReady", "InvalidResourceException")]
    assert "must be paused, stopped or running" in api.status["conditions"][0]["message"]
    assert api.of("Deployment", "ours-mirrormaker2") == deployed
    assert len(api.status["connectors"]) == 2
    assert len(served.api.worker.connectors) == 2


def test_a_secret_that_a_user_is_still_to_get(served: ServedApi) -> None:
    api = MemoryApi(resource())
    user = "/apis/kafka.strimzi.io/v1/namespaces/kafka/kafkausers/mirror-user"
    api.objects[user] = {"kind": "KafkaUser", "metadata": {}, "status": {"conditions": [{"type": "NotReady"}]}}
    turn = turns(api, rest(served))
    assert not turn()
    assert api.status["conditions"][0]["message"].endswith(
        "Secret mirror-user is not there; KafkaUser mirror-user is there and not Ready"
    )
    api.objects[object_path("Secret", KEY.namespace, "mirror-user")] = secret()
    assert turn()


def test_a_changed_secret_takes_new_pods(served: ServedApi) -> None:
    api = MemoryApi(resource(), secret())
    turn = turns(api, rest(served))
    turn()
    before = api.of("Deployment", "ours-mirrormaker2")["spec"]["template"]
    turn()
    assert api.of("Deployment", "ours-mirrormaker2")["spec"]["template"] == before
    api.objects[object_path("Secret", KEY.namespace, "mirror-user")] = secret(password="new")
    turn()
    assert api.of("Deployment", "ours-mirrormaker2")["spec"]["template"] != before


def test_scaled_to_nothing(served: ServedApi) -> None:
    api = MemoryApi(resource(), secret())
    turn = turns(api, rest(served))
    turn()
    api.objects[PATH]["spec"]["replicas"] = 0
    assert turn()
    assert api.of("Deployment", "ours-mirrormaker2")["spec"]["replicas"] == 0
    assert "url" not in api.status
    assert api.conditions() == [("Ready", "")]


def test_a_connector_that_goes_from_the_resource_goes(served: ServedApi) -> None:
    api = MemoryApi(resource(), secret())
    turn = turns(api, rest(served))
    turn()
    del api.objects[PATH]["spec"]["mirrors"][0]["checkpointConnector"]
    turn()
    assert set(served.api.worker.connectors) == {SOURCE}
    assert [item["name"] for item in api.status["connectors"]] == [SOURCE]


def test_while_no_pod_answers(served: ServedApi) -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "ours-1"},
        "status": {
            "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]
        },
    }
    api = MemoryApi(resource(), secret(), pod)
    api.unready = {"readyReplicas": 0}
    nobody = ConnectRest("http://127.0.0.1:1")
    assert not turns(api, nobody)()
    assert api.status["conditions"][0]["message"] == "pod ours-1: ImagePullBackOff: no such image"
    del api.objects[object_path("Pod", KEY.namespace, "ours-1")]
    turns(api, nobody)()
    assert api.conditions() == [("NotReady", "PodsNotReady")]


def test_a_failed_task(served: ServedApi) -> None:
    api = MemoryApi(resource(), secret())
    turn = turns(api, rest(served))
    turn()
    served.api.worker.failed[SOURCE] = "orders-0: parked"
    turn()
    assert api.conditions() == [("NotReady", "ConnectorsFailed")]
    assert "orders-0: parked" in json.dumps(api.status["connectors"])
    message = f"One or more connectors are in FAILED state: {SOURCE}: orders-0: parked"
    assert api.status["conditions"][0]["message"] == message
    annotations = api.objects[PATH]["metadata"]["annotations"]
    annotations["strimzi.io/restart-connector"] = f"{SOURCE}:includeTasks,onlyFailed"
    turn()
    assert served.api.worker.restarted == [f"{SOURCE} include_tasks=True only_failed=True"]
    assert api.annotations == {}
    assert api.conditions() == [("Ready", "")]
    annotations["strimzi.io/restart-connector-task"] = f"{SOURCE}:1"
    turn()
    assert served.api.worker.restarted[1:] == [f"{SOURCE} 1"]
    assert api.annotations == {}


@pytest.mark.parametrize(
    ("annotations", "reason"),
    [
        ({"restart_connector": "nobody"}, "RestartConnector"),
        ({"restart_connector": f"{SOURCE}:everything"}, "RestartConnector"),
        ({"restart_connector_task": SOURCE}, "RestartConnectorTask"),
        ({"restart_connector_task": f"{SOURCE}:99"}, "RestartConnectorTask"),
        ({"connector_offsets": "guess", "mirrormaker_connector": SOURCE}, "ManageOffsets"),
        ({"connector_offsets": "list"}, "ListOffsets"),
        ({"connector_offsets": "list", "mirrormaker_connector": "nobody"}, "ListOffsets"),
        ({"connector_offsets": "list", "mirrormaker_connector": SOURCE}, "ListOffsets"),
        ({"connector_offsets": "alter", "mirrormaker_connector": SOURCE}, "AlterOffsets"),
        ({"connector_offsets": "reset", "mirrormaker_connector": SOURCE}, "ResetOffsets"),
    ],
)
def test_what_cannot_be_obeyed_stays_and_is_told(annotations: dict[str, str], reason: str, served: ServedApi) -> None:
    api = MemoryApi(resource(None, **annotations), secret())
    assert not turns(api, rest(served))()
    assert api.conditions() == [("Ready", ""), ("Warning", reason)]
    assert len(api.annotations) == len(annotations)
    assert served.api.worker.restarted == []


def test_offsets_are_listed_altered_and_reset(served: ServedApi) -> None:
    asked = resource(stopped, connector_offsets="list", mirrormaker_connector=SOURCE)
    api = MemoryApi(asked, secret(), config_map("offsets", mine="kept"))
    turn = turns(api, rest(served))
    served.api.worker.store_offsets(SOURCE, [(PARTITION, {"offset": 41})])
    assert turn()
    assert api.annotations == {}
    data = api.of("ConfigMap", "offsets")["data"]
    assert data["mine"] == "kept"
    entry = "us--eu.MirrorSourceConnector.json"
    assert json.loads(data[entry]) == {"offsets": [OFFSET]}

    altered = {**OFFSET, "offset": {"offset": 2**53 + 1}}
    data[entry] = json.dumps({"offsets": [altered]})
    annotations = api.objects[PATH]["metadata"]["annotations"]
    named = {"strimzi.io/connector-offsets": "alter", "strimzi.io/mirrormaker-connector": SOURCE}
    annotations.update(named)
    assert turn()
    assert served.api.worker.offsets(SOURCE) == [(PARTITION, {"offset": 2**53 + 1})]
    assert api.annotations == {}

    annotations.update(named, **{"strimzi.io/connector-offsets": "reset"})
    assert turn()
    assert served.api.worker.offsets(SOURCE) == []
    assert api.annotations == {}


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([], "ConfigMap offsets is not there"),
        ([config_map("offsets", other="x")], "has no key us--eu.MirrorSourceConnector.json; it has other"),
        ([config_map("offsets", **{"us--eu.MirrorSourceConnector.json": "{"})], "is no JSON"),
        ([config_map("offsets", **{"us--eu.MirrorSourceConnector.json": "[]"})], 'must be {"offsets": [...]}'),
        (
            [config_map("offsets", **{"us--eu.MirrorSourceConnector.json": NEGATIVE})],
            "cannot be negative",
        ),
    ],
)
def test_offsets_that_cannot_be_altered_stay(objects: list[Any], message: str, served: ServedApi) -> None:
    asked = resource(stopped, connector_offsets="alter", mirrormaker_connector=SOURCE)
    api = MemoryApi(asked, secret(), *objects)
    assert not turns(api, rest(served))()
    assert api.conditions() == [("Ready", ""), ("Warning", "AlterOffsets")]
    assert message in api.status["conditions"][1]["message"]
    assert served.api.worker.offsets(SOURCE) == []


def test_a_new_map_belongs_to_the_resource(served: ServedApi) -> None:
    api = MemoryApi(resource(stopped, connector_offsets="list", mirrormaker_connector=SOURCE), secret())
    turns(api, rest(served))()
    made = api.of("ConfigMap", "offsets")
    assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == ["0815"]


def test_new_pods_are_asked_for(served: ServedApi) -> None:
    api = MemoryApi(resource(manual_rolling_update="true"), secret())
    turn = turns(api, rest(served))
    turn()
    stamps = api.of("Deployment", "ours-mirrormaker2")["spec"]["template"]["metadata"]["annotations"]
    assert stamps["sparkmirror.io/rolled-at"]
    assert api.annotations == {}
    turn()
    assert api.of("Deployment", "ours-mirrormaker2")["spec"]["template"]["metadata"]["annotations"] == stamps


def test_levels_of_loggers(served: ServedApi) -> None:
    levels = {"type": "external", "valueFrom": {"configMapKeyRef": {"name": "levels", "key": "log4j2.properties"}}}
    api = MemoryApi(resource(lambda spec: spec.update(logging=levels)), secret())
    turn = turns(api, rest(served))
    turn()
    assert api.conditions()[1:] == [("Warning", "LoggingNotFound")]
    text = "rootLogger.level = INFO\nlogger.a.name = sparkmirror.operator\nlogger.a.level = DEBUG\n"
    api.objects[object_path("ConfigMap", KEY.namespace, "levels")] = config_map("levels", **{"log4j2.properties": text})
    turn()
    assert api.conditions() == [("Ready", "")]
    written = [json.loads(value)["level"] for _, value in served.api.configs.records if value and b"level" in value]
    assert written == ["INFO", "DEBUG"]


def test_an_object_that_the_api_refuses(served: ServedApi) -> None:
    api = MemoryApi(resource(), secret())
    path = object_path("Deployment", KEY.namespace, "ours-mirrormaker2")
    api.refused[path] = KubeRefused(422, 'Deployment "ours-mirrormaker2" is invalid: spec.x')
    assert not turns(api, rest(served))()
    assert api.conditions() == [("NotReady", "ObjectRefused")]
    api.refused[path] = KubeRefused(403, "may not")
    with pytest.raises(KubeRefused, match="may not"):
        turns(api, rest(served))()


def test_it_is_ready_once_its_pods_are(served: ServedApi) -> None:
    api = MemoryApi(resource(), secret())
    api.unready = {"readyReplicas": 1}
    turn = turns(api, rest(served))
    assert not turn(), "the next turn comes soon"
    assert api.conditions() == [("NotReady", "PodsNotReady")]
    api.unready = {}
    assert turn()
    assert api.conditions() == [("Ready", "")]
