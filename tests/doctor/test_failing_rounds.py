"""Rounds that fail one after the other: found by two looks at once, and over as soon as one lasts."""

from __future__ import annotations

from typing import Any

from tests.support.planted_flows import earlier, pumps
from tests.support.snapshot_samples import PROCESS, flow

from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.snapshot.snapshot import Flow, FlowState, Snapshot

LOOKS_MS = 6_000
FAILED = {"failed": 5}


def is_found(now: Flow, **then: Any) -> bool:
    """Between two looks as the verb has them; without `then` at one look."""
    before = [Snapshot(PROCESS, now.at_ms - LOOKS_MS, (earlier(now, LOOKS_MS, **then),))] if then else []
    return "epochs-failing" in {one.rule for one in diagnose(Snapshot(PROCESS, now.at_ms, (now,)), before)}


def test_no_round_ends_between_two_looks() -> None:
    """The pauses between rounds are longer than that."""
    starting = flow(state=FlowState.STARTING, pumps=(), epochs=FAILED)
    assert is_found(starting)
    assert is_found(starting, epochs=FAILED)


def test_one_that_lasts_ends_it() -> None:
    copying = flow(state=FlowState.COPYING, pumps=pumps(2), epoch=6, epochs=FAILED)
    assert not is_found(copying, epoch=6)
    assert is_found(copying, epoch=5), "it has just begun"
    silent = flow(state=FlowState.COPYING, pumps=pumps(2, at_ms=copying.at_ms - 20_000), epoch=6, epochs=FAILED)
    assert is_found(silent, epoch=6), "its pumps are dead"


def test_rounds_that_ended_well() -> None:
    assert not is_found(flow(state=FlowState.STARTING, epochs={"failed": 2}), epochs={})
    assert not is_found(flow(state=FlowState.STARTING, epochs={**FAILED, "planned": 1}))
    assert is_found(flow(state=FlowState.STARTING, epochs={**FAILED, "planned": 1}), epochs={"failed": 1, "planned": 1})
