"""Claims of records that transforms change: they say so, and none continues from a claim that says otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.claims_model import IDENTITY, SOURCE_ID, TARGET_ID

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.decision import Position
from sparkmirror.exact.position.last_records import tail_of
from sparkmirror.exact.position.route import PartitionPair, PartitionReading
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.pump.batch import Batch
from sparkmirror.pump.claimer import Claimer

LAST = Claim(
    target_topic_id=TARGET_ID,
    partition=0,
    sequence=0,
    incarnation=1,
    producer_id=IDENTITY.producer_id,
    producer_epoch=IDENTITY.producer_epoch,
    source_topic_id=SOURCE_ID,
    source_leader_epoch=0,
    downstream=0,
    runs=(Run(0, 10),),
    confirmed=True,
)


def position(*, changed: bool) -> Position:
    return Position(
        sequence=20,
        upstream=20,
        downstream=20,
        claim_due=False,
        leader_epoch=0,
        source_topic_id=SOURCE_ID,
        newest_timestamp_ms=1,
        end=20,
        last_claim=replace(LAST, changed=changed),
    )


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("now", [True, False])
def test_a_claim_is_due_where_records_begin_or_cease_to_be_changed(before: bool, now: bool) -> None:
    reading = PartitionReading(
        position=position(changed=before),
        resume_at=20,
        source_topic_id=SOURCE_ID,
        source_leader=1,
        source_leader_epoch=0,
        source_start=0,
        source_end=30,
        target_topic_id=TARGET_ID,
        target_leader=1,
        read_at=0.0,
    )
    claimer = Claimer(PartitionPair("orders", "us.orders", 0), IDENTITY, 7, changed=now)
    claimer.start(reading, 20, due=False)
    frame = FramePool(1 << 12, keep=1).take(100)
    batch = Batch(frame, frame.view[:100], 0, (Run(20, 5),), 5, 25, 1, 1, 0)
    batch.sequence, batch.downstream = 20, 20
    assert claimer.note(batch) is None
    made = claimer.finish()
    assert (made is None) is (before is now)
    if made is not None:
        assert made.claim.changed is now


def test_a_tail_knows_what_its_claim_says() -> None:
    assert [tail.changed for each in (True, False) if (tail := tail_of(position(changed=each)))] == [True, False]
