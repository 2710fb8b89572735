"""A real node by itself: a pod under the restricted standard, names, a service, and nothing that is left."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.deploy.container_images import PAUSE
from tests.deploy.kube_node import ADDRESS, KubeNode, is_ready, kube_node, wait_for

pytestmark = pytest.mark.full

NAMESPACE = "alone"
API = "10.96.0.1"
"""The first address of services."""
READY_S = 120.0


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeNode]:
    with kube_node(tmp_path_factory.mktemp("node")) as running:
        restricted = {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
        running.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": restricted})
        yield running
    assert not list(Path("/sys/fs/cgroup").glob("*/k8s.io/*")), "control groups are left"


def test_a_pod_without_rights_runs_and_another_one_is_refused(node: KubeNode) -> None:
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "pause", "image": PAUSE, "imagePullPolicy": "Never", "securityContext": security}
    restricted = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"automountServiceAccountToken": False, "securityContext": restricted, "containers": [container]}
    node.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "quiet", "namespace": NAMESPACE}, "spec": spec})
    wait_for(lambda: is_ready(node.get("pod", "quiet", NAMESPACE)), READY_S, "the pod is ready")
    assert "violates PodSecurity" in node.kubectl("run", "bare", "--image=any", "-n", NAMESPACE, ok=False)


def test_the_service_of_the_api_is_found_and_routed(node: KubeNode) -> None:
    assert node.place.ask(lambda: address_of("kubernetes.default.svc.cluster.local")) == API
    assert "v1.36" in node.kubectl(f"--server=https://{API}", "get", "--raw", "/version")


def address_of(name: str) -> str:
    """What the cluster's names server says."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    asked = struct.pack(">6H", 1, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(10)
        asking.sendto(asked, (ADDRESS, 53))
        return socket.inet_ntoa(asking.recv(512)[-4:])
