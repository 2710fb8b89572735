"""Kustomize: the base has the manifest's objects, and the page's overlay puts namespace, image and file in."""

from __future__ import annotations

import re
import shutil
import subprocess
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.terraform import DEPLOY

BASE = DEPLOY / "kubernetes"
PAGE = DEPLOY.parent / "docs" / "deploy" / "kubernetes.md"

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl here")


def objects(directory: Path) -> dict[str, Any]:
    """What kubectl makes of the directory, by kind."""
    done = subprocess.run(
        ["kubectl", "kustomize", str(directory)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}


def test_the_base_is_the_manifest() -> None:
    manifest = (each for each in yaml.safe_load_all((BASE / "mirror.yaml").read_text()) if each)
    assert objects(BASE) == {each["kind"]: each for each in manifest}


def test_the_pages_overlay(tmp_path: Path) -> None:
    (overlay,) = re.findall(r"^### Kustomize\n.*?^```yaml\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    shutil.copytree(BASE, tmp_path / "deploy" / "kubernetes")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kustomization.yaml").write_text(overlay)
    (tmp_path / "mine" / "mm2.properties").write_text("clusters = here, there\n")
    made = objects(tmp_path / "mine")
    assert {each["metadata"]["namespace"] for each in made.values()} == {"kafka"}
    assert "ConfigMap" not in made
    assert "stringData" not in made["Secret"]
    assert {name: b64decode(text) for name, text in made["Secret"]["data"].items()} == {
        "mm2.properties": b"clusters = here, there\n"
    }
    pod = made["Deployment"]["spec"]["template"]["spec"]
    assert [each["image"] for each in pod["containers"]] == ["registry.example.com/sparkmirror:0.3.0"]
    mounted = [each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each]
    assert made["Secret"]["metadata"]["name"] in mounted
