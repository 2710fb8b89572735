"""Records of the segments topic: what is written is read, what others wrote is left alone."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.exact.durable.claims import (
    AnnouncedBatch,
    Claim,
    Retracted,
    RunsBySequence,
    chained,
    claim_key,
    claim_record,
    first_of,
    home_partition,
    identity_record,
    joined,
    read_record,
    segments_topic,
)
from sparkmirror.exact.durable.identity import Identity, Producer
from sparkmirror.kafka.wire.splice import Run

modest = settings(max_examples=100, deadline=None)

ids = st.binary(min_size=16, max_size=16)
int16s = st.integers(-(2**15), 2**15 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
counts = st.integers(0, 2**31 - 1)


def with_gaps(first: int, steps: list[tuple[int, int]]) -> tuple[Run, ...]:
    """Runs in order: (offsets that are missing before it, its length)."""
    runs, end = [], first
    for gap, length in steps:
        runs.append(Run(end + gap, length))
        end += gap + length
    return tuple(runs)


runs = st.builds(
    with_gaps, st.integers(0, 2**62), st.lists(st.tuples(st.integers(0, 2**20), counts), min_size=1, max_size=5)
)
announced = st.builds(AnnouncedBatch, counts, st.integers(0, 4), st.integers(0, 2**32 - 1), int64s, int64s)
claim_log = st.builds(
    Claim,
    target_topic_id=ids,
    partition=int32s,
    sequence=int64s,
    incarnation=int64s,
    producer_id=int64s,
    producer_epoch=int16s,
    source_topic_id=ids,
    source_leader_epoch=int32s,
    downstream=int64s,
    runs=runs,
    batches=st.lists(announced, max_size=4).map(tuple),
    confirmed=st.booleans(),
    shared=st.booleans(),
)
identities = st.builds(Identity, st.text(max_size=40), int64s, int16s)

SEGMENT = Claim(
    target_topic_id=b"t" * 16,
    partition=3,
    sequence=70,
    incarnation=5,
    producer_id=4000,
    producer_epoch=0,
    source_topic_id=b"s" * 16,
    source_leader_epoch=7,
    downstream=72,
    runs=(Run(170, 6), Run(180, 4), Run(200, 10)),
    batches=(AnnouncedBatch(8, 3, 99, 1000, 1007), AnnouncedBatch(12, 0, 98, 1010, 1010)),
)
RECORDS = [claim_record(SEGMENT), identity_record(Identity("cluster", 4000, 0), b"u" * 16)]
UPSTREAM = [*range(170, 176), *range(180, 184), *range(200, 210)]
"""Of each record that SEGMENT announces."""


@modest
@given(claim_log)
def test_a_segment_is_read_as_it_was_written(claim: Claim) -> None:
    assert read_record(*claim_record(claim)) == claim


@modest
@given(identities, ids)
def test_an_identity_is_read_as_it_was_written(identity: Identity, unique: bytes) -> None:
    assert read_record(*identity_record(identity, unique)) == identity


@modest
@given(claim_log, claim_log)
def test_only_the_same_claim_of_the_same_pump_replaces_one(one: Claim, other: Claim) -> None:
    """The topic is compacted by key: rivals' claims must both stay."""

    def claim(segment: Claim) -> tuple[object, ...]:
        return segment.target_topic_id, segment.partition, segment.sequence, segment.incarnation

    assert (claim_record(one)[0] == claim_record(other)[0]) == (claim(one) == claim(other))


@pytest.mark.parametrize("field", ["target_topic_id", "partition", "sequence", "incarnation"])
def test_each_part_of_a_claim_is_in_its_key(field: str) -> None:
    changed = {"target_topic_id": b"T" * 16, "partition": 4, "sequence": 71, "incarnation": 6}
    fields = {name: getattr(SEGMENT, name) for name in SEGMENT.__dataclass_fields__}
    other = Claim(**fields | {field: changed[field]})
    assert claim_record(other)[0] != claim_record(SEGMENT)[0]


def test_no_proposal_replaces_another() -> None:
    identity = Identity("cluster", 4000, 0)
    assert identity_record(identity, b"a" * 16)[0] != identity_record(identity, b"b" * 16)[0]


def test_the_format_is_what_it_was() -> None:
    """Segments outlive the version that wrote them."""
    key, value = claim_record(replace(SEGMENT, confirmed=True, shared=True))
    assert key.hex() == "000101" + "74" * 16 + "00000003" + "0000000000000046" + "0000000000000005"
    assert value is not None
    assert value.hex() == (
        "0001"
        + "03"
        + "0000000000000fa0"
        + "0000"
        + "73" * 16
        + "00000007"
        + "00000000000000aa"
        + "0000000000000048"
        + "03" + "0006" + "0404" + "100a"
        + "02"
        + "08" + "03" + "00000063" + "00000000000003e8" + "00000000000003ef"
        + "0c" + "00" + "00000062" + "00000000000003f2" + "00000000000003f2"
    )  # fmt: skip
    key, value = identity_record(Identity("cl", 4000, 1), b"u" * 16)
    assert key.hex() == "000100" + "75" * 16
    assert value is not None
    assert value.hex() == "0001" + "0000000000000fa0" + "0001" + b"cl".hex()
    linked = bytes.fromhex(
        "0001"
        + "0000000000000fa1" + "0000"
        + "0000000000000fa0" + "0001"
        + "00000000000003e8"
        + "0002" + b"cl".hex() + b"id".hex()
    )  # fmt: skip
    assert read_record(bytes.fromhex("000102" + "75" * 16), linked) == Identity("cl", 4001, 0, (Producer(4000, 1),))
    first = linked[:12] + bytes.fromhex("ffffffffffffffff" + "ffff") + linked[22:]
    assert read_record(bytes.fromhex("000102" + "75" * 16), first) == Identity("cl", 4001, 0)


def test_a_confirmation_replaces_its_claim() -> None:
    assert claim_record(replace(SEGMENT, confirmed=True))[0] == claim_record(SEGMENT)[0]


def test_a_claim_that_was_taken_back_is_told_by_its_key() -> None:
    assert read_record(claim_key(SEGMENT), None) == Retracted(b"t" * 16, 3, 70, 5)


# --- what a segment stands for ------------------------------------------------------------------------


def test_each_sequence_has_its_upstream_offset() -> None:
    assert [SEGMENT.upstream_of(70 + ahead) for ahead in range(20)] == UPSTREAM
    assert (SEGMENT.upstream, SEGMENT.announced) == (170, 20)


def test_the_last_run_continues_without_end() -> None:
    assert SEGMENT.upstream_of(70 + 20 + 1000) == 210 + 1000
    assert SEGMENT.next_upstream(70 + 20 + 1000) == 210 + 1000


def test_a_gap_begins_right_behind_the_record_before_it() -> None:
    """Where the source may have records that were not there before is not for us to say."""
    assert SEGMENT.next_upstream(70) == 170
    assert SEGMENT.next_upstream(76) == 176
    assert SEGMENT.upstream_of(76) == 180


@modest
@given(st.integers(0, 40), st.integers(1, 40))
def test_the_runs_of_any_stretch_hold_its_offsets(ahead: int, count: int) -> None:
    found = SEGMENT.runs_at(70 + ahead, count)
    assert [one.upstream + n for one in found for n in range(one.length)] == [
        SEGMENT.upstream_of(70 + ahead + n) for n in range(count)
    ]
    assert joined(found) == found
    assert first_of(found, 7) == SEGMENT.runs_at(70 + ahead, min(count, 7))


@modest
@given(st.integers(0, 40), st.integers(1, 60))
def test_what_continues_elsewhere_stands_for_the_same_records(ahead: int, count: int) -> None:
    other = SEGMENT.between(70 + ahead, 70 + ahead + count, 999)
    assert [other.upstream_of(70 + ahead + n) for n in range(count)] == [
        SEGMENT.upstream_of(70 + ahead + n) for n in range(count)
    ]
    assert other.announced == max(min(count, SEGMENT.announced - ahead), 0), "no more than there are"
    assert (other.downstream, other.incarnation, other.confirmed, other.batches) == (999, 5, True, ())


def test_a_part_holds_its_batches_and_their_records() -> None:
    first = SEGMENT.part(0, 1, 72, confirmed=True)
    assert (first.sequence, first.runs, first.batches) == (70, (Run(170, 6), Run(180, 2)), SEGMENT.batches[:1])
    second = SEGMENT.part(1, 2, 95, confirmed=False)
    assert (second.sequence, second.downstream, second.incarnation) == (78, 95, 5)
    assert (second.runs, second.batches) == ((Run(182, 2), Run(200, 10)), SEGMENT.batches[1:])


@modest
@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), min_size=1, max_size=5), max_size=6))
def test_runs_of_batches_are_chained_as_they_are_joined(parts: list[list[tuple[int, int]]]) -> None:
    """Within a batch no two runs are adjacent; those of two batches may be."""
    batches, end = [], 5
    for part in parts:
        batches.append(joined(with_gaps(end, part)))
        end = batches[-1][-1].upstream + batches[-1][-1].length
    assert chained(batches) == joined(run for batch in batches for run in batch)


def test_runs_that_follow_each_other_are_joined() -> None:
    assert joined([Run(5, 2), Run(7, 3), Run(11, 1), Run(12, 1)]) == (Run(5, 5), Run(11, 2))


# --- what is left alone -------------------------------------------------------------------------------


def test_tombstones_of_identities_and_records_without_keys_mean_nothing() -> None:
    assert read_record(RECORDS[1][0], None) is None
    assert read_record(None, RECORDS[0][1]) is None
    assert read_record(None, None) is None


@pytest.mark.parametrize("length", range(len(RECORDS[0][1] or b"")))
def test_a_value_that_is_cut_off_is_ignored(length: int) -> None:
    key, value = RECORDS[0]
    assert value is not None
    assert read_record(key, value[:length]) is None


@pytest.mark.parametrize("record", RECORDS, ids=["segment", "identity"])
@pytest.mark.parametrize("version", [0, 9, -1, 0x7FFF])
def test_other_versions_are_ignored(record: tuple[bytes, bytes], version: int) -> None:
    key, value = record
    other = struct.pack(">h", version)
    assert read_record(other + key[2:], value) is None
    assert read_record(key, other + value[2:]) is None
    assert read_record(other + key[2:] + b"more", other + b"else") is None


@modest
@given(st.integers(5, 127), st.binary(max_size=50), st.binary(max_size=50))
def test_other_kinds_are_ignored(kind: int, key: bytes, value: bytes) -> None:
    assert read_record(struct.pack(">hb", 1, kind) + key, b"\0\1" + value) is None


@modest
@given(st.binary(max_size=2), st.binary(max_size=50))
def test_short_keys_are_ignored(key: bytes, value: bytes) -> None:
    assert read_record(key, value) is None


# --- where they are -----------------------------------------------------------------------------------


@modest
@given(ids, st.integers(0, 2**31 - 1), st.integers(1, 1000))
def test_a_home_is_one_of_the_partitions_and_always_the_same(topic_id: bytes, partition: int, count: int) -> None:
    home = home_partition(topic_id, partition, count)
    assert 0 <= home < count
    assert home == home_partition(bytes(bytearray(topic_id)), partition, count)


def test_homes_do_not_move() -> None:
    """What one version wrote the next one must find."""
    assert [home_partition(bytes(range(16)), partition, 50) for partition in range(6)] == [45, 8, 42, 41, 14, 49]


def test_a_topics_partitions_are_spread() -> None:
    assert len({home_partition(b"t" * 16, partition, 50) for partition in range(1000)}) == 50


def test_no_mirror_maker_copies_the_topic() -> None:
    """MirrorMaker 2 leaves out what ends in `.internal`."""
    assert segments_topic("us") == "mm2-sparkmirror-segments.us.internal"


short_runs = st.builds(
    with_gaps, st.integers(0, 99), st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4)), min_size=1, max_size=8)
)


@modest
@given(short_runs, st.lists(st.integers(1, 5), max_size=8), st.integers(0, 40), st.integers(0, 20))
def test_runs_are_found_in_one_pass_as_they_are_one_by_one(
    some: tuple[Run, ...], counts: list[int], ahead: int, count: int
) -> None:
    announced = tuple(AnnouncedBatch(records, 0, 0, 0, 0) for records in counts)
    claim = replace(SEGMENT, runs=some, batches=announced)
    begins = [claim.sequence + sum(counts[:index]) for index in range(len(counts))]
    assert list(claim.batch_runs()) == [claim.runs_at(*one) for one in zip(begins, counts, strict=True)]
    assert tuple(RunsBySequence(claim).at(claim.sequence + ahead, count)) == claim.runs_at(
        claim.sequence + ahead, count
    )
    found = claim.runs_at(claim.sequence + ahead, count)
    assert [one.upstream + n for one in found for n in range(one.length)] == [
        claim.upstream_of(claim.sequence + ahead + n) for n in range(count)
    ]
