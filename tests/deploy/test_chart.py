"""The charts: what their schemas let through, and what a real API server says of all that they make."""

from __future__ import annotations

import json
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
from tests.deploy.charts import FILE, run_helm, template
from tests.deploy.kube_build import helm, keda_definitions
from tests.deploy.kube_cluster import KubeCluster, crd, kube_cluster, mirror_crd
from tests.deploy.kube_definitions import monitoring, spark_kinds
from tests.support.operated import KEY, SETTINGS, mirror, properties, resource, secret
from tests.support.served_api import served_api

from sparkmirror import __version__
from sparkmirror.operator.controller import Controller
from sparkmirror.operator.kube import KubeApi
from sparkmirror.operator.rest import ConnectRest
from sparkmirror.operator.turn import Turns
from sparkmirror.operator.watching import cluster_access, known_peers, served_versions, watch_kinds

DEPLOY = Path(__file__).parents[2] / "deploy"
each_chart = pytest.mark.parametrize("chart", ["sparkmirror", "sparkmirror-operator"])
CHART = str(DEPLOY / "helm" / "sparkmirror")
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
    if "const" in shape:
        yield path
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
def test_a_chart_is_of_this_version(chart: str) -> None:
    about = yaml.safe_load((DEPLOY / "helm" / chart / "Chart.yaml").read_text())
    assert (about["version"], about["appVersion"]) == (__version__, __version__)


def test_ports_and_paths_are_those_of_the_program() -> None:
    texts = "\n".join(file.read_text() for file in (DEPLOY / "helm" / "sparkmirror" / "templates").rglob("*.*"))
    assert set(re.findall(r"httpGet: \{path: (\S+), port: metrics\}", texts)) == {"/ready", "/health"}
    sparks = {"7077", "7078", "7079", "8080", "8081"}
    assert set(re.findall(r"(?:port|containerPort): (\d+)", texts)) == {"9404", *sparks}


# --- with Helm and a real API server -------------------------------------------------------------------

VARIANTS: dict[str, list[str]] = {
    "default": ["--set", FILE],
    "small": ["--values", str(DEPLOY / "helm" / "sparkmirror" / "values-small.yaml"), "--set", FILE],
    "executors": ["--set", "spark.executors=2,spark.warmStandby=true,secrets={one-user,other-user}", "--set", FILE],
    "workers": ["--set", "workers.max=4,workers.secret=spark,secrets={one-user}", "--set", FILE],
    "fixed workers": [
        "--set",
        "workers.min=2,workers.max=2,workers.secret=spark,extraEnv[0].name=A,extraEnv[0].value=b",
        "--set",
        FILE,
    ],
    "resource": ["--set", "config.file=mirror.yaml,config.existingConfigMap=resources"],
    "secret": ["--set", "config.existingSecret=mm2,serviceAccount.create=false"],
    "application": [
        "--set",
        "form=sparkApplication,spark.executors=1,serviceAccount.annotations.role=a",
        "--set",
        FILE,
    ],
    "monitored": [
        "--set",
        "serviceMonitor.enabled=true,serviceMonitor.labels.release=prometheus,prometheusRule.enabled=true",
        "--set",
        "networkPolicy.from[0].namespaceSelector.matchLabels.name=monitoring,dashboards.enabled=true",
        "--set",
        FILE,
    ],
    "pods monitored": [
        "--set",
        "podMonitor.enabled=true,podMonitor.relabelings[0].targetLabel=a,podMonitor.relabelings[0].replacement=b",
        "--set",
        FILE,
    ],
    "placed": [
        "--set",
        "nodeSelector.disk=fast,priorityClassName=high,podLabels.team=a,podAnnotations.note=b,commonLabels.of=c",
        "--set",
        "tolerations[0].operator=Exists,imagePullSecrets[0].name=registry,extraEnv[0].name=A,extraEnv[0].value=b",
        "--set",
        "extraEnvFrom[0].secretRef.name=more,extraArgs={--metrics-profile,strimzi},podSecurityContext.fsGroup=10001",
        "--set",
        "extraVolumes[0].name=krb5,extraVolumes[0].configMap.name=krb5,service.annotations.a=b",
        "--set",
        "extraVolumeMounts[0].name=krb5,extraVolumeMounts[0].mountPath=/etc/krb5.conf,commonAnnotations.b=c",
        "--set",
        FILE,
    ],
}
full = pytest.mark.full


def scaled_object() -> dict[str, Any]:
    """KEDA's own definition of a ScaledObject."""
    read: dict[str, Any] = yaml.safe_load(keda_definitions().joinpath("keda.sh_scaledobjects.yaml").read_text())
    return read


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    with kube_cluster(tmp_path_factory.mktemp("kube")) as running:
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        running.define(crd(), mirror_crd(), scaled_object(), *spark_kinds(), *monitoring())
        metadata = {"name": KEY.namespace, "labels": restricted}
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
        running.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, {**priority, "value": 9})
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
        "replicaCount=many",
        "form=statefulset",
        "config.file=mm2",
        "spark.settings.memory=1g",
        "secrets={Upper}",
        "livenessProbe.path=/x",
        "image.digest=latest",
        "extraVolumes[0].name=config",
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
    assert kinds > {"Service", "ServiceMonitor", "PodDisruptionBudget", "Deployment", "CustomResourceDefinition"}
    words = ("apply", "--dry-run=server", "--validate=strict", "-n", KEY.namespace, "-f", "-")
    assert cluster.kubectl(*words, given=made).count("(server dry run)") == len(list(yaml.safe_load_all(made)))


@full
def test_workers_are_scaled_by_the_time_to_catch_up(cluster: KubeCluster) -> None:
    """What is not the default of KEDA's definition stays in the object; a field that KEDA does not have is refused."""
    made = [item for item in yaml.safe_load_all(template("sparkmirror", *VARIANTS["workers"])) if item]
    (scaled,) = (item for item in made if item["kind"] == "ScaledObject")
    (workers,) = (item for item in made if item["metadata"]["name"] == scaled["spec"]["scaleTargetRef"]["name"])
    assert (workers["kind"], "replicas" in workers["spec"]) == ("Deployment", False), "KEDA has the number"
    lag, cpu = scaled["spec"]["triggers"]
    labels = 'namespace="kafka",pod=~"ours-sparkmirror-[a-z0-9]+-?[a-z0-9]{5}"'
    calm = f'sparkmirror_flow_state{{{labels},state=~"caught up|held up"}}'
    query = f"max(sparkmirror_eta_seconds{{{labels}}} or ignoring(state) 0 * ({calm} == 1))"
    assert lag["metadata"]["query"] == query
    assert (lag["metadata"]["ignoreNullValues"], cpu["type"]) == ("false", "cpu")
    words = ("apply", "--dry-run=server", "--validate=strict", "-n", KEY.namespace, "-f", "-")
    cluster.kubectl(*words, given=yaml.safe_dump(scaled))
    wrong = yaml.safe_dump({**scaled, "spec": {**scaled["spec"], "maxReplicas": 3}})
    assert 'unknown field "spec.maxReplicas"' in cluster.kubectl(*words, given=wrong, ok=False)


@full
def test_a_fixed_number_of_workers_needs_no_keda() -> None:
    made = [item for item in yaml.safe_load_all(template("sparkmirror", *VARIANTS["fixed workers"])) if item]
    assert "ScaledObject" not in {item["kind"] for item in made}
    (workers,) = (item for item in made if item["metadata"]["name"] == "ours-sparkmirror-worker")
    assert workers["spec"]["replicas"] == 2


@full
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("workers.max=2", "workers.secret: name a Secret"),
        ("workers.max=2,workers.secret=a,spark.executors=1", "tasks run either in executors"),
        ("workers.max=2,workers.secret=a,form=sparkApplication", "workers go with form deployment"),
        ("workers.max=2,workers.min=3,workers.secret=a", "workers.min: 3 are more than workers.max, 2"),
        ("workers.max=2,workers.secret=a,spark.warmStandby=true", "spark.warmStandby: a pod that stands by would"),
        (
            "workers.max=2,workers.secret=a,spark.executor.memory=9k",
            "spark.executor.memory: a worker needs whole mebibytes",
        ),
    ],
)
def test_workers_that_can_not_be(more: str, words: str) -> None:
    assert words in template("sparkmirror", "--set", f"{FILE},{more}", ok=False)


@full
@pytest.mark.parametrize("variant", ["default", "executors", "workers", "placed", "application"])
def test_pods_keep_to_the_restricted_standard(variant: str, cluster: KubeCluster) -> None:
    """The namespace demands it; a pod that does not is refused, and so is a field that pods don't have."""
    pods = [pod for item in yaml.safe_load_all(template("sparkmirror", *VARIANTS[variant])) for pod in pods_of(item)]
    assert len(pods) == {"default": 1, "placed": 1, "workers": 3}.get(variant, 2)
    for number, pod in enumerate(pods):
        pod |= {"apiVersion": "v1", "kind": "Pod"}
        pod["metadata"]["name"] = f"checked-{number}"
        pod["spec"]["containers"][0]["image"] = "sparkmirror"
        pod["spec"]["serviceAccountName"] = "default"
        given = yaml.safe_dump(pod)
        cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-n", KEY.namespace, "-f", "-", given=given)
        pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
        refused = cluster.kubectl(
            "apply", "--dry-run=server", "-n", KEY.namespace, "-f", "-", given=yaml.safe_dump(pod), ok=False
        )
        assert "violates PodSecurity" in refused


def pods_of(item: Any) -> Iterator[dict[str, Any]]:
    """The pods that will be made of an object."""
    match item:
        case {"kind": "Deployment", "spec": {"template": made}}:
            yield made
        case {"kind": "StatefulSet", "spec": {"template": made, "volumeClaimTemplates": claims}}:
            for name in (claim["metadata"]["name"] for claim in claims):
                made["spec"]["volumes"].append({"name": name, "persistentVolumeClaim": {"claimName": name}})
            yield made
        case {"kind": "Secret", "stringData": {"pod.yaml": made}}:
            yield yaml.safe_load(made)
        case {"kind": "SparkApplication", "metadata": {"name": "ours-sparkmirror"}, "spec": spec}:
            yield from (spec[part]["template"] for part in ("driver", "executor"))


def may(cluster: KubeCluster, account: str, verb: str, resource: str) -> bool:
    """Whether the API server would let a service account do this in its namespace."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{KEY.namespace}:{account}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{KEY.namespace}"],
            "resourceAttributes": {"namespace": KEY.namespace, "verb": verb, "resource": resource},
        },
    }
    said = json.loads(cluster.kubectl("create", "-f", "-", "-o", "json", given=yaml.safe_dump(review)))
    return bool(said["status"]["allowed"])


@full
@pytest.mark.parametrize("form", ["deployment", "sparkApplication"])
def test_drivers_may_have_executors_and_executors_may_nothing(form: str, cluster: KubeCluster) -> None:
    made = template("sparkmirror", "--set", f"{FILE},form={form},spark.executors=2")
    cluster.kubectl("apply", "-n", KEY.namespace, "-f", "-", given=made)
    try:
        for resource in ("pods", "configmaps", "services", "persistentvolumeclaims"):
            for verb in ("create", "get", "list", "watch", "delete", "deletecollection"):
                assert may(cluster, "ours-sparkmirror", verb, resource), (verb, resource)
                assert not may(cluster, "ours-sparkmirror-executor", verb, resource), (verb, resource)
        assert not may(cluster, "ours-sparkmirror", "get", "secrets")
        assert cluster.get("serviceaccount", "ours-sparkmirror-executor", KEY.namespace)
    finally:
        cluster.kubectl("delete", "-n", KEY.namespace, "-f", "-", given=made)


@full
def test_a_mirror_without_executors_has_no_rights(cluster: KubeCluster) -> None:
    kinds = {item["kind"] for item in yaml.safe_load_all(template("sparkmirror", "--set", FILE)) if item}
    assert not kinds & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
    assert not may(cluster, "ours-sparkmirror", "create", "pods")


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
    run_helm("install", "shop", CHART, "--set", FILE, *words)
    before = cluster.get("deployment", "shop-sparkmirror", KEY.namespace)["spec"]["template"]["metadata"]["annotations"]
    run_helm("upgrade", "shop", CHART, "--set", "config.text=clusters = b", *words)
    after = cluster.get("deployment", "shop-sparkmirror", KEY.namespace)["spec"]["template"]["metadata"]["annotations"]
    assert before["checksum/config"] != after["checksum/config"], "a changed file takes new pods"
    run_helm("uninstall", "shop", *words)
    assert not cluster.get("deployment", "shop-sparkmirror", KEY.namespace)


@full
@pytest.mark.parametrize("form", ["deployment", "sparkApplication"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_notes_claim_nothing(form: str, count: int, cluster: KubeCluster) -> None:
    """They can't know whether anything is mirrored: they say how to see it."""
    words = ("--dry-run=server", "--set", f"{FILE},form={form},replicaCount={count}", "-n", KEY.namespace)
    said = run_helm("install", "ours", CHART, *words, "--kubeconfig", cluster.kubeconfig)
    notes = said.partition("NOTES:")[2]
    print(notes)
    assert "sparkmirror status /etc/sparkmirror/config/mm2.properties" in notes
    assert not re.search(r"\b(is mirroring|are mirrored|will mirror)\b", notes)


@full
@pytest.mark.parametrize("name", ["sparkmirror", "another"])
def test_the_operators_notes_say_which_resources_it_runs(name: str) -> None:
    words = ("--dry-run=client", "--set", f"class={name}", "-n", KEY.namespace)
    notes = run_helm("install", "ours", str(DEPLOY / "helm" / "sparkmirror-operator"), *words).partition("NOTES:")[2]
    assert f"the annotation sparkmirror.io/class={name}" in notes
    assert ("a Mirror also without one" in notes) is (name == "sparkmirror")
    assert "kubectl get mirrors --all-namespaces\n" in notes


@full
def test_notes_say_how_to_see_the_workers(cluster: KubeCluster) -> None:
    words = ("--dry-run=server", *VARIANTS["workers"], "-n", KEY.namespace, "--kubeconfig", cluster.kubeconfig)
    notes = run_helm("install", "ours", CHART, *words).partition("NOTES:")[2]
    assert "get statefulset/ours-sparkmirror-master deployment/ours-sparkmirror-worker" in notes
    assert "get scaledobject ours-sparkmirror\n" in notes


@full
@pytest.mark.parametrize(("kind", "value"), [("Secret", "existingSecret"), ("ConfigMap", "existingConfigMap")])
def test_another_text_of_an_existing_file_takes_new_pods(kind: str, value: str, cluster: KubeCluster) -> None:
    """Helm asks the cluster for it at each upgrade; a rendering without a cluster has no digest, and is stable."""
    words = ("--kubeconfig", cluster.kubeconfig, "-n", KEY.namespace, "--set", f"config.{value}=mine")
    digests = []
    text = "stringData" if kind == "Secret" else "data"
    for content in ("clusters = a", "clusters = a", "clusters = b"):
        metadata = {"name": "mine", "namespace": KEY.namespace}
        cluster.apply({"apiVersion": "v1", "kind": kind, "metadata": metadata, text: {"mm2.properties": content}})
        run_helm("upgrade", "--install", "shop", CHART, *words)
        spec = cluster.get("deployment", "shop-sparkmirror", KEY.namespace)["spec"]
        digests.append(spec["template"]["metadata"]["annotations"]["checksum/config"])
    run_helm("uninstall", "shop", *words[:4])
    cluster.kubectl("delete", kind, "mine", "-n", KEY.namespace)
    assert digests[0] == digests[1] != digests[2]
    assert "checksum/config" not in template("sparkmirror", *words[4:])


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
    made = template("sparkmirror-operator", "--set", "definition.install=false", *more)
    assert "CustomResourceDefinition" not in made
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
    versions = served_versions(api)
    settings = replace(SETTINGS, versions=versions)
    stop = threading.Event()
    namespaces = [] if "watchAnyNamespace=true" in more else [KEY.namespace]
    peers = known_peers(api, versions, namespaces, settings.class_name)
    with served_api() as served:
        turns = Turns(api, lambda _: ConnectRest(served.url), settings, peers)
        with closing(Controller(turns.take, calm_s=1.0, busy_s=0.5)) as controller:
            watched = (controller, api, peers, versions, cluster_access, namespaces, stop)
            watching = threading.Thread(target=watch_kinds, args=watched, daemon=True)
            watching.start()
            try:
                source = "us->eu.MirrorSourceConnector"
                tree = resource(stopped, connector_offsets="list", mirrormaker_connector=source)
                metadata = {name: tree["metadata"][name] for name in ("name", "namespace", "annotations")}
                cluster.apply(secret(), {**tree, "metadata": metadata})
                _until(lambda: cluster.get("configmap", "offsets", KEY.namespace))
                _until(lambda: _reason(cluster) == "PodsNotReady")
                own = mirror("own", properties=properties("asia"))
                cluster.apply({**own, "metadata": {"name": "own", "namespace": KEY.namespace}})
                _until(lambda: _reason(cluster, "mirror", "own") == "PodsNotReady")
                cluster.kubectl("delete", "mirror", "own", "-n", KEY.namespace)
                cluster.kubectl("annotate", "kmm2", KEY.name, "-n", KEY.namespace, "sparkmirror.io/class-")
                _until(lambda: not cluster.get("serviceaccount", "ours-mirrormaker2", KEY.namespace))
                cluster.kubectl("delete", "kmm2", KEY.name, "-n", KEY.namespace)
            finally:
                stop.set()
                watching.join(30)
    cluster.kubectl("delete", "-n", KEY.namespace, "-f", "-", given=made)


def _reason(cluster: KubeCluster, kind: str = "kmm2", name: str = KEY.name) -> str:
    """Why the resource is not ready: this cluster has no node for its pods."""
    conditions = (cluster.get(kind, name, KEY.namespace).get("status") or {}).get("conditions") or [{}]
    return str(conditions[0].get("reason"))


def _until(true: Any) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.2)
