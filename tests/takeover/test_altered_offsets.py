"""An operator has the copy continue elsewhere: what was copied before and after stays known, record by record."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.claims_model import Pump, Source, Target

from sparkmirror.exact.durable.claims import Claim, claim_record, read_record
from sparkmirror.exact.maps.offset_map import Copied, OffsetMap
from sparkmirror.exact.position.decision import Position
from sparkmirror.kafka.wire.splice import Run

SIZE = 200


def alter(target: Target, upstream: int) -> None:
    """As `sync.altered_offsets` does it, of a partition that no pump is at work on."""
    position = target.position()
    assert isinstance(position, Position), position
    target.retract(*[claim for claim in target.claims.values() if claim.sequence >= position.sequence])
    claim = Claim(
        target_topic_id=b"t" * 16,
        partition=0,
        sequence=position.sequence,
        incarnation=random.getrandbits(62),
        producer_id=4000,
        producer_epoch=0,
        source_topic_id=b"s" * 16,
        source_leader_epoch=-1,
        downstream=position.downstream,
        runs=(Run(upstream, 0),),
        altered=True,
    )
    found = read_record(*claim_record(claim))
    assert found == claim
    target.write(claim)


steps = st.lists(st.integers(1, 9), min_size=0, max_size=4)
brokers = st.sampled_from(["", "compressed", "cleaned"])
histories = st.lists(st.tuples(steps, st.integers(0, SIZE), brokers, st.booleans()), min_size=1, max_size=6)


@settings(max_examples=300)
@given(histories, st.integers(1, 7), steps)
def test_each_record_is_known_however_often_offsets_are_altered(
    history: list[tuple[list[int], int, str, bool]], gaps: int, last: list[int]
) -> None:
    source, target = Source(SIZE), Target()
    if gaps > 1:
        source.compact(3, gaps)
    for number, (sizes, upstream, broker, interrupted) in enumerate(history, 1):
        pump = Pump(source, target, number << 40, False)
        pump.step(sizes)
        if interrupted:  # what it claimed then is never sent
            pump.fetch([3])
            pump.claim()
        for nth in range(len(target.stored)):
            if broker == "compressed":
                target.compress(nth)
            elif broker == "cleaned":
                target.clean(nth, 1)
        alter(target, upstream)
        position = target.position()
        assert isinstance(position, Position), position
        assert (position.upstream, position.sequence, position.claim_due) == (upstream, len(target.log), True)
    before = len(target.log)
    Pump(source, target, 99 << 40, False).step(last)
    assert target.log[before:] == [one for one in source.offsets if one >= history[-1][1]][: len(target.log) - before]
    ruling = target.ruling()
    assert not ruling.undecided
    known = []
    for sequence in range(len(target.log)):
        (*_, newest) = [one for one in ruling.true if one.sequence <= sequence]
        known.append(newest.upstream_of(sequence))
    assert known == target.log


def test_groups_are_translated_by_the_newest_copy() -> None:
    source, target = Source(SIZE), Target()
    Pump(source, target, 1 << 40, False).step([50, 50])
    alter(target, 40)
    Pump(source, target, 2 << 40, False).step([20])
    with OffsetMap.build(target.ruling().true, Copied(120, 60, 120)) as offsets:
        assert [offsets.downstream(upstream) for upstream in (0, 39, 40, 59, 60)] == [0, 39, 100, 119, 120]
        assert offsets.downstream(61) is None, "not copied again yet"
        assert [offsets.upstream(downstream) for downstream in (39, 40, 99, 100, 119)] == [39, 40, 99, 40, 59]
