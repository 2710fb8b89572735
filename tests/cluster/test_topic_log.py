"""Entries for several partitions of a small topic: one request for each leader, and none waits for another."""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Mapping
from typing import cast

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from sparkmirror.kafka.cluster import topic_log
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.primitives import (
    INT16,
    INT32,
    INT64,
    NO_TAGS,
    Reader,
    compact_string,
    length,
    request_header,
)
from sparkmirror.kafka.wire.rpc import BrokerUnreachable

TOPIC, CLIENT = "segments", "test"
VERSION = 9
ENTRY = [(b"key", b"value")]


class PlayedCluster:
    """Two leaders that take turns at four partitions; `happened` is what they saw, in order."""

    client_id = CLIENT

    def __init__(self) -> None:
        self.happened: list[tuple[str, int, tuple[int, ...]]] = []
        self.refusals: dict[int, deque[int]] = {}
        """Errors that a partition's next batches are refused with."""
        self.unheard: set[int] = set()
        """Leaders whose next answer is lost."""
        self.silent_about = -1
        """A partition that no answer names."""
        self.leaderless: set[int] = set()
        self.away: set[int] = set()
        """Leaders that nobody can connect to."""
        self.absent_for = 0
        """How often brokers don't know the topic yet."""
        self.looks = 0

    def metadata(self, _: list[str]) -> dict[str, TopicLeaders]:
        self.looks += 1
        if self.looks <= self.absent_for:
            return {TOPIC: TopicLeaders(TOPIC, bytes(16), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {})}
        leaders = {index: -1 if index in self.leaderless else index % 2 for index in range(4)}
        epoch = self.looks
        return {
            TOPIC: TopicLeaders(
                TOPIC, bytes(16), 0, {index: PartitionLeader(leader, epoch) for index, leader in leaders.items()}
            )
        }

    def broker(self, leader: int) -> PlayedConnection:
        if leader in self.away:
            raise BrokerUnreachable("nobody is there")
        return PlayedConnection(self, leader)

    def hang_up(self) -> None:
        """New connections come by themselves."""


class PlayedConnection:
    def __init__(self, cluster: PlayedCluster, leader: int) -> None:
        self._cluster = cluster
        self._leader = leader
        self._partitions: tuple[int, ...] = ()

    def version(self, *_: object) -> int:
        return VERSION

    def send_raw(self, buffers: list[bytes | memoryview]) -> None:
        self._partitions = _partitions(b"".join(buffers))
        assert all(partition % 2 == self._leader for partition in self._partitions)
        self._cluster.happened.append(("sent", self._leader, self._partitions))

    def receive_raw(self) -> memoryview:
        self._cluster.happened.append(("heard", self._leader, self._partitions))
        if self._leader in self._cluster.unheard:
            self._cluster.unheard.discard(self._leader)
            raise BrokerUnreachable("the broker closed the connection")
        refusals = self._cluster.refusals
        return _answer(
            {
                partition: refusals[partition].popleft() if refusals.get(partition) else 0
                for partition in self._partitions
                if partition != self._cluster.silent_about
            }
        )


def _partitions(request: bytes) -> tuple[int, ...]:
    reader = Reader(memoryview(request))
    reader.at = len(request_header(produce.API_KEY, VERSION, 0, CLIENT.encode(), flexible=True)) + 1 + 2 + 4
    assert reader.compact_length() == 1
    assert reader.compact_text() == TOPIC
    found = []
    for _ in range(reader.compact_length()):
        found.append(reader.int32())
        size = reader.compact_length()
        reader.at += size + len(NO_TAGS)
    return tuple(found)


def _answer(errors: Mapping[int, int]) -> memoryview:
    parts = b"".join(
        INT32.pack(partition) + INT16.pack(error) + INT64.pack(7) + INT64.pack(-1) * 2 + b"\x01\x00" + NO_TAGS
        for partition, error in errors.items()
    )
    topic = compact_string(TOPIC) + length(len(errors), flexible=True) + parts + NO_TAGS
    return memoryview(INT32.pack(0) + NO_TAGS + length(1, flexible=True) + topic + INT32.pack(0) + NO_TAGS)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> PlayedCluster:
    monkeypatch.setattr(topic_log, "_PAUSE_S", 0.0)
    return PlayedCluster()


@pytest.fixture
def log(cluster: PlayedCluster) -> TopicLog:
    return TopicLog(cast("ClusterClient", cluster), TOPIC)


def test_each_leader_gets_one_request_and_none_waits_for_another(cluster: PlayedCluster, log: TopicLog) -> None:
    log.append_all({partition: ENTRY for partition in range(4)} | {1: []})
    assert cluster.happened == [
        ("sent", 0, (0, 2)),
        ("sent", 1, (3,)),
        ("heard", 0, (0, 2)),
        ("heard", 1, (3,)),
    ]


def test_nothing_to_append_asks_nobody(cluster: PlayedCluster, log: TopicLog) -> None:
    log.append_all({})
    assert cluster.happened == []


def test_only_what_was_refused_is_sent_again(cluster: PlayedCluster, log: TopicLog) -> None:
    cluster.refusals[2] = deque([ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2)
    log.append_all({partition: ENTRY for partition in range(4)})
    sent = [partitions for what, _, partitions in cluster.happened if what == "sent"]
    assert sent == [(0, 2), (1, 3), (2,), (2,)]


def test_what_no_answer_came_for_is_sent_again(cluster: PlayedCluster, log: TopicLog) -> None:
    cluster.unheard = {1}
    log.append_all({partition: ENTRY for partition in range(4)})
    sent = [partitions for what, _, partitions in cluster.happened if what == "sent"]
    assert sent == [(0, 2), (1, 3), (1, 3)]


def test_a_refusal_for_good_is_told(cluster: PlayedCluster, log: TopicLog) -> None:
    cluster.refusals[3] = deque([ErrorCode.MESSAGE_TOO_LARGE])
    appended = log.append_all({partition: ENTRY for partition in range(4)})
    assert str(appended.failed[3]) == "topic segments: a record was refused (error 10)"
    assert (set(appended.failed), set(appended.places)) == ({3}, {0, 1, 2})
    assert len(cluster.happened) == 4, "nothing is tried again"
    cluster.refusals[3] = deque([ErrorCode.INVALID_TOPIC_EXCEPTION])
    with pytest.raises(LogUnavailable, match="error 17"):
        log.append(3, ENTRY)


def test_what_is_refused_for_good_keeps_nothing_from_being_tried_again(cluster: PlayedCluster, log: TopicLog) -> None:
    cluster.refusals = {1: deque([ErrorCode.MESSAGE_TOO_LARGE]), 3: deque([ErrorCode.NOT_LEADER_OR_FOLLOWER])}
    appended = log.append_all({partition: ENTRY for partition in range(4)})
    assert (set(appended.failed), set(appended.places)) == ({1}, {0, 2, 3})
    sent = [partitions for what, _, partitions in cluster.happened if what == "sent"]
    assert sent == [(0, 2), (1, 3), (3,)]


def test_the_partitions_that_a_leader_or_none_keeps_away_are_told(cluster: PlayedCluster, log: TopicLog) -> None:
    cluster.leaderless = {2, 3}
    assert [log.led_alike(partition) for partition in range(4)] == [{0}, {1}, {2, 3}, {2, 3}]
    cluster.leaderless = set()
    assert log.led_alike(3) == {2, 3}, "as of the last look"
    log.look_again()
    assert log.led_alike(3) == {1, 3}


def test_a_partition_without_a_leader_fails_alone(cluster: PlayedCluster, log: TopicLog) -> None:
    cluster.leaderless = {2}
    appended = log.append_all({partition: ENTRY for partition in range(4)})
    assert str(appended.failed[2]) == "topic segments: partition 2 has no leader now (error 5)"
    assert (set(appended.failed), set(appended.places)) == ({2}, {0, 1, 3})
    assert [partitions for what, _, partitions in cluster.happened if what == "sent"] == [(0,), (1, 3)]


def test_a_partition_without_a_leader_for_a_moment_is_written(
    cluster: PlayedCluster, log: TopicLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a topic that has just been created."""
    cluster.leaderless = {2}
    monkeypatch.setattr(time, "sleep", lambda _: cluster.leaderless.clear())
    assert not log.append_all({partition: ENTRY for partition in range(4)}).failed


def test_a_leader_that_is_away_fails_no_other_leaders_records(cluster: PlayedCluster, log: TopicLog) -> None:
    """The epoch is the leader's when it took the records: later looks tell of later ones."""
    cluster.away = {0}
    appended = log.append_all({partition: ENTRY for partition in range(4)})
    assert (set(appended.failed), set(appended.places)) == ({0, 2}, {1, 3})
    assert {str(error) for error in appended.failed.values()} == {"nobody is there"}
    assert {place.epoch for place in appended.places.values()} == {1}
    assert cluster.looks > 1


def test_nothing_is_appended_behind_a_failure_in_its_partition(cluster: PlayedCluster, log: TopicLog) -> None:
    large = [(b"key-%d" % number, bytes(9000)) for number in range(100)]
    cluster.refusals[0] = deque([ErrorCode.MESSAGE_TOO_LARGE])
    appended = log.append_all({0: large, 1: large})
    assert (set(appended.failed), set(appended.places)) == ({0}, {1})
    sent = [partitions for what, _, partitions in cluster.happened if what == "sent"]
    assert sent == [(0,), (1,), (1,)]


def test_a_partition_that_fails_at_its_second_batch_counts_as_failed(cluster: PlayedCluster, log: TopicLog) -> None:
    large = [(b"key-%d" % number, bytes(9000)) for number in range(100)]
    cluster.refusals[0] = deque([0, ErrorCode.MESSAGE_TOO_LARGE])
    appended = log.append_all({0: large, 1: large})
    assert (set(appended.failed), set(appended.places), set(appended.firsts)) == ({0}, {1}, {1})


def test_leaders_are_reached_though_a_partition_has_none(cluster: PlayedCluster, log: TopicLog) -> None:
    cluster.leaderless, cluster.away = {2}, {-1}
    log.reach()
    assert cluster.looks == 1


def test_a_partition_that_no_answer_names_is_not_taken_for_appended(cluster: PlayedCluster, log: TopicLog) -> None:
    cluster.silent_about = 1
    appended = log.append_all({partition: ENTRY for partition in range(4)})
    assert (set(appended.failed), set(appended.places)) == ({1}, {0, 2, 3})
    assert "lacks a partition" in str(appended.failed[1])


def test_a_partitions_batches_come_in_order(cluster: PlayedCluster, log: TopicLog) -> None:
    """More than a batch holds: the rest follows when the first part is there."""
    large = [(b"key-%d" % number, bytes(9000)) for number in range(100)]
    log.append_all({0: large, 1: ENTRY})
    assert [(what, partitions) for what, _, partitions in cluster.happened] == [
        ("sent", (0,)),
        ("sent", (1,)),
        ("heard", (0,)),
        ("heard", (1,)),
        ("sent", (0,)),
        ("heard", (0,)),
    ]


# --- reading ------------------------------------------------------------------------------------------


class Answers(TopicLog):
    """A log whose leader answers with these bytes, whatever it is asked for."""

    def __init__(self, answer: bytes, high_watermark: int) -> None:
        super().__init__(cast("ClusterClient", PlayedCluster()), TOPIC)
        self._part = FetchedPartition(TOPIC, 0, 0, 0, high_watermark, high_watermark, 0, memoryview(answer), None)

    def _fetch(self, *_: object) -> FetchedPartition:
        return self._part


def batch_at(base: int, records: int, codec: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 30)
    for at in range(records):
        builder.append(at, 1_000, b"key", b"value", [])
    batch = builder.build()
    struct.pack_into(">q", batch, 0, base)
    return bytes(batch)


def test_an_answer_is_read() -> None:
    entries, offset = Answers(batch_at(0, 3) + batch_at(5, 2), 7).read(0, 1)
    assert [entry.offset for entry in entries] == [1, 2, 5, 6]
    assert offset == 7


GZIP = 1
LIES = {
    "a batch twice": (batch_at(0, 3) * 2, "its batch at offset 0 comes after the records up to 2"),
    "batches that overlap": (batch_at(0, 3) + batch_at(2, 3), "its batch at offset 2 comes after the records up to 2"),
    "only earlier batches": (batch_at(0, 1), "an answer has no whole batch from offset 1 on"),
    "a batch that is cut off": (batch_at(1, 3)[:-1], "an answer has no whole batch from offset 1 on"),
    "a wrong CRC": (batch_at(1, 3)[:-1] + b"x", "its batch at offset 1 is corrupt"),
    "a batch without a size": (bytes(100), "a batch of 12 bytes"),
}


@pytest.mark.parametrize("case", LIES)
def test_a_log_that_lies_ends_in_an_error_and_not_in_a_search_without_end(case: str) -> None:
    answer, why = LIES[case]
    with pytest.raises(LogUnavailable, match=why):
        Answers(answer, 1 << 60).read(0, 1)


def test_a_bomb_of_tiny_records_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_log, "_MOST_RECORDS", 900)
    with pytest.raises(LogUnavailable, match="an answer has more than 900 records"):
        Answers(batch_at(0, 1000, GZIP), 1000).read(0, 0)


@pytest.mark.parametrize(("may_be_absent", "looks"), [(False, [5, 5]), (True, [2, 1])])
def test_a_topic_that_is_absent(cluster: PlayedCluster, may_be_absent: bool, looks: list[int]) -> None:
    """One that may be absent costs little; one that was just made is looked for again and again."""
    cluster.absent_for = 1000
    log = TopicLog(cast("ClusterClient", cluster), TOPIC, may_be_absent=may_be_absent)
    for number in looks:
        before = cluster.looks
        with pytest.raises(LogUnavailable):
            assert log.partitions
        assert cluster.looks - before == number
    cluster.absent_for = 0
    assert log.partitions == 4
