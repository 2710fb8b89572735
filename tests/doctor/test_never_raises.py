"""`diagnose` takes every snapshot that the model allows."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkmirror.doctor.findings import Severity, diagnose
from sparkmirror.engine.snapshot import (
    ClusterFigures,
    Duty,
    Flow,
    Group,
    LossCount,
    Partition,
    Process,
    Snapshot,
    Topic,
)

for _kind in (Partition, Topic, Group, Duty, LossCount, ClusterFigures, Flow):
    # fields with a default are drawn as well
    st.register_type_strategy(_kind, st.builds(_kind, **{one.name: ... for one in dataclasses.fields(_kind)}))

_FLOWS = st.lists(st.from_type(Flow), max_size=2).map(tuple)
_SNAPSHOTS = st.builds(Snapshot, process=st.builds(Process), flows=_FLOWS)


@pytest.mark.full
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(now=_SNAPSHOTS, before=st.lists(_SNAPSHOTS, max_size=2))
def test_any_snapshot_is_diagnosed_worst_first(now: Snapshot, before: list[Snapshot]) -> None:
    order = list(Severity)
    ranks = [order.index(one.severity) for one in diagnose(now, before)]
    assert ranks == sorted(ranks)
