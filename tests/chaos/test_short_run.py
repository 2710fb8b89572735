"""A round of chaos, as `make chaos` runs it, but short: one broker a side, twelve faults."""

from __future__ import annotations

from collections import Counter

import pytest
from chaos.arena import Arena
from chaos.checker import Anomaly
from chaos.nemesis import Pace
from chaos.round import RoundPlan, run_round

pytestmark = [pytest.mark.broker, pytest.mark.spark]

KINDS = frozenset(
    {"source cut", "source pause", "source drop", "target cut", "target stall", "target kill"}
    | {"worker kill", "driver kill", "target throttle", "target stranger"}
    | {"target timestamp limit", "lost segments topic"}
)


@pytest.mark.full
def test_twelve_faults_and_not_a_record_is_lost(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)  # a session of other tests may have set it
    plan = RoundPlan(
        number=1,
        seed=7,
        spark="local",
        isolation="read_uncommitted",
        faults=len(KINDS),
        timeout_s=600,
        kinds=KINDS,
        transactions=True,
        restless=True,
        pace=Pace(rest_s=(0.2, 1.0), hold_s=(0.5, 3.0)),
    )
    result = run_round(arena, plan, {}, lambda _: None)
    assert result.findings.examples == []
    assert result.seen.good, result.seen
    assert result.wrong == [], result.log_end
    assert result.findings.records > 1000
    assert not result.findings.counts[Anomaly.UNSEEN]
    assert result.strangers > 0
    assert result.unguarded > 0, "the target forgets who wrote the old records"
    assert result.skipped == []
    assert Counter(fault.kind for fault in result.happened) == Counter(KINDS)
    assert result.mirror_starts >= 2, "the driver was killed"
    assert None not in result.recoveries
    assert result.moves > 0
    assert result.orphans == 0
    assert result.seen.scrapes > 10
    assert result.seen.updates > 10
