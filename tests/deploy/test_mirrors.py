"""The kind Mirror at a real API server: its schema, and the operator with it; pods are played."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.kube_cluster import KubeCluster, crd, kube_cluster, mirror_crd
from tests.deploy.running_operator import running_operator
from tests.deploy.test_operator import conditions as strimzi_conditions
from tests.deploy.test_operator import create, until, verb
from tests.support.operated import KEY, PROPERTIES, mirror, resource, secret
from tests.support.served_api import ServedApi

from sparkmirror.operator.names import CLASS
from sparkmirror.operator.pod_flows import PodSilent
from sparkmirror.snapshot.snapshot import ClusterFigures, Flow, FlowState, Process, Role, Snapshot

pytestmark = pytest.mark.full

PAGE = Path(__file__).parents[2] / "docs" / "deploy" / "operator.md"
CLUSTERS: list[dict[str, Any]] = [
    {"alias": "us", "bootstrapServers": "us:9092"},
    {"alias": "eu", "bootstrapServers": "eu:9092"},
]
MIRRORS = [{"source": "us", "target": "eu"}]
MADE = ("deployments", "services", "configmaps", "networkpolicies", "pdb", "serviceaccounts", "pods")


class PlayedPods:
    """What the played pods tell: this state of the flow, or nothing."""

    def __init__(self) -> None:
        self.state: FlowState | None = FlowState.COPYING
        self.lag = 7
        self.grows = 0
        """What each question adds to the lag."""
        self.asked = 0

    def ask(self, _: str) -> Snapshot:
        if self.state is None:
            raise PodSilent("/snapshot is not answered: refused")
        self.asked += 1
        self.lag += self.grows
        flow = Flow(
            flow="us->eu",
            source=ClusterFigures(alias="us"),
            target=ClusterFigures(alias="eu"),
            state=self.state,
            role=Role.LEADER,
            at_ms=0,
            lag=self.lag,
            lag_s=3.0,
        )
        return Snapshot(Process(host="h", pid=1, version="0", started_ms=0), 0, (flow,))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    """It knows Mirrors, and no resource of Strimzi's."""
    with kube_cluster(tmp_path_factory.mktemp("kube"), nodes=1) as running:
        running.define(mirror_crd())
        running.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KEY.namespace}})
        yield running


@pytest.fixture
def pods() -> PlayedPods:
    return PlayedPods()


@pytest.fixture
def operator(
    cluster: KubeCluster, served: ServedApi, pods: PlayedPods, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KubeCluster]:
    """The cluster with an operator; at the end Mirrors are gone, and all that was made for them."""
    monkeypatch.setenv("KUBECONFIG", cluster.kubeconfig)
    with running_operator(cluster, served, calm_s=1.0, busy_s=0.5, ask=pods.ask):
        yield cluster
        cluster.kubectl("delete", "mirrors", "--all", "-n", KEY.namespace)
        until(lambda: not left_over(cluster))


def left_over(cluster: KubeCluster) -> list[str]:
    """What is there of the operator's making."""
    words = ("get", ",".join(MADE), "-n", KEY.namespace, "-l", "sparkmirror.io/mirror", "-o", "name")
    return cluster.kubectl(*words).split()


def put(cluster: KubeCluster, tree: dict[str, Any]) -> None:
    metadata = {
        name: tree["metadata"][name] for name in ("name", "namespace", "annotations") if name in tree["metadata"]
    }
    cluster.apply({**tree, "metadata": metadata})


def status(cluster: KubeCluster, name: str = KEY.name) -> dict[str, Any]:
    read: dict[str, Any] = cluster.get("mirror", name, KEY.namespace).get("status") or {}
    return read


def ready(cluster: KubeCluster, name: str = KEY.name) -> tuple[str, str]:
    """Status and reason of Ready, of the present generation; empty before."""
    now = status(cluster, name)
    generation = cluster.get("mirror", name, KEY.namespace)["metadata"]["generation"]
    if now.get("observedGeneration") != generation:
        return "", ""
    (condition,) = (item for item in now["conditions"] if item["type"] == "Ready")
    return condition["status"], condition["reason"]


# --- the schema ----------------------------------------------------------------------------------------


def cluster_with(**more: Any) -> list[dict[str, Any]]:
    return [CLUSTERS[0], {**CLUSTERS[1], **more}]


SIGN_IN = {"type": "plain", "username": "a", "passwordSecret": {"secretName": "s", "password": "p"}}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({"replicas": 1}, "write exactly one of properties, propertiesFrom, and clusters with mirrors"),
    "two forms": ({"properties": "a", "propertiesFrom": {"secretKeyRef": {"name": "a"}}}, "write exactly one of"),
    "clusters alone": ({"clusters": CLUSTERS}, "clusters and mirrors belong together"),
    "mirrors alone": ({"properties": "a", "mirrors": MIRRORS}, "clusters and mirrors belong together"),
    "settings of a file": ({"properties": "a", "settings": {"a": "b"}}, "a file has its own"),
    "an unknown alias": (
        {"clusters": CLUSTERS, "mirrors": [{"source": "us", "target": "asia"}]},
        "source and target of each mirror must be aliases of clusters",
    ),
    "a mirror to itself": (
        {"clusters": CLUSTERS, "mirrors": [{"source": "us", "target": "us"}]},
        "must be two clusters",
    ),
    "one cluster": ({"clusters": CLUSTERS[:1], "mirrors": MIRRORS}, "should have at least 2 items"),
    "an alias twice": ({"clusters": [CLUSTERS[0], CLUSTERS[0]], "mirrors": MIRRORS}, "Duplicate value"),
    "an alias with a dot": ({"clusters": cluster_with(alias="e.u"), "mirrors": MIRRORS}, "spec.clusters[1].alias"),
    "two places": (
        {"propertiesFrom": {"secretKeyRef": {"name": "a"}, "configMapKeyRef": {"name": "a"}}},
        "write exactly one of secretKeyRef and configMapKeyRef",
    ),
    "another sign-in": (
        {"clusters": cluster_with(authentication={"type": "oauth"}), "mirrors": MIRRORS},
        'supported values: "tls", "plain", "scram-sha-256", "scram-sha-512"',
    ),
    "no password": (
        {"clusters": cluster_with(authentication={"type": "plain", "username": "a"}), "mirrors": MIRRORS},
        "the other types need username and passwordSecret",
    ),
    "a certificate without TLS": (
        {
            "clusters": cluster_with(
                authentication={
                    "type": "tls",
                    "certificateAndKey": {"secretName": "s", "certificate": "c", "key": "k"},
                }
            ),
            "mirrors": MIRRORS,
        },
        "certificates are shown over TLS only",
    ),
    "two patterns in one": (
        {"clusters": CLUSTERS, "mirrors": [{**MIRRORS[0], "topics": ["a,b"]}]},
        "spec.mirrors[0].topics[0]",
    ),
    "replicas": ({"properties": "a", "replicas": -1}, "should be greater than or equal to 0"),
    "an unknown field": ({"properties": "a", "topics": "b"}, 'unknown field "spec.topics"'),
    "an unknown field below": (
        {"clusters": cluster_with(authentication={**SIGN_IN, "password": "p"}), "mirrors": MIRRORS},
        'unknown field "spec.clusters[1].authentication.password"',
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_what_is_wrong_is_refused_in_words(cluster: KubeCluster, fault: str) -> None:
    spec, words = WRONG[fault]
    tree = {**mirror(**spec), "metadata": {"name": "wrong", "namespace": KEY.namespace}}
    said = cluster.kubectl("apply", "--validate=strict", "-f", "-", given=yaml.safe_dump(tree), ok=False)
    assert words in said


@pytest.mark.parametrize("name", ["a.b", "9lives", "a" * 57])
def test_a_name_that_no_service_has_is_refused(cluster: KubeCluster, name: str) -> None:
    tree = {**mirror(), "metadata": {"name": name, "namespace": KEY.namespace}}
    said = cluster.kubectl("apply", "-f", "-", given=yaml.safe_dump(tree), ok=False)
    assert "the name is part of a Service's name" in said


def test_each_field_is_described_to_the_reader(cluster: KubeCluster) -> None:
    said = cluster.kubectl("explain", "mirrors.spec", "--recursive")
    assert "clusters" in said
    assert "Text of an mm2.properties file" in cluster.kubectl("explain", "mirrors.spec.properties")


def test_what_the_page_shows_is_taken(cluster: KubeCluster) -> None:
    shown = [tree for tree in examples() if tree["kind"] == "Mirror"]
    assert {
        next(form for form in ("properties", "propertiesFrom", "clusters") if form in tree["spec"]) for tree in shown
    } == {
        "properties",
        "propertiesFrom",
        "clusters",
    }
    words = ("apply", "--dry-run=server", "--validate=strict", "-n", KEY.namespace, "-f", "-")
    said = cluster.kubectl(*words, given=yaml.safe_dump_all(shown))
    assert said.count("(server dry run)") == len(shown)


def examples() -> list[dict[str, Any]]:
    """The documents in the page's YAML."""
    blocks = re.findall(r"^```yaml\n(apiVersion: sparkmirror.*?)^```", PAGE.read_text(), re.M | re.S)
    return [tree for block in blocks for tree in yaml.safe_load_all(block)]


# --- the operator --------------------------------------------------------------------------------------


def test_from_the_mirror_to_the_pods_and_back(operator: KubeCluster, pods: PlayedPods) -> None:
    pods.state = None
    put(operator, mirror())
    until(lambda: ready(operator) == ("False", "PodsUnreachable"))
    pods.state = FlowState.STARTING
    until(lambda: ready(operator) == ("False", "FlowsNotRunning"))
    pods.state = FlowState.COPYING
    until(lambda: ready(operator) == ("True", "FlowsRunning"))
    operator.kubectl("wait", "mirror/ours", "-n", KEY.namespace, "--for=condition=Ready", "--timeout=30s")
    now = operator.get("mirror", KEY.name, KEY.namespace)
    assert not now["metadata"].get("finalizers")
    assert set(now["metadata"].get("annotations") or {}) <= {"kubectl.kubernetes.io/last-applied-configuration"}
    assert now["status"]["mirrors"] == [{"name": "us->eu", "state": "copying", "lag": 7, "lagSeconds": 3}]
    header, row = operator.kubectl("get", "mirrors", "-n", KEY.namespace).splitlines()
    assert header.split() == ["NAME", "READY", "STATE", "LAG-S", "PODS", "AGE"]
    assert row.split()[:5] == ["ours", "True", "copying", "3", "2"]
    made = {name.partition("/")[0] for name in left_over(operator)}
    assert {"deployment.apps", "service", "configmap", "networkpolicy.networking.k8s.io", "serviceaccount"} < made
    pods.state = FlowState.HELD_UP
    until(lambda: ready(operator) == ("False", "FlowUnhealthy"))
    assert status(operator)["state"] == "held up"
    operator.kubectl("delete", "mirror", KEY.name, "-n", KEY.namespace)
    until(lambda: not left_over(operator))


def test_nothing_is_written_while_nothing_changes(operator: KubeCluster) -> None:
    put(operator, mirror())
    until(lambda: ready(operator)[0] == "True")
    before = {kind: versions(operator, kind) for kind in ("mirrors", "deployments", "configmaps", "services")}
    time.sleep(5)
    assert {kind: versions(operator, kind) for kind in before} == before


def test_figures_that_change_are_written_at_a_turns_pause(operator: KubeCluster, pods: PlayedPods) -> None:
    """A write of the status is an event; it must not bring the next turn."""
    put(operator, mirror(replicas=1, properties=PROPERTIES))
    until(lambda: ready(operator)[0] == "True")
    pods.grows = 1
    before, began = pods.asked, time.monotonic()
    time.sleep(5)
    turns, seconds = pods.asked - before, time.monotonic() - began
    assert 2 <= turns <= seconds + 2, "a turn each second, as the pause is here"


def versions(cluster: KubeCluster, kind: str) -> dict[str, str]:
    """The version of each object: another one after each write."""
    items = json.loads(cluster.kubectl("get", kind, "-n", KEY.namespace, "-o", "json"))["items"]
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}


def test_kubectl_scale(operator: KubeCluster) -> None:
    put(operator, mirror(properties=PROPERTIES))
    until(lambda: ready(operator)[0] == "True")
    assert operator.get("deployment", "ours-mirror", KEY.namespace)["spec"]["replicas"] == 2, "the schema's default"
    operator.kubectl("scale", "mirror", KEY.name, "-n", KEY.namespace, "--replicas=3")
    until(lambda: status(operator)["replicas"] == 3 and ready(operator)[0] == "True")
    words = ("get", "mirror", KEY.name, "-n", KEY.namespace, "--subresource=scale", "-o", "json")
    scale = json.loads(operator.kubectl(*words))
    assert scale["status"] == {"replicas": 3, "selector": "sparkmirror.io/mirror=ours"}
    chosen = operator.kubectl("get", "pods", "-n", KEY.namespace, "-l", scale["status"]["selector"], "-o", "name")
    assert len(chosen.split()) == 3
    operator.kubectl("scale", "mirror", KEY.name, "-n", KEY.namespace, "--replicas=0")
    until(lambda: status(operator)["replicas"] == 0 and ready(operator) == ("True", "ScaledToZero"))


def test_a_password_that_is_written_out_gets_into_no_object(operator: KubeCluster) -> None:
    put(operator, mirror(replicas=1, properties=PROPERTIES + "us.ssl.key.password = hush-hush\n"))
    until(lambda: ready(operator) == ("False", "InvalidFile"))
    said = operator.kubectl("get", ",".join(MADE) + ",events", "-n", KEY.namespace, "-o", "json")
    assert "hush-hush" not in said + json.dumps(status(operator))
    assert not operator.get("deployment", "ours-mirror", KEY.namespace)


def test_a_secret_that_comes_later(operator: KubeCluster) -> None:
    place = {"secretKeyRef": {"name": "file"}}
    put(operator, mirror(propertiesFrom=place, replicas=1))
    until(lambda: ready(operator) == ("False", "InvalidFile"))
    operator.apply(secret("file", **{"mm2.properties": PROPERTIES}))
    until(lambda: ready(operator)[0] == "True")
    generation = operator.get("deployment", "ours-mirror", KEY.namespace)["metadata"]["generation"]
    operator.apply(secret("file", **{"mm2.properties": PROPERTIES + "us->eu.tasks.max = 2\n"}))
    until(lambda: operator.get("deployment", "ours-mirror", KEY.namespace)["metadata"]["generation"] > generation)
    operator.kubectl("delete", "secret", "file", "-n", KEY.namespace)


def test_two_mirrors_of_one_flow(operator: KubeCluster) -> None:
    put(operator, mirror())
    until(lambda: ready(operator)[0] == "True")
    time.sleep(1)  # times of creation have seconds
    put(operator, mirror("copied"))
    until(lambda: ready(operator, "copied") == ("False", "GroupShared"))
    until(lambda: [item["type"] for item in status(operator)["conditions"]] == ["Ready", "Warning"])
    assert not operator.get("deployment", "copied-mirror", KEY.namespace)
    operator.kubectl("delete", "mirror", KEY.name, "-n", KEY.namespace)
    until(lambda: ready(operator, "copied")[0] == "True")


def test_given_to_another_class(operator: KubeCluster) -> None:
    put(operator, mirror())
    until(lambda: ready(operator)[0] == "True")
    operator.kubectl("annotate", "mirror", KEY.name, "-n", KEY.namespace, f"{CLASS}=another")
    until(lambda: not left_over(operator))


def test_without_strimzis_kind_and_then_with_both(operator: KubeCluster) -> None:
    """Last: from here on the cluster has both kinds. A resource of the same flow is held; another one runs."""
    put(operator, mirror())
    until(lambda: ready(operator)[0] == "True")
    operator.define(crd())
    create(operator, resource())
    until(lambda: strimzi_conditions(operator) == ["NotReady"])
    (condition,) = operator.get("kmm2", KEY.name, KEY.namespace)["status"]["conditions"]
    assert condition["reason"] == "GroupShared"
    assert "Mirror kafka/ours uses the same group us-mm2" in condition["message"]
    assert ready(operator)[0] == "True"
    operator.kubectl("delete", "mirror", KEY.name, "-n", KEY.namespace)
    until(lambda: strimzi_conditions(operator) == ["Ready"])
    operator.kubectl("delete", "kmm2", "--all", "-n", KEY.namespace)
    operator.kubectl("delete", "crd", "kafkamirrormaker2s.kafka.strimzi.io")


def test_the_verb_with_this_kind_alone(cluster: KubeCluster) -> None:
    put(cluster, mirror())
    with verb(cluster, "-n", KEY.namespace, "-o", "json", "--log-format", "json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["versions"] == {"Mirror": "v1alpha1"}
        until(lambda: ready(cluster) == ("False", "PodsUnreachable"))
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    events = [json.loads(line).get("event") for line in errors.splitlines() if line.startswith("{")]
    assert events.count("definition-missing") == 1, errors
    cluster.kubectl("delete", "mirrors", "--all", "-n", KEY.namespace)
