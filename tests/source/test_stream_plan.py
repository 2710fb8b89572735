"""Micro-batches planned: also first ones whose end keeps no begin, as on Spark 4.0 and 4.1."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from sparkmirror.errors import RecordsGone
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.source import stream_plan
from sparkmirror.source.read_options import OffsetPlace, ReadOptions, read_options
from sparkmirror.source.source_logs import OffsetRange, Offsets
from sparkmirror.source.stream_plan import StreamPlan


class ModelLogs:
    """In the place of logs at brokers: they begin at 0 and have an end each."""

    def __init__(self, options: ReadOptions) -> None:
        self.ends: Offsets = {("t", 0): 105}

    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(self.ends)

    def placed(self, place: OffsetPlace, partitions: tuple[TopicPartition, ...]) -> Offsets:
        ends = self.ends if place.latest or place.time_ms is not None else dict.fromkeys(partitions, 0)
        return {at: place.offsets.get(at, ends[at]) for at in partitions}

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return dict.fromkeys(partitions, 0)

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return {at: self.ends[at] for at in partitions}

    def range_of(self, at: TopicPartition, first: int, end: int) -> OffsetRange:
        return OffsetRange(topic=at[0], topic_id=b"", partition=at[1], first=first, end=end)


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> ModelLogs:
    made = ModelLogs(ReadOptions(table="records"))
    monkeypatch.setattr(stream_plan, "SourceLogs", lambda _: made)
    return made


def plan(**more: str) -> StreamPlan:
    given = {"kafka.bootstrap.servers": "a:1", "subscribe": "t"}
    return StreamPlan(read_options(given | more, streaming=True))


@pytest.mark.parametrize("place", [{"startingOffsets": "latest"}, {"startingTimestamp": "5"}])
def test_latest_offsets_that_are_asked_for_after_the_end_are_the_end(logs: ModelLogs, place: dict[str, str]) -> None:
    asked = plan(startingOffsetsByTimestampStrategy="latest", **place)
    end = asked.next_end({})
    logs.ends = {("t", 0): 110, ("t", 1): 7}
    assert asked.ranges(asked.first(), end) == []
    (one, new) = asked.ranges(end, asked.next_end(end))
    assert (one.first, one.end, new.first, new.end) == (105, 110, 0, 7)


def test_a_log_that_has_become_shorter_is_told(logs: ModelLogs) -> None:
    asked = plan(startingOffsets="latest")
    start = asked.first()
    end = asked.next_end(start)
    assert asked.ranges(asked.first(), end) == []
    logs.ends = {("t", 0): 100}
    with pytest.raises(RecordsGone, match="t-0 ends at 100, and the stream was at 105"):
        asked.ranges(end, asked.next_end(end))


def test_a_start_above_the_end_is_told(logs: ModelLogs) -> None:
    asked = plan(startingOffsets='{"t":{"0":200}}')
    end = asked.next_end({})
    with pytest.raises(RecordsGone, match="t-0 ends at 105, and the stream was at 200"):
        asked.ranges(asked.first(), end)


def test_an_idle_stream_keeps_the_end_as_it_is(logs: ModelLogs) -> None:
    """Spark compares texts: another one would be a micro-batch without records."""
    asked = plan(startingOffsets="earliest")
    end = asked.next_end(asked.first())
    assert end == {"t": {"0": 105}, "from t": {"0": 0}}
    assert asked.ranges(end, end) == []
    assert asked.next_end(end) == end
    logs.ends = {("t", 0): 106}
    assert asked.next_end(end) == {"t": {"0": 106}}
