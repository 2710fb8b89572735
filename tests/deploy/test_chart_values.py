"""What the chart of the mirror makes of its values: everywhere where they should be, or one clear line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.chart_pages import HELD
from tests.deploy.charts import FILE, only, rendered, run_helm, settings, template
from tests.deploy.terraform import DEPLOY

from sparkmirror.mirror.engine.sizing import EXECUTOR_HEAP_MB, EXECUTOR_MB, TASK_MB

pytestmark = pytest.mark.full

SECRET_WORD = "s3cret-Wort"
FORMS = pytest.mark.parametrize("form", ["deployment", "sparkApplication"])
PODS = pytest.mark.parametrize(
    ("form", "component"),
    [
        ("deployment", "mirror"),
        ("deployment", "executor"),
        ("deployment", "worker"),
        ("sparkApplication", "mirror"),
        ("sparkApplication", "executor"),
    ],
)
WORKERS = "workers.max=4,workers.secret=spark"


def pod(objects: list[dict[str, Any]], component: str) -> dict[str, Any]:
    """The template of a mirror's, an executor's, a worker's or the master's pod."""
    kinds = {item["kind"] for item in objects}
    if "SparkApplication" in kinds:
        part = {"mirror": "driver", "executor": "executor"}[component]
        found: dict[str, Any] = only(objects, "SparkApplication")["spec"][part]["template"]
    elif component == "mirror":
        found = only(objects, "Deployment")["spec"]["template"]
    elif component in ("worker", "master"):
        kind = {"worker": "Deployment", "master": "StatefulSet"}[component]
        found = only(objects, kind, f"ours-sparkmirror-{component}")["spec"]["template"]
    else:
        found = yaml.safe_load(only(objects, "Secret", "ours-sparkmirror-executor")["stringData"]["pod.yaml"])
    return found


# --- what is mirrored -------------------------------------------------------------------------------------


def test_the_file_is_no_config_map(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(f'primary.sasl.jaas.config = … password="{SECRET_WORD}";\nnext = line\n')
    objects = rendered("--set-file", f"config.text={file}", "--set", "spark.executors=1", file="")
    holders = {item["kind"] for item in objects if SECRET_WORD in json.dumps(item)}
    assert holders == {"Secret"}
    assert only(objects, "Secret")["stringData"] == {"mm2.properties": file.read_text()}
    (volume,) = (each for each in pod(objects, "mirror")["spec"]["volumes"] if each["name"] == "config")
    assert volume["secret"] == {"secretName": "ours-sparkmirror"}


@FORMS
def test_passwords_of_the_environment_are_in_no_config_map(form: str) -> None:
    told = f"form={form},spark.executors=1,extraEnv[0].name=A,extraEnv[0].value={SECRET_WORD}"
    assert all(SECRET_WORD not in json.dumps(item) for item in rendered("--set", told) if item["kind"] == "ConfigMap")


@pytest.mark.parametrize("text", ["", "\n"], ids=["nothing", "an empty line"])
def test_no_file_is_refused(text: str) -> None:
    refused = template("sparkmirror", "--set", f"config.text={text}", ok=False)
    assert "config: no file says what is mirrored" in refused
    assert "--set-file config.text=mm2.properties" in refused


def test_two_files_are_refused() -> None:
    refused = template("sparkmirror", "--set", f"{FILE},config.existingSecret=mine", ok=False)
    assert "given twice, by config.text and config.existingSecret" in refused


def test_another_text_is_another_pod() -> None:
    texts = ("clusters = a", "clusters = b")
    first, second = (
        pod(rendered("--set", f"config.text={text}", file=""), "mirror")["metadata"]["annotations"] for text in texts
    )
    assert first.keys() == second.keys() == {"checksum/config"}
    assert first != second


def test_a_resource_is_taken_over_without_new_pods() -> None:
    objects = rendered("--set", "config.file=mirror.yaml")
    assert "checksum/config" not in pod(objects, "mirror")["metadata"].get("annotations", {})


# --- names that people know -------------------------------------------------------------------------------

DIGEST = f"sha256:{'0a' * 32}"


@pytest.mark.parametrize(
    ("told", "image"),
    [
        ("image.tag=1", "sparkmirror:1"),
        ("image.registry=r.example:5000,image.repository=a/b,image.tag=1", "r.example:5000/a/b:1"),
        (f"image.registry=r.example,image.digest={DIGEST}", f"r.example/sparkmirror@{DIGEST}"),
        ("image.registry=r.example,global.imageRegistry=mirror.example,image.tag=2", "mirror.example/sparkmirror:2"),
    ],
)
@pytest.mark.parametrize("chart", ["sparkmirror", "sparkmirror-operator"])
def test_images(chart: str, told: str, image: str) -> None:
    objects = rendered("--set-string", told, chart=chart)
    (deployment,) = (item for item in objects if item["kind"] == "Deployment")
    assert [each["image"] for each in deployment["spec"]["template"]["spec"]["containers"]] == [image]
    if chart == "sparkmirror-operator":
        arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        assert arguments[arguments.index("--image") + 1] == image
    else:
        assert [each["image"] for each in only(objects, "Pod", "ours-sparkmirror-test")["spec"]["containers"]] == [
            image
        ]


def test_executors_and_drivers_have_the_image() -> None:
    told = f"image.registry=r.example,image.digest={DIGEST},spark.executors=1"
    arguments = pod(rendered("--set", told), "mirror")["spec"]["containers"][0]["args"]
    assert settings(arguments)["spark.kubernetes.container.image"] == f"r.example/sparkmirror@{DIGEST}"
    application = only(rendered("--set", f"{told},form=sparkApplication"), "SparkApplication")
    assert application["spec"]["image"] == f"r.example/sparkmirror@{DIGEST}"


MONITORED = (
    "serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboards.enabled=true,podDisruptionBudget.enabled=true"
)


@pytest.mark.parametrize(
    ("chart", "more"),
    [
        ("sparkmirror", f"spark.executors=2,{MONITORED}"),
        ("sparkmirror", f"{WORKERS},{MONITORED}"),
        ("sparkmirror", f"form=sparkApplication,{MONITORED}"),
        ("sparkmirror-operator", "serviceMonitor.enabled=true"),
    ],
    ids=["executors", "workers", "application", "operator"],
)
def test_common_labels_and_annotations_are_on_all_objects(chart: str, more: str) -> None:
    objects = rendered("--set", f"commonLabels.team=a,commonAnnotations.owner=b,{more}", chart=chart)
    assert len(objects) > 5
    for item in objects:
        metadata = [item["metadata"]]
        if item["kind"] in ("Deployment", "StatefulSet"):
            metadata.append(item["spec"]["template"]["metadata"])
            assert "team" not in item["spec"]["selector"]["matchLabels"], "a selector never changes"
        if item["kind"] == "SparkApplication":
            metadata += [item["spec"][part]["template"]["metadata"] for part in ("driver", "executor")]
        for each in metadata:
            assert (each["labels"]["team"], each["annotations"]["owner"]) == ("a", "b"), item["kind"]
    if "spark.executors" in more:
        assert pod(objects, "executor")["metadata"]["labels"]["team"] == "a"


def test_the_charts_own_labels_count() -> None:
    label = r"app\.kubernetes\.io/component=mine"
    made = rendered("--set", f"commonLabels.{label},podLabels.{label}")
    assert pod(made, "mirror")["metadata"]["labels"]["app.kubernetes.io/component"] == "mirror"


@PODS
def test_values_of_pods_are_on_all_that_run_tasks(form: str, component: str) -> None:
    given = {
        "form": form,
        **({"workers": {"max": 2, "secret": "spark"}} if component == "worker" else {"spark": {"executors": 2}}),
        "extraEnv": [{"name": "A", "value": "b"}],
        "extraEnvFrom": [{"secretRef": {"name": "more"}}],
        "extraVolumes": [{"name": "krb5", "configMap": {"name": "krb5"}}],
        "extraVolumeMounts": [{"name": "krb5", "mountPath": "/etc/krb5.conf", "subPath": "krb5.conf"}],
        "initContainers": [{"name": "wait", "image": "busybox"}],
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "priorityClassName": "high",
        "podLabels": {"team": "a"},
        "podAnnotations": {"note": "b"},
        "podSecurityContext": {"fsGroup": 10001},
        "containerSecurityContext": {"readOnlyRootFilesystem": False, "runAsUser": 10001},
        "secrets": ["primary-user"],
        "global": {"imagePullSecrets": ["everywhere"]},
    }
    made = pod(_with(given), component)
    spec, (container,) = made["spec"], made["spec"]["containers"]
    assert {"name": "A", "value": "b"} in container["env"]
    assert container["envFrom"] == given["extraEnvFrom"]
    assert given["extraVolumes"][0] in spec["volumes"]  # type: ignore[index]
    assert given["extraVolumeMounts"][0] in container["volumeMounts"]  # type: ignore[index]
    assert {"name": "secret-0", "secret": {"secretName": "primary-user"}} in spec["volumes"]
    assert spec["imagePullSecrets"] == [{"name": "everywhere"}, {"name": "registry"}]
    for name in ("initContainers", "nodeSelector", "tolerations", "affinity", "priorityClassName"):
        assert spec[name] == given[name], name
    assert made["metadata"]["labels"]["team"] == "a"
    assert made["metadata"]["annotations"]["note"] == "b"
    assert spec["securityContext"]["fsGroup"] == 10001
    assert spec["securityContext"]["runAsNonRoot"] is True
    security = container["securityContext"]
    assert (security["readOnlyRootFilesystem"], security["runAsUser"]) == (False, 10001)
    assert security["allowPrivilegeEscalation"] is False


def test_the_master_is_placed_as_the_others() -> None:
    """It has no configuration and no Secret of the mirror's."""
    given = {
        "workers": {"max": 2, "secret": "spark"},
        "nodeSelector": {"disk": "fast"},
        "imagePullSecrets": [{"name": "registry"}],
        "podLabels": {"team": "a"},
        "podSecurityContext": {"runAsUser": 7},
        "containerSecurityContext": {"runAsGroup": 8},
        "image": {"registry": "r.example"},
        "secrets": ["primary-user"],
    }
    objects = _with(given)
    made = pod(objects, "master")
    spec, (container,) = made["spec"], made["spec"]["containers"]
    assert (spec["nodeSelector"], spec["imagePullSecrets"]) == (given["nodeSelector"], given["imagePullSecrets"])
    security = {"fsGroup": 10001, "runAsNonRoot": True, "runAsUser": 7, "seccompProfile": {"type": "RuntimeDefault"}}
    assert spec["securityContext"] == security
    assert container["securityContext"]["runAsGroup"] == 8
    assert made["metadata"]["labels"].items() >= {"team": "a", "app.kubernetes.io/component": "master"}.items()
    assert container["image"].startswith("r.example/sparkmirror:")
    assert {volume["name"] for volume in spec["volumes"]} == {"tmp", "state"}


def _with(given: dict[str, Any]) -> list[dict[str, Any]]:
    return rendered(*(word for name, value in given.items() for word in ("--set-json", f"{name}={json.dumps(value)}")))


@FORMS
def test_values_of_the_mirrors_pod(form: str) -> None:
    given = {
        "form": form,
        "replicaCount": 3,
        "resources": {
            "requests": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"},
            "limits": {"cpu": "2", "memory": "2Gi"},
        },
        "readinessProbe": {"periodSeconds": 7},
        "terminationGracePeriodSeconds": 45,
        "topologySpreadConstraints": [{"maxSkew": 2}],
        "deploymentAnnotations": {"reloader.stakater.com/auto": "true"},
        "extraArgs": ["--metrics-profile", "strimzi"],
        "spark": {"driver": {"memory": "1g"}, "settings": {"spark.task.cpus": 1, "spark.big": 1000000}},
    }
    objects = _with(given)
    made = pod(objects, "mirror")["spec"]
    (container,) = made["containers"]
    assert container["readinessProbe"]["periodSeconds"] == 7
    assert container["readinessProbe"]["httpGet"] == {"path": "/ready", "port": "metrics"}
    assert container["resources"] == given["resources"]
    assert made["terminationGracePeriodSeconds"] == 45
    assert made["topologySpreadConstraints"] == given["topologySpreadConstraints"]
    if form == "deployment":
        top = only(objects, "Deployment")
        arguments = container["args"]
        assert top["spec"]["replicas"] == 3
    else:
        applications = [item for item in objects if item["kind"] == "SparkApplication"]
        ends = ("", "-2", "-3")
        assert [item["metadata"]["name"] for item in applications] == [f"ours-sparkmirror{end}" for end in ends]
        assert applications[0]["spec"] == applications[1]["spec"] == applications[2]["spec"]
        top = applications[0]
        arguments = top["spec"]["arguments"]
        driver = top["spec"]["driver"]
        assert (driver["coreRequest"], driver["coreLimit"]) == ("1", "2")
        assert (driver["memory"], driver["memoryOverhead"]) == ("1g", "1024m")
        assert top["spec"]["sparkConf"].items() >= {"spark.task.cpus": "1", "spark.big": "1000000"}.items()
    assert top["metadata"]["annotations"] == given["deploymentAnnotations"]
    assert "--metrics-profile strimzi" in " ".join(arguments)
    told = {"spark.driver.memory": "1g", "spark.task.cpus": "1", "spark.big": "1000000"}
    assert settings(arguments).items() >= told.items()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("replicas=2", "replicaCount"),
        ("env[0].name=A", "extraEnv"),
        ("extraEnvVars[0].name=A", "extraEnv"),
        ("envFrom[0].name=A", "extraEnvFrom"),
        ("arguments={a}", "extraArgs"),
        ("image.pullSecrets={a}", "imagePullSecrets"),
        ("probes.liveness.periodSeconds=1", "livenessProbe"),
    ],
)
def test_another_name_is_told_its_own(old: str, new: str) -> None:
    refused = template("sparkmirror", "--set", f"{FILE},{old}", ok=False)
    (line,) = (line for line in refused.splitlines() if line.startswith("- "))
    path = "/" + re.split(r"[=\[{]", old)[0].split(".liveness")[0].replace(".", "/")
    assert f"'{path}'" in line
    assert re.search(rf"called .*\b{new}\b", line)


# --- Spark ------------------------------------------------------------------------------------------------


@FORMS
@pytest.mark.parametrize("cores", [1, 2, 4])
def test_memory_follows_cores(form: str, cores: int) -> None:
    objects = rendered("--set", f"form={form},spark.executors=2,spark.executor.cores={cores}")
    heap, overhead = f"{EXECUTOR_HEAP_MB}m", f"{TASK_MB * cores + EXECUTOR_MB}m"
    if form == "deployment":
        arguments = pod(objects, "mirror")["spec"]["containers"][0]["args"]
    else:
        spec = only(objects, "SparkApplication")["spec"]
        arguments = spec["arguments"]
        told = {"instances": 2, "cores": cores, "memory": heap, "memoryOverhead": overhead}
        assert {name: value for name, value in spec["executor"].items() if name != "template"} == told
        assert spec["sparkConf"]["spark.executor.memoryOverhead"] == overhead
        assert "spark.master" not in spec["sparkConf"]
    made = settings(arguments)
    assert (made["spark.executor.memory"], made["spark.executor.memoryOverhead"]) == (heap, overhead)
    assert (made["spark.executor.cores"], made["spark.executor.instances"]) == (str(cores), "2")


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_memory_of_workers_follows_cores(cores: int) -> None:
    """An executor's, and 384 MiB for the worker's own processes."""
    made = pod(rendered("--set", f"{WORKERS},spark.executor.cores={cores}"), "worker")["spec"]["containers"][0]
    memory = f"{EXECUTOR_HEAP_MB + TASK_MB * cores + EXECUTOR_MB + 384}Mi"
    assert made["resources"] == {"requests": {"cpu": str(cores), "memory": memory}, "limits": {"memory": memory}}
    environment = {each["name"]: each.get("value") for each in made["env"]}
    assert (environment["SPARK_WORKER_CORES"], environment["SPARK_WORKER_MEMORY"]) == (str(cores), "512m")


def test_values_count_over_what_is_computed_for_workers() -> None:
    workers = {"max": 2, "secret": "spark", "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "500m"}}}
    spark = {"executor": {"memoryOverhead": "1g"}, "settings": {"spark.executor.memory": "600m"}}
    objects = _with({"workers": workers, "spark": spark})
    (container,) = pod(objects, "worker")["spec"]["containers"]
    memory = f"{600 + 1024 + 384}Mi"
    told = {"limits": {"cpu": "2", "memory": memory}, "requests": {"cpu": "500m", "memory": memory}}
    assert container["resources"] == told
    assert {"name": "SPARK_WORKER_MEMORY", "value": "600m"} in container["env"]
    arguments = pod(objects, "mirror")["spec"]["containers"][0]["args"]
    assert settings(arguments)["spark.executor.memory"] == "600m"


def test_parts_of_a_spark_cluster_know_each_other() -> None:
    """The secret is in a variable of each of them, and on no command line; the executors' account may nothing."""
    objects = rendered("--set", f"{WORKERS},serviceAccount.annotations.role=a")
    key = {"secretKeyRef": {"name": "spark", "key": "secret"}}
    for component in ("mirror", "master", "worker"):
        spec = pod(objects, component)["spec"]
        assert {"name": "_SPARK_AUTH_SECRET", "valueFrom": key} in spec["containers"][0]["env"]
        assert spec["automountServiceAccountToken"] is False
        own = component == "mirror"
        assert spec["serviceAccountName"] == ("ours-sparkmirror" if own else "ours-sparkmirror-executor")
    told = settings(pod(objects, "mirror")["spec"]["containers"][0]["args"])
    assert told["spark.master"] == "spark://ours-sparkmirror-master:7077"
    assert told["spark.authenticate"] == told["spark.network.crypto.enabled"] == "true"
    assert "spark://ours-sparkmirror-master:7077" in pod(objects, "worker")["spec"]["containers"][0]["args"]
    only(objects, "Service", "ours-sparkmirror-master")
    only(objects, "ServiceAccount", "ours-sparkmirror-executor")
    assert not {"Role", "RoleBinding"} & {item["kind"] for item in objects}


@FORMS
def test_settings_count_over_the_charts(form: str) -> None:
    told = {
        "form": form,
        "spark": {"executors": 1, "warmStandby": True, "settings": {"spark.executor.memoryOverhead": "900m"}},
    }
    objects = _with(told)
    if form == "deployment":
        arguments = pod(objects, "mirror")["spec"]["containers"][0]["args"]
    else:
        spec = only(objects, "SparkApplication")["spec"]
        arguments = spec["arguments"]
        assert spec["executor"]["memoryOverhead"] == "900m"
    assert settings(arguments)["spark.executor.memoryOverhead"] == "900m"
    assert settings(arguments)["spark.sparkmirror.standby.warm"] == "true"


def test_sparks_version_is_the_images() -> None:
    built = re.search(r"^ARG SPARK_VERSION=(\S+)$", (DEPLOY / "docker" / "Dockerfile").read_text(), re.M)
    assert built is not None
    told = ("--set", "form=sparkApplication")
    assert only(rendered(*told), "SparkApplication")["spec"]["sparkVersion"] == built[1]
    assert only(rendered(*told, "--set", "spark.version=3.5.9"), "SparkApplication")["spec"]["sparkVersion"] == "3.5.9"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("resources.limits.memory=1500M", "resources.limits.memory: form sparkApplication needs whole mebibytes"),
        ("resources.limits.memory=null", "resources.limits.memory: form sparkApplication needs whole mebibytes"),
        ("spark.driver.memory=900m", "resources.limits.memory: 1024Mi are too little for a driver with a heap of 900m"),
        ("podDisruptionBudget.maxUnavailable=50%", "podDisruptionBudget.maxUnavailable: form sparkApplication"),
    ],
)
def test_a_spark_application_can_not_have_it(told: str, words: str) -> None:
    refused = template("sparkmirror", "--set", f"{FILE},form=sparkApplication,{told}", ok=False)
    assert words in refused


def test_small_values_are_enough_for_a_driver() -> None:
    small = str(DEPLOY / "helm" / "sparkmirror" / "values-small.yaml")
    driver = only(rendered("--values", small, "--set", "form=sparkApplication"), "SparkApplication")["spec"]["driver"]
    assert (driver["memory"], driver["memoryOverhead"]) == ("512m", "256m")


@pytest.mark.parametrize(("count", "kept"), [(1, None), (2, 1), (3, 2)])
def test_the_budget_of_drivers(count: int, kept: int | None) -> None:
    """Kubernetes knows no scale of a SparkApplication: with `maxUnavailable` it would let no pod go."""
    objects = rendered("--set", f"form=sparkApplication,replicaCount={count}")
    budgets = [item["spec"] for item in objects if item["kind"] == "PodDisruptionBudget"]
    assert [budget.get("minAvailable") for budget in budgets] == ([] if kept is None else [kept])
    assert all("maxUnavailable" not in budget for budget in budgets)


# --- watching it ------------------------------------------------------------------------------------------


def test_alerts_are_those_of_prometheus() -> None:
    address = "https://git.example.com/sparkmirror/docs/runbook.md"
    told = f"prometheusRule.enabled=true,prometheusRule.labels.release=p,prometheusRule.runbookUrl={address}"
    rule = only(rendered("--set", told), "PrometheusRule")
    texts = (HELD[f"sparkmirror/files/{name}.yml"].read_text() for name in ("alerts", "recording"))
    groups = [
        group for text in texts for group in yaml.safe_load(text.replace("docs/runbook.md#", f"{address}#"))["groups"]
    ]
    assert rule["spec"]["groups"] == groups
    assert rule["metadata"]["labels"]["release"] == "p"
    alerts = [each for group in groups for each in group["rules"] if "alert" in each]
    assert len(alerts) > 10
    assert all(each["annotations"]["runbook_url"].startswith(f"{address}#") for each in alerts)


def test_the_dashboard_is_grafanas() -> None:
    told = "dashboards.enabled=true,dashboards.annotations.grafana_folder=Kafka"
    board = only(rendered("--set", told), "ConfigMap", "ours-sparkmirror-dashboards")
    assert board["data"]["sparkmirror.json"].strip() == HELD["sparkmirror/files/sparkmirror.json"].read_text().strip()
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert board["metadata"]["annotations"] == {"grafana_folder": "Kafka"}


@pytest.mark.parametrize(("name", "key"), [("serviceMonitor", "endpoints"), ("podMonitor", "podMetricsEndpoints")])
def test_monitors(name: str, key: str) -> None:
    relabelings = [{"targetLabel": "strimzi_io_kind", "replacement": "KafkaMirrorMaker2"}]
    given = {name: {"enabled": True, "labels": {"release": "p"}, "relabelings": relabelings}}
    objects = _with(given)
    monitor = only(objects, name[0].upper() + name[1:])
    (endpoint,) = monitor["spec"][key]
    assert endpoint == {"port": "metrics", "path": "/metrics", "interval": "30s", "relabelings": relabelings}
    assert monitor["metadata"]["labels"]["release"] == "p"
    if name == "podMonitor":
        labels = pod(objects, "mirror")["metadata"]["labels"]
        assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_one_monitor_is_enough() -> None:
    refused = template("sparkmirror", "--set", f"{FILE},serviceMonitor.enabled=true,podMonitor.enabled=true", ok=False)
    assert "Prometheus would scrape each pod twice" in refused


# --- GitOps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chart", ["sparkmirror", "sparkmirror-operator"])
def test_rendering_is_stable(chart: str) -> None:
    """Nothing random, no time, no order of a map."""
    told = ("--set", f"{MONITORED},{WORKERS},commonLabels.a=b,commonLabels.c=d") if chart == "sparkmirror" else ()
    more = ("--set", FILE) if chart == "sparkmirror" else ()
    assert template(chart, *more, *told) == template(chart, *more, *told)


@pytest.mark.parametrize("chart", ["sparkmirror", "sparkmirror-operator"])
def test_the_package_has_its_papers(chart: str, tmp_path: Path) -> None:
    run_helm("package", str(DEPLOY / "helm" / chart), "--destination", str(tmp_path))
    (package,) = tmp_path.glob("*.tgz")
    assert f"# {chart}\n" in run_helm("show", "readme", str(package))
    about = yaml.safe_load(run_helm("show", "chart", str(package)))
    assert about["annotations"]["artifacthub.io/license"] == "Apache-2.0"
    assert about["maintainers"]
