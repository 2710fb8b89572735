"""The mirror's chart, installed on a node."""

from __future__ import annotations

import os
import re
import urllib.request
from pathlib import Path
from typing import Any, Self

import yaml
from tests.deploy.kube_build import helm
from tests.deploy.node.kube_node import KubeNode, is_ready, wait_for
from tests.support import mirror_process as mp

CHARTS = Path(__file__).parents[3] / "deploy" / "helm"
NAME = "shop"
MIRRORS = "app.kubernetes.io/component=mirror"
READY_S = 400.0
WAITING = ("--wait", "--timeout", f"{READY_S:.0f}s")

FILE = """\
clusters = primary, backup
primary.bootstrap.servers = primary.kafka:9092
backup.bootstrap.servers = backup.kafka:9092
primary->backup.enabled = true
primary->backup.topics = {topic}
tasks.max = {tasks}
refresh.topics.interval.seconds = 2
"""


class Release:
    """The chart of the mirror, installed with values that add up; a context, at whose end it is removed."""

    def __init__(
        self, node: KubeNode, namespace: str, topic: str, directory: Path, image: str, tasks: int = 2, lines: str = ""
    ) -> None:
        """Prepare it; `lines` are added to the file."""
        self.node = node
        self.namespace = namespace
        repository, _, tag = image.rpartition(":")
        one_replica = "".join(f"{key} = {value}\n" for key, value in mp.ONE_REPLICA.items())
        self._values: dict[str, Any] = {
            "image": {"repository": repository, "tag": tag},
            "config": {"text": FILE.format(topic=topic, tasks=tasks) + one_replica + lines},
            # Three pods and two brokers share two cores
            "resources": {"requests": {"cpu": "200m"}},
        }
        self._file = directory / "values.yaml"

    def __enter__(self) -> Self:
        self.node.create_namespace(self.namespace)
        return self

    def __exit__(self, *_: object) -> None:
        run_helm(self.node, self.namespace, "uninstall", NAME, "--ignore-not-found", *WAITING)

    def set(self, **values: object) -> None:
        """Install it, or upgrade it to these values too, and wait until its pods are ready."""
        for name, value in values.items():
            self._values[name] = {**self._values.get(name, {}), **value} if isinstance(value, dict) else value
        self._file.write_text(yaml.safe_dump(self._values))
        told = ("--values", str(self._file), *WAITING)
        run_helm(self.node, self.namespace, "upgrade", "--install", NAME, str(CHARTS / "sparkmirror"), *told)

    def test(self) -> str:
        """Return what `helm test` prints; fails if a test of the chart does."""
        return run_helm(self.node, self.namespace, "test", NAME, "--timeout", f"{READY_S:.0f}s")

    def roles(self) -> dict[str, str]:
        """What each ready pod is to the flow, by the pod's name."""
        ready = [pod for pod in self.node.pods(self.namespace, MIRRORS) if is_ready(pod)]
        return {pod["metadata"]["name"]: role(self.node, pod["status"]["podIP"]) for pod in ready}

    def working(self) -> str:
        """The name of the pod that works."""
        working: list[str] = []

        def is_known() -> bool:
            working.extend(pod for pod, its in self.roles().items() if its == "leader")
            return bool(working)

        wait_for(is_known, READY_S, "a pod works")
        return working[0]

    def wait_for_both(self) -> None:
        wait_for(lambda: sorted(self.roles().values()) == ["leader", "standby"], READY_S, "one works, one stands by")


def run_helm(node: KubeNode, namespace: str, *words: str) -> str:
    """As whoever may do everything."""
    client = (str(helm()), "--kubeconfig", node.kubeconfig, "-n", namespace)
    return node.place.run(*client, *words, timeout=READY_S + 30, environment=os.environ)


def role(node: KubeNode, address: str) -> str:
    """Of the process at this address; empty while none answers."""
    role_is = r'^sparkmirror_flow_role\{.*role="(\w+)".*\} 1(?:\.0)?$'
    found = re.search(role_is, metrics(node, address), re.MULTILINE)
    return found[1] if found else ""


def metrics(node: KubeNode, address: str) -> str:
    """Empty while nobody answers."""

    def asked() -> str:
        with urllib.request.urlopen(f"http://{address}:9404/metrics", timeout=5) as answer:
            text: str = answer.read().decode()
            return text

    try:
        return node.place.ask(asked)
    except OSError:
        return ""
