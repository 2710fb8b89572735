"""The page of the deployment on AWS: its commands are run, with Terraform over a stand-in and AWS as moto plays it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.played_aws import PlayedAws, played_aws
from tests.deploy.templates import template
from tests.deploy.terraform import Workspace
from tests.support.mirror_process import COMMAND

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "deploy" / "aws.md"
NOT_RUN = {"ssh", "curl"}
"""They need a bastion."""
BUCKET = "migrationsample-configuration-012345678910-us-west-1"
PLAYED = """#!/bin/sh
echo "$*" >> {calls}
echo played
case $1 in login) test -n "$(cat)" ;; esac
"""


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[PlayedAws]:
    with played_aws(tmp_path) as played:
        yield played


def commands() -> list[str]:
    """Commands of the page's blocks, in its order; those that continue in the next line in one piece."""
    blocks = re.findall(r"^```\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if re.match(r"(aws|docker|terraform|cd|ssh|curl|\.\./)\S*\b", line)]


def of(*names: str) -> list[str]:
    """The commands that call these programs."""
    return [line for line in commands() if shlex.split(line)[0] in names]


def played(directory: Path, *names: str) -> Path:
    """Programs that only note how they are called; gives the file of their calls."""
    calls = directory / "calls"
    for name in names:
        program = directory / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(PLAYED.format(calls=calls))
        program.chmod(0o700)
    return calls


def test_every_command_is_known() -> None:
    """So that a new one is not left out here."""
    assert {shlex.split(line)[0] for line in commands()} == {
        *("aws", "docker", "terraform", "cd", "../docker/build_images.sh"),
        *NOT_RUN,
    }


def test_secrets_and_the_labs_vpc(aws: PlayedAws, tmp_path: Path) -> None:
    lines = [line for line in of("aws") if re.search(r"secretsmanager|vpc\.yml", line)]
    shutil.copytree(ROOT / "deploy" / "cloudformation", tmp_path / "deploy" / "cloudformation")
    done = aws.shell("\n".join(lines), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    secrets = {told["Name"] for told in aws.client("secretsmanager").list_secrets()["SecretList"]}
    assert secrets == {"migrationsample/grafana", "migrationsample/spark"}
    (stack,) = aws.client("cloudformation").describe_stacks()["Stacks"]
    assert (stack["StackName"], stack["StackStatus"]) == ("lab-vpc", "CREATE_COMPLETE")


@pytest.mark.parametrize("name", ["vpc", "bastion", "msk"])
def test_parameters_of_the_labs_stacks(name: str) -> None:
    """Those that have no default are given, and no others; rights to make roles where there are roles."""
    (line,) = (line for line in of("aws") if f"/{name}.yml" in line)
    _, _, overrides = line.partition("--parameter-overrides")
    tree = template(name)
    needed = {key for key, told in tree.get("Parameters", {}).items() if "Default" not in told}
    assert {word.partition("=")[0] for word in overrides.split()} == needed
    has_roles = any(told["Type"] == "AWS::IAM::Role" for told in tree["Resources"].values())
    assert ("CAPABILITY_IAM" in line) is has_roles


def test_terraforms_commands(tmp_path: Path) -> None:
    """In the order of the page: repositories first, then everything; at last nothing is left."""
    workspace = Workspace(tmp_path)
    first, *applies, last = (shlex.split(line)[1:] for line in of("terraform"))
    workspace.run(*first)
    made = []
    for words in applies:
        workspace.run(*words, "-auto-approve", "-input=false")
        made.append({line.partition("[")[0] for line in workspace.run("state", "list").splitlines()})
    assert made[0] == {"module.repositories.aws_ecr_repository.this"}
    assert "module.mirror.aws_security_group.tasks" in made[1]
    workspace.run(*last, "-auto-approve")
    assert workspace.run("state", "list").strip() == ""


def test_images_are_built_by_the_pages_command(tmp_path: Path) -> None:
    calls = played(tmp_path, "docker", "aws")
    (line,) = of("../docker/build_images.sh")
    subprocess.run(
        shlex.split(line),
        cwd=ROOT / "deploy" / "terraform",
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        timeout=20,
        check=False,
    )
    assert "push 012345678910.dkr.ecr.us-west-1." in calls.read_text()


def test_verbs_on_the_bastion(aws: PlayedAws, deployment: Mapping[str, Any], tmp_path: Path) -> None:
    """The files are fetched as Terraform puts them, docker signs in, and the verbs get files that they can read."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    for address, values in deployment.items():
        if ".aws_s3_object." in address:
            assert values["bucket"] == BUCKET
            s3.put_object(Bucket=BUCKET, Key=values["key"], Body=values["content"].encode())
    calls = played(tmp_path, "docker")
    lines = [line for line in of("aws", "docker") if re.match("aws (s3|ecr) |docker ", line)]
    known = f"export PATH={tmp_path / 'bin'}:$PATH REPOSITORY=registry.test/sparkmirror VERSION=1"
    done = aws.shell("\n".join([known, *lines]), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    login, *runs = calls.read_text().splitlines()
    assert login == "login --username AWS --password-stdin registry.test"
    files = f"-v {tmp_path / 'connect'}:/etc/sparkmirror:ro registry.test/sparkmirror:1"
    assert runs == [
        f"run --rm {files} {verb}" for verb in ("status /etc/sparkmirror", "lint /etc/sparkmirror --connect")
    ]
    read = subprocess.run(
        [COMMAND, "config", tmp_path / "connect"], capture_output=True, text=True, timeout=60, check=False
    )
    assert read.returncode == 0, read.stderr
