"""`diagnose` takes every snapshot that the model allows, and puts causes before what follows from them."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.planted import FAULTS
from tests.support.planted_flows import Fault

from sparkmirror.look.doctor.findings import Severity, diagnose
from sparkmirror.snapshot.snapshot import (
    ClusterFigures,
    Duty,
    Flow,
    Group,
    LossCount,
    Partition,
    Process,
    Pump,
    Snapshot,
    Topic,
)

for _kind in (Partition, Topic, Group, Duty, LossCount, ClusterFigures, Pump, Flow):
    # fields with a default are drawn as well
    st.register_type_strategy(_kind, st.builds(_kind, **{one.name: ... for one in dataclasses.fields(_kind)}))

_FLOWS = st.lists(st.from_type(Flow), max_size=2).map(tuple)
_SNAPSHOTS = st.builds(Snapshot, process=st.builds(Process), flows=_FLOWS)


@pytest.mark.full
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(now=_SNAPSHOTS, before=st.lists(_SNAPSHOTS, max_size=2))
def test_any_snapshot_is_diagnosed(now: Snapshot, before: list[Snapshot]) -> None:
    _check(now, [*before, *([dataclasses.replace(now, flows=_aged(now))] if now.flows else [])])


@settings(max_examples=200, deadline=None)
@given(faults=st.lists(st.sampled_from(FAULTS), min_size=2, max_size=2), data=st.data())
def test_parts_of_several_faults_at_once(faults: list[Fault], data: st.DataObject) -> None:
    """The second fault's fields, some of them, in the first one's flow."""
    first, second = faults
    names = [one.name for one in dataclasses.fields(Flow) if one.name not in ("flow", "at_ms", "leader", "role")]
    taken = data.draw(st.lists(st.sampled_from(names), unique=True))
    now = dataclasses.replace(first.now, **{name: getattr(second.now, name) for name in taken})
    before = dataclasses.replace(first.before, **{name: getattr(second.before, name) for name in taken})
    _check(Snapshot(first.process, now.at_ms, (now,)), [Snapshot(first.process, before.at_ms, (before,))])


def _aged(now: Snapshot) -> tuple[Flow, ...]:
    return tuple(dataclasses.replace(flow, at_ms=flow.at_ms - 70_000) for flow in now.flows)


def _check(now: Snapshot, before: list[Snapshot]) -> None:
    findings = diagnose(now, before)
    order = list(Severity)
    for place, finding in enumerate(findings):
        texts = (finding.title, finding.evidence, finding.cause, finding.action)
        assert all(text.isprintable() or "\n" not in text for text in texts)
        assert all((finding.title, finding.evidence, finding.cause, finding.action))
        ahead = [one for one in findings[:place] if order.index(one.severity) > order.index(finding.severity)]
        rest = findings[place:]
        for one in ahead:  # it is there for the sake of something that follows, as bad as this
            assert any(
                later.rule in one.explains and later.flow == one.flow for later in findings[findings.index(one) :]
            ), (one.rule, finding.rule)
        assert not any(finding.rule in later.explains for later in rest[1:] if later.flow == finding.flow)
