"""Planted faults: the right finding is first."""

from __future__ import annotations

import dataclasses

import pytest
from snapshot_samples import NOW_MS, flow, group, partition, snapshot, topic

from sparkmirror.doctor.findings import diagnose
from sparkmirror.engine.snapshot import (
    Cause,
    ClusterFigures,
    Duty,
    Flow,
    FlowState,
    LossCount,
    PartitionState,
    Role,
)
from sparkmirror.sync.group_standing import GroupState

_PARKED = [
    (
        f"parked-{cause}",
        flow(
            topics=(topic("orders", partition(state=PartitionState.PARKED, cause=cause, reason="why")),),
            lag_s=900.0,
            objective_s=60.0,
        ),
    )
    for cause in Cause
]
_FAULTS = [
    ("topic-refused", flow(topics=(topic(refused="why"),))),
    ("late-records", flow(topics=(topic(late_in={0: 7}),))),
    ("topic-deleted", flow(topics=(topic(gone=True),))),
    ("certificate-ends", flow(source=ClusterFigures("A", certificate_ends_ms=NOW_MS + 86_400_000))),
    ("long-joining", flow(state=FlowState.JOINING, state_since_ms=NOW_MS - 600_000)),
    ("long-starting", flow(state=FlowState.STARTING, state_since_ms=NOW_MS - 600_000)),
    ("long-finding-out", flow(state=FlowState.FINDING_OUT, state_since_ms=NOW_MS - 600_000)),
    ("no-standby", flow(processes=1)),
    ("records-lost", flow(losses=(LossCount("expired", 1, 20, NOW_MS, "20 offsets"),))),
    ("retention-race", flow(retention_s=60.0, retention_of="orders-0")),
    ("throttled-target", flow(target=ClusterFigures("B", throttle_s=9.0), lag_s=900.0, objective_s=60.0)),
    ("throttled-source", flow(source=ClusterFigures("A", throttle_s=9.0), lag_s=900.0, objective_s=60.0)),
    ("no-progress", flow(state=FlowState.COPYING, lag=500)),
    ("lag-over-objective", flow(lag_s=900.0, objective_s=60.0)),
    ("group-not-synced", flow(groups=(group(state=GroupState.NOT_SYNCED, reason="why"),))),
    ("duty-failing", flow(duties=(Duty("checkpoints", 60.0, failing="why", failures=3),))),
]


@pytest.mark.parametrize(
    ("rule", "fault"), _PARKED + _FAULTS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_right_finding_is_first(rule: str, fault: Flow) -> None:
    before = flow(at_ms=NOW_MS - 10_000)
    assert diagnose(snapshot(fault), [snapshot(before)])[0].rule == rule


@pytest.mark.parametrize("role", [Role.LEADER, Role.STANDBY])
def test_nothing_is_said_of_a_healthy_flow(role: Role) -> None:
    well = flow(role=role)
    assert diagnose(snapshot(well), [snapshot(dataclasses.replace(well, at_ms=NOW_MS - 10_000))]) == []
