"""A copy of `deploy/terraform`, or of a directory below it, that Terraform works on with the stand-in provider."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.deploy import programs

DEPLOY = Path(__file__).parents[2] / "deploy"
EXAMPLES = DEPLOY.parent / "examples"
MODULE = DEPLOY / "terraform"
FIXTURES = {
    "aws_caller_identity": {"account_id": "012345678910", "id": "012345678910"},
    "aws_partition": {"partition": "aws"},
    "aws_region": {"region": "us-west-1"},
    "aws_subnets": {"ids": ["subnet-a", "subnet-b", "subnet-c"]},
}
"""What data sources answer: three private subnets of the sample's account."""

SOURCE_BROKERS = "b-1.old.example.com:9098,b-2.old.example.com:9098"
TARGET_BROKERS = "b-1.new.example.com:9098"

SPARK_SECRET_ARN = "arn:aws:secretsmanager:us-west-1:012345678910:secret:migrationsample/spark-AbCdEf"


def service(deployment: Mapping[str, Any], name: str, resource: str) -> Any:
    """A resource of one service, which is the mirror's or the monitoring's; None where there is none."""
    end = rf'\.module\.service\["{name}"\]\.{re.escape(resource)}(\[0\])?'
    pattern = re.compile(rf"module\.(mirror|monitoring\[0\]){end}")
    return next((values for address, values in deployment.items() if pattern.fullmatch(address)), None)


def opened(deployment: Mapping[str, Any]) -> dict[tuple[str, str], set[int]]:
    """Ports that tasks reach, by who connects and whom."""
    names = {
        values["id"]: re.sub(r'.*module\.service\["(\w+)"\].*|.*\.(\w+)(\[0\])?', r"\1\2", address)
        for address, values in deployment.items()
        if ".aws_security_group." in address
    }
    ports: dict[tuple[str, str], set[int]] = {}
    for address, values in deployment.items():
        if ".aws_vpc_security_group_ingress_rule." in address:
            asks, answers = (values[f"{side}security_group_id"] for side in ("referenced_", ""))
            way = names.get(asks, asks), names.get(answers, answers)
            ports.setdefault(way, set()).update(range(int(values["from_port"]), int(values["to_port"]) + 1))
    return ports


def declared(kind: str, place: Path = MODULE) -> set[str]:
    """Names of the types that blocks of that kind have in a directory: `resource`, `data`, or variables."""
    text = "\n".join(file.read_text() for file in sorted(place.glob("*.tf")))
    return set(re.findall(rf'^{kind} "([\w-]+)"', text, re.M))


def modules() -> list[Path]:
    """Directories of Terraform files: the kit's deployment, the modules and the examples."""
    return sorted({file.parent for file in MODULE.rglob("*.tf") if ".terraform" not in file.parts})


class Workspace:
    """The directory `below` in a copy of its own, next to the files that it refers to."""

    def __init__(self, directory: Path, below: str = "", variables: Sequence[str] = ("-var-file=main.tfvars",)) -> None:
        self._root = directory
        self.module = directory / "deploy" / "terraform" / below
        self._variables = variables
        shutil.copytree(DEPLOY, directory / "deploy", ignore=shutil.ignore_patterns(".terraform*"))
        shutil.copytree(EXAMPLES, directory / "examples")
        self._command = programs.terraform()
        told = directory / "fixtures.json"
        told.write_text(json.dumps(FIXTURES))
        self._environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("TF_")},
            "STUB_AWS_FIXTURES": str(told),
            "TF_CLI_CONFIG_FILE": str(directory / "terraform.rc"),
            "CHECKPOINT_DISABLE": "1",
            "TF_CLI_ARGS": "-no-color",
        }
        self._put_provider(directory / "mirror")
        (directory / "terraform.rc").write_text(
            f'provider_installation {{\n  filesystem_mirror {{\n    path = "{directory / "mirror"}"\n  }}\n}}\n'
        )

    def run(self, *words: str, expected: int = 0) -> str:
        """What a command prints."""
        done = subprocess.run(
            [*self._command, *words],
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
        """What it says of its variables, without line breaks; `words` are more of the command's."""
        told = self.run("plan", "-input=false", *self._variables, *words, expected=expected)
        return " ".join(re.sub(r"^[│╷╵]", " ", told, flags=re.M).split())

    def applied(self, *words: str) -> dict[str, Any]:
        """Apply it; gives all resources by address, each with its values, those that were made up too."""
        self.run("apply", "-input=false", "-auto-approve", *self._variables, *words)
        shown = json.loads(self.run("show", "-json"))
        root = shown.get("values", {}).get("root_module", {})
        return {told["address"]: told["values"] for told in _resources(root) if told["mode"] == "managed"}

    def _put_provider(self, mirror: Path) -> None:
        """Where Terraform looks for it: below the address that the module's `hashicorp/aws` stands for."""
        (self._root / "terraform.rc").touch()
        self.run("get")
        address = re.search(r"provider\[([^\]]+)\]", self.run("providers"))
        assert address is not None
        kinds = (set().union(*(declared(kind, place) for place in modules())) for kind in ("resource", "data"))
        version, program = programs.PROVIDER_VERSION, programs.stand_in_provider(*kinds)
        place = mirror / address[1] / version / "linux_amd64"
        place.mkdir(parents=True)
        shutil.copy(program, place / f"terraform-provider-aws_v{version}")


def _resources(module: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from module.get("resources", ())
    for child in module.get("child_modules", ()):
        yield from _resources(child)
