"""Terraform itself over `deploy/terraform`, with the AWS provider's schema; nothing here is asked of AWS."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy import programs
from tests.deploy.module_pages import PUBLIC
from tests.deploy.terraform import (
    MODULE,
    SOURCE_BROKERS,
    SPARK_SECRET_ARN,
    TARGET_BROKERS,
    Workspace,
    declared,
    modules,
    opened,
)
from tests.deploy.terraform import service as resource
from tests.support.mirror_process import COMMAND
from tests.support.prometheus_programs import fetched

from sparkmirror import __version__
from sparkmirror.cli.loading import load
from sparkmirror.snapshot.snapshot import Flow

pytestmark = pytest.mark.full

OLD_RESOURCES = (
    ("aws_msk_cluster", "this"),
    ("aws_msk_configuration", "this"),
    ("aws_kms_key", "msk"),
    ("aws_cloudwatch_log_group", "msk"),
    ("aws_security_group", "msk"),
)
OLD = {
    "aws_msk_cluster": (
        'cluster_name = "migrationsample-target"\nkafka_version = "3.9.x"\nnumber_of_broker_nodes = 3\n'
        'broker_node_group_info {\nclient_subnets = ["subnet-a"]\ninstance_type = "kafka.m7g.large"\n'
        'security_groups = ["sg-a"]\n}\n'
    ),
    "aws_msk_configuration": 'name = "migrationsample"\nserver_properties = "log.retention.hours=8"\n',
}
"""What the deployment made of clusters up to 0.2, with what the provider needs."""
SERVICES = {"driver", "master", "worker", "prometheus", "grafana"}
Deployment = Mapping[str, Any]
BASTION = "sg-0123456789abcdef0"
BASTIONS_WAYS = {(BASTION, "driver"): {9404}, (BASTION, "prometheus"): {9090}, (BASTION, "grafana"): {3000}}


def containers(deployment: Deployment, service: str) -> dict[str, Any]:
    """Those of a service's task, by name."""
    told = json.loads(resource(deployment, service, "aws_ecs_task_definition.this")["container_definitions"])
    return {container["name"]: container for container in told}


def statements(deployment: Deployment, role: str, service: str) -> dict[str, Any]:
    """Of a role's policy, by their ids; none where it has no policy."""
    policy = resource(deployment, service, f"aws_iam_role_policy.{role}")
    return {} if policy is None else by_sid(policy)


def by_sid(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Statements of a policy."""
    return {statement["Sid"]: statement for statement in json.loads(policy["policy"])["Statement"]}


def configuration(deployment: Deployment, directory: str) -> dict[str, str]:
    """Files below a directory of the bucket, by name."""
    objects = [one for address, one in deployment.items() if ".aws_s3_object." in address]
    return {
        one["key"].removeprefix(f"{directory}/"): one["content"]
        for one in objects
        if one["key"].startswith(f"{directory}/")
    }


EXAMPLE = ("-var=account_id=012345678910", "-var=vpc_id=vpc-1")
CLUSTER = (
    '{arn="arn:aws:kafka:us-west-1:012345678910:cluster/NAME/1",bootstrap_servers="NAME:9098",security_group_id="NAME"}'
)
CLUSTERS = f"-var=clusters={{source={CLUSTER.replace('NAME', 'old')},target={CLUSTER.replace('NAME', 'new')}}}"
IMAGE = "-var=image=012345678910.dkr.ecr.us-west-1.made-up/sparkmirror:1"
SUBNETS = '-var=subnet_ids=["subnet-a","subnet-b"]'
GRAFANA = "-var=grafana_password_secret_arn=arn:aws:secretsmanager:us-west-1:012345678910:secret:grafana-AbCdEf"


def made(tmp_path: Path, below: str = "", variables: Sequence[str] = ("-var-file=main.tfvars",)) -> Workspace:
    """A workspace of the test's own, initialised."""
    workspace = Workspace(tmp_path / "made", below, variables)
    workspace.init()
    return workspace


def test_it_is_valid_and_formatted(workspace: Workspace) -> None:
    assert "The configuration is valid" in workspace.run("validate")
    workspace.run("fmt", "-check", "-diff", "-recursive")


def test_it_settles(workspace: Workspace) -> None:
    """All is made, and the next plan finds nothing to do."""
    deployed = workspace.applied("-var=open-monitoring=true")
    assert opened(deployed)["prometheus", "sg-0123456789abcdef2"] == {11001, 11002}
    assert "No changes." in workspace.plan("-detailed-exitcode", "-var=open-monitoring=true")
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
    assert "account ID not allowed: 012345678910" in workspace.plan("-var=account-id=210987654321", expected=1)
    assert "there are 1: choose by subnet_ids" in workspace.plan('-var=subnet-ids=["subnet-a"]')
    asked = workspace.plan("-var=spark-secret-arn=", expected=1)
    assert "A Spark cluster needs a secret, or whoever reaches it runs programs on it." in asked
    asked = workspace.plan("-var=cpu=1024", "-var=memory=1500", expected=1)
    assert "Fargate has no task of 1024 CPU units and 1500 MiB." in asked
    asked = workspace.plan("-var=tasks-max=20", "-var=worker-max=3", expected=1)
    assert "tasks_max is 20, but 3 workers of 1024 CPU units have slots for 3 pumps" in asked
    asked = workspace.plan("-var=target-cluster-arn=", expected=1)
    assert "signs in by IAM at: source, target." in asked
    assert "ARNs of MSK clusters, which are missing for: target." in asked
    shutil.copytree(MODULE.parents[1] / "examples" / "connectors" / "scram", tmp_path / "scram")
    asked = workspace.plan(f"-var=connector-directory={tmp_path / 'scram'}", expected=1)
    assert "connector/mm2-source.json has placeholders without a value" in asked
    (tmp_path / "scram" / "worker.properties").unlink()
    asked = workspace.plan(f"-var=connector-directory={tmp_path / 'scram'}", expected=1)
    assert "scram must hold connectors' JSON files and one worker's file" in asked


@pytest.mark.parametrize("name", PUBLIC)
def test_modules_by_terraform_test(name: str, tmp_path: Path) -> None:
    told = made(tmp_path, f"modules/{name}", ()).run("test")
    assert re.search(r"Success! [1-9]\d* passed, 0 failed", told), told


def test_modules_have_no_provider(tmp_path: Path) -> None:
    """Or `for_each` and `count` would be refused; examples refuse the wrong account."""
    for place in modules():
        text = "".join(file.read_text() for file in place.glob("*.tf"))
        assert ("provider" in declared("provider", place) or 'provider "aws"' in text) is ("modules" not in place.parts)
        assert "modules" in place.parts or "allowed_account_ids" in text, place


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("smallest", (IMAGE,)),
        ("two_mirrors", (SUBNETS, GRAFANA, "-var=image_tag=1")),
        ("with_msk/mirror", (IMAGE, CLUSTERS, f"-var=spark_secret_arn={SPARK_SECRET_ARN}")),
    ],
)
def test_examples_settle(name: str, variables: tuple[str, ...], tmp_path: Path) -> None:
    workspace = made(tmp_path, f"examples/{name}", (*EXAMPLE, *variables))
    deployed = workspace.applied()
    assert "No changes." in workspace.plan("-detailed-exitcode")
    names = [
        (address.rpartition(".")[0].rpartition(".")[2], values[key])
        for address, values in deployed.items()
        for key in ("bucket", "family", "cluster_name", "name")
        if isinstance(values.get(key), str) and re.search(r"\.aws_(s3_bucket|iam_role|ecr_\w+|ecs_cluster)\.", address)
    ]
    assert len(names) == len(set(names)), names
    assert workspace.applied("-destroy") == {}


def test_two_mirrors(tmp_path: Path) -> None:
    """One Prometheus scrapes both; alerts go to the topic by an Alertmanager, which may publish there."""
    variables = (*EXAMPLE, SUBNETS, GRAFANA, "-var=image_tag=1")
    deployed = made(tmp_path, "examples/two_mirrors", variables).applied()
    files = configuration(deployed, "prometheus")
    (job,) = (
        job for job in yaml.safe_load(files["prometheus.yml"])["scrape_configs"] if job["job_name"] != "prometheus"
    )
    assert [asked["names"] for asked in job["dns_sd_configs"]] == [
        [f"driver.{name}.us-west-1.local"] for name in ("orders", "payments")
    ]
    topic = deployed["aws_sns_topic.alerts"]["arn"]
    (publish,) = (
        by_sid(values)["Publish"]
        for address, values in deployed.items()
        if '"alertmanager"].aws_iam_role_policy.task' in address
    )
    assert (publish["Action"], publish["Resource"]) == (["sns:Publish"], [topic])
    platforms = [
        values["runtime_platform"][0]["cpu_architecture"]
        for address, values in deployed.items()
        if "_task_def" in address
    ]
    assert set(platforms) == {"ARM64"}
    (tmp_path / "alertmanager.yml").write_text(configuration(deployed, "alertmanager")["alertmanager.yml"])
    told = yaml.safe_load((tmp_path / "alertmanager.yml").read_text())
    assert told["receivers"][0]["sns_configs"][0]["topic_arn"] == topic


def test_clusters_outlive_the_mirror(tmp_path: Path) -> None:
    """Neither destroyed nor replaced; deleting them is told to AWS and to the state, as the module's README says."""
    workspace = made(tmp_path, "examples/with_msk/clusters", (*EXAMPLE, SUBNETS))
    deployed = workspace.applied()
    for values in (values for address, values in deployed.items() if "aws_msk_configuration" in address):
        assert "retention" not in values["server_properties"]
    asked = workspace.plan("-destroy", expected=1)
    assert "Instance cannot be destroyed" in asked
    assert 'module.msk["target"].aws_msk_cluster.this' in asked
    (commands,) = re.findall(r"^```\n(.*?)^```$", (MODULE / "modules" / "msk" / "README.md").read_text(), re.M | re.S)
    _, forget, destroy = (shlex.split(line)[1:] for line in commands.splitlines())
    workspace.run(*forget)
    workspace.run(*destroy, "-auto-approve", *EXAMPLE, SUBNETS)
    assert {address.split(".")[1] for address in workspace.applied("-target", 'module.msk["source"]')} == {
        'msk["source"]'
    }


def test_clusters_of_earlier_releases_are_forgotten(tmp_path: Path) -> None:
    """They were in the mirror's state: an upgrade must not delete them."""
    workspace = made(tmp_path)
    removed = workspace.module / "upgrade.tf"
    text = removed.read_text()
    kept = removed.with_name("old.tf")
    removed.unlink()
    kept.write_text("".join(f'resource "{kind}" "{name}" {{\n{OLD.get(kind, "")}}}\n' for kind, name in OLD_RESOURCES))
    workspace.applied()
    kept.unlink()
    removed.write_text(text)
    told = workspace.plan()
    assert "Plan: 0 to add, 0 to change, 0 to destroy" in told
    for kind, name in OLD_RESOURCES:
        assert f"{kind}.{name} will no longer be managed by Terraform, but will not be destroyed" in told


def test_the_bastion(deployment: Deployment) -> None:
    """It fetches the files, pulls the image and reads both clusters, these two alone; it changes nothing."""
    policy = deployment["module.mirror.aws_iam_role_policy.bastion[0]"]
    assert policy["role"] == "lab-bastion-Role-AbCdEf"
    told = by_sid(policy)
    bucket = "arn:aws:s3:::migrationsample-configuration-012345678910-us-west-1"
    assert told["Configuration"]["Resource"] == [f"{bucket}/connector/*"]
    assert told["ConfigurationNames"]["Condition"] == {"StringLike": {"s3:prefix": ["connector/*"]}}
    assert told["Pull"]["Resource"] == ["arn:aws:ecr:us-west-1:012345678910:repository/sparkmirror"]
    kafka = {sid: told[sid] for sid in told if re.match("Source|Target", sid)}
    assert set(kafka) >= {
        "SourceCluster",
        "SourceTopics",
        "SourceGroups",
        "TargetCluster",
        "TargetTopics",
        "TargetGroups",
    }
    for statement in kafka.values():
        for action in statement["Action"]:
            assert re.fullmatch(r"kafka-cluster:(Connect|Describe\w+|ReadData)", action)
        for name in statement["Resource"]:
            assert re.match(r"arn:aws:kafka:us-west-1:012345678910:\w+/(old/0123-1|new/4567-2)", name)


def test_the_bastion_may_pause_if_it_is_told_so(tmp_path: Path) -> None:
    bastion = f'-var=bastion={{security_group_id="{BASTION}",role_name="bastion",may_control=true}}'
    told = by_sid(made(tmp_path).applied(bastion)["module.mirror.aws_iam_role_policy.bastion[0]"])
    assert told["Control"]["Action"] == ["kafka-cluster:WriteData"]
    assert told["Control"]["Resource"] == [
        "arn:aws:kafka:us-west-1:012345678910:topic/new/4567-2/mm2-sparkmirror-control.*"
    ]


def test_graviton_spot_and_without_monitoring(tmp_path: Path) -> None:
    """Only workers are on Spot."""
    words = (
        "-var=worker-spot=true",
        "-var=cpu-architecture=ARM64",
        "-var=monitoring=false",
        "-var=ecr-force-delete=true",
    )
    deployed = made(tmp_path).applied(*words)
    for name in ("driver", "master", "worker"):
        (platform,) = resource(deployed, name, "aws_ecs_task_definition.this")["runtime_platform"]
        assert platform["cpu_architecture"] == "ARM64"
        service = resource(deployed, name, "aws_ecs_service.this")
        providers = [told["capacity_provider"] for told in service["capacity_provider_strategy"]]
        assert providers == (["FARGATE_SPOT"] if name == "worker" else [])
    assert not [address for address in deployed if address.startswith("module.monitoring")]
    assert deployed['module.repositories.aws_ecr_repository.this["sparkmirror"]']["force_delete"] is True


def test_services(deployment: Deployment) -> None:
    """Two drivers in two zones, each service with a health check and the circuit breaker, nothing public."""
    for name in SERVICES:
        service = resource(deployment, name, "aws_ecs_service.this")
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
    assert resource(deployment, "driver", "aws_ecs_service.this")["availability_zone_rebalancing"] == "ENABLED"
    master = resource(deployment, "master", "aws_ecs_service.this")
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
        **BASTIONS_WAYS,
        **{(asks, f"sg-0123456789abcdef{number}"): {9098} for asks in ("tasks", BASTION) for number in (1, 2)},
    }
    for name in SERVICES:
        (network,) = resource(deployment, name, "aws_ecs_service.this")["network_configuration"]
        groups = {resource(deployment, name, "aws_security_group.this")["id"]}
        if name in {"driver", "worker"}:
            groups.add(deployment["module.mirror.aws_security_group.tasks"]["id"])
        assert set(network["security_groups"]) == groups, name


def test_whose_prometheus(deployment: Deployment, tmp_path: Path) -> None:
    """The one that build_images.sh has pushed, and the right to pull it; or another one."""
    image = containers(deployment, "prometheus")["prometheus"]["image"]
    assert image == f"012345678910.dkr.ecr.us-west-1.made-up/sparkmirror-prometheus:{__version__}"
    pull = statements(deployment, "execution", "prometheus")["Pull"]
    assert pull["Resource"] == ["arn:aws:ecr:us-west-1:012345678910:repository/sparkmirror-prometheus"]
    deployed = made(tmp_path).applied("-var=prometheus-image=prom/prometheus:v3.5.0")
    assert containers(deployed, "prometheus")["prometheus"]["image"] == "prom/prometheus:v3.5.0"
    assert "Pull" not in statements(deployed, "execution", "prometheus")


def test_images_of_others_in_ecr(tmp_path: Path) -> None:
    """Each service's own and the CLI's, with the rights to pull both."""
    registry = "012345678910.dkr.ecr.us-west-1.amazonaws.com"
    names = ("aws-cli", "grafana", "alertmanager")
    words = [f"-var={name}-image={registry}/copies/{name}:1" for name in names]
    deployed = made(tmp_path).applied("-var=alerts-topic-arn=arn:aws:sns:us-west-1:012345678910:alerts", *words)
    for name in ("grafana", "alertmanager"):
        told = containers(deployed, name)
        assert {one: told[one]["image"] for one in told} == {
            name: f"{registry}/copies/{name}:1",
            "prepare": f"{registry}/copies/aws-cli:1",
        }
        assert statements(deployed, "execution", name)["Pull"]["Resource"] == [
            f"arn:aws:ecr:us-west-1:012345678910:repository/copies/{one}" for one in (name, "aws-cli")
        ]
    assert len(statements(deployed, "execution", "driver")["Pull"]["Resource"]) == 2


def test_sizes_are_the_kits(deployment: Deployment) -> None:
    sizes = {name: resource(deployment, name, "aws_ecs_task_definition.this") for name in SERVICES}
    assert {name: (int(one["cpu"]), int(one["memory"])) for name, one in sizes.items()} == {
        "driver": (1024, 4096),
        "worker": (1024, 4096),
        "master": (256, 1024),
        "prometheus": (2048, 4096),
        "grafana": (1024, 3072),
    }


def test_workers_scale(deployment: Deployment) -> None:
    target = deployment["module.mirror.aws_appautoscaling_target.worker[0]"]
    assert (target["min_capacity"], target["max_capacity"]) == (1, 10)
    assert target["resource_id"] == "service/migrationsample/worker"
    (policy,) = deployment["module.mirror.aws_appautoscaling_policy.worker[0]"][
        "target_tracking_scaling_policy_configuration"
    ]
    assert policy["target_value"] == 70
    assert policy["predefined_metric_specification"][0]["predefined_metric_type"] == "ECSServiceAverageCPUUtilization"


def test_workers_scale_by_lag(deployment: Deployment) -> None:
    """The metric is made of the lines that the drivers print, and the policy follows it."""
    made = "module.mirror.aws_cloudwatch_log_metric_filter.catch_up"
    filters = {name: deployment[f'{made}["{name}"]'] for name in ("behind", "caught-up")}
    (driver,) = (one for name, one in containers(deployment, "driver").items() if name == "driver")
    assert driver["command"][-2:] == ["--output", "json"]
    group = resource(deployment, "driver", "aws_cloudwatch_log_group.this")["name"]
    assert {one["log_group_name"] for one in filters.values()} == {group}
    fields = {field for one in filters.values() for field in re.findall(r"\$\.(\w+)", one["pattern"])}
    assert fields == {"eta_s", "lag", "state"}
    assert fields <= {field.name for field in dataclasses.fields(Flow)}
    (metric,) = {
        tuple(one["metric_transformation"][0][key] for key in ("namespace", "name")) for one in filters.values()
    }
    values = {name: one["metric_transformation"][0]["value"] for name, one in filters.items()}
    assert values == {"behind": "$.eta_s", "caught-up": "0"}
    (policy,) = deployment["module.mirror.aws_appautoscaling_policy.lag[0]"][
        "target_tracking_scaling_policy_configuration"
    ]
    (followed,) = policy["customized_metric_specification"]
    assert (followed["namespace"], followed["metric_name"]) == metric
    assert (followed["statistic"], policy["target_value"], bool(policy["disable_scale_in"])) == ("Maximum", 60, False)


def test_without_a_spark_cluster(tmp_path: Path) -> None:
    """`worker-max = 0`: neither master nor workers, nor what they need."""
    deployed = made(tmp_path).applied("-var=worker-max=0", "-var=spark-secret-arn=")
    left = {
        address
        for address in deployed
        if re.search(r'"(master|worker)"|_efs_|_appautoscaling_|_metric_filter', address)
    }
    assert left == set()
    to_brokers = {way for way in opened(deployed) if way[1].startswith("sg-")}
    ways = {("prometheus", "driver"): {9404}, ("grafana", "prometheus"): {9090}, **BASTIONS_WAYS}
    assert {way: ports for way, ports in opened(deployed).items() if way not in to_brokers} == ways
    assert containers(deployed, "driver")["driver"]["secrets"] == []
    assert "--output" not in containers(deployed, "driver")["driver"]["command"]
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


def promtool(directory: Path, *words: str) -> None:
    """Run it, and be content."""
    command = [fetched("promtool"), *words]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


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
    promtool(tmp_path, "check", "config", "prometheus.yml")


def test_a_managed_workspace(tmp_path: Path) -> None:
    """Prometheus' task is an agent that may send there; rules, alerts and their way to SNS are the workspace's."""
    arn = "arn:aws:aps:us-west-1:012345678910:workspace/ws-1"
    workspace = f'{{arn="{arn}",endpoint="https://aps.example.com/workspaces/ws-1/",workspace_id="ws-1"}}'
    topic = "arn:aws:sns:us-west-1:012345678910:alerts"
    deployed = made(tmp_path).applied(f"-var=managed-prometheus={workspace}", f"-var=alerts-topic-arn={topic}")
    assert resource(deployed, "grafana", "aws_ecs_service.this") is None
    assert resource(deployed, "alertmanager", "aws_ecs_service.this") is None
    assert statements(deployed, "task", "prometheus")["Send"]["Resource"] == [arn]
    assert "--agent" in containers(deployed, "prometheus")["prometheus"]["command"]
    (tmp_path / "prometheus.yml").write_text(configuration(deployed, "prometheus")["prometheus.yml"])
    promtool(tmp_path, "check", "config", "--agent", "prometheus.yml")
    groups = {
        values["name"]: values["data"] for address, values in deployed.items() if "_rule_group_namespace" in address
    }
    assert set(groups) == {"migrationsample-alerts", "migrationsample-recording"}
    for name, text in groups.items():
        (tmp_path / name).write_text(text)
        promtool(tmp_path, "check", "rules", name)
    definition = deployed["module.monitoring[0].aws_prometheus_alert_manager_definition.this[0]"]["definition"]
    told = yaml.safe_load(yaml.safe_load(definition)["alertmanager_config"])
    assert told["receivers"][0]["sns_configs"][0]["topic_arn"] == topic


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
    deployed = made(tmp_path).applied(f'-var=secrets={{"SOURCE_PASSWORD"="{arn}"}}')
    for name in ("driver", "worker"):
        assert {"name": "SOURCE_PASSWORD", "valueFrom": arn} in containers(deployed, name)[name]["secrets"]
        assert statements(deployed, "execution", name)["Secret0"]["Resource"] == [arn]


def test_tflint() -> None:
    program = programs.go_program("github.com/terraform-linters/tflint@v0.64.0")
    for place in modules():
        done = subprocess.run(
            [program, "--no-color"], cwd=place, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, f"{place}: {done.stdout}{done.stderr}"


def checkov(*words: str) -> subprocess.CompletedProcess[str]:
    program = programs.python_programs("checkov==3.3.30") / "checkov"
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
