"""Micro-batches planned: also first ones whose end keeps no begin, as on Spark 4.0 and 4.1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from sparkmirror.errors import ClusterUnreachable, ConfigError, RecordsGone
from sparkmirror.kafka.cluster.client import PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, LATEST
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.source import source_logs, stream_plan
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

    def gone(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        return set(partitions) - self.ends.keys()

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


class Cluster:
    """In the place of a cluster: topics with a partition each, which all begin at 0."""

    def __init__(self) -> None:
        self.topics = {"t": 0, "u": 0}
        """Each topic's leader; -1: none."""
        self.ends = {False: 20, True: 10}
        """High watermark and last stable offset."""
        self.at_times = 15

    def client(self, config: Any, role: str) -> Any:
        return SimpleNamespace(config=config, metadata=self.metadata, hang_up=lambda: None)

    def metadata(self, names: Sequence[str]) -> dict[str, TopicLeaders]:
        return {
            name: TopicLeaders(name, b"", 0, {0: PartitionLeader(self.topics[name], 0)})
            if name in self.topics
            else TopicLeaders(name, b"", 3, {})
            for name in names
        }

    def offsets(
        self, client: Any, partitions: Iterable[TopicPartition], at: int, *, read_committed: bool = False
    ) -> Offsets:
        """Leaders tell no offset above the end that the isolation level asked for."""
        end = self.ends[read_committed]
        told = {EARLIEST: 0, LATEST: end}.get(at, self.at_times if self.at_times < end else -1)
        return {each: told for each in partitions if self.topics.get(each[0], -1) >= 0}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(source_logs, "ClusterClient", made.client)
    monkeypatch.setattr(source_logs, "offsets_by_leader", made.offsets)
    monkeypatch.setattr(source_logs, "describe_topics", lambda _: dict.fromkeys(made.topics))
    monkeypatch.setattr(source_logs, "topic_configs", lambda _, names, __: {name: {} for name in names})
    monkeypatch.setattr(source_logs, "_PAUSE_S", 0.0)
    return made


def test_at_read_committed_a_stream_by_time_begins_at_the_last_stable_offset_at_most(cluster: Cluster) -> None:
    """A record of that time behind it is none to be read yet, and none that is gone."""
    given = {"startingTimestamp": "5", "kafka.isolation.level": "read_committed"}
    asked = plan(startingOffsetsByTimestampStrategy="latest", **given)
    start = asked.first()
    assert start == {"t": {"0": 10}}
    end = asked.next_end(start)
    assert asked.ranges(start, end) == []
    cluster.ends[True] = 20
    (later,) = asked.ranges(end, asked.next_end(end))
    assert (later.first, later.end) == (10, 20)
    cluster.ends[True] = 10
    with pytest.raises(ConfigError, match="t-0 has no record to be read since 5 ms"):
        plan(**given).first()


@pytest.mark.parametrize("topic", ["u", "t"])
def test_a_planned_micro_batch_goes_on_without_a_topic_that_is_no_more(cluster: Cluster, topic: str) -> None:
    start, end = {"t": {"0": 0}, "u": {"0": 4}}, {"t": {"0": 10}, "u": {"0": 10}}
    (left,) = cluster.topics.keys() - {topic}
    del cluster.topics[topic]
    (one,) = plan(failOnDataLoss="false").ranges(start, end)
    assert (one.topic, one.end) == (left, 10)
    with pytest.raises(RecordsGone, match=f"{topic}-0 is no more; the stream was at {start[topic]['0']}"):
        plan().ranges(start, end)
    (one,) = plan().ranges({**start, topic: end[topic]}, end)
    assert one.topic == left, "nothing was left to be read there"


def test_a_new_partition_of_a_topic_that_is_no_more_is_lost_from_its_start(cluster: Cluster) -> None:
    del cluster.topics["u"]
    with pytest.raises(RecordsGone, match="u-0 is no more; the stream was at its start"):
        plan().ranges({"t": {"0": 0}}, {"t": {"0": 10}, "u": {"0": 10}})


def test_a_partition_without_a_leader_is_not_lost(cluster: Cluster) -> None:
    cluster.topics["u"] = -1
    with pytest.raises(ClusterUnreachable, match="u-0: its leader isn't known"):
        plan(failOnDataLoss="false").ranges({"u": {"0": 0}}, {"u": {"0": 10}})
