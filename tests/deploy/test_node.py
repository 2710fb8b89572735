"""The charts on a real node, in namespaces that enforce the restricted standard, under load: every record once.

Names are resolved and services routed as in any cluster. The tests go on where those before them ended.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from operated import KEY, resource
from tests.deploy.container_images import KAFKA, kafka_image, relabelled, sparkmirror_image
from tests.deploy.kube_cluster import crd
from tests.deploy.kube_node import KubeNode, is_ready, kube_node, wait_for
from tests.deploy.node_brokers import Brokers, Watched, brokers
from tests.deploy.node_release import CHARTS, MIRROR, MIRRORS, READY_S, WAITING, Release, run_helm

pytestmark = pytest.mark.full

CLUSTERS = KEY.namespace
OPERATOR = "sparkmirror-operator"
"""Its release and its namespace."""
EXECUTORS = "spark-role=executor"
SURELY_S = 3.0
"""What is copied so long after a process has ended another one has copied."""
PARTITIONS = 2
LOAD_PER_S = 200
SERVED = f"strimzi.io/cluster={KEY.name}"
SOURCE = "primary->backup.MirrorSourceConnector"
BACKLOG, RECORD_BYTES = 100_000, 1000


@pytest.fixture(scope="module")
def image() -> str:
    return sparkmirror_image()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, image: str) -> Iterator[KubeNode]:
    began = time.monotonic()
    with kube_node(tmp_path_factory.mktemp("node")) as running:
        print(f"node: ready {time.monotonic() - began:.1f} s after it was begun")
        began = time.monotonic()
        running.import_images(image, relabelled(image, "next"), kafka_image(image))
        print(f"node: images imported in {time.monotonic() - began:.1f} s")
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        for name in (CLUSTERS, MIRROR, OPERATOR):
            metadata = {"name": name, "labels": restricted}
            running.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        yield running


@pytest.fixture(scope="module")
def clusters(node: KubeNode) -> Iterator[Brokers]:
    with brokers(node, KAFKA, CLUSTERS) as made:
        yield made


@pytest.fixture(scope="module")
def release(node: KubeNode, clusters: Brokers, image: str, tmp_path_factory: pytest.TempPathFactory) -> Release:
    for topic in ("orders", "history"):
        clusters.create_topic(topic, PARTITIONS)
    began = time.monotonic()
    made = Release(node, tmp_path_factory.mktemp("release"), image)
    made.set()
    made.wait_for_both()
    print(f"chart: one pod works, one stands by {time.monotonic() - began:.1f} s after helm install")
    return made


@pytest.fixture(scope="class")
def load(release: Release, clusters: Brokers) -> Iterator[None]:
    with clusters.load("orders", PARTITIONS, per_s=LOAD_PER_S):
        yield


@pytest.mark.usefixtures("load")
class TestUnderLoad:
    """One release, while its topic is written to all the time."""

    def test_its_pods_have_no_rights(self, release: Release) -> None:
        looking = "print(open('/proc/1/status').read()); open('/written', 'w')"
        node, pod = release.node, release.working()
        seen = node.kubectl("exec", "-n", MIRROR, pod, "--", "python3", "-c", looking, ok=False)
        assert "Read-only file system: '/written'" in seen
        words = ("exec", "-n", MIRROR, pod, "--", "python3", "-c", looking.partition(";")[0])
        status = dict(line.split(":\t", 1) for line in node.kubectl(*words).splitlines() if ":\t" in line)
        assert status["Uid"].split() == ["10001"] * 4
        assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        refused = node.kubectl("run", "bare", "--image=any", "-n", MIRROR, ok=False)
        assert "violates PodSecurity" in refused

    def test_helms_own_test(self, release: Release) -> None:
        said = run_helm(release.node, MIRROR, "test", "shop", "--logs")
        assert "Phase:          Succeeded" in said
        assert "/ready 200\n/health 200\n/metrics 200" in said

    def test_the_working_pod_is_killed(self, release: Release, clusters: Brokers) -> None:
        with Watched(clusters, "orders", PARTITIONS) as copy:
            wait_for(lambda: copy.grown_since(0), 60, "records are copied")
            killed = kill(release.node, release.working())
            wait_for(lambda: copy.grown_since(killed + SURELY_S), 120, "records are copied again")
        print(f"chart: working pod killed, nothing copied for {copy.longest_pause_s():.1f} s")
        release.wait_for_both()

    def test_its_pods_are_evicted(self, release: Release, clusters: Brokers) -> None:
        """As a node is drained: the one that works, and not the other one until there are two again."""
        with Watched(clusters, "orders", PARTITIONS) as copy:
            wait_for(lambda: copy.grown_since(0), 60, "records are copied")
            working, standing = sorted(release.roles(), key=release.roles().__getitem__)
            release.evict(working)
            gone = time.monotonic()
            assert "violate the pod's disruption budget" in release.evict(standing, ok=False)
            wait_for(lambda: copy.grown_since(gone + SURELY_S), 120, "records are copied again")
        print(f"chart: working pod evicted, nothing copied for {copy.longest_pause_s():.1f} s")
        release.wait_for_both()

    def test_another_image(self, release: Release, clusters: Brokers) -> None:
        before = image_ids(release)
        with Watched(clusters, "orders", PARTITIONS) as copy:
            began = time.monotonic()
            release.set(image={"tag": "next"})
            took = time.monotonic() - began
            release.wait_for_both()
            wait_for(lambda: copy.grown_since(began + took), 120, "records are copied again")
        print(f"chart: new image in {took:.1f} s, nothing copied for {copy.longest_pause_s():.1f} s at most")
        after = image_ids(release)
        assert len(after) == len(before) == 1
        assert after != before

    def test_executors_as_pods(self, release: Release, clusters: Brokers) -> None:
        settings = {"spark.kubernetes.executor.request.cores": "0.1", "spark.kubernetes.executor.limit.cores": "0.4"}
        for executors in (1, 3):
            release.set(spark={"executors": executors, "settings": settings})
            release.wait_for_both()
            release.wait_for_slots(executors)
            pods = [pod for pod in release.node.pods(MIRROR, EXECUTORS) if is_ready(pod)]
            assert len(pods) == executors
            took = drained_s(release, clusters)
            print(f"chart: {executors} executors: {BACKLOG / took:,.0f} records/s, {BACKLOG * 1e-3 / took:.1f} MB/s")


def test_every_record_is_there_once_and_in_order(release: Release, clusters: Brokers) -> None:
    for topic, at_least in (("orders", 1000), ("history", 2 * BACKLOG)):
        clusters.wait_until_copied(topic, PARTITIONS)
        records = clusters.assert_copied(topic)
        assert records >= at_least
        print(f"chart: {topic}: {records:,} records compared")


def test_it_is_removed(release: Release) -> None:
    run_helm(release.node, MIRROR, "uninstall", "shop", "--wait")
    asking = ("get", "pods,services,configmaps,deployments,roles", "-n", MIRROR, "-o", "name")
    wait_for(lambda: release.node.kubectl(*asking).split() == ["configmap/kube-root-ca.crt"], 120, "all is gone")


def kill(node: KubeNode, pod: str) -> float:
    """End its container as the kernel would, and delete it; returns when."""
    (status,) = node.get("pod", pod, MIRROR)["status"]["containerStatuses"]
    container = status["containerID"].removeprefix("containerd://")
    node.ctr("tasks", "kill", "--signal", "SIGKILL", container)
    when = time.monotonic()
    node.kubectl("delete", "pod", pod, "-n", MIRROR, "--grace-period=0", "--force")
    return when


def image_ids(release: Release) -> set[str]:
    pods = release.node.pods(MIRROR, MIRRORS)
    return {status["imageID"] for pod in pods for status in pod["status"]["containerStatuses"]}


def drained_s(release: Release, clusters: Brokers) -> float:
    """How long a backlog takes, that was written while its topic was paused."""
    release.sparkmirror("pause", "--topics", "history")
    clusters.produce("history", PARTITIONS, BACKLOG, RECORD_BYTES)
    release.sparkmirror("resume", "--topics", "history")
    began = time.monotonic()
    clusters.wait_until_copied("history", PARTITIONS)
    return time.monotonic() - began


# --- the operator ---------------------------------------------------------------------------------------


class Operated:
    """The resource `ours`, and what the operator's pod makes of it."""

    def __init__(self, node: KubeNode, load: ExitStack) -> None:
        self.node = node
        self.load = load
        """To be closed when enough has been written."""

    def kubectl(self, verb: str, *words: str) -> str:
        return self.node.kubectl(verb, "kmm2", KEY.name, "-n", KEY.namespace, *words)

    def conditions(self) -> list[str]:
        status = self.node.get("kmm2", KEY.name, KEY.namespace).get("status") or {}
        return [item["type"] for item in status.get("conditions") or ()]

    def wait_until_ready(self) -> None:
        """With as many pods as it says."""

        def is_so() -> bool:
            now = self.node.get("kmm2", KEY.name, KEY.namespace)
            pods = [pod for pod in self.node.pods(KEY.namespace, SERVED) if is_ready(pod)]
            known = (now.get("status") or {}).get("observedGeneration") == now["metadata"]["generation"]
            return known and self.conditions() == ["Ready"] and len(pods) == now["spec"]["replicas"]

        wait_for(is_so, READY_S, "the resource is ready, and its pods")


@pytest.fixture(scope="module")
def operated(node: KubeNode, clusters: Brokers, image: str) -> Iterator[Operated]:
    def ours(spec: dict[str, Any]) -> None:
        del spec["target"]["authentication"]
        spec["target"] |= {"alias": "backup", "bootstrapServers": "backup.kafka:9092"}
        spec["target"]["config"] = {f"{kind}.storage.replication.factor": 1 for kind in ("config", "offset", "status")}
        one = {"replication.factor": 1, "offset-syncs.topic.replication.factor": 1}
        checkpoints = {"checkpoints.topic.replication.factor": 1}
        spec["mirrors"][0] |= {
            "source": {"alias": "primary", "bootstrapServers": "primary.kafka:9092"},
            "sourceConnector": {"tasksMax": 2, "config": one},
            "checkpointConnector": {"config": checkpoints},
            "topicsPattern": "payments",
        }

    node.define(crd())
    repository, _, tag = image.rpartition(":")
    told = ("--set", f"image.repository={repository}", "--set-string", f"image.tag={tag}", *WAITING)
    run_helm(node, OPERATOR, "install", OPERATOR, str(CHARTS / OPERATOR), *told)
    clusters.create_topic("payments", PARTITIONS)
    tree = resource(ours)
    metadata = {name: tree["metadata"][name] for name in ("name", "namespace", "annotations")}
    with ExitStack() as load:
        load.enter_context(clusters.load("payments", PARTITIONS, per_s=LOAD_PER_S))
        began = time.monotonic()
        node.apply({**tree, "metadata": metadata})
        made = Operated(node, load)
        made.wait_until_ready()
        print(f"operator: the resource is ready {time.monotonic() - began:.1f} s after it was made")
        yield made


class TestOperator:
    """As a pod of its chart, with one resource under load."""

    def test_its_rest_interface_is_where_the_status_says(self, operated: Operated) -> None:
        url = operated.kubectl("get", "-o", "jsonpath={.status.url}")
        pod = operated.node.pods(KEY.namespace, SERVED)[0]["metadata"]["name"]
        asking = f"import urllib.request; print(urllib.request.urlopen('{url}/connectors').read().decode())"
        said = operated.node.kubectl("exec", "-n", KEY.namespace, pod, "--", "python3", "-c", asking)
        assert SOURCE in json.loads(said)

    def test_it_is_scaled(self, operated: Operated) -> None:
        for replicas in (3, 1):
            began = time.monotonic()
            operated.kubectl("scale", f"--replicas={replicas}")
            operated.wait_until_ready()
            print(f"operator: {replicas} pods, ready after {time.monotonic() - began:.1f} s")

    def test_it_is_paused(self, operated: Operated) -> None:
        operated.kubectl("annotate", "strimzi.io/pause-reconciliation=true")
        wait_for(lambda: operated.conditions() == ["ReconciliationPaused"], 60, "paused")
        operated.kubectl("scale", "--replicas=2")
        time.sleep(3)
        assert len(operated.node.pods(KEY.namespace, SERVED)) == 1
        operated.kubectl("annotate", "strimzi.io/pause-reconciliation-")
        operated.wait_until_ready()

    def test_a_connector_is_restarted(self, operated: Operated) -> None:
        operated.kubectl("annotate", f"strimzi.io/restart-connector={SOURCE}")
        left = ("get", "-o", "jsonpath={.metadata.annotations}")
        wait_for(lambda: "restart-connector" not in operated.kubectl(*left), 60, "obeyed")
        operated.wait_until_ready()

    def test_all_is_copied_and_removed_with_it(self, operated: Operated, clusters: Brokers) -> None:
        kinds = "deployments,services,configmaps,networkpolicies,poddisruptionbudgets,serviceaccounts"
        asking = ("get", kinds, "-n", KEY.namespace, "-o", "name")
        operated.load.close()
        clusters.wait_until_copied("payments", PARTITIONS)
        print(f"operator: {clusters.assert_copied('payments'):,} records compared")
        operated.kubectl("delete")
        wait_for(lambda: "ours" not in operated.node.kubectl(*asking), 60, "nothing is left but topics")
        wait_for(lambda: not operated.node.pods(KEY.namespace, SERVED), 120, "no pod is left")
