"""The deployed alerts, made faster, in a real Prometheus: which fire, and which have fired."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from scraping import asked, prometheus
from tests.support import mirror_process as mp
from tests.support.deployed import PROMETHEUS, rules

FOR = "2s"
SOON_S = 90.0
"""So long an alert is waited for."""
FASTER = {"[10m]": "[10s]", "[5m]": "[10s]", "offset 15m": "offset 10s", "[1m]": "[5s]", "[1d]": "[1d]"}
"""Ranges and offsets of the deployed expressions, and what they become."""
_TIMES = re.compile(r"\[\w+\]|offset \w+")


def faster_rules(path: Path) -> None:
    """Write the deployed alerts, with other durations and nothing else that is other."""
    text = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())
    for group in text["groups"]:
        for rule in group["rules"]:
            rule["expr"] = _TIMES.sub(lambda found: FASTER[found[0]], rule["expr"])
            if "for" in rule:
                rule["for"] = FOR
    path.write_text(yaml.safe_dump(text))
    ours = [rule for group in text["groups"] for rule in group["rules"]]
    assert [_timeless(rule) for rule in ours] == [_timeless(rule) for rule in rules("alerts.yml")]


def _timeless(rule: dict[str, Any]) -> dict[str, Any]:
    return {**rule, "expr": _TIMES.sub("", rule["expr"]), "for": "for" in rule}


class Alerts:
    """What a Prometheus says of them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._since = time.time()

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of each series."""
        found = asked(f"{self._url}/api/v1/query", query=expression)["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]

    def firing(self, name: str) -> list[dict[str, str]]:
        """Labels of those of one name that fire, without what Prometheus adds."""
        return [
            {label: text for label, text in one["labels"].items() if label in _TOLD}
            for one in asked(f"{self._url}/api/v1/alerts")["alerts"]
            if one["state"] == "firing" and one["labels"]["alertname"] == name
        ]

    def wait_until_firing(self, name: str, **labels: str) -> None:
        """Wait for one with just these labels."""
        mp.wait_for(lambda: labels in self.firing(name), SOON_S, f"{name} fires with {labels}")

    def wait_until_over(self, name: str, **labels: str) -> None:
        """Wait until there is none with just these labels."""
        mp.wait_for(lambda: labels not in self.firing(name), SOON_S, f"{name} ends")

    def begin(self, *but: str) -> None:
        """Wait until none fires or is about to, but for those; `fired` counts from then on."""

        def quiet() -> bool:
            alerts = asked(f"{self._url}/api/v1/alerts")["alerts"]
            return {one["labels"]["alertname"] for one in alerts} <= {*but}

        mp.wait_for(quiet, SOON_S, "no alert")
        self._since = time.time()

    def fired(self) -> set[str]:
        """Names of all that have fired since `begin`."""
        seconds = max(int(time.time() - self._since), 1)
        found = self.query(f'last_over_time(ALERTS{{alertstate="firing"}}[{seconds}s])')
        return {labels["alertname"] for labels, _ in found}


_TOLD = frozenset({"flow", "cause", "kind", "group", "side", "cluster"})


@contextmanager
def alerts_of(directory: Path, *ports: int) -> Iterator[Alerts]:
    """Of the processes that answer at these ports."""
    faster_rules(directory / "alerts.yml")
    with prometheus(directory, *ports) as url:
        yield Alerts(url)
