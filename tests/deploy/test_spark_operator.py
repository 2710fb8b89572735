"""The chart's pods as Spark makes them: drivers of the real Spark operator, executors of a real Spark, real rights.

No pod runs: this cluster has no node.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml
from tests.deploy.charts import FILE, NAMESPACE, only, rendered, settings
from tests.deploy.kube_cluster import KubeCluster, kube_cluster
from tests.deploy.kube_definitions import spark_kinds, spark_operator

pytestmark = pytest.mark.full

WAIT_S = 120.0
DRIVER, EXECUTOR = "ours-sparkmirror", "ours-sparkmirror-executor"
VALUES = (
    "--set",
    f"{FILE},spark.executors=2,spark.executor.cores=2,secrets={{primary-user}}",
    "--set",
    "extraEnv[0].name=A,extraEnv[0].value=b,extraEnvFrom[0].secretRef.name=more,priorityClassName=high",
    "--set",
    "nodeSelector.disk=fast,podLabels.team=a,podAnnotations.note=b,imagePullSecrets[0].name=registry",
)
EXECUTORS_TEMPLATE = "pod-template-volume"
"""Spark's volume in a driver's pod: the ConfigMap of the template for its executors."""
_CLIENT = """
import json, sys, time
from pyspark import SparkConf, SparkContext
SparkContext(conf=SparkConf().setAll(list(json.loads(sys.argv[1]).items())))
time.sleep(600)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    with kube_cluster(tmp_path_factory.mktemp("kube")) as running:
        running.define(*spark_kinds())
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
        running.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}},
            {**priority, "value": 9},
        )
        yield running


def test_the_operator_makes_the_drivers(cluster: KubeCluster, tmp_path: Path) -> None:
    objects = rendered("--set", "form=sparkApplication", *VALUES)
    put(cluster, objects)
    with running(operator(cluster), tmp_path / "operator.log", cluster.kubeconfig):
        for name in (f"{DRIVER}-driver", f"{DRIVER}-2-driver"):
            wait_for(lambda name=name: cluster.get("pod", name, NAMESPACE), tmp_path / "operator.log")  # type: ignore[misc]
        pod = cluster.get("pod", f"{DRIVER}-driver", NAMESPACE)
        (told,) = (each["configMap"]["name"] for each in pod["spec"]["volumes"] if each["name"] == EXECUTORS_TEMPLATE)
        wait_for(lambda: cluster.get("configmap", told, NAMESPACE), tmp_path / "operator.log")
    (container,) = pod["spec"]["containers"]
    check(pod, container, account=DRIVER)
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[name]["httpGet"]["port"] == "metrics"
    assert pod["spec"]["terminationGracePeriodSeconds"] == 60
    assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == "mirror"
    assert pod["metadata"]["annotations"]["checksum/config"]
    assert container["args"][-len(arguments(objects)) :] == arguments(objects)
    (text,) = cluster.get("configmap", told, NAMESPACE)["data"].values()
    made, given = yaml.safe_load(text), only(objects, "SparkApplication")["spec"]["executor"]["template"]
    assert made["metadata"].items() >= given["metadata"].items()
    check(made, made["spec"]["containers"][0], account=EXECUTOR)


def arguments(objects: list[dict[str, Any]]) -> list[str]:
    words: list[str] = only(objects, "SparkApplication")["spec"]["arguments"]
    return words


def test_spark_makes_the_executors(cluster: KubeCluster, tmp_path: Path) -> None:
    """As the driver's account, which may do no more than the chart's Role says."""
    objects = rendered(*VALUES)
    put(cluster, objects)
    template = only(objects, "Secret", EXECUTOR)["stringData"]["pod.yaml"]
    file = tmp_path / "pod.yaml"
    file.write_text(template)
    driver = only(objects, "Deployment")["spec"]["template"]
    driver |= {"apiVersion": "v1", "kind": "Pod"}
    driver["metadata"] |= {"name": "driver", "namespace": NAMESPACE}
    put(cluster, [driver])
    told = settings(driver["spec"]["containers"][0]["args"]) | {
        "spark.app.name": "mirror",
        "spark.master": f"k8s://{cluster.server}",
        "spark.kubernetes.driver.pod.name": "driver",
        "spark.kubernetes.executor.podTemplateFile": str(file),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.port": "0",
        "spark.driver.blockManager.port": "0",
        "spark.ui.enabled": "false",
    }
    kubeconfig = as_account(cluster, DRIVER, tmp_path)
    command = [sys.executable, "-c", _CLIENT, json.dumps(told)]
    with running(command, tmp_path / "spark.log", kubeconfig):
        wait_for(lambda: len(executors(cluster)) == 2, tmp_path / "spark.log")
        pods = executors(cluster)
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        check(pod, container, account=EXECUTOR)
        assert pod["spec"]["automountServiceAccountToken"] is False
        # 512m of heap, 220m for each of two cores, 256m
        assert container["resources"]["requests"] == {"cpu": "2", "memory": "1208Mi"}
        assert container["resources"]["limits"] == {"memory": "1208Mi"}
        assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == "executor"


def executors(cluster: KubeCluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        cluster.kubectl("get", "pods", "-n", NAMESPACE, "-l", "spark-role=executor", "-o", "json")
    )["items"]
    return found


def check(pod: dict[str, Any], container: dict[str, Any], account: str) -> None:
    """What pods of both kinds have."""
    assert pod["spec"]["serviceAccountName"] == account
    assert {"name": "A", "value": "b"} in container["env"]
    assert {"secretRef": {"name": "more"}} in container["envFrom"]
    assert pod["spec"]["priorityClassName"] == "high"
    assert pod["spec"]["nodeSelector"] == {"disk": "fast"}
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["metadata"]["labels"]["team"] == "a"
    assert pod["metadata"]["annotations"]["note"] == "b"
    mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert (
        mounted.items()
        >= {
            "config": "/etc/sparkmirror/config",
            "secret-0": "/etc/sparkmirror/secrets/primary-user",
            "tmp": "/tmp",
            "state": "/var/lib/sparkmirror",
        }.items()
    )
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def put(cluster: KubeCluster, objects: list[dict[str, Any]]) -> None:
    cluster.kubectl("apply", "--validate=strict", "-n", NAMESPACE, "-f", "-", given=yaml.safe_dump_all(objects))


def operator(cluster: KubeCluster) -> list[str]:
    told = ("--leader-election=false", "--enable-ui-service=false", "--health-probe-bind-address=127.0.0.1:0")
    return [str(spark_operator()), "controller", "start", f"--namespaces={NAMESPACE}", *told]


def as_account(cluster: KubeCluster, account: str, directory: Path) -> str:
    """A kubeconfig of a service account."""
    config = yaml.safe_load(Path(cluster.kubeconfig).read_text())
    config["users"][0]["user"] = {"token": cluster.kubectl("create", "token", account, "-n", NAMESPACE).strip()}
    file = directory / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return str(file)


@contextmanager
def running(command: list[str], log: Path, kubeconfig: str) -> Iterator[None]:
    """Run a program that has this kubeconfig."""
    server = yaml.safe_load(Path(kubeconfig).read_text())["clusters"][0]["cluster"]["server"]
    host, _, port = server.removeprefix("https://").partition(":")
    environment = {
        **os.environ,
        "KUBECONFIG": kubeconfig,
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": port,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
    }
    with log.open("w") as written:
        process = subprocess.Popen(command, stdout=written, stderr=written, env=environment)
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def wait_for(true: Callable[[], object], log: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.5)
