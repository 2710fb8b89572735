"""The segments topic is lost, and with it all else that tells how far the mirror was: the copies come again."""

from __future__ import annotations

import pytest
from chaos.arena import Arena
from chaos.copied_anew import delete_topic
from chaos.mirror import SOURCE, TARGET
from chaos.nemesis import Pace
from chaos.round import RoundPlan, run_round
from lab import KafkaCluster

from chaos import lost_segments
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.mm2.connect_offsets import offsets_topics

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]


def test_where_nothing_tells_the_copies_come_anew(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)  # a session of other tests may have set it

    def delete_all(cluster: KafkaCluster, topic: str) -> None:
        """With the segments topic those of the stored offsets and of the offset syncs."""
        delete_topic(cluster, topic)
        if topic == segments_topic(SOURCE):
            delete_topic(cluster, offsets_topics(SOURCE)[0])
            delete_topic(arena.source, f"mm2-offset-syncs.{TARGET}.internal")

    monkeypatch.setattr(lost_segments, "delete_topic", delete_all)
    plan = RoundPlan(
        number=2,
        seed=11,
        spark="local",
        isolation="read_committed",
        faults=1,
        timeout_s=300,
        kinds=frozenset({"lost segments topic"}),
        pace=Pace(rest_s=(3.0, 3.0), hold_s=(0.5, 1.0)),
    )
    result = run_round(arena, plan, {}, lambda _: None)
    assert result.findings.examples == []
    assert result.good, result.log_end
    assert result.findings.records > 1000
    assert [fault.kind for fault in result.happened] == ["lost segments topic"]
    reasons = dict(line.split(": ", 1) for line in result.copied_anew)
    assert set(reasons) == {f"round2.{kind}" for kind in ("orders", "payments", "archive", "drafts")}
    said = "the segments topic has none of its claims", "which this flow has no record of writing"
    assert all(any(words in reason for words in said) for reason in reasons.values()), reasons
