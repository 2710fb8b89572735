"""The chart on a real node, in namespaces that enforce the restricted standard, under load: every record once.

Names are resolved and services routed as in any cluster. The tests continue where those before them ended.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.deploy.node.kube_node import KubeNode, wait_for
from tests.deploy.node.node_brokers import Brokers, Watched
from tests.deploy.node.node_release import MIRRORS, NAME, Release

pytestmark = pytest.mark.full

NAMESPACE = "mirror"
SURELY_S = 3.0
"""What is copied so long after a process has ended another one has copied."""
PARTITIONS = 2
LOAD_PER_S = 200
PAGE = Path(__file__).parents[3] / "docs" / "deploy" / "kubernetes.md"
VERIFIED_S = 240.0


@pytest.fixture(scope="module")
def release(
    node: KubeNode, clusters: Brokers, image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Release]:
    clusters.create_topic("orders", PARTITIONS)
    began = time.monotonic()
    with Release(node, NAMESPACE, "orders", tmp_path_factory.mktemp("release"), image) as made:
        made.set()
        made.wait_for_both()
        print(f"chart: one pod works, one stands by {time.monotonic() - began:.1f} s after helm install")
        yield made


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
        seen = node.kubectl("exec", "-n", NAMESPACE, pod, "--", "python3", "-c", looking, ok=False)
        assert "Read-only file system: '/written'" in seen
        words = ("exec", "-n", NAMESPACE, pod, "--", "python3", "-c", looking.partition(";")[0])
        status = dict(line.split(":\t", 1) for line in node.kubectl(*words).splitlines() if ":\t" in line)
        assert status["Uid"].split() == ["10001"] * 4
        assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        refused = node.kubectl("run", "bare", "--image=any", "-n", NAMESPACE, ok=False)
        assert "violates PodSecurity" in refused

    def test_the_working_pod_is_killed(self, release: Release, clusters: Brokers) -> None:
        with Watched(clusters, "orders", PARTITIONS) as copy:
            wait_for(lambda: copy.grown_since(0), 60, "records are copied")
            killed = kill(release.node, release.working())
            wait_for(lambda: copy.grown_since(killed + SURELY_S), 120, "records are copied again")
        print(f"chart: working pod killed, nothing copied for {copy.longest_pause_s():.1f} s")
        release.wait_for_both()

    def test_the_working_pod_is_evicted(self, release: Release, clusters: Brokers) -> None:
        """As a node that is drained does it: in order, so that another pod need not wait for the lease to end."""
        with Watched(clusters, "orders", PARTITIONS) as copy:
            wait_for(lambda: copy.grown_since(0), 60, "records are copied")
            working = release.working()
            (standing_by,) = release.roles().keys() - {working}
            evict(release, working)
            assert "disruption budget" in evict(release, standing_by, ok=False)
            wait_for(lambda: working not in release.roles(), 120, "the pod has ended")
            ended = time.monotonic()
            wait_for(lambda: copy.grown_since(ended + SURELY_S), 120, "records are copied again")
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
        print(release.test())
        after = image_ids(release)
        assert len(after) == len(before) == 1
        assert after != before


def test_every_record_is_there_once_and_in_order(release: Release, clusters: Brokers) -> None:
    clusters.wait_until_copied("orders", PARTITIONS)
    records = clusters.assert_copied("orders")
    print(f"chart: {records:,} records compared")
    assert records > LOAD_PER_S


def test_the_pages_job_of_verify(release: Release, image: str) -> None:
    (manifest,) = re.findall(r"^```yaml\n(apiVersion: batch/v1\n.*?)^```$", PAGE.read_text(), re.M | re.S)
    job = yaml.safe_load(manifest.replace("mirror-sparkmirror", f"{NAME}-sparkmirror"))
    job["metadata"]["namespace"] = NAMESPACE
    (container,) = job["spec"]["template"]["spec"]["containers"]
    container["image"] = image
    node = release.node
    node.apply(job)

    def ends() -> dict[str, int]:
        status = node.get("job", "verify", NAMESPACE).get("status", {})
        return {name: status[name] for name in ("succeeded", "failed") if status.get(name)}

    wait_for(lambda: bool(ends()), VERIFIED_S, "the Job has ended")
    log = node.kubectl("logs", "job/verify", "-n", NAMESPACE)
    assert ends() == {"succeeded": 1}, log
    assert re.search(r"^equal: [\d,]+ records are the same on both sides$", log, re.M), log


def kill(node: KubeNode, pod: str) -> float:
    """End its container as the kernel would, and delete it; returns when."""
    (status,) = node.get("pod", pod, NAMESPACE)["status"]["containerStatuses"]
    container = status["containerID"].removeprefix("containerd://")
    node.ctr("tasks", "kill", "--signal", "SIGKILL", container)
    when = time.monotonic()
    node.kubectl("delete", "pod", pod, "-n", NAMESPACE, "--grace-period=0", "--force")
    return when


def evict(release: Release, pod: str, *, ok: bool = True) -> str:
    """Ask as `kubectl drain` does; returns the API's answer."""
    metadata = {"name": pod, "namespace": release.namespace}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = f"/api/v1/namespaces/{release.namespace}/pods/{pod}/eviction"
    return release.node.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(eviction), ok=ok)


def image_ids(release: Release) -> set[str]:
    pods = release.node.pods(NAMESPACE, MIRRORS)
    return {status["imageID"] for pod in pods for status in pod["status"]["containerStatuses"]}
