"""The page's examples: values that the chart takes, and Argo CD's health check in the Lua that Argo CD runs it with."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.charts import FILE, template
from tests.deploy.programs import go_program
from tests.deploy.terraform import DEPLOY

pytestmark = pytest.mark.full

PAGE = DEPLOY.parent / "docs" / "deploy" / "kubernetes.md"
LUA = "github.com/yuin/gopher-lua/cmd/glua@v1.1.1"
"""Argo CD's interpreter."""
KEY = "resource.customizations.health.kafka.strimzi.io_KafkaMirrorMaker2"


def examples() -> list[dict[str, Any]]:
    """All YAML of the page."""
    return [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.M | re.S)]


def test_values_of_the_page_are_values(tmp_path: Path) -> None:
    given = [example for example in examples() if not {"apiVersion", "data"} & example.keys()]
    assert len(given) >= 3
    file = tmp_path / "values.yaml"
    for example in given:
        file.write_text(yaml.safe_dump(example))
        plain = template("sparkmirror", "--set", FILE)
        assert template("sparkmirror", "--set", FILE, "--values", str(file)) != plain


def healthy(resource: dict[str, Any], directory: Path) -> str:
    """What Argo CD would say of it."""
    (check,) = (example["data"][KEY] for example in examples() if KEY in example.get("data", {}))
    script = directory / "health.lua"
    script.write_text(
        f"obj = {lua(resource)}\nlocal function check()\n{check}end\nlocal health = check()\n"
        'print(health.status .. ": " .. health.message)\n'
    )
    done = subprocess.run([go_program(LUA), script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def lua(value: Any) -> str:
    """Write a value as Lua has it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"[{lua(key)}] = {lua(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "{" + ", ".join(lua(item) for item in value) + "}"
    return json.dumps(value)


def resource(*conditions: dict[str, str], seen: int = 3) -> dict[str, Any]:
    status = {"observedGeneration": seen, "conditions": list(conditions)}
    return {"metadata": {"generation": 3}, "status": status}


READY = {"type": "Ready", "status": "True"}
WARNING = {"type": "Warning", "status": "True", "reason": "NoEffect", "message": "spec.x has no effect"}


def not_ready(reason: str) -> dict[str, str]:
    return {"type": "NotReady", "status": "True", "reason": reason, "message": f"it is {reason}"}


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({"metadata": {"generation": 1}}, "Progressing: the operator has not seen this generation yet"),
        (resource(READY, seen=2), "Progressing: the operator has not seen this generation yet"),
        (resource(READY), "Healthy: pods and connectors run"),
        (resource(READY, WARNING), "Healthy: pods and connectors run"),
        (resource(not_ready("PodsNotReady")), "Progressing: it is PodsNotReady"),
        (resource(not_ready("ConnectorsNotRunning"), WARNING), "Progressing: it is ConnectorsNotRunning"),
        (resource(not_ready("ConnectorsFailed")), "Degraded: it is ConnectorsFailed"),
        (resource(not_ready("InvalidResourceException")), "Degraded: it is InvalidResourceException"),
        (resource(not_ready("GroupShared")), "Degraded: it is GroupShared"),
        (resource({"type": "ReconciliationPaused", "status": "True"}), "Suspended: the operator leaves it alone"),
        (resource(), "Progressing: the operator has not seen this generation yet"),
    ],
)
def test_argo_cds_health_check(given: dict[str, Any], verdict: str, tmp_path: Path) -> None:
    assert healthy(given, tmp_path) == verdict
