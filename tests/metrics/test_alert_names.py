"""Every name in an alert's expression is in a scrape."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from snapshot_samples import NOW_MS, flow, partition, snapshot, topic

from sparkmirror.engine.snapshot import ClusterFigures, LossCount
from sparkmirror.metrics.collector import MirrorCollector

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
ALERTS = {
    rule["alert"]: rule["expr"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
}
RICH = snapshot(
    flow(
        source=ClusterFigures("A", certificate_ends_ms=NOW_MS),
        topics=(topic("orders", partition(lag=3)),),
        losses=(LossCount("expired", 1, 7, NOW_MS, "w"),),
        retention_s=60.0,
        objective_s=5.0,
    )
)


@pytest.mark.parametrize("alert", ALERTS)
def test_names_are_in_a_scrape(alert: str) -> None:
    names = set(re.findall(r"sparkmirror_\w+", ALERTS[alert]))
    lines = MirrorCollector(lambda: RICH).text().decode().splitlines()
    assert names
    assert names <= {re.split(r"[{ ]", line)[0] for line in lines if not line.startswith("#")}
