"""Hours of a flow's past: a sample a step, the worst of it, bounded."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.support.snapshot_samples import NOW_MS, flow, partition, topic

from sparkmirror.snapshot.history import LENGTH, MOST_FLOWS, STEP_S, FlowHistory, Sample
from sparkmirror.snapshot.snapshot import Flow, FlowState, PartitionState, Role

BEGIN_MS = NOW_MS // (STEP_S * 1000) * STEP_S * 1000


def at(seconds: float, **changes: Any) -> Flow:
    return flow(at_ms=BEGIN_MS + int(seconds * 1000), **changes)


def test_a_step_is_one_sample_with_the_worst_of_it() -> None:
    history = FlowHistory()
    history.take([at(0, lag=5, lag_s=0.5, records_per_s=9.0)])
    history.take([at(5, lag=900, lag_s=40.0, state=FlowState.UNREACHABLE)])
    history.take([at(10, lag=2, lag_s=0.1, records_per_s=7.0, state=FlowState.COPYING)])
    history.take([at(STEP_S, lag=0, lag_s=0.0)])
    assert history.of("A->B") == (
        Sample(BEGIN_MS // 1000, FlowState.UNREACHABLE, stuck=False, lag=900, lag_s=40.0, records_per_s=7.0),
        Sample(BEGIN_MS // 1000 + STEP_S, FlowState.CAUGHT_UP, stuck=False, lag=0, lag_s=0.0, records_per_s=0.0),
    )


def test_what_is_not_known_is_no_figure() -> None:
    history = FlowHistory()
    parked = topic("a", partition(state=PartitionState.PARKED))
    history.take([at(0, unknown=2, topics=(parked,))])
    history.take([at(STEP_S, role=Role.STANDBY, state=FlowState.STANDING_BY, lag=9_684, topics=(parked,))])
    unknown, standby = history.of("A->B")
    assert (unknown.lag, unknown.lag_s, unknown.records_per_s, unknown.stuck) == (None, None, 0.0, True)
    assert standby[2:] == (False, None, None, None)
    history.take([at(STEP_S + 5, lag=4, lag_s=1.0)])
    assert history.of("A->B")[1].lag == 4, "this process has the lease now"


def test_it_is_bounded_and_flows_that_are_gone_are_forgotten() -> None:
    history = FlowHistory()
    for step in range(LENGTH + 10):
        history.take([at(step * STEP_S)])
    samples = history.of("A->B")
    assert len(samples) == LENGTH
    assert samples[0].at_s == BEGIN_MS // 1000 + 10 * STEP_S
    many = [dataclasses.replace(flow(), flow=f"A->{number}") for number in range(MOST_FLOWS + 5)]
    history.take(many)
    assert sum(bool(history.of(each.flow)) for each in many) == MOST_FLOWS
    assert history.of("A->B") == ()
    assert history.of("no such flow") == ()


def test_a_clock_that_was_set_back_adds_to_the_newest_sample() -> None:
    history = FlowHistory()
    history.take([at(100 * STEP_S, lag=1, lag_s=1.0)])
    history.take([at(0, lag=7, lag_s=2.0)])
    (sample,) = history.of("A->B")
    assert sample.lag == 7
