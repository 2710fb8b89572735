"""What can be said of the files without the tools that they are for."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.deploy.module_pages import MODULES, PUBLIC, page
from tests.deploy.templates import TEMPLATES, template
from tests.deploy.terraform import DEPLOY, MODULE, declared
from tests.support.snapshot_samples import flow

from sparkmirror import __version__
from sparkmirror.cli.flow_lines import fields
from sparkmirror.snapshot.flow_state import FlowState

BUILD = DEPLOY / "docker" / "build_images.sh"
PLAYED = """#!/bin/sh
echo "$(basename "$0") $*" DOCKER_DEFAULT_PLATFORM=$DOCKER_DEFAULT_PLATFORM >> "$CALLS"
cat > /dev/null
"""


def test_the_samples_variables_are_declared() -> None:
    text = (MODULE / "variables.tf").read_text()
    needed = {
        name
        for name, body in re.findall(r'^variable "([\w-]+)" \{\n(.*?)^\}', text, re.M | re.S)
        if not re.search(r"^  default ", body, re.M)
    }
    told = set(re.findall(r"^([\w-]+) +=", (MODULE / "main.tfvars").read_text(), re.M))
    assert needed <= told <= declared("variable")


def test_the_kits_variables_are_declared() -> None:
    assert declared("variable") >= {
        "region",
        "partition",
        "tags",
        "account-id",
        "app-shorthand-name",
        "vpc-id",
        "source-cluster-bootstrap-broker-string",
        "target-cluster-bootstrap-broker-string",
    }


@pytest.mark.parametrize("name", PUBLIC)
def test_tables_of_the_modules_pages(name: str) -> None:
    assert (MODULES / name / "README.md").read_text() == page(MODULES / name), "python -m tests.deploy.module_pages"


@pytest.mark.parametrize("name", sorted(place.name for place in MODULES.iterdir()))
def test_modules_names_are_as_terraform_wants_them(name: str) -> None:
    """Of inputs and outputs; and nothing that the module decides hinders `for_each`."""
    text = "".join(file.read_text() for file in (MODULES / name).glob("*.tf"))
    assert all(
        re.fullmatch(r"[a-z][a-z0-9_]*", told) for told in re.findall(r'^(?:variable|output) "(.+)"', text, re.M)
    )
    assert not re.search(r"^provider ", text, re.M)


def test_no_cluster_is_made_that_deletes_sooner_than_kafka() -> None:
    """A target that deletes what the source keeps loses what was copied."""
    for file in (*MODULE.rglob("*.tf"), *TEMPLATES.glob("*.yml")):
        assert not re.search(r"log\.retention|log\.cleanup|retention\.(ms|bytes)", file.read_text()), file


def test_prometheus_asks_at_the_metrics_port() -> None:
    definition = json.loads((DEPLOY / "fargate" / "driver" / "task-definition.json").read_text())
    (driver,) = (one for one in definition["containerDefinitions"] if one["name"] == "driver")
    port = driver["command"][driver["command"].index("--metrics-port") + 1]
    assert [str(one["containerPort"]) for one in driver["portMappings"]] == [port]
    assert f":{port}/health" in driver["healthCheck"]["command"][-1]
    assert f"    metrics = {port}," in (MODULES / "mirror" / "network.tf").read_text()
    asked = (MODULES / "monitoring" / "prometheus.yml.tftpl").read_text()
    assert re.search(r"^        port: \$\{mirror.port\}$", asked, re.M)
    assert f"port: {port}," in (DEPLOY.parent / "docs" / "deploy" / "aws_manual.md").read_text()


@pytest.mark.parametrize(
    ("state", "lag", "eta_s", "filters"),
    [
        (FlowState.COPYING, 500, 2.5, {"behind"}),
        (FlowState.COPYING, 500, None, set()),  # nothing of a backlog is copied: that is not caught up
        (FlowState.UNREACHABLE, 500, None, set()),
        (FlowState.CAUGHT_UP, 3, None, {"caught-up"}),
        (FlowState.HELD_UP, 500, None, {"caught-up"}),  # no worker helps a parked partition
        (FlowState.NOTHING, 0, None, {"caught-up"}),
        (FlowState.STANDING_BY, None, None, set()),
    ],
)
def test_lines_of_which_the_time_to_catch_up_is_made(
    state: FlowState, lag: int | None, eta_s: float | None, filters: set[str]
) -> None:
    text = (MODULES / "mirror" / "main.tf").read_text()
    told = re.findall(r'^    ([a-z-]+) += \{ pattern = ("(?:[^"\\]|\\.)+")', text, re.M)
    patterns = {name: str(json.loads(pattern)) for name, pattern in told}
    line = fields(flow(state=state, lag=lag, eta_s=eta_s))
    assert {name for name, pattern in patterns.items() if matches(pattern, line)} == filters
    page = (DEPLOY.parent / "docs" / "deploy" / "aws_manual.md").read_text()
    assert all(f"--filter-pattern '{pattern}'" in page for pattern in patterns.values())


def matches(pattern: str, line: Mapping[str, object]) -> bool:
    """Whether CloudWatch finds the line: as its documentation has filters of JSON."""

    def term(told: re.Match[str]) -> str:
        value, asked = line[told[1]], told[2]
        if asked == "IS NULL":
            return str(value is None)
        operator, _, wanted = asked.partition(" ")
        if operator == ">=":
            return str(isinstance(value, int | float) and value >= float(wanted))
        return str(value == json.loads(wanted))

    text = re.sub(r'\$\.(\w+) (IS NULL|>?= (?:"[^"]*"|[\d.]+))', term, pattern.strip("{ }"))
    return bool(eval(text.replace("&&", "and").replace("||", "or"), {"__builtins__": {}}))  # noqa: S307


def test_the_page_copies_terraforms_dashboards() -> None:
    named = re.compile(r"grafana/dashboards/(\w+\.json)")
    page = (DEPLOY.parent / "docs" / "deploy" / "aws_manual.md").read_text()
    assert set(named.findall(page)) == set(named.findall((MODULES / "monitoring" / "configuration.tf").read_text()))


def test_what_is_replaced_is_there() -> None:
    """Terraform's `replace`, and the page's `sed`, say nothing where they find nothing."""
    provisioning = DEPLOY / "grafana" / "provisioning"
    assert "http://prometheus:9090" in (provisioning / "datasources" / "prometheus.yml").read_text()
    assert "/var/lib/grafana/dashboards/sparkmirror}" in (provisioning / "dashboards" / "sparkmirror.yml").read_text()


def test_a_container_on_the_bastion_has_its_rights() -> None:
    """The instance's metadata answer over one hop more, and all rights come with a mirror."""
    resources = template("bastion")["Resources"]
    options = resources["Template"]["Properties"]["LaunchTemplateData"]["MetadataOptions"]
    assert (options["HttpTokens"], options["HttpPutResponseHopLimit"]) == ("required", 2)
    assert "Policies" not in resources["Role"]["Properties"]


def test_what_stacks_import_is_exported() -> None:
    texts = {path.stem: path.read_text() for path in TEMPLATES.glob("*.yml")}
    exported = {
        name
        for text in texts.values()
        for name in re.findall(r'Export: \{Name: !Sub "\$\{AWS::StackName\}-(\w+)"', text)
    }
    imported = {
        name for text in texts.values() for name in re.findall(r'"Fn::ImportValue": !Sub "\$\{\w+\}-(\w+)"', text)
    }
    assert imported
    assert imported <= exported


def test_a_bastion_for_everybody_is_refused() -> None:
    allowed = re.compile(template("bastion")["Parameters"]["AllowedCidr"]["AllowedPattern"])
    assert allowed.fullmatch("203.0.113.7/32")
    assert not allowed.fullmatch("0.0.0.0/0")


@pytest.mark.parametrize(
    "words",
    [(), ("012345678910",), ("012345678910", "us-east-1", "more")],
)
def test_building_images_without_its_arguments(words: tuple[str, ...]) -> None:
    done = subprocess.run([BUILD, *words], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "ACCOUNT_ID REGION" in done.stderr


def test_building_images_for_an_unknown_architecture() -> None:
    words = [str(BUILD), "012345678910", "us-east-1"]
    environment = {"PATH": os.defpath, "ARCHITECTURE": "arm"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert "ARCHITECTURE is arm; it is X86_64 or ARM64" in done.stderr


def built(tmp_path: Path, **more: str) -> list[str]:
    """Calls of docker and aws, both played."""
    for name in ("docker", "aws"):
        program = tmp_path / name
        program.write_text(PLAYED)
        program.chmod(0o700)
    calls = tmp_path / "calls"
    environment = {"PATH": f"{tmp_path}:{os.defpath}", "CALLS": str(calls), **more}
    subprocess.run(
        [BUILD, "012345678910", "us-east-1"], env=environment, stdin=subprocess.DEVNULL, timeout=20, check=True
    )
    return calls.read_text().splitlines()


def test_images_are_built_for_fargate_and_pushed(tmp_path: Path) -> None:
    calls = built(tmp_path, TAG="7")
    for name in ("sparkmirror", "sparkmirror-prometheus"):
        (image,) = {word for call in calls for word in call.split() if word.endswith(f"/{name}:7")}
        assert image.startswith("012345678910.dkr.ecr.us-east-1.")
    assert [call.split()[:2] for call in sorted(calls)] == [
        ["aws", "ecr"],
        ["docker", "build"],
        ["docker", "build"],
        ["docker", "login"],
        ["docker", "push"],
        ["docker", "push"],
    ]
    assert all("linux/amd64" in call for call in calls)


def test_images_for_graviton(tmp_path: Path) -> None:
    assert all("linux/arm64" in call for call in built(tmp_path, ARCHITECTURE="ARM64"))


def test_another_registry(tmp_path: Path) -> None:
    calls = built(tmp_path, REGISTRY="127.0.0.1:5000/mine")
    done = [["docker", "build"], ["docker", "build"], ["docker", "push"], ["docker", "push"]]
    assert [call.split()[:2] for call in calls] == done
    assert f"127.0.0.1:5000/mine/sparkmirror:{__version__}" in calls[2]
    assert f"127.0.0.1:5000/mine/sparkmirror-prometheus:{__version__}" in calls[3]
