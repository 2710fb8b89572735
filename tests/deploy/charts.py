"""Helm over the charts of this checkout."""

from __future__ import annotations

import subprocess
from typing import Any

import yaml
from tests.deploy.chart_pages import CHARTS
from tests.deploy.kube_build import helm

NAMESPACE = "kafka"
FILE = "config.text=clusters = a"
"""A file for the mirror's chart, which makes nothing without one."""


def run_helm(*words: str, ok: bool = True) -> str:
    """Run it; what it prints. With `ok` False what it complains about."""
    done = subprocess.run([helm(), *words], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode == 0) == ok, done.stderr + done.stdout
    return done.stdout if ok else done.stderr


def template(chart: str, *more: str, ok: bool = True) -> str:
    """Render a release `ours` in `NAMESPACE`."""
    words = ("ours", str(CHARTS / chart), "-n", NAMESPACE, "--kube-version", "1.36.0")
    return run_helm("template", *words, *more, ok=ok)


def rendered(*more: str, chart: str = "sparkmirror", file: str = FILE) -> list[dict[str, Any]]:
    """Return all objects of a release whose values are set by `more`."""
    told = ("--set", file) if chart == "sparkmirror" and file else ()
    return [item for item in yaml.safe_load_all(template(chart, *told, *more)) if item]


def only(objects: list[dict[str, Any]], kind: str, name: str = "ours-sparkmirror") -> dict[str, Any]:
    """Return the object of this kind and name."""
    (found,) = (item for item in objects if (item["kind"], item["metadata"]["name"]) == (kind, name))
    return found


def settings(arguments: list[str]) -> dict[str, str]:
    """Return Spark's settings among the arguments of `sparkmirror run`."""
    told = [arguments[at + 1] for at, word in enumerate(arguments) if word == "--spark"]
    return dict(setting.split("=", 1) for setting in told)
