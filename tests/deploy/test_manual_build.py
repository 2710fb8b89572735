"""The page of the manual build: its commands are run, in its order, against AWS as moto plays it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.fargate_files import DIRECTORY, SERVICES, fargate_files
from tests.deploy.played_aws import REGION, PlayedAws, played_aws
from tests.deploy.terraform import opened
from tests.support.mirror_process import COMMAND

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "deploy" / "aws_manual.md"
ACCOUNT = "123456789012"
"""moto's own."""


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[PlayedAws]:
    with played_aws(tmp_path) as played:
        yield played


def test_files_are_as_terraform_makes_them(deployment: Mapping[str, Any]) -> None:
    written = {str(one.relative_to(DIRECTORY)): one.read_text() for one in DIRECTORY.rglob("*.json")}
    assert written == fargate_files(deployment), "python -m tests.deploy.fargate_files writes them again"


def test_the_page(aws: PlayedAws, deployment: Mapping[str, Any], tmp_path: Path) -> None:
    known, *steps = re.findall(r"^```bash\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    place = tmp_path / "checkout"
    for name in ("deploy", "examples"):
        shutil.copytree(ROOT / name, place / name)
    ec2 = aws.client("ec2")
    (vpc, *_) = ec2.describe_vpcs()["Vpcs"]
    subnets = [one["SubnetId"] for one in ec2.describe_subnets()["Subnets"]][:3]
    known = re.sub(r"ACCOUNT=\d+", f"ACCOUNT={ACCOUNT}", known)
    known = re.sub(r"VPC=\S+", f"VPC={vpc['VpcId']}", known)
    given = {
        name: ec2.create_security_group(GroupName=name, Description=name, VpcId=vpc["VpcId"])["GroupId"]
        for name in ("source", "target", "bastion")
    }
    for name, group in given.items():
        known = re.sub(rf"{name.upper()}_SECURITY_GROUP=\S+", f"{name.upper()}_SECURITY_GROUP={group}", known)
    trust = (DIRECTORY / "trust.json").read_text()
    aws.client("iam").create_role(RoleName="lab-bastion-Role-AbCdEf", AssumeRolePolicyDocument=trust)
    known = re.sub(r'SUBNETS="[^"]*"', f'SUBNETS="{" ".join(subnets)}"', known)
    done = aws.shell("\n".join([known, *steps]), place)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    run = subprocess.run(
        [COMMAND, "config", "connect"], cwd=place, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "msksource->mskdest\ttopics\tExampleTopic" in run.stdout

    groups = ec2.describe_security_groups()["SecurityGroups"]
    named = {one["GroupId"]: one["GroupName"].removeprefix("migrationsample-") for one in groups}
    ports: dict[tuple[str, str], set[int]] = {}
    for one in groups:
        for rule in one["IpPermissions"]:
            for peer in rule["UserIdGroupPairs"]:
                way = named[peer["GroupId"]], named[one["GroupId"]]
                ports.setdefault(way, set()).update(range(rule["FromPort"], rule["ToPort"] + 1))
    samples = {f"sg-0123456789abcdef{number}": name for number, name in enumerate(("bastion", "source", "target"))}
    wanted = {(samples.get(asks, asks), samples.get(to, to)): told for (asks, to), told in opened(deployment).items()}
    assert {way: told for way, told in ports.items() if way != ("default", "default")} == wanted
    policy = aws.client("iam").get_role_policy(RoleName="lab-bastion-Role-AbCdEf", PolicyName="migrationsample-mirror")[
        "PolicyDocument"
    ]
    assert "${" not in json.dumps(policy)
    assert {"Configuration", "Pull", "SourceTopics", "TargetTopics"} <= {told["Sid"] for told in policy["Statement"]}

    ecs = aws.client("ecs")
    told = ecs.describe_services(cluster="migrationsample", services=list(SERVICES))["services"]
    assert {one["serviceName"]: one["desiredCount"] for one in told} == {
        name: 2 if name == "driver" else 1 for name in SERVICES
    }
    for one in told:
        definition = ecs.describe_task_definition(taskDefinition=one["taskDefinition"])["taskDefinition"]
        assert "${" not in json.dumps(definition).replace("${env:", "")
        service = one["serviceName"]
        for role in ("task", "execution"):
            policy = aws.client("iam").get_role_policy(RoleName=f"migrationsample-{service}-{role}", PolicyName=role)
            assert "${" not in json.dumps(policy["PolicyDocument"])
    scaling = aws.client("application-autoscaling").describe_scaling_policies(ServiceNamespace="ecs")["ScalingPolicies"]
    assert {one["PolicyName"] for one in scaling} == {"cpu", "lag"}
    assert {one["ResourceId"] for one in scaling} == {"service/migrationsample/worker"}
    (lag,) = (one["TargetTrackingScalingPolicyConfiguration"] for one in scaling if one["PolicyName"] == "lag")
    filters = aws.client("logs").describe_metric_filters(logGroupName="/ecs/migrationsample/driver")["metricFilters"]
    made = {one["metricTransformations"][0]["metricName"] for one in filters}
    assert (len(filters), made) == (2, {lag["CustomizedMetricSpecification"]["MetricName"]})
    services = {one["Name"] for one in aws.client("servicediscovery").list_services()["Services"]}
    assert services == set(SERVICES)
    bucket = f"migrationsample-configuration-{ACCOUNT}-{REGION}"
    objects = {one["Key"] for one in aws.client("s3").list_objects_v2(Bucket=bucket)["Contents"]}
    assert {"prometheus/prometheus.yml", "connector/worker.properties"} <= objects
    dashboards = {"grafana/dashboards/aws.json", "grafana/dashboards/sparkmirror.json"}
    assert {name for name in objects if name.startswith("grafana/dashboards/")} == dashboards
