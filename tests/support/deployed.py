"""The rules and dashboards under `deploy`, and the selectors in their expressions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
PROMETHEUS = DEPLOY / "prometheus"
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
VARIABLES = {"$flow": ".*", "$strimzi_mirror_maker_cluster_name": "my-mirror", "$kubernetes_namespace": "kafka"}
"""Of dashboards, as somebody would choose them next to `prometheus.yml`."""
TARGET_LABELS = {
    "job": "sparkmirror",
    "instance": "localhost:9404",
    "kubernetes_pod_name": "localhost",
    "strimzi_io_kind": "KafkaMirrorMaker2",
    "strimzi_io_cluster": "my-mirror",
    "namespace": "kafka",
}
"""What `prometheus.yml` adds to each series."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_NAME = r"(?:sparkmirror|kafka|connect_mirror|container_|jvm|process|strimzi_kafka)[\w:]*"
_SELECTOR = re.compile(rf"\b({_NAME})\s*(\{{(?:[^{{}}\"]|{_STRING})*\}})?")
_MATCHER = re.compile(rf"(\w+)\s*(=~|!~|!=|=)\s*({_STRING})")


def rules(name: str) -> list[dict[str, Any]]:
    """Of a file of rules."""
    groups = yaml.safe_load((PROMETHEUS / name).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels(path: Path) -> Iterator[tuple[str, str]]:
    """Titles of a dashboard's panels, each with an expression, whose variables are chosen."""
    for panel in json.loads(path.read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], chosen(target["expr"])


def queries(path: Path) -> Iterator[str]:
    """What a dashboard's variables ask for."""
    for variable in json.loads(path.read_text())["templating"]["list"]:
        if variable["type"] == "query":
            yield chosen(variable["query"]["query"])


def chosen(expression: str) -> str:
    """With a choice for each variable."""
    for variable, choice in VARIABLES.items():
        expression = expression.replace(variable, choice)
    return expression


@dataclass(frozen=True)
class Selector:
    """A metric's name and the matchers behind it: label, operator, value."""

    name: str
    matchers: tuple[tuple[str, str, str], ...] = ()

    def selects(self, name: str, labels: dict[str, str]) -> bool:
        """As Prometheus has it: a label that is not there is empty, regexes match the whole."""
        return name == self.name and all(
            _matches(labels.get(label, ""), op, value) for label, op, value in self.matchers
        )


def _matches(text: str, operator: str, value: str) -> bool:
    equal = re.fullmatch(value, text) is not None if operator.endswith("~") else text == value
    return equal is not operator.startswith("!")


def selectors(expression: str) -> Iterator[Selector]:
    """Those in an expression."""
    for name, braces in _SELECTOR.findall(expression):
        yield Selector(
            name,
            tuple((label, op, json.loads(value.replace(r"\.", "."))) for label, op, value in _MATCHER.findall(braces)),
        )
