"""Terraform itself over `deploy/terraform`, with the AWS provider's schema; nothing here is asked of AWS."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from mirror_process import COMMAND
from tests.deploy import tools
from tests.deploy.terraform import (
    MODULE,
    SOURCE_BROKERS,
    SPARK_SECRET_ARN,
    TARGET_BROKERS,
    WITH_BROKERS,
    Workspace,
    opened,
)
from tests.metrics.prometheus_programs import fetched

from sparkmirror import __version__
from sparkmirror.cli.run import load

pytestmark = pytest.mark.full

SERVICES = {"driver", "master", "worker", "prometheus", "grafana"}
Deployment = Mapping[str, Any]


def containers(deployment: Deployment, service: str) -> dict[str, Any]:
    """Those of a service's task, by name."""
    told = json.loads(deployment[f'aws_ecs_task_definition.this["{service}"]']["container_definitions"])
    return {one["name"]: one for one in told}


def statements(deployment: Deployment, role: str, service: str) -> dict[str, Any]:
    """Of a role's policy, by their ids; none where it has no policy."""
    policy = deployment.get(f'aws_iam_role_policy.{role}["{service}"]')
    return {} if policy is None else {one["Sid"]: one for one in json.loads(policy["policy"])["Statement"]}


def configuration(deployment: Deployment, directory: str) -> dict[str, str]:
    """Files below a directory of the bucket, by name."""
    objects = [one for address, one in deployment.items() if address.startswith("aws_s3_object.")]
    return {
        one["key"].removeprefix(f"{directory}/"): one["content"]
        for one in objects
        if one["key"].startswith(f"{directory}/")
    }


def test_it_is_valid_and_formatted(workspace: Workspace) -> None:
    assert "The configuration is valid" in workspace.run("validate")
    workspace.run("fmt", "-check", "-diff", "-recursive")


def test_it_settles(workspace: Workspace) -> None:
    """With clusters of its own: all is made, and the next plan finds nothing to do."""
    deployed = workspace.applied()
    assert {f'aws_msk_cluster.this["{side}"]' for side in ("source", "target")} <= set(deployed)
    assert opened(deployed)["tasks", "msk"] == {9096, 9098}
    assert opened(deployed)["prometheus", "msk"] == {11001, 11002}
    assert "No changes." in workspace.plan("-detailed-exitcode")
    told = {name: one["value"] for name, one in json.loads(workspace.run("output", "-json")).items()}
    assert told["urls"]["prometheus"] == "http://prometheus.migrationsample.us-west-1.local:9090"
    assert (
        "s3://migrationsample-configuration-012345678910-us-west-1/connector/mm2-source.json" in told["connector_uris"]
    )
    jobs = yaml.safe_load(configuration(deployed, "prometheus")["prometheus.yml"])["scrape_configs"]
    assert [job["job_name"] for job in jobs] == ["prometheus", "sparkmirror", "broker"]
    assert workspace.applied("-destroy") == {}


def test_wrong_variables_are_named(workspace: Workspace, tmp_path: Path) -> None:
    assert "Value for undeclared variable" in workspace.plan("-var=worker-maximum=3", expected=1)
    assert "has twelve digits" in workspace.plan("-var=account-id=1", expected=1)
    assert "not of account-id 210987654321" in workspace.plan("-var=account-id=210987654321")
    assert "there are 1: choose by subnet-ids" in workspace.plan('-var=subnet-ids=["subnet-a"]')
    asked = workspace.plan("-var=spark-secret-arn=", expected=1)
    assert "A Spark cluster needs a secret, or whoever reaches it runs programs on it." in asked
    shutil.copytree(MODULE.parents[1] / "examples" / "connectors" / "scram", tmp_path / "scram")
    asked = workspace.plan(f"-var=connector-directory={tmp_path / 'scram'}", *WITH_BROKERS, expected=1)
    assert "connector/mm2-source.json has placeholders without a value" in asked
    (tmp_path / "scram" / "worker.properties").unlink()
    asked = workspace.plan(f"-var=connector-directory={tmp_path / 'scram'}", *WITH_BROKERS, expected=1)
    assert "scram must hold connectors' JSON files and one worker's file" in asked


def test_services(deployment: Deployment) -> None:
    """Two drivers in two zones, each service with a health check and the circuit breaker, nothing public."""
    for name in SERVICES:
        service = deployment[f'aws_ecs_service.this["{name}"]']
        assert service["launch_type"] == "FARGATE"
        assert service["desired_count"] == (2 if name == "driver" else 1)
        assert service["deployment_circuit_breaker"] == [{"enable": True, "rollback": True}]
        (network,) = service["network_configuration"]
        assert network["assign_public_ip"] is False
        assert len(network["subnets"]) == 3
        own, prepare = containers(deployment, name)[name], containers(deployment, name)["prepare"]
        assert own["readonlyRootFilesystem"]
        assert own["healthCheck"]["command"][0] == "CMD"
        assert own["dependsOn"] == [{"containerName": "prepare", "condition": "SUCCESS"}]
        assert prepare["essential"] is False
        assert own["logConfiguration"]["options"]["awslogs-group"] == f"/ecs/migrationsample/{name}"
    assert deployment['aws_ecs_service.this["driver"]']["availability_zone_rebalancing"] == "ENABLED"
    master = deployment['aws_ecs_service.this["master"]']
    assert (master["deployment_minimum_healthy_percent"], master["deployment_maximum_percent"]) == (0, 100)


def test_our_containers(deployment: Deployment) -> None:
    """As the image wants them: its user, its arguments, what it writes to."""
    for name in ("driver", "master", "worker"):
        own = containers(deployment, name)[name]
        assert own["user"] == "10001"
        assert {"/tmp", "/var/lib/sparkmirror"} <= {mount["containerPath"] for mount in own["mountPoints"]}
        assert own["stopTimeout"] == (120 if name == "worker" else 60)
    assert containers(deployment, "driver")["driver"]["command"][:2] == ["run", "/etc/sparkmirror"]
    (url,) = containers(deployment, "worker")["worker"]["command"][1:]
    assert url == "spark://master.migrationsample.us-west-1.local:7077"


def test_the_spark_cluster_serves_nobody_else(deployment: Deployment, tmp_path: Path) -> None:
    """Who has no secret is refused by all, and no service reaches a port that it does not need."""
    secret = {"name": "_SPARK_AUTH_SECRET", "valueFrom": SPARK_SECRET_ARN}
    for name in SERVICES:
        knows = secret in containers(deployment, name)[name]["secrets"]
        assert knows is (name in {"driver", "master", "worker"}), name
    assert SPARK_SECRET_ARN in statements(deployment, "execution", "master")["Secret0"]["Resource"]
    assert "Secret0" not in statements(deployment, "execution", "prometheus")
    on = {"spark.authenticate", "spark.network.crypto.enabled"}
    for name in ("master", "worker"):
        (options,) = (
            one["value"]
            for one in containers(deployment, name)[name]["environment"]
            if one["name"] == f"SPARK_{name.upper()}_OPTS"
        )
        assert {f"-D{key}=true" for key in on} <= set(options.split())
        assert name != "master" or "-Dspark.master.rest.enabled=false" in options.split()
    for name, text in configuration(deployment, "connector").items():
        (tmp_path / name).write_text(text)
    spark = load(str(tmp_path), None, secrets=None).spark
    assert {spark[key] for key in on} == {"true"}
    blocks = int(spark["spark.blockManager.port"])
    assert opened(deployment) == {
        ("prometheus", "driver"): {9404},
        ("grafana", "prometheus"): {9090},
        ("driver", "master"): {7077},
        ("worker", "master"): {7077},
        ("master", "worker"): {7078},
        ("master", "driver"): {int(spark["spark.driver.port"])},
        ("worker", "driver"): {int(spark["spark.driver.port"]), int(spark["spark.driver.blockManager.port"])},
        ("driver", "worker"): set(range(blocks, blocks + 17)),
        ("worker", "worker"): set(range(blocks, blocks + 17)),
        ("master", "recovery"): {2049},
    }
    for name in SERVICES:
        (network,) = deployment[f'aws_ecs_service.this["{name}"]']["network_configuration"]
        groups = {deployment[f'aws_security_group.service["{name}"]']["id"]}
        if name in {"driver", "worker"}:
            groups.add(deployment["aws_security_group.tasks"]["id"])
        assert set(network["security_groups"]) == groups, name


def test_whose_prometheus(deployment: Deployment, tmp_path: Path) -> None:
    """The one that build_images.sh has pushed, and the right to pull it; or another one."""
    image = containers(deployment, "prometheus")["prometheus"]["image"]
    assert image == f"012345678910.registry.made-up/sparkmirror-prometheus:{__version__}"
    pull = statements(deployment, "execution", "prometheus")["Pull"]
    assert pull["Resource"] == ["arn:aws:ecr:us-west-1:012345678910:repository/sparkmirror-prometheus"]
    made = Workspace(tmp_path)
    made.init()
    deployed = made.applied("-var=prometheus-image=prom/prometheus:v3.5.0", *WITH_BROKERS)
    assert containers(deployed, "prometheus")["prometheus"]["image"] == "prom/prometheus:v3.5.0"
    assert "Pull" not in statements(deployed, "execution", "prometheus")


def test_sizes_are_the_kits(deployment: Deployment) -> None:
    sizes = {name: deployment[f'aws_ecs_task_definition.this["{name}"]'] for name in SERVICES}
    assert {name: (int(one["cpu"]), int(one["memory"])) for name, one in sizes.items()} == {
        "driver": (1024, 4096),
        "worker": (1024, 4096),
        "master": (256, 1024),
        "prometheus": (2048, 4096),
        "grafana": (1024, 3072),
    }


def test_workers_scale(deployment: Deployment) -> None:
    target = deployment["aws_appautoscaling_target.worker[0]"]
    assert (target["min_capacity"], target["max_capacity"]) == (1, 10)
    assert target["resource_id"] == "service/migrationsample/worker"
    (policy,) = deployment["aws_appautoscaling_policy.worker[0]"]["target_tracking_scaling_policy_configuration"]
    assert policy["target_value"] == 70
    assert policy["predefined_metric_specification"][0]["predefined_metric_type"] == "ECSServiceAverageCPUUtilization"


def test_without_a_spark_cluster(tmp_path: Path) -> None:
    """`worker-max = 0`: neither master nor workers, nor what they need."""
    made = Workspace(tmp_path)
    made.init()
    deployed = made.applied("-var=worker-max=0", "-var=spark-secret-arn=", *WITH_BROKERS)
    left = {address for address in deployed if re.search(r'"(master|worker)"|_efs_|_appautoscaling_', address)}
    assert left == set()
    assert opened(deployed) == {("prometheus", "driver"): {9404}, ("grafana", "prometheus"): {9090}}
    assert containers(deployed, "driver")["driver"]["secrets"] == []
    assert "spark.master" not in configuration(deployed, "connector")["worker.properties"]


def test_connectors_are_run_as_they_are(deployment: Deployment, tmp_path: Path) -> None:
    """What the drivers fetch, read by sparkmirror itself."""
    for name, text in configuration(deployment, "connector").items():
        (tmp_path / name).write_text(text)
    done = subprocess.run([COMMAND, "config", str(tmp_path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told = {tuple(line.split("\t")[:3]) for line in done.stdout.splitlines()}
    flow = "msksource->mskdest"
    assert {
        (flow, "msksource.bootstrap.servers", SOURCE_BROKERS.replace(",", ", ")),
        (flow, "mskdest.bootstrap.servers", TARGET_BROKERS),
        (flow, "topics", "ExampleTopic"),
        (flow, "tasks.max", "10"),
    } <= told, done.stdout
    spark = load(str(tmp_path), None, secrets=None).spark
    assert spark["spark.master"] == containers(deployment, "worker")["worker"]["command"][1]


def test_the_page_and_metrics_are_where_prometheus_asks(deployment: Deployment, tmp_path: Path) -> None:
    command = containers(deployment, "driver")["driver"]["command"]
    files = configuration(deployment, "prometheus")
    (job,) = (
        one for one in yaml.safe_load(files["prometheus.yml"])["scrape_configs"] if one["job_name"] == "sparkmirror"
    )
    (asked,) = job["dns_sd_configs"]
    assert asked["names"] == ["driver.migrationsample.us-west-1.local"]
    assert str(asked["port"]) == command[command.index("--metrics-port") + 1]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [fetched("promtool"), "check", "config", "prometheus.yml"],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_grafana_finds_prometheus_and_the_dashboards(deployment: Deployment) -> None:
    files = configuration(deployment, "grafana")
    (source,) = yaml.safe_load(files["provisioning/datasources/prometheus.yml"])["datasources"]
    assert source["url"] == "http://prometheus.migrationsample.us-west-1.local:9090"
    (provider,) = yaml.safe_load(files["provisioning/dashboards/sparkmirror.yml"])["providers"]
    assert provider["options"]["path"] == "/etc/sparkmirror/dashboards"
    assert {"dashboards/sparkmirror.json", "dashboards/aws.json"} <= set(files)


def test_rights_are_the_least(deployment: Deployment) -> None:
    """No role may more than its service does: a star alone only where AWS knows no resource."""
    for name in SERVICES:
        for role in ("task", "execution"):
            for sid, statement in statements(deployment, role, name).items():
                assert not any("*" in action for action in statement["Action"]), sid
                if sid != "SignIn":
                    assert "*" not in statement["Resource"], sid
    driver, worker = (statements(deployment, "task", name) for name in ("driver", "worker"))
    assert set(driver) - set(worker) == {"Configuration", "ConfigurationNames"}
    assert worker["SourceTopics"]["Resource"] == ["arn:aws:kafka:us-west-1:012345678910:topic/old/0123-1/ExampleTopic"]
    assert "kafka-cluster:WriteData" not in worker["SourceTopics"]["Action"]
    assert worker["TargetAppendCheck"]["Action"] == ["kafka-cluster:DeleteTopic"]
    assert {name for name in SERVICES if "Configuration" in statements(deployment, "task", name)} == {
        "driver",
        "prometheus",
        "grafana",
    }
    assert set(statements(deployment, "task", "master")) == {"Recovery"}


def test_secrets_are_only_referred_to(tmp_path: Path) -> None:
    """ECS takes them from Secrets Manager; neither plan nor state has ever seen one."""
    arn = "arn:aws:secretsmanager:us-west-1:012345678910:secret:kafka-AbCdEf"
    made = Workspace(tmp_path)
    made.init()
    deployed = made.applied(f'-var=secrets={{"SOURCE_PASSWORD"="{arn}"}}', *WITH_BROKERS)
    for name in ("driver", "worker"):
        assert {"name": "SOURCE_PASSWORD", "valueFrom": arn} in containers(deployed, name)[name]["secrets"]
        assert statements(deployed, "execution", name)["Secret0"]["Resource"] == [arn]


def test_tflint() -> None:
    program = tools.go_program("github.com/terraform-linters/tflint@v0.64.0")
    done = subprocess.run([program, "--no-color"], cwd=MODULE, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def checkov(*words: str) -> subprocess.CompletedProcess[str]:
    program = tools.python_programs("checkov==3.3.30") / "checkov"
    more = ("--config-file", ".checkov.yaml", "--compact", "--quiet", *words)
    return subprocess.run([program, *more], cwd=MODULE, capture_output=True, text=True, timeout=300, check=False)


def test_checkov(workspace: Workspace, tmp_path: Path) -> None:
    """Nothing but what `.checkov.yaml` leaves out, with the reasons there: of the files, and of a plan."""
    done = checkov("--directory", ".")
    assert done.returncode == 0, done.stdout + done.stderr
    workspace.plan("-out=plan")
    (tmp_path / "plan.json").write_text(workspace.run("show", "-json", "plan"))
    done = checkov("--file", str(tmp_path / "plan.json"), "--framework", "terraform_plan")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Passed checks: [1-9]", done.stdout), done.stdout
