"""One operator and many resources, on nodes that kwok plays: real scheduling and drains, but no pod really runs."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.deploy.kube_cluster import KubeCluster, crd, kube_cluster
from tests.deploy.node.kube_node import wait_for
from tests.deploy.running_operator import running_operator
from tests.support.operated import KEY, resource
from tests.support.served_api import served_api

from sparkmirror.operator.controller import CALM_S

pytestmark = pytest.mark.full

NODES, RESOURCES, REPLICAS = 12, 40, 3
WITHIN_S = 300.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    with kube_cluster(tmp_path_factory.mktemp("kube"), nodes=NODES) as running:
        running.define(crd())
        running.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": KEY.namespace}})
        yield running


@pytest.fixture
def operator(cluster: KubeCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubeCluster]:
    """An operator as it runs; the one REST interface, served here, is that of all resources."""
    monkeypatch.setenv("KUBECONFIG", cluster.kubeconfig)
    with served_api() as served, running_operator(cluster, served):
        yield cluster


def test_forty_resources(operator: KubeCluster) -> None:
    began = time.monotonic()
    operator.apply(*(numbered(number) for number in range(RESOURCES)))
    wait_for(lambda: ready(operator) == RESOURCES, WITHIN_S, "all resources are ready")
    print(
        f"operator: {RESOURCES} resources with {REPLICAS} pods each were ready after {time.monotonic() - began:.1f} s"
    )
    wait_for(lambda: len(running(operator)) == RESOURCES * REPLICAS, WITHIN_S, "all pods run")
    crowded = [key for key, pods in Counter((owner(pod), node(pod)) for pod in running(operator)).items() if pods > 1]
    assert not crowded, "pods of one mirror are on different nodes"

    wait_for(lambda: stays_as_it_is(operator), WITHIN_S, "nothing is written while nothing changes")

    drained = node(running(operator)[0])
    began = time.monotonic()
    operator.kubectl("drain", drained, "--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={WITHIN_S:.0f}s")
    wait_for(lambda: len(running(operator)) == RESOURCES * REPLICAS, WITHIN_S, "the drained node's pods run elsewhere")
    print(f"operator: a node was drained within {time.monotonic() - began:.1f} s, one pod of each mirror at a time")
    assert drained not in {node(pod) for pod in running(operator)}
    wait_for(lambda: ready(operator) == RESOURCES, WITHIN_S, "all resources are ready")

    began = time.monotonic()
    operator.kubectl("delete", "kmm2", "--all", "-n", KEY.namespace)
    wait_for(lambda: not items(operator, "pods"), WITHIN_S, "all pods are gone")
    assert not items(operator, "deployments")
    print(f"operator: all was gone {time.monotonic() - began:.1f} s after its resources were deleted")


def numbered(number: int) -> dict[str, Any]:
    def change(spec: dict[str, Any]) -> None:
        spec["replicas"] = REPLICAS
        spec["target"] |= {name: f"ours-{number}-{name}" for name in spec["target"] if name.endswith(("Topic", "Id"))}
        spec["target"]["bootstrapServers"] = f"eu-{number}:9092"
        spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
        labels = {"matchLabels": {"strimzi.io/cluster": f"ours-{number}"}}
        spec["template"] = {"pod": {"topologySpreadConstraints": [{**spread, "labelSelector": labels}]}}

    tree = resource(change)
    tree["metadata"] = {**tree["metadata"], "name": f"ours-{number}"}
    del tree["metadata"]["uid"], tree["metadata"]["generation"]
    return tree


def items(cluster: KubeCluster, kind: str) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = json.loads(cluster.kubectl("get", kind, "-n", KEY.namespace, "-o", "json"))["items"]
    return read


def stays_as_it_is(cluster: KubeCluster) -> bool:
    """True if the operator writes nothing for as long as it takes turns of all resources."""
    versions = {kind: written(cluster, kind) for kind in ("kmm2", "deployments", "configmaps", "services")}
    time.sleep(CALM_S + 5)
    return {kind: written(cluster, kind) for kind in versions} == versions


def written(cluster: KubeCluster, kind: str) -> dict[str, str]:
    """The version of each object: another one after each write."""
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items(cluster, kind)}


def ready(cluster: KubeCluster) -> int:
    """Resources whose status says so of their present generation."""
    return sum(
        (status := item.get("status") or {}).get("observedGeneration") == item["metadata"]["generation"]
        and [condition["type"] for condition in status.get("conditions") or ()] == ["Ready"]
        for item in items(cluster, "kmm2")
    )


def running(cluster: KubeCluster) -> list[dict[str, Any]]:
    return [
        pod
        for pod in items(cluster, "pods")
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]


def owner(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["labels"]["strimzi.io/cluster"])


def node(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["nodeName"])
