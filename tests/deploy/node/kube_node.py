"""A real node of Kubernetes: kubelet, containerd, kube-proxy and CoreDNS next to a control plane, in a sandbox.

Nothing enforces NetworkPolicies there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.container_images import PAUSE, pause_image
from tests.deploy.kube_build import coredns, kubernetes
from tests.deploy.kube_cluster import KubeCluster, control_plane
from tests.deploy.podman import podman
from tests.deploy.sandbox import Sandbox, sandbox

ADDRESS = "10.243.0.1"
PODS = "10.244.0.0/24"
PLUGINS = Path("/usr/lib/cni")
NAME = "localhost"
"""Of the node: the API server finds the kubelet by it."""
START_S = 120.0
IMPORT_S = 600.0

_PACKAGES = ("containerd", "containernetworking-plugins", "conntrack", "iptables", "iproute2")
_PROGRAMS = ("containerd", "ctr", "runc", "conntrack", "iptables", "ip", "nsenter", "unshare")
_LEFT_BEHIND = ("/run/containerd", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers")
"""Directories that no setting of theirs moves."""
_HIERARCHIES = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class KubeNode(KubeCluster):
    """Its pods run; ask from `place`, where their network is."""

    place: Sandbox

    @property
    def containerd(self) -> Path:
        """Its socket."""
        return self.directory / "containerd.sock"

    def ctr(self, *words: str, timeout: float = 60.0) -> str:
        """Containerd's own client, in what is Kubernetes'."""
        client = ("ctr", "--address", str(self.containerd), "--namespace", "k8s.io")
        return self.place.run(*client, *words, timeout=timeout, environment=os.environ)

    def import_images(self, *images: str) -> None:
        """From podman's storage."""
        archive = self.directory / "images.tar"
        podman("save", "--quiet", "--multi-image-archive", "--output", str(archive), *images, timeout=IMPORT_S)
        self.ctr("images", "import", str(archive), timeout=IMPORT_S)
        archive.unlink()

    def create_namespace(self, name: str) -> None:
        """One that enforces the restricted standard."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})

    def pods(self, namespace: str, labels: str = "") -> list[dict[str, Any]]:
        """Those that are not about to end."""
        words = ("get", "pods", "-n", namespace, "-l", labels, "-o", "json")
        read: list[dict[str, Any]] = json.loads(self.kubectl(*words))["items"]
        return [pod for pod in read if "deletionTimestamp" not in pod["metadata"]]


def wait_for(true: Callable[[], bool], within_s: float, what: str) -> None:
    """Ask once a second: kubectl costs more than what is waited for."""
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, f"not within {within_s:.0f} s: {what}"
        time.sleep(1)


def is_ready(thing: dict[str, Any]) -> bool:
    """Of a pod or a node."""
    conditions = thing.get("status", {}).get("conditions") or ()
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


@contextmanager
def kube_node(directory: Path) -> Iterator[KubeNode]:
    """Start one; at its end nothing of it is left but logs and what is written in them."""
    _install()
    programs, names, pause = kubernetes(), coredns(), pause_image()
    try:
        with sandbox() as place:
            place.hide(*_LEFT_BEHIND)
            _network(place)
            kubelet, runtime = _write_files(directory)

            def run(program: Path, *flags: str) -> None:
                place.start(directory / f"{program.name}.log", program, *flags)

            run(Path("containerd"), "--config", str(runtime))
            served_as = (f"--advertise-address={ADDRESS}", "--kubelet-preferred-address-types=Hostname")
            cluster = control_plane(directory, ADDRESS, run, served_as, place.enter)
            node = KubeNode(directory, cluster.server, cluster.enter, place)
            node.import_images(pause)
            told = f"--kubeconfig={node.kubeconfig}"
            run(
                programs / "kube-scheduler",
                told,
                "--leader-elect=false",
                "--bind-address=127.0.0.1",
                f"--cert-dir={directory / 'scheduler'}",
            )
            run(
                programs / "kubelet",
                told,
                f"--config={kubelet}",
                f"--root-dir={directory / 'kubelet'}",
                f"--cert-dir={directory / 'kubelet-certs'}",
                f"--hostname-override={NAME}",
                f"--node-ip={ADDRESS}",
            )
            _wait(node, lambda: is_ready(node.get("node", NAME, "default")), "the node is ready")
            run(
                programs / "kube-proxy",
                told,
                f"--hostname-override={NAME}",
                f"--cluster-cidr={PODS}",
                "--proxy-mode=iptables",
                "--conntrack-max-per-core=0",
                "--conntrack-tcp-timeout-established=0",
                "--conntrack-tcp-timeout-close-wait=0",
            )
            run(names, "-conf", str(_names_file(node)))
            yield node
    finally:
        for made in ("containerd", "kubelet", "etcd", "run"):
            shutil.rmtree(directory / made, ignore_errors=True)
        _remove_groups()


def _install() -> None:
    if all(map(shutil.which, _PROGRAMS)) and (PLUGINS / "ptp").exists():
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip(f"a node needs containerd, and only root can install it: apt-get install {' '.join(_PACKAGES)}")
    subprocess.run(["apt-get", "-qq", "update"], capture_output=True, timeout=300, check=False)
    done = subprocess.run(
        ["apt-get", "-qq", "-y", "--no-install-recommends", "install", *_PACKAGES],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"containerd can't be installed: {done.stderr[-500:]}")


def _network(place: Sandbox) -> None:
    """An address of the node that no pod has, and a way to services from the node itself."""
    commands = (
        "ip link add node type bridge",
        f"ip address add {ADDRESS}/32 dev node",
        "ip link set node up",
        "ip route add default dev node",
        "sysctl -qw net.ipv4.ip_forward=1",
    )
    for command in commands:
        place.run(*command.split(), timeout=30, environment=os.environ)


def _write_files(directory: Path) -> tuple[Path, Path]:
    """The kubelet's file and containerd's."""
    plugins = directory / "cni"
    plugins.mkdir()
    addresses = {"type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}]}
    # Each pod's packets are routed by the node, also those to a neighbour: a service's answers come from the service
    network = {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [{"type": "ptp", "ipMasq": False, "ipam": {**addresses, "dataDir": str(directory / "addresses")}}],
    }
    (plugins / "pods.conflist").write_text(json.dumps(network))
    (directory / "resolv.conf").write_text("")
    socket = directory / "containerd.sock"
    runtime = directory / "containerd.toml"
    runtime.write_text(
        f"""\
version = 2
root = "{directory / "containerd"}"
state = "{directory / "run"}"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{PLUGINS}"
    conf_dir = "{plugins}"
"""
    )
    settings = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "localStorageCapacityIsolation": False,
        "makeIPTablesUtilChains": False,
        "podLogsDir": str(directory / "pods"),
        "clusterDNS": [ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": str(directory / "resolv.conf"),
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi"},
    }
    kubelet = directory / "kubelet.yaml"
    kubelet.write_text(yaml.safe_dump(settings))
    return kubelet, runtime


def _names_file(node: KubeNode) -> Path:
    """What CoreDNS answers: the names of the cluster, and nothing else."""
    file = node.directory / "Corefile"
    file.write_text(
        f"""\
.:53 {{
    errors
    kubernetes cluster.local {{
        kubeconfig {node.kubeconfig}
    }}
}}
"""
    )
    return file


def _wait(node: KubeNode, true: Any, what: str) -> None:
    deadline = time.monotonic() + START_S
    while not true():
        assert not node.place.ended(), f"ended: {node.place.ended()}; see {node.directory}"
        assert time.monotonic() < deadline, f"not within {START_S:.0f} s: {what}; see {node.directory}"
        time.sleep(0.3)


def _remove_groups() -> None:
    """Control groups that containers have left: those that still have processes can't be removed."""
    for group in (*_HIERARCHIES.glob("*/k8s.io/*/"), *_HIERARCHIES.glob("*/k8s.io/"), *_HIERARCHIES.glob("k8s.io/**/")):
        with suppress(OSError):
            group.rmdir()
