"""A real Kubernetes without nodes: etcd, the API server and its controllers, on this machine's loopback."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.deploy.kube_build import kubectl, kubernetes

from sparkmirror.demo.ports import free_ports

START_S = 120.0
_TOKEN = "admin-token"


@dataclass(frozen=True)
class KubeCluster:
    """Ask it by `kubectl`."""

    directory: Path
    server: str

    @property
    def kubeconfig(self) -> str:
        """For whoever may do everything."""
        return str(self.directory / "kubeconfig")

    def kubectl(self, *words: str, given: str | None = None, ok: bool = True) -> str:
        """Run it; what it prints. With `ok` False what it complains about."""
        done = subprocess.run(
            [kubectl(), "--kubeconfig", self.kubeconfig, *words],
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode == 0) == ok, done.stderr or done.stdout
        return done.stdout if ok else done.stderr

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


@contextmanager
def kube_cluster(directory: Path) -> Iterator[KubeCluster]:
    """Start one, and stop it at the end."""
    programs = kubernetes()
    client, peer, port, secure = free_ports(4)
    server = f"https://127.0.0.1:{port}"
    etcd = f"http://127.0.0.1:{client}"
    _write_files(directory, server)
    with ExitStack() as opened:

        def run(name: str, *flags: str) -> None:
            log = opened.enter_context((directory / f"{name}.log").open("w"))
            process = subprocess.Popen([programs / name, *flags], cwd=directory, stdout=log, stderr=log)
            opened.callback(_stop, process)

        run(
            "etcd",
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
            "kube-apiserver",
            f"--etcd-servers={etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=192.0.2.1",  # of no machine; a loopback address is refused
            f"--secure-port={port}",
            "--cert-dir=certs",
            "--service-account-key-file=sa.key",
            "--service-account-signing-key-file=sa.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--token-auth-file=tokens.csv",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",
        )
        _wait(server)
        run(
            "kube-controller-manager",
            "--kubeconfig=kubeconfig",
            "--service-account-private-key-file=sa.key",
            "--root-ca-file=certs/apiserver.crt",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={secure}",
            "--cert-dir=controllers",
        )
        yield KubeCluster(directory, server)


def _write_files(directory: Path, server: str) -> None:
    command = ["openssl", "genrsa", "-out", str(directory / "sa.key"), "2048"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    (directory / "tokens.csv").write_text(f'{_TOKEN},admin,1,"system:masters"\n')
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "test",
                "cluster": {"server": server, "certificate-authority": str(directory / "certs" / "apiserver.crt")},
            }
        ],
        "users": [{"name": "admin", "user": {"token": _TOKEN}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }
    (directory / "kubeconfig").write_text(yaml.safe_dump(config))


def _wait(server: str) -> None:
    deadline = time.monotonic() + START_S
    request = urllib.request.Request(  # noqa: S310 - https on this machine
        f"{server}/readyz", headers={"Authorization": f"Bearer {_TOKEN}"}
    )
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # its certificate is made when it starts
    while True:
        try:
            with urllib.request.urlopen(request, timeout=5, context=context):  # noqa: S310 - the same
                return
        except OSError:
            assert time.monotonic() < deadline, "the API server does not start: see kube-apiserver.log"
            time.sleep(0.5)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


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
