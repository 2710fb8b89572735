"""The deployed alerts over planted faults that last, in Prometheus' own program: just those that are to fire."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.metrics.played_alerts import fired
from tests.support.deployed import rules
from tests.support.planted_flows import Fault
from tests.support.snapshot_samples import flow, level_group, snapshot
from tests.support.told import SCENES, TOLD

WELL = snapshot(flow(groups=(level_group(),)))
PROCESSES_GONE = {"SparkmirrorDown", "FlowVanished"}
"""No process tells of the flow then: `tests/engine/test_alerts_of_a_run.py`."""


def test_nothing_fires_where_all_is_well(tmp_path: Path) -> None:
    assert fired(tmp_path, WELL, WELL, WELL) == set()


def test_each_alert_has_a_fault() -> None:
    told = set().union(*(told.alerts for told in TOLD.values()))
    assert told | PROCESSES_GONE == {rule["alert"] for rule in rules("alerts.yml")}


@pytest.mark.full
@pytest.mark.parametrize("fault", SCENES, ids=[fault.words for fault in SCENES])
def test_just_these_fire(fault: Fault, tmp_path: Path) -> None:
    now, (before,) = fault.snapshots
    assert fired(tmp_path, WELL, before, now) == TOLD[fault.words].alerts
