"""What was acknowledged is read, also from a leader that has just been elected: its high watermark is behind."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, cast

import pytest

from sparkmirror.kafka.cluster import topic_log
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.entry_batches import entry_batches
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, FetchReply
from sparkmirror.kafka.cluster.list_offsets import ListedOffset
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.topic_partition import TopicPartition

TOPIC = "segments"
ACKNOWLEDGED = 3


def entry(offset: int) -> bytes:
    (batch,) = entry_batches([(b"key", b"%d" % offset)], 1_700_000_000_000, packed=False)
    data = bytearray(batch)
    struct.pack_into(">q", data, 0, offset)
    return bytes(data)


class Cluster:
    """Three acknowledged records, and a leader whose followers have not fetched since it was elected."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.epoch = 1
        self.high_watermark = ACKNOWLEDGED
        self.refusals = 0
        """How many questions for the log's end are still refused."""
        self.asked = 0
        monkeypatch.setattr(topic_log, "list_offsets", self._list)
        monkeypatch.setattr(topic_log, "fetch_once", self._fetch)
        monkeypatch.setattr(topic_log, "_PAUSE_S", 0.0)

    def elect(self, refusals: int) -> None:
        self.epoch += 1
        self.high_watermark = ACKNOWLEDGED - 1
        self.refusals = refusals

    def metadata(self, _: list[str]) -> dict[str, TopicLeaders]:
        return {TOPIC: TopicLeaders(TOPIC, bytes(16), 0, {0: PartitionLeader(1, self.epoch)})}

    def hang_up(self) -> None:
        """There are no connections."""

    def _list(self, *_: object) -> dict[TopicPartition, ListedOffset]:
        """KIP-207: no answer as long as the high watermark is below the epoch's first offset."""
        self.asked += 1
        if self.refusals:
            self.refusals -= 1
            return {(TOPIC, 0): ListedOffset(-1, ErrorCode.OFFSET_NOT_AVAILABLE)}
        self.high_watermark = ACKNOWLEDGED
        return {(TOPIC, 0): ListedOffset(ACKNOWLEDGED, 0)}

    def _fetch(
        self,
        _: ClusterClient,
        __: int,
        offsets: Mapping[TopicPartition, int],
        ___: Mapping[str, bytes],
        ____: FetchBounds,
        *,
        leader_epoch: int,
        last_epoch: int,
    ) -> FetchReply:
        ((_topic, offset),) = offsets.items()
        error = 0 if leader_epoch in (-1, self.epoch) else ErrorCode.FENCED_LEADER_EPOCH
        data = b"".join(entry(at) for at in range(offset, self.high_watermark)) if not error else b""
        part: dict[str, Any] = {"topic": TOPIC, "partition": 0, "asked_offset": offset, "error": error}
        part |= {"high_watermark": self.high_watermark, "last_stable_offset": self.high_watermark}
        part |= {"log_start_offset": 0, "records": memoryview(data), "diverging": None}
        return FetchReply(0, False, iter([FetchedPartition(**part)]))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def values(log: TopicLog, offset: int = 0) -> list[bytes | None]:
    return [found.value for found in log.read(0, offset)[0]]


@pytest.mark.parametrize("known_before", [False, True])
def test_an_acknowledged_record_is_read_from_a_new_leader(cluster: Cluster, known_before: bool) -> None:
    """A claim that is missed here is a position that is wrong: records would be copied twice."""
    log = TopicLog(cast("ClusterClient", cluster), TOPIC)
    if known_before:
        assert values(log) == [b"0", b"1", b"2"]
    cluster.elect(refusals=2)
    assert values(log) == [b"0", b"1", b"2"]


def test_the_end_is_asked_once_for_each_leader(cluster: Cluster) -> None:
    log = TopicLog(cast("ClusterClient", cluster), TOPIC)
    for _ in range(3):
        values(log)
    assert cluster.asked == 1
    cluster.elect(refusals=0)
    values(log)
    assert cluster.asked == 2


def test_a_leader_whose_followers_stay_away_is_no_end(cluster: Cluster) -> None:
    log = TopicLog(cast("ClusterClient", cluster), TOPIC)
    cluster.elect(refusals=99)
    with pytest.raises(LogUnavailable, match=r"error 78"):
        values(log)
