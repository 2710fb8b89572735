"""Positions read from real clusters, whose logs were written as a pump writes them, and then suffered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.protocol.producer import InitProducerIdRequest
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.structs import TopicPartition

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import ClusterConfig
from sparkmirror.demo import KafkaCluster
from sparkmirror.offsets.position import Position
from sparkmirror.offsets.reading import Bearings, PositionReader, Refusal, Route
from sparkmirror.offsets.segment_log import SegmentLog
from sparkmirror.offsets.segments import Identity, Segment
from sparkmirror.wire import produce

pytestmark = pytest.mark.broker

DAY_MS = 86_400_000
COPIED, FIRST_UPSTREAM, AT_SOURCE = 30, 0, 50
NO_PRODUCER = (-1, -1, -1)
COORDINATOR_IS_COMING = (14, 15, 16)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not in 20 s"
        time.sleep(0.05)


class Side:
    """One cluster as the tests change it."""

    def __init__(self, alias: str, cluster: KafkaCluster) -> None:
        self.config = ClusterConfig(alias=alias, bootstrap_servers=tuple(cluster.bootstrap_servers.split(",")))
        self.client = ClusterClient(self.config, "test")
        self.admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)

    def close(self) -> None:
        self.client.close()
        self.admin.close()

    def topic_id(self, topic: str) -> bytes:
        """The id of a topic that has a leader; no bytes if it hasn't."""
        found = self.client.metadata([topic])[topic]
        return b"" if found.error or any(one.leader < 0 for one in found.partitions.values()) else found.topic_id

    def create(self, topic: str, **settings: str) -> None:
        self.admin.create_topics([NewTopic(topic, 2, 1, topic_configs=settings)])
        wait_for(lambda: bool(self.topic_id(topic)), f"{topic} is created")

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])
        wait_for(lambda: self.client.metadata([topic])[topic].error == 3, f"{topic} is deleted")

    def delete_records(self, topic: str, before: int) -> None:
        self.admin.delete_records({TopicPartition(topic, 0): before})

    def producer_id(self) -> int:
        """A new one; a fresh broker isn't ready to give any for a moment (R13)."""
        while True:
            answer = self.client.ask_any(
                lambda: InitProducerIdRequest(
                    transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
                )
            )
            if answer.error_code not in COORDINATOR_IS_COMING:
                assert answer.error_code == 0
                return int(answer.producer_id)
            time.sleep(0.1)

    def append(
        self, topic: str, count: int, producer: tuple[int, int, int] = NO_PRODUCER, *, age_ms: int = 0
    ) -> produce.Ack:
        """One batch to partition 0, by the wire's own request."""
        producer_id, epoch, sequence = producer
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=False,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            batch_size=1 << 20,
        )
        now = int(time.time() * 1000) - age_ms
        for delta in range(count):
            builder.append(delta, now, None, b"record", [])
        found = self.client.metadata([topic])[topic]
        connection = self.client.broker(found.partitions[0].leader)
        version = connection.version(produce.API_KEY, produce.VERSIONS, "Produce")
        field = produce.topic_field(version, topic, found.topic_id)
        frame = connection.exchange_raw(
            produce.produce_request(version, 1, b"test", 10_000, {field: {0: memoryview(builder.build())}})
        )
        _, (ack,), _ = produce.read_answer(version, frame)
        assert ack.error == 0
        return ack


class Flow:
    """A flow with one partition, of which its target may have copied something."""

    def __init__(self, source: Side, target: Side, topic: str) -> None:
        self.source, self.target = source, target
        self.topic, self.target_topic, self.segments_topic = topic, f"us.{topic}", f"segments.{topic}"
        self.route = Route(self.topic, self.target_topic, 0)
        source.create(self.topic)
        target.create(self.target_topic)
        target.create(self.segments_topic, **{"cleanup.policy": "compact"})
        self.identity = Identity(target.client.cluster_id, target.producer_id(), 0)
        source.append(self.topic, AT_SOURCE)

    def producer(self, sequence: int) -> tuple[int, int, int]:
        return self.identity.producer_id, self.identity.producer_epoch, sequence

    def segment(self, sequence: int = 0, upstream: int = FIRST_UPSTREAM, incarnation: int = 1) -> Segment:
        return Segment(
            self.target.topic_id(self.target_topic),
            0,
            sequence,
            incarnation,
            self.identity.producer_id,
            self.identity.producer_epoch,
            self.source.topic_id(self.topic),
            0,
            upstream,
            sequence,
            99,
        )

    def claim(self, *segments: Segment) -> None:
        SegmentLog(TopicLog(self.target.client, self.segments_topic)).claim(segments)

    def copy(self, *, age_ms: int = 0) -> Segment:
        """A claim, and three batches after it."""
        segment = self.segment()
        self.claim(segment)
        for sequence in range(0, COPIED, 10):
            self.target.append(self.target_topic, 10, self.producer(sequence), age_ms=age_ms)
        return segment

    def reader(self, identity: Identity | None = None) -> PositionReader:
        source, target = (ClusterClient(side.config, "test") for side in (self.source, self.target))
        log = SegmentLog(TopicLog(target, self.segments_topic))
        return PositionReader(source, target, log, identity or self.identity, time.monotonic)

    def read(self, identity: Identity | None = None) -> Bearings | Refusal:
        return read_all(self.reader(identity), [self.route])[self.route]

    def bearings(self) -> Bearings:
        found = self.read()
        assert isinstance(found, Bearings), found
        return found

    def refusal(self, identity: Identity | None = None) -> Refusal:
        found = self.read(identity)
        assert isinstance(found, Refusal), found
        return found


@pytest.fixture
def sides(source_cluster: KafkaCluster, target_cluster: KafkaCluster) -> Iterator[tuple[Side, Side]]:
    pair = Side("us", source_cluster), Side("eu", target_cluster)
    yield pair
    for side in pair:
        side.close()


@pytest.fixture
def flow(sides: tuple[Side, Side], topic_name: str) -> Flow:
    return Flow(*sides, topic_name)


def after_the_copy(found: Position, segment: Segment) -> None:
    assert (found.sequence, found.upstream, found.downstream) == (COPIED, FIRST_UPSTREAM + COPIED, COPIED)
    assert found.segment == segment


# --- where it stands ----------------------------------------------------------------------------------


def test_a_partition_that_was_never_copied_starts_at_the_sources_start(flow: Flow) -> None:
    flow.source.delete_records(flow.topic, 7)
    found = flow.bearings()
    assert found.position == Position(0, None, 0, None, None)
    assert (found.source_start, found.source_end) == (7, AT_SOURCE)
    assert (found.source_leader, found.target_leader) == (1, 1)
    assert found.source_topic_id == flow.source.topic_id(flow.topic)
    assert found.target_topic_id == flow.target.topic_id(flow.target_topic)


def test_the_producer_state_tells_the_position(flow: Flow) -> None:
    started = time.time() * 1000
    segment = flow.copy()
    found = flow.bearings()
    after_the_copy(found.position, segment)
    assert found.position.newest_timestamp_ms is not None
    assert abs(found.position.newest_timestamp_ms - started) < 60_000


def read_all(reader: PositionReader, routes: list[Route]) -> dict[Route, Bearings | Refusal]:
    """What is handed out in groups, together."""
    found: dict[Route, Bearings | Refusal] = {}
    reader.read(routes, found.update)
    return found


def test_the_position_moves_with_the_log(flow: Flow) -> None:
    flow.copy()
    reader = flow.reader()
    for sequence in (COPIED, COPIED + 10):
        before = read_all(reader, [flow.route])[flow.route]
        assert isinstance(before, Bearings)
        assert before.position.sequence == sequence
        flow.target.append(flow.target_topic, 10, flow.producer(sequence))


def test_a_newer_segment_takes_over_where_it_begins(flow: Flow) -> None:
    flow.copy()
    newer = flow.segment(sequence=COPIED, upstream=35, incarnation=2)
    flow.claim(newer)
    assert flow.bearings().position.segment == newer
    assert flow.bearings().position.upstream == 35
    flow.target.append(flow.target_topic, 10, flow.producer(COPIED))
    found = flow.bearings().position
    assert (found.sequence, found.upstream, found.downstream) == (COPIED + 10, 45, COPIED + 10)


def test_deleted_records_were_copied_all_the_same(flow: Flow) -> None:
    segment = flow.copy()
    for before in (15, COPIED):
        flow.target.delete_records(flow.target_topic, before)
        after_the_copy(flow.bearings().position, segment)


def test_the_log_end_alone_tells_the_position(flow: Flow) -> None:
    """Neither a state of ours nor records: as after expiry, DeleteRecords and a restart. Only the count is left."""
    segment = flow.segment()
    flow.claim(segment)
    flow.target.append(flow.target_topic, COPIED)
    flow.target.delete_records(flow.target_topic, COPIED)
    found = flow.bearings().position
    after_the_copy(found, segment)
    assert found.newest_timestamp_ms is None


def test_a_target_topic_created_again_starts_anew(flow: Flow) -> None:
    flow.copy()
    old = flow.target.topic_id(flow.target_topic)
    flow.target.delete(flow.target_topic)
    flow.target.create(flow.target_topic)
    found = flow.bearings()
    assert found.target_topic_id != old
    assert found.position == Position(0, None, 0, None, None)


def test_claims_of_another_identity_are_not_ours(flow: Flow) -> None:
    """Of another epoch of our own producer id too: it counted its sequences by itself."""
    segment = flow.copy()
    for number, other in enumerate(({"producer_id": 1 << 40}, {"producer_epoch": 9})):
        changed: dict[str, Any] = {"incarnation": 70 + number, "upstream": 999, **other}
        flow.claim(replace(segment, **changed))
    after_the_copy(flow.bearings().position, segment)


def test_each_route_is_answered_for_itself(flow: Flow) -> None:
    segment = flow.copy()
    empty, missing = replace(flow.route, partition=1), replace(flow.route, partition=2)
    found = read_all(flow.reader(), [missing, flow.route, empty])
    assert set(found) == {flow.route, empty, missing}
    copied, untouched, nowhere = found[flow.route], found[empty], found[missing]
    assert isinstance(copied, Bearings)
    after_the_copy(copied.position, segment)
    assert isinstance(untouched, Bearings)
    assert untouched.position == Position(0, None, 0, None, None)
    assert nowhere == Refusal(f"us: {flow.topic} has no partition 2", transient=True)


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
    assert flow.bearings().source_start == COPIED
    flow.source.delete_records(flow.topic, 42)
    found = flow.refusal()
    assert not found.transient
    assert found.reason.startswith("offsets 30 to 41 are gone at the source (12 records)")


def test_a_source_that_ends_before_what_was_copied(flow: Flow) -> None:
    flow.claim(flow.segment(upstream=AT_SOURCE - 20))
    flow.target.append(flow.target_topic, COPIED, flow.producer(0))
    found = flow.refusal()
    assert found.transient
    assert found.reason.startswith(f"the source's log ends at {AT_SOURCE}, but offsets up to {AT_SOURCE + 9} were")


def test_a_source_topic_created_again_is_not_the_one_that_was_copied(flow: Flow) -> None:
    flow.copy()
    flow.source.delete(flow.topic)
    flow.source.create(flow.topic)
    found = flow.refusal()
    assert not found.transient
    assert "deleted and created again" in found.reason
    assert f"(up to offset {COPIED})" in found.reason


def test_a_target_that_somebody_else_filled_is_left_alone(flow: Flow) -> None:
    flow.target.append(flow.target_topic, 4)
    found = flow.refusal()
    assert not found.transient
    assert "holds offsets 0 to 3, which this flow did not write" in found.reason


def test_foreign_records_among_ours_are_counted(flow: Flow) -> None:
    flow.copy()
    flow.target.append(flow.target_topic, 4)
    found = flow.refusal()
    assert not found.transient
    assert "holds 4 record(s) more than this flow wrote (its producer state: 30, log end: 34)" in found.reason


def test_foreign_records_after_ours_are_stepped_over_without_a_state(flow: Flow) -> None:
    """Another epoch of our id replaces our state, and is as foreign as any (R9b)."""
    flow.copy()
    flow.target.append(flow.target_topic, 2, (flow.identity.producer_id, 1, 0))
    flow.target.append(flow.target_topic, 2, (flow.identity.producer_id, 1, 2))
    found = flow.refusal()
    assert not found.transient
    assert "holds 4 record(s) more than this flow wrote (the tail of its log: 30, log end: 34)" in found.reason


def test_our_records_without_a_claim_are_damage(flow: Flow) -> None:
    flow.target.append(flow.target_topic, 10, flow.producer(0))
    found = flow.refusal()
    assert not found.transient
    assert "the segments topic does not know them" in found.reason


def test_rivals_that_claimed_different_records_are_a_conflict(flow: Flow) -> None:
    segment = flow.copy()
    flow.claim(replace(segment, incarnation=2))
    after_the_copy(flow.bearings().position, segment)
    flow.claim(replace(segment, incarnation=3, upstream=5))
    found = flow.refusal()
    assert not found.transient
    assert "rival pumps" in found.reason


def test_another_cluster_in_the_targets_place(flow: Flow) -> None:
    """A rebuilt cluster gives producer ids out again (R12)."""
    flow.copy()
    found = flow.refusal(replace(flow.identity, cluster_id="the one before"))
    assert not found.transient
    assert f"is now {flow.identity.cluster_id}, not the one before" in found.reason


# --- state that expires -------------------------------------------------------------------------------


@pytest.fixture
def forgetful_flow(
    sides: tuple[Side, Side], topic_name: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Flow]:
    """Its target looks for expired producers all the time."""
    with KafkaCluster(
        tmp_path_factory.mktemp("expiring"), properties={"producer.id.expiration.check.interval.ms": "100"}
    ) as cluster:
        target = Side("eu", cluster)
        yield Flow(sides[0], target, topic_name)
        target.close()


def test_the_tail_of_the_log_tells_the_position_when_the_state_has_expired(forgetful_flow: Flow) -> None:
    flow = forgetful_flow
    segment = flow.copy(age_ms=2 * DAY_MS)
    wait_for(lambda: flow.bearings().position.newest_timestamp_ms is None, "the state expires")
    after_the_copy(flow.bearings().position, segment)
    flow.target.delete_records(flow.target_topic, 25)
    after_the_copy(flow.bearings().position, segment)
    flow.target.delete_records(flow.target_topic, COPIED)
    after_the_copy(flow.bearings().position, segment)
    flow.target.append(flow.target_topic, 3)
    assert "none that this flow wrote" in flow.refusal().reason
