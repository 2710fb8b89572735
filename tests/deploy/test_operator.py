"""The operator next to a real API server with its controllers; pods are played, the REST interface is served here."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.kube_cluster import KubeCluster, crd, kube_cluster
from tests.deploy.running_operator import running_operator
from tests.support.operated import CHECKPOINT, KEY, SOURCE, resource, secret
from tests.support.served_api import ServedApi

from sparkmirror.demo.ports import free_ports
from sparkmirror.operator.kube import KubeApi, object_path
from sparkmirror.operator.names import CLASS
from sparkmirror.operator.watching import cluster_access

pytestmark = pytest.mark.full

DEPLOY = Path(__file__).parents[2] / "deploy"

PARTITION: dict[str, object] = {"cluster": "us", "partition": 0, "topic": "orders"}
UNREACHABLE = "ConnectUnreachable"
OFFSET = {"partition": PARTITION, "offset": {"offset": 41}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    with kube_cluster(tmp_path_factory.mktemp("kube"), nodes=1) as running:
        running.define(crd())
        running.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KEY.namespace}})
        yield running


@pytest.fixture
def operator(cluster: KubeCluster, served: ServedApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubeCluster]:
    """The cluster with an operator; at the end the resource is gone, and all that was made for it."""
    monkeypatch.setenv("KUBECONFIG", cluster.kubeconfig)
    with running_operator(cluster, served, calm_s=1.0, busy_s=0.5):
        yield cluster
        cluster.kubectl("delete", "kmm2", "--all", "-n", KEY.namespace)
        until(lambda: not cluster.get("deployment", "ours-mirrormaker2", KEY.namespace))
        until(lambda: not cluster.get("configmap", "ours-mirrormaker2-config", KEY.namespace))


def until(true: Callable[[], object], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def create(cluster: KubeCluster, tree: dict[str, Any]) -> None:
    metadata = {name: tree["metadata"][name] for name in ("name", "namespace", "annotations")}
    cluster.apply({**tree, "metadata": metadata})


def status(cluster: KubeCluster) -> dict[str, Any]:
    read: dict[str, Any] = cluster.get("kmm2", KEY.name, KEY.namespace).get("status") or {}
    return read


def conditions(cluster: KubeCluster) -> list[str]:
    return [item["type"] for item in status(cluster).get("conditions") or ()]


def is_ready(cluster: KubeCluster) -> bool:
    now = cluster.get("kmm2", KEY.name, KEY.namespace)
    return (now.get("status") or {}).get("observedGeneration") == now["metadata"]["generation"] and conditions(
        cluster
    ) == ["Ready"]


def annotate(cluster: KubeCluster, *annotations: str) -> None:
    cluster.kubectl("annotate", "kmm2", KEY.name, "-n", KEY.namespace, *annotations)


def left(cluster: KubeCluster) -> set[str]:
    """The annotations but the class and kubectl's own."""
    annotations = cluster.get("kmm2", KEY.name, KEY.namespace)["metadata"]["annotations"]
    return {name for name in annotations if name != CLASS and not name.startswith("kubectl.kubernetes.io/")}


def patch(cluster: KubeCluster, spec: dict[str, Any]) -> None:
    words = json.dumps({"spec": spec})
    cluster.kubectl("patch", "kmm2", KEY.name, "-n", KEY.namespace, "--type=merge", "-p", words)


def deployment(cluster: KubeCluster) -> dict[str, Any]:
    return cluster.get("deployment", "ours-mirrormaker2", KEY.namespace)


def test_from_the_resource_to_the_pods_and_back(operator: KubeCluster, served: ServedApi) -> None:
    create(operator, resource())
    until(lambda: is_ready(operator))
    now = operator.get("kmm2", KEY.name, KEY.namespace)
    assert not now["metadata"].get("finalizers")
    assert not left(operator), "nothing is kept in the resource"
    assert [item["name"] for item in now["status"]["connectors"]] == [CHECKPOINT, SOURCE]
    made = deployment(operator)
    assert made["spec"]["replicas"] == 2
    for kind, name in (
        ("service", "ours-mirrormaker2-api"),
        ("pdb", "ours-mirrormaker2"),
        ("networkpolicy", "ours-mirrormaker2"),
        ("serviceaccount", "ours-mirrormaker2"),
    ):
        assert operator.get(kind, name, KEY.namespace)["metadata"]["ownerReferences"][0]["name"] == KEY.name
    columns = operator.kubectl("get", "kmm2", "-n", KEY.namespace, "--no-headers").split()
    assert "True" in columns
    version = made["metadata"]["resourceVersion"]
    time.sleep(3)
    assert deployment(operator)["metadata"]["generation"] == 1, f"applied again and again since {version}"


def test_the_operators_own_token_gets_into_no_status(operator: KubeCluster, served: ServedApi, tmp_path: Path) -> None:
    """What the review did: a pattern that is none, made of references to files and variables of the operator."""
    token = "eyJhbGciOiJSUzI1NiJ9.of-the-operator"
    (tmp_path / "token").write_text(token)

    def leak(spec: dict[str, Any]) -> None:
        spec["target"]["config"] = {
            "config.providers": "d",
            "config.providers.d.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
        }
        spec["mirrors"][0]["topicsPattern"] = f"[${{d:{tmp_path}:token}}"
        spec["mirrors"][0]["groupsPattern"] = f"(${{strimzisecrets:{KEY.namespace}/mirror-user:password}}"

    create(operator, resource(leak))
    until(lambda: status(operator).get("observedGeneration"))
    until(
        lambda: (
            operator.get("configmap", "ours-mirrormaker2-config", KEY.namespace) or "NotReady" in conditions(operator)
        )
    )
    told = operator.kubectl("get", "kmm2,configmaps,deployments,events", "-n", KEY.namespace, "-o", "json")
    told += str(served.api.ask("GET", "/connectors?expand=info&expand=status"))
    assert token not in told
    assert "hush" not in told
    assert f"{tmp_path}:token" in told, "the reference is passed on to the pods"


def test_a_name_that_leads_elsewhere_is_refused(operator: KubeCluster, served: ServedApi) -> None:
    def lead(spec: dict[str, Any]) -> None:
        named = {"secretName": "../../kube-system/secrets/admin", "password": "password"}
        spec["target"]["authentication"]["passwordSecret"] = named

    create(operator, resource(lead))
    until(lambda: "NotReady" in conditions(operator))
    (condition,) = (item for item in status(operator)["conditions"] if item["type"] == "NotReady")
    assert "is no name of a Secret" in condition["message"]


def test_kubectl_scale(operator: KubeCluster, served: ServedApi) -> None:
    create(operator, resource())
    until(lambda: is_ready(operator))
    operator.kubectl("scale", "kmm2", KEY.name, "-n", KEY.namespace, "--replicas=3")
    until(lambda: deployment(operator)["spec"]["replicas"] == 3)
    until(lambda: status(operator)["replicas"] == 3)
    words = ("get", "kmm2", KEY.name, "-n", KEY.namespace, "--subresource=scale", "-o", "json")
    scale = json.loads(operator.kubectl(*words))
    assert scale["status"] == {
        "replicas": 3,
        "selector": "strimzi.io/cluster=ours,strimzi.io/name=ours-mirrormaker2,strimzi.io/kind=KafkaMirrorMaker2",
    }
    pods = json.loads(
        operator.kubectl("get", "pods", "-n", KEY.namespace, "-l", scale["status"]["selector"], "-o", "json")
    )
    assert len(pods["items"]) == 3
    operator.kubectl("scale", "kmm2", KEY.name, "-n", KEY.namespace, "--replicas=0")
    until(lambda: status(operator).get("replicas") == 0)
    until(lambda: "url" not in status(operator))


def test_the_older_version(operator: KubeCluster, served: ServedApi) -> None:
    if "v1beta2" not in operator.kubectl("get", "crd", "kafkamirrormaker2s.kafka.strimzi.io", "-o", "jsonpath={.spec}"):
        pytest.skip("the definition has no v1beta2")
    tree = resource()
    tree["apiVersion"] = "kafka.strimzi.io/v1beta2"
    tree["spec"] = {
        "replicas": 1,
        "connectCluster": "eu",
        "clusters": [
            {"alias": "us", "bootstrapServers": "us:9092"},
            {"alias": "eu", "bootstrapServers": "eu:9092"},
        ],
        "mirrors": [{"sourceCluster": "us", "targetCluster": "eu", "sourceConnector": {}, "topicsPattern": "orders"}],
    }
    create(operator, tree)
    until(lambda: is_ready(operator))
    assert set(served.api.worker.connectors) == {SOURCE}


def test_a_renewed_secret_takes_new_pods(operator: KubeCluster, served: ServedApi) -> None:
    create(operator, resource())
    until(lambda: is_ready(operator))
    before = deployment(operator)["metadata"]["generation"]
    operator.apply(secret(password="new"))
    until(lambda: deployment(operator)["metadata"]["generation"] > before)


def test_paused_and_gone_on(operator: KubeCluster, served: ServedApi) -> None:
    create(operator, resource())
    until(lambda: is_ready(operator))
    annotate(operator, "strimzi.io/pause-reconciliation=true")
    until(lambda: conditions(operator) == ["ReconciliationPaused"])
    patch(operator, {"replicas": 5})
    time.sleep(3)
    assert deployment(operator)["spec"]["replicas"] == 2
    annotate(operator, "strimzi.io/pause-reconciliation-")
    until(lambda: deployment(operator)["spec"]["replicas"] == 5)
    until(lambda: is_ready(operator))


def test_annotations_are_obeyed_and_removed(operator: KubeCluster, served: ServedApi) -> None:
    def stop(spec: dict[str, Any]) -> None:
        spec["mirrors"][0]["sourceConnector"] |= {
            "state": "stopped",
            "listOffsets": {"toConfigMap": {"name": "offsets"}},
            "alterOffsets": {"fromConfigMap": {"name": "offsets"}},
        }

    create(operator, resource(stop))
    until(lambda: is_ready(operator))
    served.api.worker.alter_offsets(SOURCE, [(PARTITION, {"offset": 41})])
    asked = f"strimzi.io/mirrormaker-connector={SOURCE}"
    annotate(operator, "strimzi.io/connector-offsets=list", asked)
    until(lambda: not left(operator))
    entry = "us--eu.MirrorSourceConnector.json"
    data = operator.get("configmap", "offsets", KEY.namespace)["data"]
    assert json.loads(data[entry]) == {"offsets": [OFFSET]}
    changed = json.dumps({"data": {entry: json.dumps({"offsets": [{**OFFSET, "offset": {"offset": 7}}]})}})
    operator.kubectl("patch", "configmap", "offsets", "-n", KEY.namespace, "--type=merge", "-p", changed)
    annotate(operator, "strimzi.io/connector-offsets=alter", asked)
    until(lambda: not left(operator))
    assert served.api.worker.offsets(SOURCE) == [(PARTITION, {"offset": 7})]
    annotate(operator, "strimzi.io/connector-offsets=reset", asked)
    until(lambda: not left(operator))
    assert served.api.worker.offsets(SOURCE) == []
    annotate(operator, f"strimzi.io/restart-connector={CHECKPOINT}")
    until(lambda: not left(operator))
    assert served.api.worker.restarted == [f"{CHECKPOINT} include_tasks=False only_failed=False"]
    annotate(operator, "strimzi.io/manual-rolling-update=true")
    until(lambda: not left(operator))
    assert "sparkmirror.io/rolled-at" in deployment(operator)["spec"]["template"]["metadata"]["annotations"]
    annotate(operator, "strimzi.io/restart-connector=nobody")
    until(lambda: conditions(operator) == ["Ready", "Warning"])
    assert left(operator) == {"strimzi.io/restart-connector"}


def test_what_is_wrong_and_then_put_right(operator: KubeCluster, served: ServedApi) -> None:
    create(operator, resource())
    until(lambda: is_ready(operator))
    mirrors = resource()["spec"]["mirrors"]
    patch(operator, {"mirrors": [{**mirrors[0], "source": {**mirrors[0]["source"], "alias": "eu"}}]})
    until(lambda: conditions(operator) == ["NotReady"])
    assert "must be two clusters" in status(operator)["conditions"][0]["message"]
    patch(operator, {"mirrors": mirrors})
    until(lambda: is_ready(operator))


def test_a_copied_resource_is_held(operator: KubeCluster, served: ServedApi) -> None:
    """One with the same group and topics, and another source: the first one's connectors stay as they are."""
    create(operator, resource())
    until(lambda: is_ready(operator))
    before = served.api.ask("GET", f"/connectors/{SOURCE}/config")
    time.sleep(1)  # times of creation have seconds
    copied = resource(lambda spec: spec["mirrors"][0]["source"].update(bootstrapServers="nowhere:9092"))
    copied["metadata"]["name"] = "copied"
    create(operator, copied)
    until(lambda: conditions(operator) == ["Ready", "Warning"])
    assert "KafkaMirrorMaker2 kafka/copied uses the same groupId" in status(operator)["conditions"][1]["message"]
    until(lambda: operator.get("kmm2", "copied", KEY.namespace).get("status"))
    (told,) = operator.get("kmm2", "copied", KEY.namespace)["status"]["conditions"]
    assert (told["type"], told["reason"]) == ("NotReady", "GroupShared")
    assert "KafkaMirrorMaker2 kafka/ours uses the same groupId" in told["message"]
    assert not operator.get("deployment", "copied-mirrormaker2", KEY.namespace)
    assert served.api.ask("GET", f"/connectors/{SOURCE}/config") == before
    operator.kubectl("delete", "kmm2", "ours", "-n", KEY.namespace)
    until(lambda: operator.get("deployment", "copied-mirrormaker2", KEY.namespace))
    operator.kubectl("delete", "kmm2", "copied", "-n", KEY.namespace)
    create(operator, resource())


def test_given_up_it_is_left_to_others(operator: KubeCluster, served: ServedApi) -> None:
    create(operator, resource())
    until(lambda: is_ready(operator))
    annotate(operator, f"{CLASS}-")
    until(lambda: not deployment(operator))


def test_without_the_annotation_nothing_happens(operator: KubeCluster, served: ServedApi) -> None:
    tree = resource()
    tree["metadata"]["annotations"] = {CLASS: "another"}
    create(operator, tree)
    time.sleep(4)
    assert not deployment(operator)
    assert not status(operator)


@contextmanager
def verb(cluster: KubeCluster, *more: str) -> Iterator[subprocess.Popen[str]]:
    """`sparkmirror operator` as a process of its own."""
    program = "from sparkmirror.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "operator", "--image", "sparkmirror:test", *more],
        env=os.environ | {"KUBECONFIG": cluster.kubeconfig},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_the_verb(cluster: KubeCluster) -> None:
    """As a process; nobody answers where pods would be."""
    cluster.apply(secret())
    create(cluster, resource())
    with verb(cluster, "-n", KEY.namespace, "-o", "json", "--log-format", "json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["namespaces"] == [KEY.namespace]
        until(lambda: [item.get("reason") for item in status(cluster).get("conditions") or ()] == [UNREACHABLE])
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        events = [json.loads(line).get("event") for line in errors.splitlines() if line.startswith("{")]
        assert "resource-not-ready" in events, errors
    cluster.kubectl("delete", "kmm2", "--all", "-n", KEY.namespace)


def test_secrets_of_others_take_no_memory(cluster: KubeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 MB of Helm's releases in another namespace, all namespaces watched: within the chart's limit."""
    monkeypatch.setenv("KUBECONFIG", cluster.kubeconfig)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "releases"}})
    api = KubeApi(cluster_access)
    release = secret("release", release="x" * 1_000_000) | {"type": "helm.sh/release.v1"}
    for number in range(300):
        metadata = {"name": f"sh.helm.release.v1.shop.v{number}", "namespace": "releases"}
        api.create(object_path("Secret", "releases"), {**release, "metadata": metadata})
    cluster.apply(secret())
    create(cluster, resource())
    values = yaml.safe_load((DEPLOY / "helm" / "sparkmirror-operator" / "values.yaml").read_text())
    limit_kib = int(values["resources"]["limits"]["memory"].removesuffix("Mi")) * 1024
    with verb(cluster) as process:
        until(lambda: status(cluster).get("observedGeneration"))
        first = cluster.get("secret", "sh.helm.release.v1.shop.v0", "releases")["metadata"]["resourceVersion"]
        cluster.kubectl("label", "secrets", "--all", "-n", "releases", "touched=yes")
        touched = cluster.get("secret", "sh.helm.release.v1.shop.v0", "releases")["metadata"]["resourceVersion"]
        assert touched != first
        peak_kib = int(re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())[0])
        print(f"operator: {peak_kib >> 10} MiB at most next to 300 MB of foreign Secrets")
        assert peak_kib < limit_kib / 2
    cluster.kubectl("delete", "kmm2", "--all", "-n", KEY.namespace)
    cluster.kubectl("delete", "namespace", "releases", "--wait=false")


def test_it_waits_for_strimzis_definition(cluster: KubeCluster) -> None:
    """It is alive without it, and begins when it is there."""
    cluster.kubectl("delete", "crd", "kafkamirrormaker2s.kafka.strimzi.io")
    (port,) = free_ports(1)
    with verb(cluster, "--health-port", str(port)) as process:
        until(lambda: answers(port, "/healthz") == "ok\n")
        cluster.define(crd())
        create(cluster, resource())
        until(lambda: status(cluster).get("observedGeneration"))
        until(
            lambda: (
                'sparkmirror_operator_resource_ready{namespace="kafka",name="ours",kind="KafkaMirrorMaker2"} 0'
                in answers(port, "/metrics")
            )
        )
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert errors.count("the operator looks for it again by itself") == 2, "one line for each kind"
    cluster.kubectl("delete", "kmm2", "--all", "-n", KEY.namespace)


def answers(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""
