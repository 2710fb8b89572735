"""A copy of `deploy/terraform` that Terraform works on with the stand-in provider."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.deploy import tools

DEPLOY = Path(__file__).parents[2] / "deploy"
EXAMPLES = DEPLOY.parent / "examples"
MODULE = DEPLOY / "terraform"
FIXTURES = {
    "aws_caller_identity": {"account_id": "012345678910", "id": "012345678910"},
    "aws_subnets": {"ids": ["subnet-a", "subnet-b", "subnet-c"]},
}
"""What data sources answer: three private subnets of the sample's account."""

SOURCE_BROKERS = "b-1.old.example.com:9098,b-2.old.example.com:9098"
TARGET_BROKERS = "b-1.new.example.com:9098"
WITH_BROKERS = (
    f"-var=source-cluster-bootstrap-broker-string={SOURCE_BROKERS}",
    f"-var=target-cluster-bootstrap-broker-string={TARGET_BROKERS}",
    "-var=source-cluster-arn=arn:aws:kafka:us-west-1:012345678910:cluster/old/0123-1",
    "-var=target-cluster-arn=arn:aws:kafka:us-west-1:012345678910:cluster/new/4567-2",
)


SPARK_SECRET_ARN = "arn:aws:secretsmanager:us-west-1:012345678910:secret:migrationsample/spark-AbCdEf"


def opened(deployment: Mapping[str, Any]) -> dict[tuple[str, str], set[int]]:
    """Ports that tasks reach, by who connects and whom."""
    names = {
        one["id"]: re.sub(r'.*\["(\w+)"\]|.*\.(\w+)(\[0\])?', r"\1\2", address)
        for address, one in deployment.items()
        if address.startswith("aws_security_group.")
    }
    ports: dict[tuple[str, str], set[int]] = {}
    for address, one in deployment.items():
        if address.startswith("aws_vpc_security_group_ingress_rule."):
            way = names[one["referenced_security_group_id"]], names[one["security_group_id"]]
            ports.setdefault(way, set()).update(range(int(one["from_port"]), int(one["to_port"]) + 1))
    return ports


def declared(kind: str) -> set[str]:
    """Names of the types that the module's blocks of that kind have: `resource`, `data`, or variables."""
    text = "\n".join(file.read_text() for file in sorted(MODULE.glob("*.tf")))
    return set(re.findall(rf'^{kind} "([\w-]+)"', text, re.M))


class Workspace:
    """The module in a directory of its own, beside the files that it refers to."""

    def __init__(self, directory: Path, fixtures: Mapping[str, Any] | None = None) -> None:
        self.module = directory / "deploy" / "terraform"
        shutil.copytree(DEPLOY, directory / "deploy")
        shutil.copytree(EXAMPLES, directory / "examples")
        self._command = tools.terraform()
        told = directory / "fixtures.json"
        told.write_text(json.dumps({**FIXTURES, **(fixtures or {})}))
        self._environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("TF_")},
            "STUB_AWS_FIXTURES": str(told),
            "TF_CLI_CONFIG_FILE": str(directory / "terraform.rc"),
            "CHECKPOINT_DISABLE": "1",
        }
        self._put_provider(directory / "mirror")
        (directory / "terraform.rc").write_text(
            f'provider_installation {{\n  filesystem_mirror {{\n    path = "{directory / "mirror"}"\n  }}\n}}\n'
        )

    def run(self, *words: str, expected: int = 0) -> str:
        """What a command prints."""
        done = subprocess.run(
            [*self._command, words[0], "-no-color", *words[1:]],
            cwd=self.module,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == expected, done.stdout + done.stderr
        return done.stdout + done.stderr

    def init(self) -> None:
        self.run("init", "-input=false")

    def plan(self, *words: str, expected: int = 0) -> str:
        """What it says of the sample's `main.tfvars`, without line breaks; `words` are more of the command's."""
        return " ".join(self.run("plan", "-input=false", "-var-file=main.tfvars", *words, expected=expected).split())

    def applied(self, *words: str) -> dict[str, Any]:
        """Apply it; gives all resources by address, each with its values, those that were made up too."""
        self.run("apply", "-input=false", "-auto-approve", "-var-file=main.tfvars", *words)
        shown = json.loads(self.run("show", "-json"))
        resources = shown.get("values", {}).get("root_module", {}).get("resources", ())
        return {one["address"]: one["values"] for one in resources if one["mode"] == "managed"}

    def _put_provider(self, mirror: Path) -> None:
        """Where Terraform looks for it: below the address that the module's `hashicorp/aws` stands for."""
        (self.module.parent.parent / "terraform.rc").touch()
        address = re.search(r"provider\[([^\]]+)\]", self.run("providers"))
        assert address is not None
        version, program = tools.PROVIDER_VERSION, tools.stand_in_provider(declared("resource"), declared("data"))
        place = mirror / address[1] / version / "linux_amd64"
        place.mkdir(parents=True)
        shutil.copy(program, place / f"terraform-provider-aws_v{version}")
