"""A target's log that ends above its high watermark: nobody may read what is there, so nobody judges by it.

The logs are real ones; the high watermark is made to lag, as nothing but a slow replica could.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from lab import KafkaCluster
from tests.support.copied_flow import COPIED, Flow, flow_between

from sparkmirror.config import FlowConfig
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.losses import LossKind, LossLedger
from sparkmirror.exact.position import target_reading
from sparkmirror.exact.position.route import Refusal
from sparkmirror.exact.position.target_reading import Unserved
from sparkmirror.kafka.cluster.list_offsets import LATEST, list_offsets
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.takeover.altered_offsets import AlteredOffsets, NotAltered
from sparkmirror.mirror.takeover.log_bounds import by_target_leader
from sparkmirror.mirror.takeover.our_records import ForeignEnds, OurRecords
from sparkmirror.policy.replication import DefaultReplicationPolicy

pytestmark = pytest.mark.broker


@pytest.fixture
def flow(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str) -> Iterator[Flow]:
    """Copied, with four records of somebody else behind it."""
    with flow_between(source_cluster, target_cluster, topic_name) as flow:
        flow.copy()
        flow.target.append(flow.target_topic, 4)
        yield flow


def high_watermark(monkeypatch: pytest.MonkeyPatch, at: int, *, asked: int) -> None:
    """It is not beyond an offset until it was asked for so many times."""
    left = [asked]

    def listed(*given: Any, **options: Any) -> Any:
        found = list_offsets(*given, **options)
        if given[3] != LATEST or options or not left[0]:
            return found
        left[0] -= 1
        return {where: one._replace(offset=min(one.offset, at)) for where, one in found.items()}

    monkeypatch.setattr(target_reading, "list_offsets", listed)
    monkeypatch.setattr(target_reading, "_REPLICATED_WITHIN_S", 0.3)


@pytest.fixture
def own(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str) -> Iterator[Flow]:
    """Copied, and nobody else has written."""
    with flow_between(source_cluster, target_cluster, topic_name) as flow:
        flow.copy()
        yield flow


def so_far(flow: Flow, *, whoever: bool = False) -> OurRecords | Unserved | None:
    client = flow.target.client
    claim_log = ClaimLog(TopicLog(client, flow.segments_topic))
    ends = ForeignEnds(client, claim_log, LossLedger(TopicLog(client, flow.losses_topic)), flow.identity)
    ((leader, group),) = by_target_leader(flow.source.client, client, [flow.route], lambda *_: None).items()
    (found,) = ends.so_far(leader, group, whoever=whoever)
    return found


def test_nothing_is_taken_for_somebody_elses_that_may_go_again(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    high_watermark(monkeypatch, COPIED, asked=1000)
    refused = flow.refusal()
    assert refused.transient
    assert "its replicas have not confirmed" in refused.reason
    assert flow.losses() == []


def test_a_high_watermark_that_lags_for_a_moment_is_waited_for(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    high_watermark(monkeypatch, COPIED, asked=3)
    assert flow.partition_reading().position.downstream == COPIED + 4
    (noted,) = flow.losses()
    assert (noted.kind, noted.first, noted.end) == (LossKind.FOREIGN, COPIED, COPIED + 4)


def test_whether_somebody_else_continued_is_asked_again_then(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    """A takeover that took it for settled would leave to a pump what another mirror had copied."""
    high_watermark(monkeypatch, COPIED, asked=1000)
    found = so_far(flow)
    assert isinstance(found, Unserved)
    assert "its replicas have not confirmed" in str(found)
    monkeypatch.undo()
    found = so_far(flow)
    assert isinstance(found, OurRecords)
    assert found.end == COPIED


def test_no_position_is_told_by_what_only_the_leader_has(own: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader's state has the records all the same (R10)."""
    assert own.partition_reading().replicated
    high_watermark(monkeypatch, COPIED - 1, asked=1000)
    found = own.read()
    assert found.transient if isinstance(found, Refusal) else not found.replicated


def test_another_mirror_is_not_taken_over_by_what_only_the_leader_has(
    own: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    high_watermark(monkeypatch, COPIED - 1, asked=1000)
    found = so_far(own, whoever=True)
    assert isinstance(found, Unserved)
    assert "its replicas have not confirmed" in str(found)
    monkeypatch.undo()
    assert isinstance(so_far(own, whoever=True), OurRecords)


def test_no_offset_is_altered_by_what_only_the_leader_has(own: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim would lie behind records that an election takes away."""
    client = own.target.client
    policy = DefaultReplicationPolicy(separator=".")
    with AlteredOffsets(
        FlowConfig(source=own.source.config, target=own.target.config), policy, own.identity
    ) as altered:
        monkeypatch.setattr(altered, "_claim_log", ClaimLog(TopicLog(client, own.segments_topic)))
        monkeypatch.setattr(altered, "_ledger", LossLedger(TopicLog(client, own.losses_topic)))
        (partition,) = altered._located({own.route.source: 0})  # noqa: SLF001
        assert altered._reached(partition).sequence == COPIED  # noqa: SLF001
        high_watermark(monkeypatch, COPIED - 1, asked=1000)
        with pytest.raises(NotAltered, match="its replicas have confirmed offset 29"):
            altered._reached(partition)  # noqa: SLF001
