"""The search of a log for a batch's records, in logs with gaps that real brokers only have after compaction."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import RowsInDoubt
from sparkmirror.kafka.cluster.fetch_once import FetchReply
from sparkmirror.kafka.cluster.list_offsets import DEBUG_CONSUMER, EARLIEST, LATEST
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.sink import read_back
from sparkmirror.sink.agreement import MicroBatch
from sparkmirror.sink.order import AppendOrder
from sparkmirror.sink.read_back import BatchProducer, LeaderPlace, last_sequence, search_from

PLACE = LeaderPlace("t", 0, b"\1" * 16, 1)
WRITER = BatchProducer(77, 3)
EARLIER, OTHER = BatchProducer(77, 2), BatchProducer(5, 0)
"""The query's micro-batch before, and a writer that is not the query."""
BY_TIME = 7
"""Offset of the first record that is young enough."""
CLIENT: Any = SimpleNamespace(config=SimpleNamespace(alias="B"))


def batch(offset: int, records: int, producer: BatchProducer, sequence: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, *producer, sequence, 1 << 20)
    for delta in range(records):
        builder.append(delta, 1, None, b"v", [])
    made = bytearray(builder.build())
    made[:8] = offset.to_bytes(8, "big")
    return bytes(made)


class PlayedLog:
    """A leader's log, which answers the search; its high watermark grows by one with each question."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *batches: bytes, end: int, lacking: int = 0) -> None:
        self.batches, self.end, self.high_watermark = batches, end, end - lacking
        monkeypatch.setattr(read_back, "list_offsets", self._list_offsets)
        monkeypatch.setattr(read_back, "fetch_once", self._fetch)

    def _list_offsets(self, _: object, __: int, ___: object, which: int, *, replica_id: int) -> Mapping[Any, Any]:
        self.high_watermark = min(self.end, self.high_watermark + 1)
        latest = self.end if replica_id == DEBUG_CONSUMER else self.high_watermark
        return {("t", 0): SimpleNamespace(error=0, offset={EARLIEST: 0, LATEST: latest}.get(which, BY_TIME))}

    def _fetch(self, _: object, __: int, offsets: Mapping[TopicPartition, int], *___: object) -> FetchReply:
        (at,) = offsets.values()
        left = [each for each in self.batches if int.from_bytes(each[:8], "big") + self._records(each) > at]
        part = FetchedPartition("t", 0, at, 0, self.end, self.end, 0, memoryview(b"".join(left)), None)
        return FetchReply(0, throttled=False, parts=iter([part]))

    @staticmethod
    def _records(of: bytes) -> int:
        return int.from_bytes(of[57:61], "big")


@pytest.mark.parametrize(
    ("batches", "last"),
    [
        ([batch(0, 2, OTHER), batch(6, 4, WRITER, 3)], 6),
        ([batch(4, 2, OTHER), batch(6, 4, EARLIER)], -1),
        ([batch(0, 6, OTHER), batch(6, 4, OTHER)], -1),
    ],
)
def test_a_gap_before_the_newest_of_the_query_is_no_doubt(
    batches: list[bytes], last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    PlayedLog(monkeypatch, *batches, end=10)
    assert last_sequence(CLIENT, PLACE, WRITER, 0, is_whole=True) == last


@pytest.mark.parametrize("newest", [WRITER, EARLIER, OTHER])
def test_a_gap_behind_the_newest_of_the_query_is_in_doubt(
    newest: BatchProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    PlayedLog(monkeypatch, batch(0, 2, newest), batch(6, 4, OTHER), end=10)
    with pytest.raises(RowsInDoubt, match=r"^t-0: records from offset 0 on are deleted, or compacted away"):
        last_sequence(CLIENT, PLACE, WRITER, 0, is_whole=True)


def test_records_are_read_back_once_the_replicas_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    PlayedLog(monkeypatch, batch(0, 4, WRITER), batch(4, 6, WRITER, 4), end=10, lacking=8)
    found = read_back.read_back(CLIENT, PLACE, WRITER, 0, 9, 0)
    assert (found.records, found.first_offset, found.last_offset) == (10, 0, 9)


@pytest.mark.parametrize(
    ("begins", "last_offset", "where"),
    [({("t", 0): 4}, -1, (4, True)), ({("t", 0): 4}, 8, (9, True)), (None, 8, (9, True)), (None, -1, (BY_TIME, False))],
)
def test_the_search_begins_behind_what_is_known(
    begins: dict[TopicPartition, int] | None, last_offset: int, where: tuple[int, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    PlayedLog(monkeypatch, end=0)
    config = ClusterConfig(alias="B", bootstrap_servers=("b:1",))
    order = AppendOrder(config, MicroBatch("q", 3), 77, Codec(0), "t", first_attempt_ms=1 << 40, begins=begins)
    assert search_from(CLIENT, PLACE, order, last_offset) == where
