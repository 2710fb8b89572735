"""Kinds that others brought into Kubernetes: their definitions, and the Spark operator, from their Go modules."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkmirror.demo.cache import cache_root, locked

SPARK_OPERATOR = "github.com/kubeflow/spark-operator/v2@v2.4.0"
PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
_FETCH_S = 300
_BUILD_S = 1800


def module(name: str) -> Path:
    """Return the directory of a module, `path@version`; skip the test where it can't be had."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no Go here to fetch definitions with")
    command = [go, "mod", "download", "-json", name]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=_FETCH_S, check=False)
    if done.returncode:
        pytest.skip(f"{name} can't be had: {done.stdout[-300:]}")
    return Path(json.loads(done.stdout)["Dir"])


def spark_kinds() -> list[dict[str, Any]]:
    """Return the definitions of SparkApplication and of the other kinds that Kubeflow's operator asks for."""
    place = module(SPARK_OPERATOR) / "config" / "crd" / "bases"
    return [_read(file) for file in sorted(place.glob("*.yaml"))]


def monitoring() -> list[dict[str, Any]]:
    """Return the definitions of ServiceMonitor, PodMonitor and PrometheusRule."""
    place = module(PROMETHEUS_OPERATOR) / "example" / "prometheus-operator-crd"
    kinds = ("servicemonitors", "podmonitors", "prometheusrules")
    return [_read(place / f"monitoring.coreos.com_{kind}.yaml") for kind in kinds]


def _read(file: Path) -> dict[str, Any]:
    tree: dict[str, Any] = yaml.safe_load(file.read_text())
    return tree


def spark_operator() -> Path:
    """Return Kubeflow's Spark operator, built once into the cache."""
    place = cache_root() / "deploy" / "kube" / f"spark-operator-{SPARK_OPERATOR.rpartition('@v')[2]}"
    source = module(SPARK_OPERATOR)
    with locked(place):
        if not place.exists():
            command = ["nice", "-n", "15", "go", "build", "-C", str(source), "-o", str(place), "./cmd/operator"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_S, check=False)
            if done.returncode:
                pytest.skip(f"the Spark operator can't be built: {done.stderr[-300:]}")
    return place
