"""Whole turns of a `Mirror`: a Kubernetes API in memory, and pods that tell flows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.operated import (
    KEY,
    MIRROR_KEY,
    MIRROR_PATH,
    PROPERTIES,
    MemoryApi,
    config_map,
    mirror,
    mirror_turns,
    resource,
    secret,
)

from sparkmirror.operator.kube import KubeRefused, object_path
from sparkmirror.operator.names import CLASS, labels
from sparkmirror.operator.pod_flows import PodSilent
from sparkmirror.snapshot.snapshot import ClusterFigures, Flow, FlowState, Process, Role, Snapshot

COPYING = Flow(
    flow="us->eu",
    source=ClusterFigures(alias="us"),
    target=ClusterFigures(alias="eu"),
    state=FlowState.COPYING,
    role=Role.LEADER,
    at_ms=0,
    lag=7,
    lag_s=2.4,
)
STANDING_BY = replace(COPYING, state=FlowState.STANDING_BY, role=Role.STANDBY, lag=None, lag_s=None)


def pod(number: int, **status: Any) -> dict[str, Any]:
    metadata = {"name": f"ours-mirror-{number}", "namespace": KEY.namespace, "labels": labels(MIRROR_KEY)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "status": {"podIP": f"10.0.0.{number}", **status},
    }


def told(*flows: Flow | None) -> Callable[[str], Snapshot]:
    """Pods by number tell these flows; None: the pod is silent."""

    def ask(address: str) -> Snapshot:
        flow = flows[int(address.rpartition(".")[2])]
        if flow is None:
            raise PodSilent("/snapshot is not answered: refused")
        return Snapshot(Process(host="h", pid=1, version="0", started_ms=0), 0, (flow,))

    return ask


def ready(api: MemoryApi) -> tuple[str, str, str]:
    """Status, reason and message of the condition Ready."""
    condition = api.status["conditions"][0]
    assert condition["type"] == "Ready"
    return condition["status"], condition["reason"], condition["message"]


def test_from_nothing_to_ready() -> None:
    api = MemoryApi(mirror(), pod(0), pod(1))
    turn = mirror_turns(api, told(STANDING_BY, COPYING))
    assert turn()
    assert ready(api) == ("True", "FlowsRunning", "at work on us->eu")
    status = api.status
    assert status["observedGeneration"] == 3
    assert status["mirrors"] == [{"name": "us->eu", "state": "copying", "lag": 7, "lagSeconds": 2}]
    assert (status["state"], status["lagSeconds"], status["replicas"]) == ("copying", 2, 2)
    assert status["labelSelector"] == "sparkmirror.io/mirror=ours"
    assert api.of("ConfigMap", "ours-mirror-config")["data"] == {"mm2.properties": PROPERTIES}
    made = api.of("Deployment", "ours-mirror")["spec"]["template"]["spec"]
    (container,) = made["containers"]
    assert container["args"] == ["run", "/etc/sparkmirror/config/mm2.properties", "--metrics-port", "9404"]
    assert [port["containerPort"] for port in container["ports"]] == [9404]
    assert [port["port"] for port in api.of("Service", "ours-mirror")["spec"]["ports"]] == [9404]
    assert api.of("NetworkPolicy", "ours-mirror")["spec"]["ingress"] == [{"ports": [{"port": 9404, "protocol": "TCP"}]}]
    turn()
    assert api.status == status, "nothing is written while nothing changes"


def test_its_objects_do_not_meet_those_of_a_strimzi_resource_of_its_name() -> None:
    api = MemoryApi(mirror(), pod(1))
    mirror_turns(api, told(None, COPYING))()
    assert not [path for path in api.objects if "mirrormaker2" in path]
    theirs = {name for name in labels(KEY) if name.startswith("strimzi.io/")}
    assert not theirs & api.of("Deployment", "ours-mirror")["metadata"]["labels"].keys()


@pytest.mark.parametrize(
    ("flow", "reason", "message"),
    [
        (STANDING_BY, "FlowsNotRunning", "no pod works on us->eu yet"),
        (replace(COPYING, flow="eu->us"), "FlowsNotRunning", "no pod works on us->eu yet"),
        (replace(COPYING, state=FlowState.STARTING), "FlowsNotRunning", "us->eu is starting"),
        (replace(COPYING, state=FlowState.HELD_UP, reason="a"), "FlowUnhealthy", "us->eu is held up: a"),
        (replace(COPYING, state=FlowState.UNREACHABLE), "FlowUnhealthy", "us->eu is unreachable"),
        (None, "PodsUnreachable", "pod ours-mirror-0: /snapshot is not answered: refused"),
    ],
)
def test_not_ready_before_its_flows_run(flow: Flow | None, reason: str, message: str) -> None:
    api = MemoryApi(mirror(), pod(0))
    turn = mirror_turns(api, told(flow))
    assert turn() is (reason == "FlowUnhealthy"), "what ends by itself is looked at again soon"
    assert ready(api) == ("False", reason, message)


def test_not_ready_before_its_pods_are() -> None:
    api = MemoryApi(mirror(), pod(0))
    api.unready = {"readyReplicas": 1}
    mirror_turns(api, told(COPYING))()
    assert ready(api) == ("False", "PodsNotReady", "1 of 2 pods are ready")
    api.unready = {"readyReplicas": 0}
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    api = MemoryApi(mirror(), pod(0, podIP="", containerStatuses=[{"state": {"waiting": waiting}}]))
    api.unready = {"readyReplicas": 0}
    mirror_turns(api, told())()
    assert ready(api) == ("False", "PodsNotReady", "pod ours-mirror-0: ImagePullBackOff: no such image")


def test_the_time_of_a_condition_is_that_of_its_change() -> None:
    api = MemoryApi(mirror(), pod(0))
    turn = mirror_turns(api, told(COPYING))
    turn()
    conditions = api.objects[MIRROR_PATH]["status"]["conditions"]
    conditions[0]["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    api.objects[MIRROR_PATH]["spec"]["properties"] += "us->eu.tasks.max = 2\n"
    turn()
    assert api.status["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    api.objects[MIRROR_PATH]["spec"]["properties"] = "clusters = us, eu\n"
    turn()
    assert ready(api)[0] == "False"
    assert api.status["conditions"][0]["lastTransitionTime"] > "2026-01-01T00:00:00Z"


def test_a_wrong_file_is_told_and_what_runs_continues() -> None:
    api = MemoryApi(mirror(), pod(0))
    flows: list[Flow | None] = [COPYING]
    turn = mirror_turns(api, lambda address: told(*flows)(address))
    turn()
    deployed = api.of("Deployment", "ours-mirror")
    flows[0] = replace(COPYING, state=FlowState.HELD_UP, lag=9000, lag_s=600.0)
    api.objects[MIRROR_PATH]["spec"]["properties"] = PROPERTIES + "tasks.max = many\nus->eu.topics = (\n"
    assert not turn()
    state, reason, message = ready(api)
    assert (state, reason) == ("False", "InvalidFile")
    assert "tasks.max" in message
    assert "us->eu.topics" in message, "all mistakes at once"
    assert "/tmp" not in message
    assert api.of("Deployment", "ours-mirror") == deployed
    assert api.status["mirrors"] == [{"name": "us->eu", "state": "held up", "lag": 9000, "lagSeconds": 600}]
    assert (api.status["state"], api.status["lagSeconds"]) == ("held up", 600)
    flows[0] = None
    assert not turn()
    assert ready(api)[1] == "InvalidFile"
    assert not {"mirrors", "state", "lagSeconds"} & api.status.keys(), "no pod tells them"


def test_a_key_without_effect_is_told() -> None:
    api = MemoryApi(mirror(replicas=1, properties=PROPERTIES + "us->eu.tpoics = a\n"), pod(0))
    mirror_turns(api, told(COPYING))()
    (_, warning) = api.status["conditions"]
    assert (warning["type"], warning["reason"]) == ("Warning", "NoEffect")
    assert "tpoics" in warning["message"]


def test_a_named_secret_must_be_there_and_is_mounted() -> None:
    api = MemoryApi(mirror(properties=PROPERTIES, secrets=["mirror-user"], replicas=1), pod(0))
    turn = mirror_turns(api, told(COPYING))
    assert not turn()
    assert ready(api) == ("False", "SecretMissing", "Secret mirror-user is not there")
    assert object_path("Deployment", KEY.namespace, "ours-mirror") not in api.objects
    api.objects[object_path("Secret", KEY.namespace, "mirror-user")] = secret()
    turn()
    made = api.of("Deployment", "ours-mirror")["spec"]["template"]
    mounts = {mount["mountPath"]: mount["name"] for mount in made["spec"]["containers"][0]["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in made["spec"]["volumes"]}
    mounted = volumes[mounts["/etc/sparkmirror/secrets/mirror-user"]]
    assert mounted["projected"]["sources"] == [{"secret": {"name": "mirror-user"}}]
    api.objects[object_path("Secret", KEY.namespace, "mirror-user")] = secret(password="new")
    turn()
    again = api.of("Deployment", "ours-mirror")["spec"]["template"]
    assert again == made, "a renewed Secret counts from the next connection, without new pods"


def test_a_name_that_leads_elsewhere_is_refused() -> None:
    api = MemoryApi(mirror(properties=PROPERTIES, secrets=["../x"]), pod(0))
    mirror_turns(api, told(COPYING))()
    assert ready(api)[1] == "InvalidFile"
    assert "is no name of a Secret" in ready(api)[2]


def test_the_file_of_a_secret_is_mounted_and_its_change_takes_new_pods() -> None:
    written = PROPERTIES + (
        "us.security.protocol = SASL_PLAINTEXT\nus.sasl.mechanism = PLAIN\nus.sasl.jaas.config = "
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="hush-hush";\n'
    )
    place = {"secretKeyRef": {"name": "file", "key": "mm2"}}
    api = MemoryApi(mirror(propertiesFrom=place, replicas=1), secret("file", mm2=written), pod(0))
    turn = mirror_turns(api, told(COPYING))
    turn()
    assert ready(api)[0] == "True", "in a Secret a password may be written out"
    assert api.of("ConfigMap", "ours-mirror-config")["data"] == {}
    assert "hush-hush" not in str({path: item for path, item in api.objects.items() if "/secrets/" not in path})
    template = api.of("Deployment", "ours-mirror")["spec"]["template"]
    (config,) = (volume for volume in template["spec"]["volumes"] if volume["name"] == "config")
    assert config["secret"] == {"secretName": "file", "items": [{"key": "mm2", "path": "mm2.properties"}]}
    api.objects[object_path("Secret", KEY.namespace, "file")] = secret("file", mm2=written + "tasks.max = 3\n")
    turn()
    assert api.of("Deployment", "ours-mirror")["spec"]["template"] != template
    api.objects[object_path("Secret", KEY.namespace, "file")] = secret("file", other="x")
    turn()
    assert ready(api)[1:] == ("InvalidFile", "spec.propertiesFrom: Secret file has no key mm2; it has other")


def test_the_file_of_a_config_map() -> None:
    place = {"configMapKeyRef": {"name": "file"}}
    api = MemoryApi(mirror(propertiesFrom=place, replicas=1), pod(0))
    turn = mirror_turns(api, told(COPYING))
    turn()
    assert ready(api)[1:] == ("InvalidFile", "spec.propertiesFrom: ConfigMap file is not there")
    data = config_map("file", **{"mm2.properties": PROPERTIES})
    api.objects[object_path("ConfigMap", KEY.namespace, "file")] = data
    turn()
    assert ready(api)[0] == "True"


def test_scaled_to_nothing() -> None:
    api = MemoryApi(mirror(properties=PROPERTIES, replicas=0))
    assert mirror_turns(api, told())()
    assert ready(api)[:2] == ("True", "ScaledToZero")
    assert "mirrors" not in api.status


def test_refused_objects_are_told() -> None:
    api = MemoryApi(mirror(), pod(0))
    path = object_path("Deployment", KEY.namespace)
    api.refused = {path: KubeRefused(422, "tolerations[0] is wrong")}
    assert not mirror_turns(api, told(COPYING))()
    assert ready(api) == ("False", "ObjectRefused", "tolerations[0] is wrong")


@pytest.mark.parametrize(("annotation", "is_taken"), [(None, True), ("sparkmirror", True), ("another", False)])
def test_whose_it_is(annotation: str | None, is_taken: bool) -> None:
    tree = mirror()
    if annotation is not None:
        tree["metadata"]["annotations"] = {CLASS: annotation}
    api = MemoryApi(tree, pod(0))
    mirror_turns(api, told(COPYING))()
    assert (object_path("Deployment", KEY.namespace, "ours-mirror") in api.objects) is is_taken


def test_given_to_another_class_its_objects_go() -> None:
    api = MemoryApi(mirror(), pod(0))
    turn = mirror_turns(api, told(COPYING))
    turn()
    api.objects[MIRROR_PATH]["metadata"]["annotations"] = {CLASS: "another"}
    turn()
    assert set(api.objects) == {MIRROR_PATH, object_path("Pod", KEY.namespace, "ours-mirror-0")}


def test_objects_that_another_operator_made_stay() -> None:
    api = MemoryApi(mirror(), pod(0))
    ours, theirs = (mirror_turns(api, told(COPYING), class_name=name) for name in ("sparkmirror", "another"))
    ours()
    api.objects[MIRROR_PATH]["metadata"]["annotations"] = {CLASS: "another"}
    theirs()
    made = set(api.objects)
    before = api.changes
    assert ours()
    assert (set(api.objects), api.changes) == (made, before)


def test_it_is_held_beside_an_older_strimzi_resource_of_its_flow() -> None:
    older = resource()
    older["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    tree = mirror()
    tree["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    api = MemoryApi(tree, pod(0))
    assert mirror_turns(api, told(COPYING), older)()
    state, reason, message = ready(api)
    assert (state, reason) == ("False", "GroupShared")
    assert message.startswith("KafkaMirrorMaker2 kafka/ours uses the same group us-mm2 at eu.kafka:9092")
    assert api.changes == 1, "its status"
