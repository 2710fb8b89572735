"""Logs of a query: partitions, ends, and the offsets asked for. Blocking."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from sparkmirror.errors import ClusterTrouble, ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.epoch_history import EpochHistories
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.leader_epochs import EpochStart
from sparkmirror.kafka.cluster.list_offsets import DEBUG_CONSUMER, EARLIEST, LATEST, list_offsets, offsets_by_leader
from sparkmirror.kafka.cluster.topic_configs import CLEANUP_POLICY, topic_configs
from sparkmirror.kafka.cluster.topic_descriptions import describe_topics
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.policy.java_regex import compile_java
from sparkmirror.source.option_values import refused
from sparkmirror.source.read_options import OffsetPlace, ReadOptions

Offsets = dict[TopicPartition, int]
Answer = TypeVar("Answer")

ROLE = "sparkmirror-source"
_TRIES = 5
_PAUSE_S = 0.5
_MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """Offsets [first, end) of a partition, for one task."""

    topic: str
    topic_id: bytes
    partition: int
    first: int
    end: int
    compacted: bool = False
    epochs: tuple[EpochStart, ...] = ()
    """The records' leader epochs, as far as known: records of others are not read."""


class NoLeader(ClusterTrouble):
    """A partition without a leader now."""


class SourceLogs:
    """A query's logs, asked over connections that are kept. For one thread."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._client = ClusterClient(options.source, ROLE)
        self._topics: dict[str, TopicLeaders] = {}
        self._compacted: dict[str, bool] = {}
        self.histories = EpochHistories(self._client)

    def partitions(self) -> tuple[TopicPartition, ...]:
        """Return the chosen partitions that there are now, in order.

        Raises `ConfigError` for a named topic that is missing, and `ClusterUnreachable`.
        """
        choice = self._options.choice
        names = sorted({*choice.topics, *(topic for topic, _ in choice.partitions)})
        if choice.pattern:
            matches = compile_java(choice.pattern).fullmatch
            names = sorted(name for name in self._asked(lambda: describe_topics(self._client)) if matches(name))
        self._topics = self._asked(lambda: self._described(names))
        there = tuple((name, partition) for name in names for partition in sorted(self._topics[name].partitions))
        if not choice.partitions:
            return there
        for topic, partition in choice.partitions:
            if (topic, partition) not in there:
                raise refused(choice.key, f"{topic} has no partition {partition}")
        return tuple(sorted(set(choice.partitions)))

    def _described(self, names: list[str]) -> dict[str, TopicLeaders]:
        topics = self._client.metadata(names) if names else {}
        for name, topic in topics.items():
            if topic.error in _MISSING:
                alias = self._client.config.alias
                raise refused(self._options.choice.key, f"cluster {alias} has no topic {name}, or doesn't show it")
            if topic.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise refused(self._options.choice.key, f"{name} may not be read: grant READ and DESCRIBE on it")
            if topic.error:
                raise NoLeader(f"topic {name}: error {topic.error}")
        return topics

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return where the logs start."""
        return self._listed(tuple(partitions), EARLIEST)

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return where the logs end: the high watermarks, or last stable offsets."""
        return self._listed(tuple(partitions), LATEST)

    def bounds(self, partitions: Iterable[TopicPartition]) -> tuple[Offsets, Offsets]:
        """Return where the logs start and end, as far as leaders tell."""
        wanted = tuple(partitions)
        committed = self._options.read_committed

        def ask() -> tuple[Offsets, Offsets]:
            starts = offsets_by_leader(self._client, wanted, EARLIEST)
            return starts, offsets_by_leader(self._client, starts, LATEST, read_committed=committed)

        return self._asked(ask) if wanted else ({}, {})

    def topics(self, names: Iterable[str]) -> Mapping[str, TopicLeaders]:
        """Return topics that are there now; later ranges are in these topics."""
        wanted = sorted(names)
        there = self._asked(lambda: self._client.metadata(wanted)) if wanted else {}
        self._topics = {name: topic for name, topic in there.items() if not topic.error}
        return dict(self._topics)

    def gone(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Return the partitions that are no more; ranges stay in topics of earlier looks."""
        wanted = set(partitions)
        names = sorted({topic for topic, _ in wanted})
        topics = self._asked(lambda: self._client.metadata(names)) if names else {}
        return {at for at in wanted if _is_gone(topics[at[0]], at[1])}

    def log_end(self, at: TopicPartition) -> int:
        """Return where the leader's log ends, perhaps above the high watermark."""
        leader = self._topics[at[0]].partitions[at[1]].leader
        listed = list_offsets(self._client, leader, {at[0]: [at[1]]}, LATEST, replica_id=DEBUG_CONSUMER)[at]
        if listed.error:
            raise NoLeader(f"{at[0]}-{at[1]}: its leader can't tell where its log ends: {error_name(listed.error)}")
        return listed.offset

    def _listed(self, partitions: tuple[TopicPartition, ...], at: int) -> Offsets:
        def ask() -> Offsets:
            committed = self._options.read_committed and at != EARLIEST
            offsets = offsets_by_leader(self._client, partitions, at, read_committed=committed)
            if missing := sorted(set(partitions) - set(offsets)):
                topic, partition = missing[0]
                raise NoLeader(f"{topic}-{partition}: its leader isn't known, or doesn't let sparkmirror in")
            return offsets

        return self._asked(ask) if partitions else {}

    def placed(self, place: OffsetPlace, partitions: tuple[TopicPartition, ...]) -> Offsets:
        """Return the offset of each partition at a place. Raises `ConfigError`."""
        times = dict.fromkeys(partitions, place.time_ms) if place.time_ms is not None else place.times
        if times:
            return self._at_times(place, partitions, times)
        if not place.offsets:
            return self.latest(partitions) if place.latest else self.earliest(partitions)
        _see_that_all_are_there(place, partitions, place.offsets)
        earliest = self.earliest(at for at in partitions if place.offsets[at] == EARLIEST)
        latest = self.latest(at for at in partitions if place.offsets[at] == LATEST)
        return {at: earliest.get(at, latest.get(at, place.offsets[at])) for at in partitions}

    def _at_times(
        self, place: OffsetPlace, partitions: tuple[TopicPartition, ...], times: Mapping[TopicPartition, int | None]
    ) -> Offsets:
        _see_that_all_are_there(place, partitions, times)
        alike: dict[int, list[TopicPartition]] = defaultdict(list)
        for at in partitions:
            alike[times[at] or 0].append(at)
        offsets: Offsets = {}
        for time_ms, group in alike.items():
            offsets |= self._listed(tuple(group), time_ms)
        later = [at for at in partitions if offsets[at] < 0]
        if later and not place.none_is_latest:
            topic, partition = later[0]
            raise refused(
                place.key,
                f"{topic}-{partition} has no record to be read since {times[later[0]]} ms; with"
                " startingOffsetsByTimestampStrategy = latest such partitions begin at their end",
            )
        return offsets | self.latest(later)

    def range_of(self, at: TopicPartition, first: int, end: int, epochs: tuple[EpochStart, ...] = ()) -> OffsetRange:
        """Return a range of a partition; the topic's id is that of the last look."""
        topic, partition = at
        if topic not in self._topics:
            self._topics |= self._asked(lambda: self._described([topic]))
        if topic not in self._compacted:
            self._compacted[topic] = self._asked(lambda: self._is_compacted(topic))
        return OffsetRange(
            topic=topic,
            topic_id=self._topics[topic].topic_id,
            partition=partition,
            first=first,
            end=end,
            compacted=self._compacted[topic],
            epochs=epochs,
        )

    def _is_compacted(self, topic: str) -> bool:
        values = topic_configs(self._client, [topic], [CLEANUP_POLICY])[topic]
        return "compact" in values.get(CLEANUP_POLICY, "")

    def _asked(self, question: Callable[[], Answer]) -> Answer:
        """Ask again after a trouble, for some seconds."""
        for _ in range(_TRIES - 1):
            try:
                return question()
            except ConnectionError:
                self._client.hang_up()
                time.sleep(_PAUSE_S)
        try:
            return question()
        except ConnectionError as error:
            raise ClusterUnreachable(f"cluster {self._client.config.alias}: {error}") from error

    def close(self) -> None:
        self._client.close()


def _is_gone(topic: TopicLeaders, partition: int) -> bool:
    return partition not in topic.partitions if not topic.error else topic.error in _MISSING


def _see_that_all_are_there(
    place: OffsetPlace, partitions: tuple[TopicPartition, ...], given: Mapping[TopicPartition, object]
) -> None:
    missing, more = sorted(set(partitions) - set(given)), sorted(set(given) - set(partitions))
    for (topic, partition), what in (*((at, "lacks") for at in missing), *((at, "has") for at in more)):
        why = ", which the query reads" if what == "lacks" else ", which the query doesn't read"
        raise refused(place.key, f"{what} {topic}-{partition}{why}: name each partition")
