"""A real Kubernetes on this machine's loopback: etcd, the API server, its controllers, and nodes that kwok plays."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml
from tests.deploy.kube_build import kubectl, kubernetes, kwok

from sparkmirror.demo.ports import free_ports

START_S = 120.0
MIRRORS = Path(__file__).parents[2] / "deploy" / "helm" / "sparkmirror-operator" / "files" / "mirrors.yaml"
SERVICES = "10.96.0.0/16"
_TOKEN = "admin-token"


@dataclass(frozen=True)
class KubeCluster:
    """Ask it by `kubectl`."""

    directory: Path
    server: str
    enter: tuple[str, ...]
    """The words before a command that is to reach the server."""

    @property
    def kubeconfig(self) -> str:
        """For whoever may do everything."""
        return str(self.directory / "kubeconfig")

    def kubectl(self, *words: str, given: str | None = None, ok: bool = True) -> str:
        """Run it; what it prints. With `ok` False what it complains about."""
        done = self._kubectl(*words, given=given)
        assert (done.returncode == 0) == ok, done.stderr or done.stdout
        return done.stdout if ok else done.stderr

    def answers(self) -> bool:
        """Whether the API server is ready. Its certificate, which kubectl needs, is made when it starts."""
        return self._kubectl("get", "--raw", "/readyz").returncode == 0

    def _kubectl(self, *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [*self.enter, kubectl(), "--kubeconfig", self.kubeconfig, *words]
        return subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        """Have these there."""
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=yaml.safe_dump_all(manifests))

    def define(self, *definitions: Mapping[str, Any]) -> None:
        """Have these kinds there, and served."""
        self.apply(*definitions)
        deadline = time.monotonic() + START_S
        names = {definition["metadata"]["name"] for definition in definitions}
        while names:
            for item in json.loads(self.kubectl("get", "crd", "-o", "json"))["items"]:
                conditions = (item.get("status") or {}).get("conditions") or ()
                if any((each["type"], each["status"]) == ("Established", "True") for each in conditions):
                    names.discard(item["metadata"]["name"])
            assert time.monotonic() < deadline, names
            time.sleep(0.2)

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any]:
        """One object; an empty dictionary if it is not there."""
        text = self.kubectl("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
        read: dict[str, Any] = json.loads(text) if text else {}
        return read


class Run(Protocol):
    """Starts a program in the background that runs until the cluster ends."""

    def __call__(self, program: Path, *flags: str) -> None: ...


@contextmanager
def kube_cluster(directory: Path, nodes: int = 0) -> Iterator[KubeCluster]:
    """Start one, with so many nodes that kwok plays, and stop it at the end."""
    with ExitStack() as opened:

        def run(program: Path, *flags: str) -> None:
            log = opened.enter_context((directory / f"{program.name}.log").open("w"))
            process = subprocess.Popen([program, *flags], stdout=log, stderr=log)
            opened.callback(_stop, process)

        # Of no machine; a loopback address is refused
        nowhere = ("--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none")
        cluster = control_plane(directory, "127.0.0.1", run, nowhere)
        if nodes:
            _play_nodes(cluster, run, nodes)
        yield cluster


def _play_nodes(cluster: KubeCluster, run: Run, count: int) -> None:
    """Have kwok play so many nodes, and a scheduler that gives them pods; nothing in a pod runs."""
    program, stages = kwok()
    told = f"--kubeconfig={cluster.kubeconfig}"
    (port,) = free_ports(1)
    run(
        kubernetes() / "kube-scheduler",
        told,
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={cluster.directory / 'scheduler'}",
    )
    for number in range(count):
        room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        labels = {"kubernetes.io/hostname": f"played-{number}"}
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": f"played-{number}", "labels": labels},
                "status": {"allocatable": room, "capacity": room},
            }
        )
    run(program, told, "--manage-all-nodes", f"--config={stages}", "--server-address=127.0.0.1:0")


def control_plane(
    directory: Path, address: str, run: Run, served_as: Sequence[str], enter: Sequence[str] = ()
) -> KubeCluster:
    """Start etcd, the API server at `address`, and the controllers; `enter` leads to where that address is."""
    programs = kubernetes()
    client, peer, port, secure = free_ports(4)
    cluster = KubeCluster(directory, f"https://{address}:{port}", tuple(enter))
    etcd = f"http://127.0.0.1:{client}"
    _write_files(cluster)
    run(
        programs / "etcd",
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={etcd}",
        f"--advertise-client-urls={etcd}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    )
    run(
        programs / "kube-apiserver",
        f"--etcd-servers={etcd}",
        f"--bind-address={address}",
        f"--secure-port={port}",
        f"--cert-dir={directory / 'certs'}",
        f"--service-account-key-file={directory / 'sa.key'}",
        f"--service-account-signing-key-file={directory / 'sa.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--token-auth-file={directory / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        f"--service-cluster-ip-range={SERVICES}",
        *served_as,
    )
    deadline = time.monotonic() + START_S
    while not cluster.answers():
        assert time.monotonic() < deadline, "the API server does not start: see kube-apiserver.log"
        time.sleep(0.5)
    run(
        programs / "kube-controller-manager",
        f"--kubeconfig={cluster.kubeconfig}",
        f"--service-account-private-key-file={directory / 'sa.key'}",
        f"--root-ca-file={directory / 'certs' / 'apiserver.crt'}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={secure}",
        f"--cert-dir={directory / 'controllers'}",
    )
    return cluster


def _write_files(cluster: KubeCluster) -> None:
    directory = cluster.directory
    command = ["openssl", "genrsa", "-out", str(directory / "sa.key"), "2048"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    (directory / "tokens.csv").write_text(f'{_TOKEN},admin,1,"system:masters"\n')
    authority = str(directory / "certs" / "apiserver.crt")
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": cluster.server, "certificate-authority": authority}}],
        "users": [{"name": "admin", "user": {"token": _TOKEN}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }
    Path(cluster.kubeconfig).write_text(yaml.safe_dump(config))


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def mirror_crd() -> dict[str, Any]:
    """The definition of the kind Mirror, from the operator's chart."""
    read: dict[str, Any] = yaml.safe_load(MIRRORS.read_text())
    return read


def crd() -> dict[str, Any]:
    """Strimzi's definition of the resource: their own from `STRIMZI_EXAMPLES`' checkout, or one of the same names."""
    examples = os.environ.get("STRIMZI_EXAMPLES")
    file = Path(examples or "", "..", "install", "cluster-operator", "048-Crd-kafkamirrormaker2.yaml")
    if examples and file.exists():
        read: dict[str, Any] = yaml.safe_load(file.read_text())
        return read
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.labelSelector",
    }
    version = {
        "served": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
        "additionalPrinterColumns": [
            {"name": "Desired replicas", "type": "integer", "jsonPath": ".spec.replicas"},
            {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "kafkamirrormaker2s.kafka.strimzi.io"},
        "spec": {
            "group": "kafka.strimzi.io",
            "names": {
                "kind": "KafkaMirrorMaker2",
                "listKind": "KafkaMirrorMaker2List",
                "plural": "kafkamirrormaker2s",
                "singular": "kafkamirrormaker2",
                "shortNames": ["kmm2"],
                "categories": ["strimzi"],
            },
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "storage": True, **version},
                {"name": "v1beta2", "storage": False, **version},
            ],
        },
    }
