"""Maps that are kept up to date: the same answers as of one that is built from everything, with less to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab import KafkaCluster
from tests.support.copied_flow import AT_SOURCE, COPIED, Flow, built, wait_for

from sparkmirror.exact.durable.claim_log import KEPT_CLAIMS
from sparkmirror.exact.durable.claims import AnnouncedBatch, Claim, Retracted
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.maps import map_keeper, partition_map
from sparkmirror.exact.maps.map_keeper import MapKeeper
from sparkmirror.exact.maps.offset_map import Copied, OffsetMap
from sparkmirror.exact.maps.partition_map import (
    CLAIMS_LOST,
    NOTHING_YET,
    ForeignRange,
    LogBounds,
    PartitionMap,
    Unmapped,
)
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.splice import Run


def claim(sequence: int, upstream: int, records: int = 0, incarnation: int = 1) -> Claim:
    """Confirmed, with one record a batch; downstream offsets are sequences."""
    return Claim(
        target_topic_id=b"t" * 16,
        partition=0,
        sequence=sequence,
        incarnation=incarnation,
        producer_id=1,
        producer_epoch=0,
        source_topic_id=b"s" * 16,
        source_leader_epoch=0,
        downstream=sequence,
        runs=(Run(upstream, records),),
        confirmed=True,
    )


def answers(offsets: OffsetMap | PartitionMap, end: int) -> list[int | None]:
    return [offsets.downstream(upstream) for upstream in range(end)]


def up_to_date(kept: PartitionMap, end: int, reached: ReportedProgress | None = None) -> PartitionMap:
    kept.bound(LogBounds(0, end))
    if not kept.stands(reached):
        assert kept.judge({}, None, reached) is None
    return kept


@pytest.fixture
def few_kept() -> Iterator[None]:
    """Claims are taken in for good soon."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_map, "KEPT_CLAIMS", 3)
        yield


@pytest.mark.usefixtures("few_kept")
@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4)), min_size=1, max_size=60), st.integers(1, 20))
def test_claims_that_come_bit_by_bit(sizes: list[tuple[int, int]], step: int) -> None:
    claims, sequence, upstream = [], 0, 0
    for records, gap in sizes:
        upstream += gap
        claims.append(claim(sequence, upstream, records, incarnation=sequence))
        sequence += records
        upstream += records
    kept = PartitionMap()
    for start in range(0, len(claims), step):
        for one in claims[start : start + step]:
            kept.take(one)
        known = claims[: start + step]
        end = known[-1].sequence + known[-1].runs[0].length
        up_to_date(kept, end)
        with OffsetMap.build(known, Copied(end, known[-1].next_upstream(end), end)) as whole:
            assert kept.offsets.copied == whole.copied
            assert answers(kept, upstream + 2) == answers(whole, upstream + 2)
            assert list(kept.offsets.runs()) == list(whole.runs())
    assert len(kept.open_claims()) == 0
    kept.close()


def test_of_a_long_history_only_the_newest_claims_are_kept() -> None:
    kept = PartitionMap()
    for number in range(10 * KEPT_CLAIMS):
        kept.take(claim(number, 2 * number, 1))
    assert len(kept._claims) <= 2 * KEPT_CLAIMS  # noqa: SLF001 - the bound is the point
    assert answers(up_to_date(kept, 10 * KEPT_CLAIMS), 5) == [0, 1, 1, 2, 2]


def test_a_claim_from_below_that_says_the_same_is_no_matter_and_another_one_is() -> None:
    kept = PartitionMap()
    for number in range(10 * KEPT_CLAIMS):
        kept.take(claim(number, 2 * number, 1))
    kept.take(claim(5, 10, 1, incarnation=77))
    assert not up_to_date(kept, 10 * KEPT_CLAIMS).broken
    kept.take(claim(5, 11, 1, incarnation=78))
    assert up_to_date(kept, 10 * KEPT_CLAIMS).broken


def test_a_log_that_has_become_shorter_breaks_the_map() -> None:
    kept = PartitionMap()
    kept.take(claim(0, 0))
    assert not up_to_date(kept, 30).broken
    kept.bound(LogBounds(0, 20))
    assert kept.broken


def test_what_a_pump_says_moves_the_map_without_the_log() -> None:
    kept = PartitionMap()
    kept.take(claim(0, 5))
    kept.bound(LogBounds(0, 10))
    assert kept.stands(ReportedProgress(15, 10))
    assert kept.offsets.copied == Copied(10, 15, 10)
    kept.bound(LogBounds(0, 20))
    assert kept.stands(ReportedProgress(23, 18))
    assert kept.offsets.copied == Copied(18, 23, 18)
    assert [kept.downstream(upstream) for upstream in (4, 5, 22, 23, 24)] == [0, 0, 17, 18, None]
    assert kept.stands(ReportedProgress(27, 18)), "only markers followed"
    assert [kept.downstream(upstream) for upstream in (23, 27, 28)] == [18, 18, None]


def test_a_map_that_is_broken_does_not_stand_whatever_a_pump_says() -> None:
    """It is made again; what a pump says now fits the records that were copied again, and not the map."""
    kept = PartitionMap()
    kept.take(claim(0, 0))
    up_to_date(kept, 30)
    kept.bound(LogBounds(0, 20))
    kept.bound(LogBounds(0, 40))
    assert kept.broken
    assert not kept.stands(ReportedProgress(40, 40))
    assert not kept.stands(None)


def test_what_a_pump_said_earlier_does_not_move_the_map_back() -> None:
    kept = PartitionMap()
    kept.take(claim(0, 5))
    kept.bound(LogBounds(0, 20))
    assert kept.stands(ReportedProgress(23, 18))
    kept.take(claim(18, 30))  # the map is due
    assert not kept.stands(ReportedProgress(15, 10))
    assert kept.offsets.copied == Copied(18, 23, 18)


def test_nothing_is_said_while_the_log_has_records_whose_claims_were_lost() -> None:
    """The logs have shown it. A consumer that is sent behind such records would leave them out."""
    kept = PartitionMap()
    kept.take(claim(0, 0, 10))
    kept.take(replace(claim(0, 0, 10), ended=True))
    kept.bound(LogBounds(0, 28))
    assert not kept.stands(ReportedProgress(30, 28))
    assert kept.judge({}, None, None) == CLAIMS_LOST
    kept.take(replace(claim(28, 50), altered=True, confirmed=False, incarnation=9))
    assert kept.judge({}, None, None) == CLAIMS_LOST, "an operator has said where to continue"
    kept.bound(LogBounds(28, 28))
    assert kept.judge({}, None, None) is None, "retention has deleted the records"
    assert kept.downstream(50) == 28


@pytest.mark.parametrize(
    "reached", [ReportedProgress(21, 16), ReportedProgress(20, 21), ReportedProgress(13, 13), None]
)
def test_the_log_is_asked_where_a_pump_tells_nothing_that_fits(reached: ReportedProgress | None) -> None:
    """A foreign record behind ours, a log that is shorter than that, and nothing new."""
    kept = PartitionMap()
    kept.take(claim(0, 7))
    kept.bound(LogBounds(0, 20))
    assert kept.stands(ReportedProgress(22, 15))
    kept.bound(LogBounds(0, 20 if reached != ReportedProgress(21, 16) else 16))
    kept.take(claim(17, 40, 1))
    assert not kept.stands(reached)


def test_what_retention_removed_is_passed_over() -> None:
    kept = PartitionMap()
    kept.take(claim(0, 0))
    kept.bound(LogBounds(12, 20))
    assert kept.judge({}, None, None) is None
    assert [kept.downstream(upstream) for upstream in (3, 12, 13, 20)] == [12, 12, 13, 20]


def test_a_retracted_claim_counts_no_more() -> None:
    kept = PartitionMap()
    kept.take(claim(0, 0))
    kept.take(claim(10, 100))
    assert up_to_date(kept, 20).downstream(105) == 15
    kept.take(Retracted(b"t" * 16, 0, 10, 1))
    assert up_to_date(kept, 20).downstream(15) == 15


# --- real brokers -------------------------------------------------------------------------------


@pytest.fixture
def keeper(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> Iterator[MapKeeper]:
    """Of the flow's own segments topic."""
    monkeypatch.setattr(map_keeper, "segments_topic", lambda _: flow.segments_topic)
    client = ClusterClient(flow.target.config, "test")
    keeper = MapKeeper(client, "us")
    keeper._identity = flow.identity  # noqa: SLF001 - the flow proposes none
    yield keeper
    keeper.close()
    client.close()


def kept_map(keeper: MapKeeper, flow: Flow, reached: ReportedProgress | None = None) -> PartitionMap:
    found = keeper.refresh({flow.route.target: reached})[flow.route.target]
    assert isinstance(found, PartitionMap), found
    return found


@pytest.mark.broker
def test_the_map_follows_the_copy_and_looks_no_further_when_nothing_happens(
    flow: Flow, keeper: MapKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert keeper.refresh({flow.route.target: None}) == {flow.route.target: NOTHING_YET}
    flow.copy()
    assert answers(kept_map(keeper, flow), COPIED + 2) == [*range(COPIED + 1), None]
    flow.target.append(flow.target_topic, 5, flow.producer(COPIED))
    assert answers(kept_map(keeper, flow), COPIED + 7) == [*range(COPIED + 6), None]
    monkeypatch.setattr(map_keeper, "last_batches", None)
    monkeypatch.setattr(partition_map, "arbitrate", None)
    assert answers(kept_map(keeper, flow), COPIED + 7) == [*range(COPIED + 6), None]


@pytest.mark.broker
def test_foreign_records_at_the_end_are_not_the_copys(flow: Flow, keeper: MapKeeper) -> None:
    flow.copy()
    flow.target.append(flow.target_topic, 7)
    found = kept_map(keeper, flow)
    assert found.offsets.copied == Copied(COPIED, COPIED, COPIED)
    assert found.log.end == COPIED + 7


@pytest.mark.broker
def test_an_unconfirmed_claim_counts_as_far_as_it_is_in_the_log(flow: Flow, keeper: MapKeeper) -> None:
    """And it is not written back: that is for those who write to the partition."""
    flow.copy()
    batch, never = built([b"a"] * 4, flow.producer(COPIED)), built([b"b"] * 4, flow.producer(COPIED + 4))
    flow.claim(flow.announce(COPIED, 9, (batch, (Run(100, 4),)), (never, (Run(200, 4),))))
    flow.target.send(flow.target_topic, batch)
    before = flow.claims()
    found = kept_map(keeper, flow)
    assert [found.downstream(upstream) for upstream in (COPIED - 1, COPIED, 100, 103, 104, 105)] == [
        COPIED - 1,
        COPIED,
        COPIED,
        COPIED + 3,
        COPIED + 4,
        None,
    ]
    assert flow.claims() == before


@pytest.mark.broker
def test_a_partition_that_isnt_there_says_so(flow: Flow, keeper: MapKeeper) -> None:
    flow.copy()
    found = keeper.refresh({(flow.target_topic, 7): None, ("nothing", 0): None, flow.route.target: None})
    assert isinstance(found[flow.route.target], PartitionMap)
    missing = found[flow.target_topic, 7], found["nothing", 0]
    assert all(isinstance(one, Unmapped) for one in missing)
    assert "has no partition 7" in str(missing[0])


@pytest.mark.broker
def test_a_target_topic_that_was_made_again_is_another_one(flow: Flow, keeper: MapKeeper) -> None:
    flow.copy()
    kept_map(keeper, flow)
    flow.target.delete(flow.target_topic)
    flow.target.create(flow.target_topic)
    nothing = {flow.route.target: NOTHING_YET}
    wait_for(lambda: keeper.refresh({flow.route.target: None}) == nothing, "the new topic's leader answers")
    flow.claim(replace(flow.a_claim(), runs=(Run(AT_SOURCE, 0),)))
    flow.target.append(flow.target_topic, 3, flow.producer(0))
    assert [kept_map(keeper, flow).downstream(upstream) for upstream in (AT_SOURCE, AT_SOURCE + 3)] == [0, 3]


@pytest.mark.broker
def test_what_was_said_of_a_topic_of_the_same_name_is_no_matter(flow: Flow, keeper: MapKeeper) -> None:
    flow.copy()
    reached = ReportedProgress(COPIED + 5, COPIED, target_topic_id="00" * 16)
    assert kept_map(keeper, flow, reached).offsets.copied.upstream == COPIED
    reached = reached._replace(target_topic_id=flow.target.topic_id(flow.target_topic).hex())
    assert kept_map(keeper, flow, reached).offsets.copied.upstream == COPIED + 5


@pytest.mark.broker
def test_a_flow_that_never_ran(source_cluster: KafkaCluster, flow: Flow) -> None:
    client = ClusterClient(flow.target.config, "test")
    try:
        found = MapKeeper(client, "nobody").refresh({flow.route.target: None})[flow.route.target]
        assert isinstance(found, Unmapped)
        assert "no flow from nobody has copied anything" in found.reason
    finally:
        client.close()


def test_nothing_is_said_of_what_another_mirror_copied_before() -> None:
    one = PartitionMap()
    start = replace(claim(0, 500), downstream=700, confirmed=False)
    one.take(start)
    for copied in (False, True):
        assert one.foreign_range(upstream=499) == ForeignRange(500, 0, 700)
        assert one.foreign_range(downstream=699) == ForeignRange(500, 0, 700)
        assert not one.foreign_range(upstream=500)
        assert not one.foreign_range(downstream=700)
        if not copied:
            one.take(replace(claim(0, 500, 9, incarnation=2), downstream=700))
            up_to_date(one, 709, ReportedProgress(509, 709))
    assert (one.taken_over, one.others) == (True, ())
    one.take(Retracted(start.target_topic_id, start.partition, 0, start.incarnation))
    assert not one.foreign_range(upstream=499)


@pytest.mark.usefixtures("few_kept")
@pytest.mark.parametrize("more", [0, 50])
def test_nor_of_what_it_copied_while_we_had_given_the_flow_back(more: int) -> None:
    """Ours are source offsets below 10 and from 40 on; at the target theirs are 10 to 59."""
    one = PartitionMap()
    one.take(claim(0, 0, 10))
    one.take(replace(claim(10, 40, incarnation=2), downstream=60, confirmed=False))
    for number in range(5 + more):
        one.take(replace(claim(10 + number, 40 + number, 1, incarnation=3), downstream=60 + number))
    up_to_date(one, 65 + more, ReportedProgress(45 + more, 65 + more))
    assert one.begins == 60
    assert (one.taken_over, one.others) == (False, (ForeignRange(40, 10, 60),))
    theirs = ForeignRange(40, 10, 60)
    known = [upstream for upstream in range(45 + more) if one.foreign_range(upstream=upstream) != theirs]
    assert known == [*range(10), *range(40, 45 + more)]
    assert one.foreign_range(upstream=9) is None
    assert [one.downstream(upstream) for upstream in (9, 40, 44)] == [9, 60, 64]
    known = [downstream for downstream in range(65 + more) if one.foreign_range(downstream=downstream) != theirs]
    assert known == [*range(10), *range(60, 65 + more)]


def test_a_start_that_takes_the_place_of_all_that_was_claimed_before() -> None:
    """As a second takeover writes it: the sequence continues, and the older claims are retracted."""
    one = PartitionMap()
    one.take(claim(0, 0, 10))
    start = replace(claim(10, 40, incarnation=2), downstream=60, confirmed=False)
    one.take(start)
    one.take(Retracted(start.target_topic_id, start.partition, 0, 1))
    up_to_date(one, 60)
    for upstream in (0, 9, 39):
        assert one.foreign_range(upstream=upstream) == ForeignRange(40, 0, 60)
    assert one.foreign_range(upstream=40) is None
    assert (one.downstream(40), one.begins) == (60, 60)


def test_what_an_operator_passed_over_nobody_has_copied() -> None:
    one = PartitionMap()
    one.take(claim(0, 0, 10))
    one.take(replace(claim(10, 40, incarnation=2), confirmed=False, altered=True))
    up_to_date(one, 15, ReportedProgress(45, 15))
    assert one.foreign_range(upstream=20) is None
    assert one.downstream(20) == 10


def test_what_is_copied_of_a_source_that_was_created_again_is_ours() -> None:
    """Behind a takeover at 100: 50 records more, then the new topic from 0 on."""
    one = PartitionMap()
    one.take(replace(claim(0, 100), downstream=100, confirmed=False))
    one.take(replace(claim(0, 100, 50, incarnation=2), downstream=100))
    up_to_date(one, 150, ReportedProgress(150, 150))
    assert one.foreign_range(upstream=5) == ForeignRange(100, 0, 100)
    one.take(replace(claim(50, 0, 20, incarnation=3), downstream=150, source_topic_id=b"n" * 16))
    up_to_date(one, 170, ReportedProgress(20, 170))
    assert [one.foreign_range(upstream=upstream) for upstream in (0, 5, 20)] == [None] * 3
    assert one.downstream(5) == 155
    assert one.foreign_range(downstream=99) == ForeignRange(100, 0, 100)


def test_what_an_operator_had_copied_again_is_ours_and_what_is_below_is_not() -> None:
    one = PartitionMap()
    one.take(replace(claim(0, 100), downstream=100, confirmed=False))
    one.take(replace(claim(0, 100, 50, incarnation=2), downstream=100))
    one.take(replace(claim(50, 60, incarnation=3), downstream=150, confirmed=False, altered=True))
    one.take(replace(claim(50, 60, 30, incarnation=4), downstream=150))
    up_to_date(one, 180, ReportedProgress(90, 180))
    assert one.foreign_range(upstream=59) == ForeignRange(100, 0, 100)
    assert one.foreign_range(upstream=60) is None
    assert one.downstream(60) == 150


def test_an_operators_start_behind_what_others_wrote() -> None:
    """In place of the one that the takeover had claimed."""
    one = PartitionMap()
    start = replace(claim(0, 100), downstream=100, confirmed=False)
    one.take(start)
    one.take(Retracted(start.target_topic_id, 0, 0, start.incarnation))
    one.take(replace(claim(0, 150, incarnation=2), downstream=100, confirmed=False, altered=True))
    up_to_date(one, 100)
    assert one.foreign_range(upstream=50) == ForeignRange(150, 0, 100)
    assert one.begins == 100


@pytest.mark.parametrize(
    ("log_start", "deleted_to"),
    [(0, 0), (6, 6), (10, 10), (30, 10), (60, 40), (63, 43), (65, 45)],
)
def test_what_the_target_deleted_of_other_mirrors_records_is_not_named(log_start: int, deleted_to: int) -> None:
    """The flow's 0 to 9, then target offsets 10 to 59 of another mirror, then the flow's 40 to 44."""
    one = PartitionMap()
    one.take(claim(0, 0, 10))
    one.take(replace(claim(10, 40, incarnation=2), downstream=60, confirmed=False))
    one.take(replace(claim(10, 40, 5, incarnation=3), downstream=60))
    one.bound(LogBounds(log_start, 65))
    assert one.stands(ReportedProgress(45, 65))
    assert one.deleted_to == deleted_to


@pytest.mark.parametrize(
    ("log_start", "expected"),
    [
        (0, {0: (0, 5), 5: None, 14: None, 15: None, 39: None, 40: None}),
        (4, {0: (0, 9), 8: (8, 9), 9: None, 15: None}),
        (30, {9: (9, 40), 14: (14, 40), 39: (39, 40), 40: None}),
        (50, {14: (14, 60), 41: (41, 60), 60: None}),
    ],
)
def test_what_a_reader_of_the_copy_passes_over(log_start: int, expected: dict[int, tuple[int, int] | None]) -> None:
    """Source offsets 5 to 14, and after another mirror's records 40 to 59, have copies; then markers alone."""
    one = PartitionMap()
    one.take(claim(0, 5, 10))
    one.take(replace(claim(10, 40, incarnation=2), downstream=30, confirmed=False))
    one.take(replace(claim(10, 40, 20, incarnation=3), downstream=30))
    one.bound(LogBounds(log_start, 50))
    assert one.stands(ReportedProgress(60, 50))
    assert {upstream: one.passed_over(upstream) for upstream in expected} == expected
    assert one.passed_over(61) is None, "it is not copied yet"


def test_what_came_before_a_flow_that_began_at_the_end_is_passed_over() -> None:
    one = PartitionMap()
    one.take(replace(claim(0, 1_000), confirmed=False))
    assert up_to_date(one, 0, ReportedProgress(1_000, 0)).passed_over(400) == (400, 1_000)
    one.take(claim(0, 1_003, 10, incarnation=2))
    kept = up_to_date(one, 10, ReportedProgress(1_013, 10))
    assert [kept.passed_over(offset) for offset in (400, 1_003)] == [(400, 1_003), None]


def test_the_first_start_tells_what_a_flow_can_have_copied() -> None:
    """Also when the claims on its first records have expired; a start within a copy tells nothing."""
    start = replace(claim(0, 100), downstream=100, confirmed=False)
    later = replace(claim(50, 150, 20, incarnation=2), downstream=150)
    one = PartitionMap()
    one.take(start)
    one.take(later)
    assert up_to_date(one, 170, ReportedProgress(170, 170)).lowest_upstream == 100
    one.take(replace(claim(70, 40, incarnation=3), downstream=170, confirmed=False, altered=True))
    assert up_to_date(one, 170, ReportedProgress(170, 170)).lowest_upstream == 40
    passed_over = PartitionMap()
    passed_over.take(claim(0, 0, 50))
    passed_over.take(replace(claim(50, 100, incarnation=2), confirmed=False, altered=True))
    passed_over.take(claim(50, 100, 20, incarnation=3))
    assert up_to_date(passed_over, 70, ReportedProgress(120, 70)).lowest_upstream == 0
    recreated = PartitionMap()
    recreated.take(start)
    recreated.take(replace(later, source_topic_id=b"n" * 16))
    assert up_to_date(recreated, 170, ReportedProgress(170, 170)).lowest_upstream == 0


def test_what_others_wrote_is_gone_by_retention() -> None:
    one = PartitionMap()
    one.take(replace(claim(0, 100), downstream=100, confirmed=False))
    one.take(replace(claim(0, 100, 50, incarnation=2), downstream=100))
    one.bound(LogBounds(100, 150))
    assert one.stands(ReportedProgress(150, 150))
    assert one.foreign_range(upstream=50) is None
    assert one.downstream(50) == 100


def test_others_records_behind_a_start_are_not_ours() -> None:
    """Nothing was sent since it was claimed."""
    one = PartitionMap()
    one.take(replace(claim(0, 100), downstream=100, confirmed=False))
    up_to_date(one, 140)
    assert one.offsets.copied == Copied(0, 100, 140)
    assert one.downstream(120) is None


def test_a_copy_that_begins_again_at_its_start() -> None:
    """The target has lost all of ours; what others wrote before is still theirs."""
    one = PartitionMap(at_once=True)
    one.take(replace(claim(0, 500), downstream=700, confirmed=False))
    one.take(replace(claim(0, 500, 30, incarnation=2), downstream=700, heals=True))
    up_to_date(one, 730, ReportedProgress(530, 730))
    assert one.foreign_range(upstream=100) == ForeignRange(500, 0, 700)
    assert one.begins == 700


def test_behind_a_claim_that_stays_open_a_long_history_is_not_tried_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing behind it can be taken in for good, and each try looks at all of it."""
    tries: list[int] = []
    settle = PartitionMap._fold_claims  # noqa: SLF001 - that it is rare can't be seen from outside

    def counted(kept: PartitionMap) -> None:
        tries.append(len(kept.open_claims()))
        settle(kept)

    monkeypatch.setattr(PartitionMap, "_fold_claims", counted)
    kept = PartitionMap()
    announced = AnnouncedBatch(1, 0, 0, 0, 0)
    kept.take(replace(claim(0, 0, 1), confirmed=False, batches=(announced,)))
    for number in range(1, 4000):
        kept.take(claim(number, 2 * number, 1, number))
    assert 1 < len(tries) < 10
    assert set(tries) == {1}


def test_a_log_that_was_emptied_of_more_than_was_copied_has_no_map() -> None:
    """The pump knows how far it copied; what else lay there was somebody else's."""
    kept = PartitionMap()
    kept.take(claim(0, 0))
    kept.bound(LogBounds(104, 104))
    assert isinstance(kept.judge({}, None, ReportedProgress(100, 104)), Unmapped)
    other = PartitionMap()
    other.take(claim(0, 0))
    other.bound(LogBounds(104, 104))
    assert other.judge({}, None, ReportedProgress(104, 104)) is None


def test_what_lies_behind_the_start_of_a_turn_is_not_the_flows() -> None:
    """Without a record in its turn, a flow's copy ends at the start, however much others write behind."""
    kept = PartitionMap()
    kept.take(claim(0, 0, 50))
    start = replace(claim(50, 100, 0, incarnation=2), downstream=100, confirmed=False, turn=True, altered=True)
    kept.take(start)
    kept.bound(LogBounds(0, 200))
    assert kept.judge({}, None, None) is None
    assert kept.offsets.copied == Copied(50, 100, 100)
    assert (kept.upstream(100), kept.upstream(150)) == (100, None)
