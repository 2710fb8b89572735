"""The operator as a pod of its chart, and a KafkaMirrorMaker2 that it runs as pods, from the resource to records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.deploy.kube_cluster import crd
from tests.deploy.node.kube_node import KubeNode, is_ready, wait_for
from tests.deploy.node.node_brokers import Brokers
from tests.deploy.node.node_release import CHARTS, WAITING, run_helm
from tests.support import mirror_process as mp
from tests.support.operated import resource

pytestmark = pytest.mark.full

OPERATOR, OPERATED = "operator", "operated"
SOURCE, CHECKPOINT = "primary->backup.MirrorSourceConnector", "primary->backup.MirrorCheckpointConnector"
TOPIC = "bills"
PARTITIONS, RECORDS, MORE = 2, 2_000, 1_000
TURN_S = 240.0
PODS = "strimzi.io/cluster=ours"


@pytest.fixture(scope="module")
def operator(node: KubeNode, image: str) -> Iterator[KubeNode]:
    for name in (OPERATOR, OPERATED):
        node.create_namespace(name)
    node.define(crd())
    repository, _, tag = image.rpartition(":")
    values = ("--set", f"image.repository={repository},image.tag={tag},watchNamespaces={{{OPERATED}}}")
    chart = str(CHARTS / "sparkmirror-operator")
    run_helm(node, OPERATOR, "upgrade", "--install", "watcher", chart, *values, *WAITING)
    yield node
    node.kubectl("delete", "kmm2", "--all", "-n", OPERATED)
    run_helm(node, OPERATOR, "uninstall", "watcher", *WAITING)


def test_from_the_resource_to_records(operator: KubeNode, clusters: Brokers) -> None:
    clusters.create_topic(TOPIC, PARTITIONS)
    operator.place.ask(lambda: mp.produce(clusters.primary, TOPIC, PARTITIONS, RECORDS))
    tree = resource(spec)
    tree["metadata"] = {"name": "ours", "namespace": OPERATED, "annotations": tree["metadata"]["annotations"]}
    operator.apply(tree)
    wait_for(lambda: is_ready(read(operator)), TURN_S, "the resource is ready")
    assert [item["name"] for item in read(operator)["status"]["connectors"]] == [CHECKPOINT, SOURCE]
    clusters.wait_until_copied(TOPIC, PARTITIONS)

    operator.kubectl("scale", "kmm2", "ours", "-n", OPERATED, "--replicas=2")
    wait_for(lambda: len(ready(operator)) == 2, TURN_S, "one pod works and one stands by")
    before = ready(operator)
    annotate(operator, "strimzi.io/manual-rolling-update=true")
    wait_for(lambda: len(ready(operator)) == 2 and not ready(operator) & before, TURN_S, "both pods are new")
    wait_for(lambda: is_ready(read(operator)), TURN_S, "the resource is ready again")
    operator.place.ask(lambda: mp.produce(clusters.primary, TOPIC, PARTITIONS, MORE))
    clusters.wait_until_copied(TOPIC, PARTITIONS)

    said = operator.kubectl("logs", "-n", OPERATOR, "deployment/watcher-sparkmirror-operator")
    assert "orbidden" not in said, "it asks for nothing that its Roles do not allow"

    connector = read(operator)["spec"]["mirrors"][0]
    connector["sourceConnector"]["state"] = "stopped"
    patch = json.dumps({"spec": {"mirrors": [connector]}})
    operator.kubectl("patch", "kmm2", "ours", "-n", OPERATED, "--type=merge", "-p", patch)
    wait_for(lambda: state(operator) == "STOPPED", TURN_S, "the connector has stopped")
    annotate(operator, "strimzi.io/connector-offsets=list", f"strimzi.io/mirrormaker-connector={SOURCE}")
    wait_for(lambda: bool(operator.get("configmap", "offsets", OPERATED)), TURN_S, "offsets are listed")
    (listed,) = operator.get("configmap", "offsets", OPERATED)["data"].values()
    offsets = {
        (item["partition"]["topic"], item["partition"]["partition"]): item["offset"]["offset"]
        for item in json.loads(listed)["offsets"]
    }
    # Mirrors of other tests may have left heartbeats at the source, which are copied, too.
    assert {topic for topic, _ in offsets} <= {TOPIC, "heartbeats"}
    last = (RECORDS + MORE) // PARTITIONS - 1
    assert [offsets.get((TOPIC, partition)) for partition in range(PARTITIONS)] == [last] * PARTITIONS

    operator.kubectl("delete", "kmm2", "ours", "-n", OPERATED)
    wait_for(lambda: not operator.pods(OPERATED, PODS), TURN_S, "its pods are gone")
    assert clusters.assert_copied(TOPIC) == RECORDS + MORE


def spec(given: dict[str, Any]) -> None:
    """A resource between the node's two clusters, with as little CPU as they leave."""
    one_replica = {"replication.factor": 1, "offset-syncs.topic.replication.factor": 1}
    given["replicas"] = 1
    target, mirror = given["target"], given["mirrors"][0]
    del target["authentication"]
    target["alias"] = "backup"
    target["bootstrapServers"] = "backup.kafka:9092"
    target["config"] = {f"{kind}.storage.replication.factor": 1 for kind in ("config", "offset", "status")}
    mirror["source"] = {"alias": "primary", "bootstrapServers": "primary.kafka:9092"}
    mirror["topicsPattern"] = TOPIC
    mirror["sourceConnector"] |= {"config": one_replica, "listOffsets": {"toConfigMap": {"name": "offsets"}}}
    mirror["checkpointConnector"] = {"config": {"checkpoints.topic.replication.factor": 1}}
    given["resources"] = {"requests": {"cpu": "200m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}}


def read(node: KubeNode) -> dict[str, Any]:
    return node.get("kmm2", "ours", OPERATED)


def ready(node: KubeNode) -> set[str]:
    """Names of the mirror's pods that are ready."""
    return {pod["metadata"]["name"] for pod in node.pods(OPERATED, PODS) if is_ready(pod)}


def state(node: KubeNode) -> str:
    connectors = (read(node).get("status") or {}).get("connectors") or ()
    return str({item["name"]: item["connector"]["state"] for item in connectors}.get(SOURCE, ""))


def annotate(node: KubeNode, *annotations: str) -> None:
    node.kubectl("annotate", "kmm2", "ours", "-n", OPERATED, *annotations)
