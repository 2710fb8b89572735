"""The charts: what their schemas let through, and what a real API server says of all that they make."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from operated import KEY, SETTINGS, resource, secret
from tests.connect.served_api import served_api
from tests.deploy.kube_build import helm
from tests.deploy.kube_cluster import KubeCluster, crd, kube_cluster

from sparkmirror import __version__
from sparkmirror.operator.controller import Controller
from sparkmirror.operator.kube import KubeApi
from sparkmirror.operator.rest import ConnectRest
from sparkmirror.operator.turn import Turns
from sparkmirror.operator.watching import cluster_access, known_peers, registry, served_version, watch

DEPLOY = Path(__file__).parents[2] / "deploy"
DOCS = Path(__file__).parents[2] / "docs" / "deploy"
CHARTS = {"sparkmirror": "kubernetes.md", "sparkmirror-operator": "operator.md"}
each_chart = pytest.mark.parametrize("chart", CHARTS)
MANIFESTS = ("mirror.yaml", "mirror-small.yaml", "operator.yaml")


def values(chart: str, file: str = "values.yaml") -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "helm" / chart / file).read_text())
    return read


def schema(chart: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((DEPLOY / "helm" / chart / "values.schema.json").read_text())
    return read


def unknown(given: Any, shape: dict[str, Any], whole: dict[str, Any], path: str = "") -> Iterator[str]:
    """Paths of values that the schema has no place for, or of another type."""
    if "$ref" in shape:
        shape = whole["definitions"][shape["$ref"].rpartition("/")[2]]
    types = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    allowed = shape.get("type")
    if isinstance(allowed, str) and not isinstance(given, types[allowed]):
        yield path
    if "enum" in shape and given not in shape["enum"]:
        yield path
    if "pattern" in shape and not re.search(shape["pattern"], given):
        yield path
    if isinstance(given, dict) and "properties" in shape:
        for name, below in given.items():
            if name in shape["properties"]:
                yield from unknown(below, shape["properties"][name], whole, f"{path}.{name}")
            elif shape.get("additionalProperties", True) is False:
                yield f"{path}.{name}"


@each_chart
def test_the_schema_has_a_place_for_each_value(chart: str) -> None:
    assert not list(unknown(values(chart), schema(chart), schema(chart)))


def test_the_small_values_are_values() -> None:
    assert not list(unknown(values("sparkmirror", "values-small.yaml"), schema("sparkmirror"), schema("sparkmirror")))


@each_chart
def test_each_value_is_on_the_page(chart: str) -> None:
    page = (DOCS / CHARTS[chart]).read_text()
    assert not [name for name in values(chart) if f"`{name}" not in page]


@each_chart
def test_a_chart_is_of_this_version(chart: str) -> None:
    about = yaml.safe_load((DEPLOY / "helm" / chart / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (__version__, __version__)


def test_ports_and_paths_are_those_of_the_program() -> None:
    texts = "\n".join(file.read_text() for file in (DEPLOY / "helm" / "sparkmirror" / "templates").rglob("*.yaml"))
    assert set(re.findall(r"httpGet: \{path: (\S+), port: metrics\}", texts)) == {"/ready", "/health"}
    assert set(re.findall(r"(?:port|containerPort): (\d+)", texts)) == {"9404", "7078", "7079"}


# --- with Helm and a real API server -------------------------------------------------------------------

VARIANTS: dict[str, list[str]] = {
    "default": [],
    "small": ["--values", str(DEPLOY / "helm" / "sparkmirror" / "values-small.yaml")],
    "executors": ["--set", "spark.executors=2,spark.warmStandby=true,secrets={one-user,other-user}"],
    "resource": ["--set", "config.file=mirror.yaml,config.existingConfigMap=resources"],
    "secret": ["--set", "config.existingSecret=mm2,serviceAccount.create=false"],
    "application": ["--set", "form=sparkApplication,spark.executors=1"],
    "monitored": [
        "--set",
        "serviceMonitor.enabled=true,serviceMonitor.labels.release=prometheus",
        "--set",
        "networkPolicy.from[0].namespaceSelector.matchLabels.name=monitoring",
    ],
    "placed": [
        "--set",
        "nodeSelector.disk=fast,priorityClassName=high,podLabels.team=a,podAnnotations.note=b",
        "--set",
        "tolerations[0].operator=Exists,imagePullSecrets[0].name=registry,env[0].name=A,env[0].value=b",
        "--set",
        "envFrom[0].secretRef.name=more,arguments={--metrics-profile,strimzi},podSecurityContext.fsGroup=10001",
    ],
}
full = pytest.mark.full


def run_helm(*words: str, ok: bool = True) -> str:
    done = subprocess.run([helm(), *words], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode == 0) == ok, done.stderr + done.stdout
    return done.stdout if ok else done.stderr


def template(chart: str, *more: str, ok: bool = True) -> str:
    path = str(DEPLOY / "helm" / chart)
    return run_helm("template", "ours", path, "-n", KEY.namespace, "--kube-version", "1.36.0", *more, ok=ok)


def played(group: str, version: str, kind: str) -> dict[str, Any]:
    """A definition of a kind of others: their own from the directory `OTHERS_CRDS`, or one that takes anything."""
    plural = f"{kind.lower()}s"
    own = Path(os.environ.get("OTHERS_CRDS", "/nowhere"), f"{group}_{plural}.yaml")
    if own.exists():
        read: dict[str, Any] = yaml.safe_load(own.read_text())
        return read
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, it stands in for theirs"},
        },
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    with kube_cluster(tmp_path_factory.mktemp("kube")) as running:
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        running.define(
            crd(),
            played("sparkoperator.k8s.io", "v1beta2", "SparkApplication"),
            played("monitoring.coreos.com", "v1", "ServiceMonitor"),
        )
        metadata = {"name": KEY.namespace, "labels": restricted}
        running.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        yield running


@full
@each_chart
def test_helm_finds_nothing_wrong(chart: str) -> None:
    run_helm("lint", "--strict", str(DEPLOY / "helm" / chart))


@full
@pytest.mark.parametrize(
    "setting",
    [
        "replica=2",
        "replicas=many",
        "form=statefulset",
        "config.file=mm2",
        "spark.settings.memory=1g",
        "secrets={Upper}",
        "probes.liveness.path=/x",
        "config.existingConfigMap=a,config.existingSecret=b",
    ],
)
def test_the_schema_refuses(setting: str) -> None:
    assert "values don't meet the specifications" in template("sparkmirror", "--set", setting, ok=False)


@full
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_real_server_takes_all_of_it(variant: str, cluster: KubeCluster) -> None:
    made = template("sparkmirror", *VARIANTS[variant])
    words = ("apply", "--dry-run=server", "--validate=strict", "-n", KEY.namespace, "-f", "-")
    said = cluster.kubectl(*words, given=made)
    assert said.count("(server dry run)") == sum(1 for item in yaml.safe_load_all(made) if item)


@full
def test_a_real_server_takes_the_operators_options(cluster: KubeCluster) -> None:
    options = "serviceMonitor.enabled=true,podDisruptionBudget.enabled=true,priorityClassName=high"
    made = template("sparkmirror-operator", "--set", options, "--set", "serviceAccount.annotations.role=a")
    kinds = {item["kind"] for item in yaml.safe_load_all(made) if item}
    assert kinds > {"Service", "ServiceMonitor", "PodDisruptionBudget", "Deployment"}
    words = ("apply", "--dry-run=server", "--validate=strict", "-n", KEY.namespace, "-f", "-")
    assert cluster.kubectl(*words, given=made).count("(server dry run)") == len(list(yaml.safe_load_all(made)))


@full
@pytest.mark.parametrize("variant", ["default", "executors"])
def test_pods_keep_to_the_restricted_standard(variant: str, cluster: KubeCluster) -> None:
    """The namespace demands it; a pod that does not is refused."""
    made = list(yaml.safe_load_all(template("sparkmirror", *VARIANTS[variant])))
    for item in made:
        if item and item["kind"] == "Deployment":
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "mirror"},
                "spec": item["spec"]["template"]["spec"],
            }
        elif item and item["metadata"]["name"].endswith("-executor"):
            pod = yaml.safe_load(item["data"]["pod.yaml"])
            pod["metadata"]["name"] = "executor"
            pod["spec"]["containers"][0]["image"] = "sparkmirror"
        else:
            continue
        pod["spec"]["serviceAccountName"] = "default"
        given = yaml.safe_dump(pod)
        cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-n", KEY.namespace, "-f", "-", given=given)
        pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
        refused = cluster.kubectl(
            "apply", "--dry-run=server", "-n", KEY.namespace, "-f", "-", given=yaml.safe_dump(pod), ok=False
        )
        assert "violates PodSecurity" in refused


@full
@pytest.mark.parametrize("file", MANIFESTS)
def test_the_manifests_are_the_charts(file: str, tmp_path: Path) -> None:
    script = str(DEPLOY / "kubernetes" / "make.sh")
    subprocess.run(
        ["sh", script, str(tmp_path)], check=True, timeout=120, env={"HELM": str(helm()), "PATH": "/usr/bin:/bin"}
    )
    assert (tmp_path / file).read_text() == (DEPLOY / "kubernetes" / file).read_text(), "sh deploy/kubernetes/make.sh"


@full
def test_helm_installs_upgrades_and_removes(cluster: KubeCluster) -> None:
    words = ("--kubeconfig", cluster.kubeconfig, "-n", KEY.namespace)
    chart = str(DEPLOY / "helm" / "sparkmirror")
    run_helm("install", "shop", chart, *words)
    before = cluster.get("deployment", "shop-sparkmirror", KEY.namespace)["spec"]["template"]["metadata"]["annotations"]
    run_helm("upgrade", "shop", chart, "--set", "config.text=clusters = a", *words)
    after = cluster.get("deployment", "shop-sparkmirror", KEY.namespace)["spec"]["template"]["metadata"]["annotations"]
    assert before["checksum/config"] != after["checksum/config"], "a changed file takes new pods"
    run_helm("uninstall", "shop", *words)
    assert not cluster.get("deployment", "shop-sparkmirror", KEY.namespace)


@full
@pytest.mark.parametrize(
    "more",
    [["--set", "watchAnyNamespace=true"], ["--set", "watchNamespaces={kafka}"], []],
    ids=["everywhere", "one namespace", "its own"],
)
def test_the_operator_has_the_rights_that_it_needs(
    more: Sequence[str], cluster: KubeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the service account of its chart: from a resource to what is made for it, an event, offsets, and back."""
    made = template("sparkmirror-operator", *more)
    cluster.kubectl("apply", "--validate=strict", "-n", KEY.namespace, "-f", "-", given=made)
    token = cluster.kubectl("create", "token", "ours-sparkmirror-operator", "-n", KEY.namespace).strip()
    config = yaml.safe_load(Path(cluster.kubeconfig).read_text())
    config["users"][0]["user"] = {"token": token}
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(file))

    def stopped(spec: dict[str, Any]) -> None:
        listed = {"state": "stopped", "listOffsets": {"toConfigMap": {"name": "offsets"}}}
        spec["mirrors"][0]["sourceConnector"] |= listed

    api = KubeApi(cluster_access)
    version = served_version(api)
    settings = replace(SETTINGS, version=version)
    stop = threading.Event()
    namespaces = [] if "watchAnyNamespace=true" in more else [KEY.namespace]
    peers = known_peers(api, version, namespaces, settings.class_name)
    with served_api() as served:
        turns = Turns(api, lambda _: ConnectRest(served.url), settings, peers)
        with closing(Controller(turns.take, calm_s=1.0, busy_s=0.5)) as controller:
            handlers = registry(controller, version, peers)
            watching = threading.Thread(target=watch, args=(handlers, cluster_access, namespaces, stop), daemon=True)
            watching.start()
            try:
                source = "us->eu.MirrorSourceConnector"
                tree = resource(stopped, connector_offsets="list", mirrormaker_connector=source)
                metadata = {name: tree["metadata"][name] for name in ("name", "namespace", "annotations")}
                cluster.apply(secret(), {**tree, "metadata": metadata})
                _until(lambda: cluster.get("configmap", "offsets", KEY.namespace))
                _until(lambda: _reason(cluster) == "PodsNotReady")
                cluster.kubectl("annotate", "kmm2", KEY.name, "-n", KEY.namespace, "sparkmirror.io/class-")
                _until(lambda: not cluster.get("serviceaccount", "ours-mirrormaker2", KEY.namespace))
                cluster.kubectl("delete", "kmm2", KEY.name, "-n", KEY.namespace)
            finally:
                stop.set()
                watching.join(30)
    cluster.kubectl("delete", "-n", KEY.namespace, "-f", "-", given=made)


def _reason(cluster: KubeCluster) -> str:
    """Why the resource is not ready: this cluster has no node for its pods."""
    conditions = (cluster.get("kmm2", KEY.name, KEY.namespace).get("status") or {}).get("conditions") or [{}]
    return str(conditions[0].get("reason"))


def _until(true: Any) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.2)
