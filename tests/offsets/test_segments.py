"""Records of the segments topic: what is written is read, what others wrote is left alone."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.offsets.segments import (
    Identity,
    Segment,
    home_partition,
    identity_record,
    read_record,
    segment_record,
    segments_topic,
)

modest = settings(max_examples=100, deadline=None)

ids = st.binary(min_size=16, max_size=16)
int16s = st.integers(-(2**15), 2**15 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
segments = st.builds(
    Segment, ids, int32s, int64s, int64s, int64s, int16s, ids, int32s, int64s, int64s, st.integers(0, 2**32 - 1)
)
identities = st.builds(Identity, st.text(max_size=40), int64s, int16s)

SEGMENT = Segment(b"t" * 16, 3, 70, 5, 4000, 0, b"s" * 16, 7, 170, 70, 99)
RECORDS = [segment_record(SEGMENT), identity_record(Identity("cluster", 4000, 0), b"u" * 16)]


@modest
@given(segments)
def test_a_segment_is_read_as_it_was_written(segment: Segment) -> None:
    assert read_record(*segment_record(segment)) == segment


@modest
@given(identities, ids)
def test_an_identity_is_read_as_it_was_written(identity: Identity, unique: bytes) -> None:
    assert read_record(*identity_record(identity, unique)) == identity


@modest
@given(segments, segments)
def test_only_the_same_claim_of_the_same_pump_replaces_one(one: Segment, other: Segment) -> None:
    """The topic is compacted by key: rivals' claims must both stay."""

    def claim(segment: Segment) -> tuple[object, ...]:
        return segment.target_topic_id, segment.partition, segment.sequence, segment.incarnation

    assert (segment_record(one)[0] == segment_record(other)[0]) == (claim(one) == claim(other))


@pytest.mark.parametrize("field", ["target_topic_id", "partition", "sequence", "incarnation"])
def test_each_part_of_a_claim_is_in_its_key(field: str) -> None:
    changed = {"target_topic_id": b"T" * 16, "partition": 4, "sequence": 71, "incarnation": 6}
    fields = {name: getattr(SEGMENT, name) for name in SEGMENT.__dataclass_fields__}
    other = Segment(**fields | {field: changed[field]})
    assert segment_record(other)[0] != segment_record(SEGMENT)[0]


def test_no_proposal_replaces_another() -> None:
    identity = Identity("cluster", 4000, 0)
    assert identity_record(identity, b"a" * 16)[0] != identity_record(identity, b"b" * 16)[0]


def test_the_format_is_what_it_was() -> None:
    """Segments outlive the version that wrote them."""
    key, value = segment_record(SEGMENT)
    assert key.hex() == "000001" + "74" * 16 + "00000003" + "0000000000000046" + "0000000000000005"
    assert value is not None
    assert value.hex() == (
        "0000"
        + "0000000000000fa0"
        + "0000"
        + "73" * 16
        + "00000007"
        + "00000000000000aa"
        + "0000000000000046"
        + "00000063"
    )
    key, value = identity_record(Identity("cl", 4000, 1), b"u" * 16)
    assert key.hex() == "000000" + "75" * 16
    assert value is not None
    assert value.hex() == "0000" + "0000000000000fa0" + "0001" + b"cl".hex()


# --- what is left alone -------------------------------------------------------------------------------


@pytest.mark.parametrize("record", RECORDS, ids=["segment", "identity"])
def test_tombstones_mean_nothing(record: tuple[bytes, bytes]) -> None:
    assert read_record(record[0], None) is None
    assert read_record(None, record[1]) is None
    assert read_record(None, None) is None


@pytest.mark.parametrize("record", RECORDS, ids=["segment", "identity"])
@pytest.mark.parametrize("version", [1, 9, -1, 0x7FFF])
def test_other_versions_are_ignored(record: tuple[bytes, bytes], version: int) -> None:
    key, value = record
    other = struct.pack(">h", version)
    assert read_record(other + key[2:], value) is None
    assert read_record(key, other + value[2:]) is None
    assert read_record(other + key[2:] + b"more", other + b"else") is None


@modest
@given(st.integers(2, 127), st.binary(max_size=50), st.binary(max_size=50))
def test_other_kinds_are_ignored(kind: int, key: bytes, value: bytes) -> None:
    assert read_record(struct.pack(">hb", 0, kind) + key, b"\0\0" + value) is None


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
