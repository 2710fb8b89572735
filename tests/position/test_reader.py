"""Positions read from real clusters, whose logs were written as a pump writes them, and then suffered."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka import KafkaProducer
from kafka.admin import NewTopic
from lab import KafkaCluster
from tests.support.copied_flow import (
    AT_SOURCE,
    COPIED,
    DAY_MS,
    FIRST_UPSTREAM,
    Flow,
    built,
    flow_between,
    read_all,
    wait_for,
)
from tests.support.started import started

from sparkmirror.config import FlowConfig, LossPolicy
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim, turn_claim
from sparkmirror.exact.durable.known_topics import KnownTopic, TopicMemory
from sparkmirror.exact.durable.losses import LossKind, LossLedger, losses_topic
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.decision import Position
from sparkmirror.exact.position.resolving import PositionResolver
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.kafka.cluster import log_tail
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.kafka.wire.topic_ids import NO_ID
from sparkmirror.mirror.takeover import altered_offsets
from sparkmirror.mirror.takeover.altered_offsets import AlteredOffsets
from sparkmirror.mirror.takeover.log_bounds import by_target_leader
from sparkmirror.mirror.takeover.our_records import ForeignEnds, OurRecords
from sparkmirror.policy import ReplicationPolicy

pytestmark = pytest.mark.broker

UNTOUCHED = Position(
    sequence=0,
    upstream=None,
    downstream=0,
    claim_due=True,
    leader_epoch=-1,
    source_topic_id=None,
    newest_timestamp_ms=None,
)


def after_the_copy(found: Position, claim: Claim) -> None:
    assert (found.sequence, found.upstream, found.downstream) == (COPIED, FIRST_UPSTREAM + COPIED, COPIED)
    assert (found.source_topic_id, found.leader_epoch) == (claim.source_topic_id, claim.source_leader_epoch)


# --- where it stands ----------------------------------------------------------------------------------


def test_a_partition_that_was_never_copied_starts_at_the_sources_start(flow: Flow) -> None:
    flow.source.delete_records(flow.topic, 7)
    found = flow.partition_reading()
    assert found.position == UNTOUCHED
    assert (found.source_start, found.source_end) == (7, AT_SOURCE)
    assert (found.source_leader, found.target_leader) == (1, 1)
    assert found.source_topic_id == flow.source.topic_id(flow.topic)
    assert found.target_topic_id == flow.target.topic_id(flow.target_topic)


@pytest.mark.parametrize("read_committed", [False, True])
def test_an_open_transaction_is_nothing_to_read_with_read_committed(flow: Flow, read_committed: bool) -> None:
    producer = KafkaProducer(
        bootstrap_servers=flow.source.config.bootstrap_servers, transactional_id=f"{flow.topic}-open"
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(flow.topic, value=b"open", partition=0)
    producer.flush()
    found = read_all(flow.reader(read_committed=read_committed), [flow.route])[flow.route]
    producer.abort_transaction()
    producer.close()
    assert isinstance(found, PartitionReading)
    assert found.source_end == (AT_SOURCE if read_committed else AT_SOURCE + 1)


def test_the_producer_state_tells_the_position(flow: Flow) -> None:
    started = time.time() * 1000
    claim = flow.copy()
    found = flow.partition_reading()
    after_the_copy(found.position, claim)
    assert found.position.newest_timestamp_ms is not None
    assert abs(found.position.newest_timestamp_ms - started) < 60_000


def test_the_position_moves_with_the_log(flow: Flow) -> None:
    flow.copy()
    reader = flow.reader()
    for sequence in (COPIED, COPIED + 10):
        before = read_all(reader, [flow.route])[flow.route]
        assert isinstance(before, PartitionReading)
        assert before.position.sequence == sequence
        flow.target.append(flow.target_topic, 10, flow.producer(sequence))


def test_a_newer_segment_takes_over_where_it_begins(flow: Flow) -> None:
    flow.copy()
    newer = flow.a_claim(sequence=COPIED, upstream=35, incarnation=2)
    flow.claim(newer)
    assert flow.partition_reading().position.upstream == COPIED
    flow.target.append(flow.target_topic, 10, flow.producer(COPIED))
    found = flow.partition_reading().position
    assert (found.sequence, found.upstream, found.downstream) == (COPIED + 10, 45, COPIED + 10)


def test_deleted_records_were_copied_all_the_same(flow: Flow) -> None:
    claim = flow.copy()
    for before in (15, COPIED):
        flow.target.delete_records(flow.target_topic, before)
        after_the_copy(flow.partition_reading().position, claim)


def test_the_log_end_alone_tells_the_position(flow: Flow) -> None:
    """Neither a state of ours nor records: as after expiry, DeleteRecords and a restart. Only the count is left."""
    claim = flow.a_claim()
    flow.claim(claim)
    flow.target.append(flow.target_topic, COPIED)
    flow.target.delete_records(flow.target_topic, COPIED)
    found = flow.partition_reading().position
    after_the_copy(found, claim)
    assert found.newest_timestamp_ms is None


def test_a_target_topic_created_again_starts_again(flow: Flow) -> None:
    flow.copy()
    old = flow.target.topic_id(flow.target_topic)
    flow.target.delete(flow.target_topic)
    flow.target.create(flow.target_topic)
    found = flow.partition_reading()
    assert found.target_topic_id != old
    assert found.position == UNTOUCHED


def test_claims_of_another_identity_are_not_ours(flow: Flow) -> None:
    """Of another epoch of our own producer id too: it counted its sequences by itself."""
    claim = flow.copy()
    for number, other in enumerate(({"producer_id": 1 << 40}, {"producer_epoch": 9})):
        changed: dict[str, Any] = {"incarnation": 70 + number, "runs": (Run(999, 0),), **other}
        flow.claim(replace(claim, **changed))
    after_the_copy(flow.partition_reading().position, claim)


def test_each_route_is_answered_for_itself(flow: Flow) -> None:
    claim = flow.copy()
    empty, missing = replace(flow.route, partition=1), replace(flow.route, partition=2)
    found = read_all(flow.reader(), [missing, flow.route, empty])
    assert set(found) == {flow.route, empty, missing}
    copied, untouched, nowhere = found[flow.route], found[empty], found[missing]
    assert isinstance(copied, PartitionReading)
    after_the_copy(copied.position, claim)
    assert isinstance(untouched, PartitionReading)
    assert untouched.position == UNTOUCHED
    assert nowhere == Refusal(f"us: {flow.topic} has no partition 2", transient=True, cause=Cause.NO_TOPIC)


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_missing_topic_may_come_yet(flow: Flow, side: str) -> None:
    changed: dict[str, Any] = {f"{side}_topic": "no-such-topic"}
    flow.route = replace(flow.route, **changed)
    found = flow.refusal()
    assert found.transient
    assert "no-such-topic-0: " in found.reason


def test_records_that_expired_before_they_were_copied_are_counted(flow: Flow) -> None:
    flow.copy()
    flow.source.delete_records(flow.topic, COPIED)
    assert flow.partition_reading().source_start == COPIED
    flow.source.delete_records(flow.topic, 42)
    flow.policy = LossPolicy(expired="halt")
    found = flow.refusal()
    assert not found.transient
    assert found.loss is LossKind.EXPIRED
    assert found.reason.startswith(f"offsets 30 to 41 of source {flow.topic}-0 are gone")
    flow.policy = LossPolicy(expired="continue")
    gone_on = flow.partition_reading()
    assert (gone_on.position.upstream, gone_on.resume_at, gone_on.position.claim_due) == (COPIED, 42, True)
    (loss,) = flow.losses()
    assert (loss.first, loss.end, loss.offsets, loss.action) == (30, 42, 12, "continued")


def test_a_source_that_ends_before_what_was_copied(flow: Flow) -> None:
    """It was cut: an unclean election. Where, its leader epochs tell."""
    flow.claim(flow.a_claim(upstream=AT_SOURCE - 20))
    flow.target.append(flow.target_topic, COPIED, flow.producer(0))
    found = flow.refusal()
    assert not found.transient
    assert found.loss is LossKind.TRUNCATED
    assert f"after offsets {AT_SOURCE} to {AT_SOURCE + 9} were copied" in found.reason


def test_a_source_topic_created_again_is_not_the_one_that_was_copied(flow: Flow) -> None:
    flow.copy()
    flow.source.delete(flow.topic)
    flow.source.create(flow.topic)
    flow.policy = LossPolicy(recreated="halt")
    found = flow.refusal()
    assert not found.transient
    assert found.loss is LossKind.RECREATED
    assert f"was deleted and created again; partition 0 of the old one was copied up to offset {COPIED}" in found.reason
    flow.policy = LossPolicy(recreated="restart")
    again = flow.partition_reading()
    assert (again.position.upstream, again.resume_at, again.position.claim_due) == (COPIED, 0, True)


def test_a_topic_that_gets_an_id_is_claimed_with_it(flow: Flow) -> None:
    """Its cluster was upgraded since it was copied: nothing is lost, and what comes next says what is known now."""
    flow.claim(replace(flow.a_claim(), source_topic_id=NO_ID))
    flow.target.append(flow.target_topic, COPIED, flow.producer(0))
    found = flow.partition_reading()
    assert found.position.source_topic_id == NO_ID
    assert (found.resume_at, found.position.claim_due) == (FIRST_UPSTREAM + COPIED, True)
    assert found.source_topic_id == flow.source.topic_id(flow.topic)
    assert flow.losses() == []


def test_a_target_that_somebody_else_filled_is_left_alone(flow: Flow) -> None:
    flow.target.append(flow.target_topic, 4)
    found = flow.refusal()
    assert not found.transient
    assert "holds offsets 0 to 3, which this flow has no record of writing" in found.reason


def test_the_originals_of_the_sources_records_are_not_to_be_deleted(flow: Flow) -> None:
    """What flow us<-eu has copied from here is at the source now: deleting it here would delete the original."""
    flow.target.append(flow.target_topic, 4)
    topic = losses_topic(flow.target.client.config.alias)
    flow.source.create_all(NewTopic(topic, 1, 1, topic_configs={"cleanup.policy": "compact"}))
    theirs = TopicMemory(TopicLog(flow.source.client, topic))
    copy = KnownTopic(source_topic=flow.target_topic, target_topic=flow.topic, target_topic_id="00" * 16)
    theirs.learn([copy.model_copy(update={"target_topic": "another"})])
    assert "or delete them if no consumer needs them" in flow.refusal().reason
    theirs.learn([copy])
    found = flow.refusal()
    assert "holds offsets 0 to 3: they are the originals" in found.reason
    assert "delete nothing" in found.reason


def _turn(flow: Flow, downstream: int, sequence: int = 0) -> Claim:
    target = flow.target.topic_id(flow.target_topic), 0
    source = flow.source.topic_id(flow.topic)
    return turn_claim(flow.identity, target, source, sequence=sequence, upstream=FIRST_UPSTREAM, downstream=downstream)


def test_stragglers_behind_the_start_of_a_turn_are_stepped_over(flow: Flow) -> None:
    """The flow has no record there: its first batch would have been claimed (F4.3)."""
    flow.target.append(flow.target_topic, 4)
    flow.claim(_turn(flow, 4), _turn(flow, 4))
    assert len(flow.claims()) == 1, "the same start is one record (M2)"
    position = flow.partition_reading().position
    assert (position.sequence, position.upstream, position.downstream) == (0, FIRST_UPSTREAM, 4)
    flow.target.append(flow.target_topic, 3)
    position = flow.partition_reading().position
    assert (position.sequence, position.upstream, position.downstream) == (0, FIRST_UPSTREAM, 7)
    assert position.claim_due, "and the first batch is claimed where it will lie"
    assert [(loss.kind, loss.first, loss.end) for loss in flow.losses()] == [(LossKind.FOREIGN, 4, 7)]


def test_stragglers_that_come_before_the_first_batch_of_a_turn_are_told_from_the_turn_before(flow: Flow) -> None:
    """A pump has claimed its first batch right at the start, and a straggler comes first."""
    flow.copy()
    flow.target.append(flow.target_topic, 4)
    begins = replace(_turn(flow, COPIED + 4, COPIED), runs=(Run(40, 0),))
    flow.claim(replace(_turn(flow, COPIED, COPIED), runs=(Run(35, 0),)), begins)
    flow.target.append(flow.target_topic, 2)
    batch = built([b"record"] * 5, flow.producer(COPIED))
    flow.claim(replace(flow.announce(COPIED, 2, (batch, (Run(40, 5),))), downstream=begins.downstream))
    flow.target.send(flow.target_topic, batch)
    position = flow.partition_reading().position
    assert (position.sequence, position.upstream, position.downstream) == (COPIED + 5, 45, COPIED + 11)
    assert [(loss.kind, loss.first, loss.end) for loss in flow.losses()] == [(LossKind.FOREIGN, COPIED + 4, COPIED + 6)]


def test_a_straggler_that_comes_before_the_first_batch_of_the_first_turn_is_named(flow: Flow) -> None:
    flow.target.append(flow.target_topic, 4)
    flow.claim(_turn(flow, 4))
    flow.target.append(flow.target_topic, 2)
    batch = built([b"record"] * 5, flow.producer(0))
    flow.claim(replace(flow.announce(0, 2, (batch, (Run(FIRST_UPSTREAM, 5),))), downstream=4))
    flow.target.send(flow.target_topic, batch)
    position = flow.partition_reading().position
    assert (position.sequence, position.upstream, position.downstream) == (5, FIRST_UPSTREAM + 5, 11)
    assert [(loss.kind, loss.first, loss.end) for loss in flow.losses()] == [(LossKind.FOREIGN, 4, 6)]


def test_stragglers_behind_a_later_turns_start_are_stepped_over_without_a_state(forgetful_flow: Flow) -> None:
    flow = forgetful_flow
    flow.copy(age_ms=2 * DAY_MS)
    wait_for(lambda: flow.partition_reading().position.newest_timestamp_ms is None, "the state expires")
    flow.target.append(flow.target_topic, 4)
    flow.claim(_turn(flow, COPIED + 4, COPIED))
    flow.target.append(flow.target_topic, 2)
    position = flow.partition_reading().position
    assert (position.sequence, position.upstream) == (COPIED, FIRST_UPSTREAM)
    assert (position.downstream, position.newest_timestamp_ms) == (COPIED + 6, None)
    assert (COPIED + 4, COPIED + 6) in [(loss.first, loss.end) for loss in flow.losses()]


def test_behind_another_start_records_may_be_another_mirrors(flow: Flow) -> None:
    flow.target.append(flow.target_topic, 4)
    flow.claim(replace(_turn(flow, 4), turn=False))
    flow.target.append(flow.target_topic, 3)
    assert "holds records, but none that this flow wrote" in flow.refusal().reason


def test_our_records_without_a_claim_are_damage(flow: Flow) -> None:
    flow.target.append(flow.target_topic, 10, flow.producer(0))
    found = flow.refusal()
    assert not found.transient
    assert "the segments topic does not know them" in found.reason


def test_another_cluster_in_the_targets_place(flow: Flow) -> None:
    """A rebuilt cluster gives producer ids out again (R12)."""
    flow.copy()
    found = flow.refusal(replace(flow.identity, cluster_id="the one before"))
    assert not found.transient
    assert f"is now {flow.identity.cluster_id}, not the one before" in found.reason


def test_a_target_that_lost_what_was_confirmed_is_noticed_by_whoever_comes_next(flow: Flow) -> None:
    """Claims say that thirty-five were appended; the log has thirty."""
    batch = built([b"record"] * 15, flow.producer(20))
    flow.copy()
    confirmed = replace(flow.announce(20, 2, (batch, (Run(20, 10), Run(35, 5)))), confirmed=True)
    flow.claim(confirmed)
    found = flow.partition_reading()
    assert (found.position.sequence, found.position.upstream, found.position.lost) == (COPIED, COPIED, 5)
    assert found.position.claim_due
    (loss,) = flow.losses()
    assert (loss.kind, loss.first, loss.end, loss.action) == (LossKind.TARGET_TRUNCATED, COPIED, COPIED + 5, "healed")

    healing = built([b"record"] * 10, flow.producer(COPIED))
    flow.claim(replace(flow.announce(COPIED, 3, (healing, (Run(30, 4), Run(36, 6)))), heals=True))
    assert flow.partition_reading().position.lost == 5
    flow.target.send(flow.target_topic, healing)
    found = flow.partition_reading()
    assert (found.position.sequence, found.position.upstream, found.position.lost) == (COPIED + 10, 42, 0)
    claims = sorted((one.sequence, one.announced, one.confirmed) for one in flow.claims())
    assert claims == [(0, 0, True), (20, 10, True), (COPIED, 10, True)]


def test_markers_that_the_source_has_deleted_since_are_no_loss(flow: Flow) -> None:
    """A pump passed over them; no claim says so."""
    flow.copy()
    flow.source.delete_records(flow.topic, COPIED + 3)
    flow.policy = LossPolicy(expired="halt")
    assert flow.partition_reading(ReportedProgress(COPIED + 3, COPIED)).resume_at == COPIED + 3
    assert flow.losses() == []
    assert flow.refusal().loss is LossKind.EXPIRED


# --- state that expires -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def forgetful_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """It looks for expired producers all the time."""
    settings = {"producer.id.expiration.check.interval.ms": "100"}
    cluster = KafkaCluster(tmp_path_factory.mktemp("expiring"), properties=settings)
    with started(cluster):
        yield cluster


@pytest.fixture
def forgetful_flow(source_cluster: KafkaCluster, forgetful_cluster: KafkaCluster, topic_name: str) -> Iterator[Flow]:
    with flow_between(source_cluster, forgetful_cluster, topic_name) as flow:
        yield flow


def test_the_tail_of_the_log_tells_the_position_when_the_state_has_expired(forgetful_flow: Flow) -> None:
    flow = forgetful_flow
    claim = flow.copy(age_ms=2 * DAY_MS)
    wait_for(lambda: flow.partition_reading().position.newest_timestamp_ms is None, "the state expires")
    after_the_copy(flow.partition_reading().position, claim)
    flow.target.delete_records(flow.target_topic, 25)
    after_the_copy(flow.partition_reading().position, claim)
    flow.target.delete_records(flow.target_topic, COPIED)
    after_the_copy(flow.partition_reading().position, claim)
    flow.target.append(flow.target_topic, 3)
    assert "none that this flow wrote" in flow.refusal().reason


def test_what_somebody_else_wrote_counts_not_as_ours_when_the_log_is_empty(forgetful_flow: Flow) -> None:
    """Retention took everything, theirs too: only the ledger tells that not all of the log's offsets were ours."""
    flow = forgetful_flow
    flow.copy(age_ms=2 * DAY_MS)
    flow.target.append(flow.target_topic, 4)
    wait_for(lambda: flow.partition_reading().position.newest_timestamp_ms is None, "the state expires")
    for deleted in (COPIED, COPIED + 2, COPIED + 4):
        flow.target.delete_records(flow.target_topic, deleted)
        found = flow.partition_reading().position
        assert (found.sequence, found.upstream, found.downstream) == (COPIED, COPIED, COPIED + 4)
        assert found.claim_due
    flow.target.append(flow.target_topic, 3)
    found = flow.partition_reading().position
    assert (found.sequence, found.upstream, found.downstream) == (COPIED, COPIED, COPIED + 7)
    assert [(one.first, one.end) for one in flow.losses()] == [(COPIED, COPIED + 7)]
    flow.target.append(flow.target_topic, 3)
    flow.target.delete_records(flow.target_topic, COPIED + 9)
    assert "how much of that retention deleted is not known" in flow.refusal().reason


def test_what_nobody_saw_somebody_else_write_is_only_supposed_to_be_ours(forgetful_flow: Flow) -> None:
    """The pump, or what it wrote down, knows how much it was."""
    flow = forgetful_flow
    flow.copy(age_ms=2 * DAY_MS)
    wait_for(lambda: flow.partition_reading().position.newest_timestamp_ms is None, "the state expires")
    assert not flow.partition_reading().position.supposed
    flow.target.append(flow.target_topic, 4)
    flow.target.delete_records(flow.target_topic, COPIED + 4)
    position = flow.partition_reading().position
    assert position.supposed
    assert position.end == COPIED + 4


def alter(flow: Flow, monkeypatch: pytest.MonkeyPatch, upstream: int) -> None:
    """As an operator does, over the REST interface."""
    monkeypatch.setattr(altered_offsets, "segments_topic", lambda _: flow.segments_topic)
    monkeypatch.setattr(altered_offsets, "losses_topic", lambda _: flow.losses_topic)
    configs = FlowConfig(source=flow.source.config, target=flow.target.config)
    policy = cast("ReplicationPolicy", SimpleNamespace(format_remote_topic=lambda *_: flow.target_topic))
    with AlteredOffsets(configs, policy, flow.identity) as altered:
        altered.go_on_at({(flow.topic, 0): upstream}, unclean=False)


@pytest.mark.parametrize("fills", [(0,), (0, 2, 5)])
def test_an_emptied_log_that_was_cut_halts_until_an_operator_says_where_to_continue(
    forgetful_flow: Flow, monkeypatch: pytest.MonkeyPatch, fills: tuple[int, ...]
) -> None:
    """Also where he says what the log's end says, and however far somebody else has filled it up."""
    flow = forgetful_flow
    flow.copy(age_ms=2 * DAY_MS)
    wait_for(lambda: flow.partition_reading().position.newest_timestamp_ms is None, "the state expires")
    flow.target.delete_records(flow.target_topic, COPIED)
    topic_id = flow.target.topic_id(flow.target_topic)
    assert flow.partition_reading(ReportedProgress(target_topic_id=topic_id.hex(), appended=COPIED)).position.unseen
    reported = ReportedProgress(target_topic_id=topic_id.hex(), appended=COPIED + 5)

    def losses() -> list[tuple[str, int, int, str]]:
        return [(loss.kind.value, loss.first, loss.end, loss.action) for loss in flow.losses()]

    for filled in fills:
        if filled:
            flow.target.append(flow.target_topic, 3 if filled == 5 else filled)
            flow.target.delete_records(flow.target_topic, COPIED + filled)
        refused = flow.read(reported=reported)
        assert isinstance(refused, Refusal)
        assert (refused.transient, refused.loss) == (False, LossKind.TARGET_TRUNCATED)
        assert losses() == [("target-truncated", COPIED, COPIED + 5, "halted")]

    alter(flow, monkeypatch, COPIED + filled)
    found = flow.partition_reading(reported)
    assert (found.position.upstream, found.position.downstream) == (COPIED + filled, COPIED + filled)
    assert ("target-truncated", COPIED, COPIED + 5, "healed") in losses()


def test_an_operator_may_say_what_a_claim_says_that_a_cut_went_through(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim announces more than is there, so that the log's end is within it; that alone releases nothing."""
    batch = built([b"record"] * (COPIED + 5), flow.producer(0))
    flow.claim(replace(flow.announce(0, 1, (batch, (Run(0, COPIED + 5),))), confirmed=True))
    flow.target.append(flow.target_topic, COPIED)
    flow.target.delete_records(flow.target_topic, COPIED)
    position = flow.partition_reading().position
    assert (position.upstream, position.unseen, position.supposed) == (COPIED, True, False)
    topic_id = flow.target.topic_id(flow.target_topic).hex()
    reported = ReportedProgress(target_topic_id=topic_id, appended=COPIED + 5)
    refused = flow.read(reported=reported)
    assert isinstance(refused, Refusal)
    assert refused.loss is LossKind.TARGET_TRUNCATED
    alter(flow, monkeypatch, COPIED)
    found = flow.partition_reading(reported)
    assert (found.position.upstream, found.position.downstream) == (COPIED, COPIED)
    truncated = [loss for loss in flow.losses() if loss.kind is LossKind.TARGET_TRUNCATED]
    assert [(loss.first, loss.end, loss.action) for loss in truncated] == [(COPIED, COPIED + 5, "healed")]


@pytest.mark.parametrize(
    ("offsets", "entry"),
    [
        ((5, COPIED), (COPIED, COPIED, "expected")),
        ((5, COPIED + 10), (COPIED, COPIED + 10, "continued")),
        ((COPIED + 10, 5), (5, COPIED, "restarted")),
        ((5, COPIED, COPIED - 10), (COPIED - 10, COPIED, "restarted")),
    ],
)
def test_an_offset_altered_again_before_a_record_is_copied_counts_from_the_copys_end(
    flow: Flow, monkeypatch: pytest.MonkeyPatch, offsets: tuple[int, ...], entry: tuple[int, int, str]
) -> None:
    """One entry, of what the last word skips or repeats."""
    flow.copy()
    for offset in offsets:
        alter(flow, monkeypatch, offset)
    assert flow.partition_reading().position.upstream == offsets[-1]
    assert [(loss.first, loss.end, loss.action) for loss in flow.losses() if loss.kind is LossKind.ALTERED] == [entry]


def test_behind_a_start_nothing_is_ours(forgetful_flow: Flow) -> None:
    """It would have been claimed."""
    flow = forgetful_flow
    flow.claim(replace(flow.a_claim(upstream=7), confirmed=False))
    flow.target.append(flow.target_topic, 4)
    for deleted in (0, 3):
        flow.target.delete_records(flow.target_topic, deleted)
        assert "none that this flow wrote" in flow.refusal().reason
    flow.target.delete_records(flow.target_topic, 4)
    found = flow.partition_reading().position
    assert (found.sequence, found.upstream, found.downstream, found.supposed) == (0, 7, 4, False)
    assert found.claim_due


def test_one_partition_that_is_searched_in_vain_holds_up_no_other(
    forgetful_flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = forgetful_flow
    flow.copy(age_ms=2 * DAY_MS)
    wait_for(lambda: flow.partition_reading().position.newest_timestamp_ms is None, "the state expires")
    for _ in range(4):
        flow.target.append(flow.target_topic, 1)
    monkeypatch.setattr(log_tail, "_MAX_STEPS", 2)
    other = PartitionPair(flow.topic, flow.target_topic, 1)
    found = read_all(flow.reader(), [flow.route, other])
    refused = found[flow.route]
    assert isinstance(refused, Refusal)
    assert refused.transient
    assert isinstance(found[other], PartitionReading)


def test_what_is_only_supposed_to_be_ours_is_not_held_against_what_another_mirror_has_committed(
    forgetful_flow: Flow,
) -> None:
    """MirrorMaker 1 spreads records by key: how many lie in a partition says nothing of its own one."""
    flow = forgetful_flow
    flow.copy(age_ms=2 * DAY_MS)
    wait_for(lambda: flow.partition_reading().position.newest_timestamp_ms is None, "the state expires")
    flow.target.append(flow.target_topic, 40)
    client = flow.target.client
    claim_log = ClaimLog(TopicLog(client, flow.segments_topic))
    ends = ForeignEnds(client, claim_log, LossLedger(TopicLog(client, flow.losses_topic)), flow.identity)

    def so_far() -> OurRecords:
        groups = by_target_leader(flow.source.client, client, [flow.route], lambda *_: None)
        ((leader, group),) = groups.items()
        (found,) = ends.so_far(leader, group, whoever=True)
        assert isinstance(found, OurRecords)
        return found

    assert so_far().upstream == COPIED
    flow.target.delete_records(flow.target_topic, COPIED + 40)
    assert so_far().upstream == FIRST_UPSTREAM


def test_a_position_that_took_long_to_judge_is_asked_about_once_more(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pumps believe none that is older than 3 s: one that always takes longer would never be believed."""
    flow.copy()
    seconds = itertools.count(0.0, 5.0)
    reader = flow.reader(clock=lambda: next(seconds))
    found = read_all(reader, [flow.route])[flow.route]
    assert isinstance(found, PartitionReading)
    assert found.read_at == 5.0
    resolve = PositionResolver.resolve

    def meanwhile(*given: Any) -> Any:
        flow.target.append(flow.target_topic, 5, flow.producer(COPIED))
        return resolve(*given)

    monkeypatch.setattr(PositionResolver, "resolve", meanwhile)
    found = read_all(reader, [flow.route])[flow.route]
    assert isinstance(found, PartitionReading)
    assert (found.position.sequence, found.read_at) == (COPIED, 10.0)


def test_our_records_twice_are_damage(forgetful_flow: Flow) -> None:
    """A leader without a state of ours takes anything: nothing that is sent now would repair it (R8)."""
    flow = forgetful_flow
    flow.copy(age_ms=2 * DAY_MS)
    wait_for(lambda: flow.partition_reading().position.newest_timestamp_ms is None, "the state expires")
    flow.target.append(flow.target_topic, 8, flow.producer(22), age_ms=2 * DAY_MS)
    found = flow.refusal()
    assert not found.transient
    assert "holds 8 record(s) more than this flow wrote" in found.reason
    assert flow.losses() == []
