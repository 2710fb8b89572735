"""The last copied record on both sides: alike in a healthy mirror, whatever brokers did to either log since."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder

from sparkmirror.errors import ClusterTrouble
from sparkmirror.exact.position import last_records
from sparkmirror.exact.position.last_records import BACK, Likeness, LogSide, Tail, compare
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, FetchReply
from sparkmirror.kafka.wire.batches import CONTROL_BIT, TIMESTAMP_TYPE_BIT
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.topic_partition import TopicPartition

PAIR = PartitionPair("orders", "us.orders", 0)
NOW_MS = 1_700_000_000_000
CRC_AT, ATTRIBUTES_AT = 17, 21
SHIFT = 100
"""The target's offsets are lower by so much."""


def batch(base: int, values: Mapping[int, bytes], *, bits: int = 0, codec: int = 0, age_ms: int = 0) -> bytes:
    """Records at these offsets, a millisecond apart; `bits` are further attributes."""
    builder = DefaultRecordBatchBuilder(2, codec, False, 9, 0, 5, 1 << 20)
    for offset, value in values.items():
        builder.append(offset - base, NOW_MS + offset - age_ms, None, value, [])
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, base)
    data[ATTRIBUTES_AT + 1] |= bits
    struct.pack_into(">I", data, CRC_AT, crc32c(memoryview(data)[ATTRIBUTES_AT:]))
    return bytes(data)


def at_target(batches: list[bytes]) -> list[bytes]:
    """The same at lower offsets."""
    moved = []
    for one in batches:
        data = bytearray(one)
        struct.pack_into(">q", data, 0, struct.unpack_from(">q", data)[0] - SHIFT)
        moved.append(bytes(data))
    return moved


def values(first: int, end: int) -> dict[int, bytes]:
    return {offset: b"value %d" % offset for offset in range(first, end)}


@dataclass
class Logs:
    """Both sides' logs, which answer as brokers do: the first partition's first batch comes whole."""

    batches: dict[TopicPartition, list[bytes]] = field(default_factory=dict)
    starts: dict[TopicPartition, int] = field(default_factory=dict)
    requests: list[int] = field(default_factory=list)
    """Partitions of each."""
    error: int = 0
    empty: bool = False

    def fetch(
        self, _: ClusterClient, __: int, offsets: Mapping[TopicPartition, int], ___: object, bounds: FetchBounds
    ) -> FetchReply:
        self.requests.append(len(offsets))
        return FetchReply(0, self.empty, iter([self.part(*one, bounds) for one in self.order(offsets)]))

    def order(self, offsets: Mapping[TopicPartition, int]) -> list[tuple[TopicPartition, int, bool]]:
        return [(partition, offset, not number) for number, (partition, offset) in enumerate(offsets.items())]

    def part(self, partition: TopicPartition, offset: int, whole: bool, bounds: FetchBounds) -> FetchedPartition:
        found = b""
        end = 0
        for one in self.batches.get(partition, []):
            base, delta = struct.unpack_from(">q", one)[0], struct.unpack_from(">i", one, 23)[0]
            end = base + delta + 1
            fits = len(found) + len(one) <= bounds.partition_bytes or (whole and not found)
            if end > offset and fits and not self.empty:
                found += one
        error = self.error or (ErrorCode.OFFSET_OUT_OF_RANGE if offset < self.starts.get(partition, 0) else 0)
        part: dict[str, Any] = {"topic": partition[0], "partition": partition[1], "asked_offset": offset}
        part |= {"error": error, "high_watermark": end, "last_stable_offset": end, "log_start_offset": 0}
        part |= {"records": memoryview(found), "diverging": None}
        return FetchedPartition(**part)


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Logs:
    made = Logs()
    monkeypatch.setattr(last_records, "fetch_once", made.fetch)
    return made


def side() -> LogSide:
    client = cast("ClusterClient", SimpleNamespace(config=SimpleNamespace(alias="A")))
    return LogSide(client, 1, {"orders": bytes(16), "us.orders": bytes(16)})


def likeness(upstream: int, records: int = 1 << 30, *, changed: bool = False) -> Likeness:
    """Of a copy that should end with the source's record at this offset."""
    return compare(side(), side(), {PAIR: Tail(upstream, upstream - SHIFT, records, changed=changed)})[PAIR]


def copied(logs: Logs, source: list[bytes], target: list[bytes] | None = None) -> None:
    logs.batches = {PAIR.source: source, PAIR.target: at_target(source if target is None else target)}


def test_a_healthy_copy_ends_with_the_sources_record(logs: Logs) -> None:
    copied(logs, [batch(200, values(200, 210))])
    assert likeness(209) is Likeness.SAME
    assert logs.requests == [1, 1]


def test_a_copy_whose_newest_claim_says_too_little_ends_with_another_record(logs: Logs) -> None:
    """A marker was between: the claim after it is lost."""
    source = [batch(200, values(200, 205)), batch(205, {205: b""}, bits=CONTROL_BIT), batch(206, values(206, 210))]
    shifted = batch(200, {offset: b"value %d" % (offset + (offset > 204)) for offset in range(200, 209)})
    copied(logs, source, [shifted])
    assert likeness(208) is Likeness.DIFFERENT


def test_a_marker_was_never_copied(logs: Logs) -> None:
    copied(
        logs, [batch(200, values(200, 205)), batch(205, {205: b""}, bits=CONTROL_BIT)], [batch(200, values(200, 206))]
    )
    assert likeness(205) is Likeness.DIFFERENT


def test_times_tell_equal_records_apart(logs: Logs) -> None:
    beats = {offset: b"beat" for offset in range(200, 210)}
    copied(logs, [batch(200, beats)], [batch(200, beats, age_ms=1)])
    assert likeness(209) is Likeness.DIFFERENT


@pytest.mark.parametrize("bits", [(TIMESTAMP_TYPE_BIT, 0), (0, TIMESTAMP_TYPE_BIT)], ids=["source", "target"])
def test_times_that_a_broker_has_stamped_are_no_difference(logs: Logs, bits: tuple[int, int]) -> None:
    here, there = (batch(200, values(200, 210), bits=one) for one in bits)
    copied(logs, [here], [there])
    assert likeness(209) is Likeness.ALIKE


def test_of_changed_records_the_times_tell(logs: Logs) -> None:
    """Whatever a transform has made of the contents."""
    other = {offset: b"changed" for offset in range(200, 210)}
    copied(logs, [batch(200, values(200, 210))], [batch(200, other)])
    assert likeness(209) is Likeness.DIFFERENT
    assert likeness(209, changed=True) is Likeness.ALIKE
    copied(logs, [batch(200, values(200, 210))], [batch(200, other, age_ms=1)])
    assert likeness(209, changed=True) is Likeness.DIFFERENT


@pytest.mark.parametrize("bits", [(TIMESTAMP_TYPE_BIT, 0), (0, TIMESTAMP_TYPE_BIT)], ids=["source", "target"])
def test_changed_records_with_stamped_times_are_no_evidence(logs: Logs, bits: tuple[int, int]) -> None:
    here, there = (batch(200, values(200, 210), bits=each) for each in bits)
    copied(logs, [here], [there])
    assert likeness(209, changed=True) is Likeness.UNKNOWN


def test_a_batch_that_was_joined_or_compressed_at_the_target_is_no_difference(logs: Logs) -> None:
    joined = batch(200, values(200, 220), codec=1)
    copied(logs, [batch(200, values(200, 211)), batch(211, values(211, 220))], [joined])
    assert likeness(219) is Likeness.SAME


def test_what_compaction_has_left_is_compared(logs: Logs) -> None:
    """The very last records are gone at the source, and the batch with them; others are gone at the target."""
    source = [batch(200, {201: b"value 201", 203: b"value 203"}), batch(230, values(230, 240))]
    target = [batch(200, {200: b"value 200", 203: b"value 203", 209: b"value 209"})]
    copied(logs, source, target)
    assert likeness(209) is Likeness.SAME
    copied(logs, source, [batch(200, {203: b"another", 209: b"value 209"})])
    assert likeness(209) is Likeness.DIFFERENT
    copied(logs, [batch(230, values(230, 240))], target)
    assert likeness(209) is Likeness.UNKNOWN


def recast(data: bytes, *, times: int | None = None, end: int = 0) -> bytes:
    """A batch of one record with another time, or one that compaction has left without its last offsets."""
    cast_ = bytearray(data)
    if times is not None:
        struct.pack_into(">qq", cast_, 27, times, times)
    if end:
        struct.pack_into(">i", cast_, 23, end - struct.unpack_from(">q", cast_)[0] - 1)
    struct.pack_into(">I", cast_, CRC_AT, crc32c(memoryview(cast_)[ATTRIBUTES_AT:]))
    return bytes(cast_)


@pytest.mark.parametrize("far", [0, 10_000])
@pytest.mark.parametrize("between", [0, 2])
@pytest.mark.parametrize("large", [b"", b"x" * 40_000], ids=["small", "large"])
def test_a_later_record_that_is_at_the_target_was_copied(logs: Logs, far: int, between: int, large: bytes) -> None:
    """Compaction has left nothing at the last record's place, and the records before are the source's."""
    before = values(200, 204) | {204: large}
    left = recast(batch(200, before), end=206)
    markers = [batch(206 + number, {206 + number: b""}, bits=CONTROL_BIT) for number in range(between)]
    beyond = far + 210
    source = [left, *markers, batch(beyond, values(beyond, beyond + 3))]
    twin = batch(205, {205: b"value %d" % (beyond + 1)})
    after_a_gap = recast(twin, times=NOW_MS + beyond + 1)
    copied(logs, source, [batch(200, before), after_a_gap])
    assert likeness(205) is Likeness.DIFFERENT
    assert likeness(205, changed=True) is Likeness.ALIKE
    copied(logs, source, [batch(200, before), twin])
    assert likeness(205) is Likeness.SAME, "its time is another one"
    stamped = [left, batch(beyond, values(beyond, beyond + 3), bits=TIMESTAMP_TYPE_BIT)]
    copied(logs, stamped, [batch(200, before), after_a_gap])
    assert likeness(205) is Likeness.SAME, "another record may be equal but for its time"


def test_records_that_a_claim_announces_are_not_compared(logs: Logs) -> None:
    """They lie elsewhere at the source: before them is a gap."""
    wrong = batch(200, values(200, 209) | {203: b"another", 209: b"value 209"})
    copied(logs, [batch(200, values(200, 210))], [wrong])
    assert likeness(209, records=6) is Likeness.SAME
    assert likeness(209, records=7) is Likeness.DIFFERENT


@pytest.mark.parametrize("gone", [PAIR.source, PAIR.target])
def test_what_a_log_has_deleted_is_no_evidence(logs: Logs, gone: TopicPartition) -> None:
    copied(logs, [batch(200, values(200, 210))])
    logs.starts[gone] = 10_000
    assert likeness(209) is Likeness.UNKNOWN


def test_a_damaged_batch_is_no_evidence(logs: Logs) -> None:
    copied(logs, [batch(200, values(200, 210))])
    logs.batches[PAIR.source] = [batch(200, values(200, 210), codec=0)[:-4] + b"\xff\xff\xff\xff"]
    assert likeness(209) is Likeness.UNKNOWN


def test_many_partitions_share_requests_and_large_batches_come_all_the_same(logs: Logs) -> None:
    """A batch that does not fit is asked for again, with more room."""
    pairs = [PartitionPair("orders", "us.orders", number) for number in range(150)]
    for pair in pairs:
        small = batch(200, values(200, 210))
        large = batch(200, {200: b"x" * 40_000} | values(201, 210))
        source = [large if pair.partition % 50 == 49 else small]
        logs.batches |= {pair.source: source, pair.target: at_target(source)}
    tails = {pair: Tail(209, 209 - SHIFT, 10) for pair in pairs}
    assert set(compare(side(), side(), tails).values()) == {Likeness.SAME}
    assert logs.requests == [150, 3, 150, 3]


def test_no_more_records_are_compared_than_needed(logs: Logs) -> None:
    end = 200 + 3 * BACK
    wrong = values(200, end) | {200: b"another"}
    copied(logs, [batch(200, values(200, end))], [batch(200, wrong)])
    assert likeness(end - 1) is Likeness.SAME


@pytest.mark.parametrize("fault", [{"error": ErrorCode.NOT_LEADER_OR_FOLLOWER}, {"empty": True}])
def test_a_broker_that_does_not_serve_is_no_evidence_for_anything(logs: Logs, fault: dict[str, Any]) -> None:
    copied(logs, [batch(200, values(200, 210))])
    for name, value in fault.items():
        setattr(logs, name, value)
    with pytest.raises(ClusterTrouble):
        likeness(209)
