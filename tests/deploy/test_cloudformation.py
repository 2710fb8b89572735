"""The lab's stacks: checked by cfn-lint against AWS' own schemas, and made in moto as far as it has them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.deploy import programs
from tests.deploy.played_aws import PROGRAMS, PlayedAws, played_aws
from tests.deploy.templates import TEMPLATES, template

pytestmark = pytest.mark.full

MISSING_IN_MOTO = {"AWS::MSK::Cluster", "AWS::MSK::Configuration"}
"""It says CREATE_COMPLETE and has not made them."""


def resources(name: str) -> dict[str, str]:
    """Types of a template's resources, by logical id."""
    return {logical: told["Type"] for logical, told in template(name)["Resources"].items()}


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedAws]:
    with played_aws(tmp_path_factory.mktemp("aws", numbered=False)) as played:
        yield played


def make(aws: PlayedAws, name: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Make a stack; gives its outputs."""
    client = aws.client("cloudformation")
    client.create_stack(
        StackName=f"lab-{name}",
        TemplateBody=(TEMPLATES / f"{name}.yml").read_text(),
        Capabilities=["CAPABILITY_IAM"],
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
    )
    client.get_waiter("stack_create_complete").wait(StackName=f"lab-{name}", WaiterConfig={"Delay": 1})
    (stack,) = client.describe_stacks(StackName=f"lab-{name}")["Stacks"]
    return {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", ())}


def made(aws: PlayedAws, name: str) -> dict[str, str]:
    """What a stack really has."""
    told = aws.client("cloudformation").describe_stack_resources(StackName=f"lab-{name}")["StackResources"]
    return {one["LogicalResourceId"]: one["ResourceType"] for one in told if one.get("PhysicalResourceId")}


@pytest.mark.parametrize("name", sorted(one.stem for one in TEMPLATES.glob("*.yml")))
def test_cfn_lint(name: str, tmp_path: Path) -> None:
    program = programs.python_programs(*PROGRAMS) / "cfn-lint"
    done = subprocess.run(
        [program, TEMPLATES / f"{name}.yml"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(
        (TEMPLATES / f"{name}.yml").read_text().replace("GroupDescription", "Describtion").replace("CidrBlock", "Cidr")
    )
    assert subprocess.run([program, wrong], capture_output=True, timeout=120, check=False).returncode != 0


def test_stacks_are_made(aws: PlayedAws) -> None:
    """All resources of VPC and bastion, which finds the VPC's subnet; of the clusters' stack what moto has."""
    vpc = make(aws, "vpc", {})
    assert made(aws, "vpc") == resources("vpc")
    told = aws.client("ec2").describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc["VpcId"]]}])["Subnets"]
    subnets = {one["SubnetId"]: one for one in told}
    private = [subnets[vpc[f"PrivateSubnet{number}"]] for number in (1, 2, 3)]
    assert len({one["AvailabilityZone"] for one in private}) == 3
    assert set(subnets) - {one["SubnetId"] for one in private} == {vpc["PublicSubnet"]}

    aws.client("ec2").create_key_pair(KeyName="lab")
    bastion = make(aws, "bastion", {"VpcStack": "lab-vpc", "KeyName": "lab", "AllowedCidr": "203.0.113.7/32"})
    assert made(aws, "bastion") == resources("bastion")
    (group,) = aws.client("ec2").describe_security_groups(GroupIds=[bastion["SecurityGroup"]])["SecurityGroups"]
    assert [(one["FromPort"], one["IpRanges"][0]["CidrIp"]) for one in group["IpPermissions"]] == [
        (22, "203.0.113.7/32")
    ]

    assert aws.client("iam").list_role_policies(RoleName=bastion["RoleName"])["PolicyNames"] == []

    make(aws, "msk", {"VpcStack": "lab-vpc"})
    wanted = resources("msk")
    assert set(wanted.items()) - set(made(aws, "msk").items()) == {
        (logical, kind) for logical, kind in wanted.items() if kind in MISSING_IN_MOTO
    }
