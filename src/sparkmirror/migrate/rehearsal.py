"""Rehearsal of consumer groups' moves: next records compared at both clusters.

The records at the source from a group's commit on must equal the records at the target from the translated position
on. A rehearsal only reads: no group is joined, and no offset is set. A group that reads ahead of the copy is no
failure: the partition is looked at again until the time is over.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sparkmirror.config import FlowConfig
from sparkmirror.exact.maps.partition_map import NOTHING_YET
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups
from sparkmirror.kafka.cluster.topic_configs import describe_topic_configs
from sparkmirror.kafka.wire.records import RecordChange
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.migrate.empty_partitions import first_places
from sparkmirror.migrate.sample_comparison import SampleComparison, SampleRecord, compare, compare_compacted
from sparkmirror.migrate.sample_reader import SampleReader, Samples
from sparkmirror.mirror.sync.application_translator import NOT_YET, Stored, Translation
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.mirror.sync.turn_translator import FlowTranslator, translator_of
from sparkmirror.pump.transforming import transform_of

RECORDS, PATIENCE_S = 20, 30.0
"""Records for each group and partition, and longest wait for the copy in seconds."""
_PAUSE_S = 0.5
_CLEANUP = "cleanup.policy"


class Rehearsed(StrEnum):
    """Result for one group in one partition."""

    EQUAL = "equal"
    LAG = "lag"
    """Equal as far as copied: the group is ahead of the copy."""
    DIFFERS = "differs"
    UNKNOWN = "unknown"
    """The position is not known, or a side can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRehearsal:
    """One group's move in one partition."""

    group: str
    topic: str
    partition: int
    committed: int
    """The group's committed offset at the source."""
    copy: str = ""
    """The topic's name at the target."""
    position: int | None = None
    """Offset at the target where the group would continue."""
    comparison: SampleComparison = field(default_factory=SampleComparison)
    reason: str = ""
    """Reason for `lag` without a position, and for `unknown`."""
    waits: bool = False
    """True if the position is known once more is copied."""
    final: bool = False
    """True if another look can't change the result."""

    @property
    def result(self) -> Rehearsed:
        """Result in one word."""
        if self.comparison.differs is not None:
            return Rehearsed.DIFFERS
        if self.waits or self.comparison.lag:
            return Rehearsed.LAG
        return Rehearsed.UNKNOWN if self.reason else Rehearsed.EQUAL

    @property
    def may_change(self) -> bool:
        """True if another look may give another result."""
        return self.result in (Rehearsed.LAG, Rehearsed.UNKNOWN) and not self.final


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """Results for some groups."""

    partitions: tuple[PartitionRehearsal, ...]
    refused: Mapping[str, str]
    """Groups whose commits can't be read, with the reason."""
    not_copied: Mapping[str, tuple[str, ...]]
    """Topics with commits that the flow does not copy, by group."""

    @property
    def equal(self) -> int:
        """Number of equal records."""
        return sum(each.comparison.equal for each in self.partitions)

    def of(self, result: Rehearsed) -> list[PartitionRehearsal]:
        """Return the partitions with this result."""
        return [each for each in self.partitions if each.result is result]


def rehearse(
    flow: FlowConfig, groups: Iterable[str], records: int = RECORDS, *, patience_s: float = PATIENCE_S
) -> Rehearsal:
    """Compare the next records of each group at both clusters.

    Raises `ClusterUnreachable` if a cluster can't be asked at all, and `ConfigError`.
    """
    with ExitStack() as stack:
        source, target = (
            stack.enter_context(closing(ClusterClient(cluster, f"{flow.name}|sparkmirror-rehearsal")))
            for cluster in (flow.source, flow.target)
        )
        translator: FlowTranslator = translator_of(flow)
        stack.enter_context(closing(translator))
        return _Run(flow, source, target, translator, records).run(list(groups), patience_s)


class _Run:
    """One rehearsal, with the samples read at the source."""

    def __init__(
        self,
        flow: FlowConfig,
        source: ClusterClient,
        target: ClusterClient,
        translator: FlowTranslator,
        records: int,
    ) -> None:
        self._flow = flow
        self._rules = topic_rules(flow)
        self._source, self._target = source, target
        self._translator = translator
        self._records = records
        self._samples: dict[tuple[str, TopicPartition], list[SampleRecord]] = {}
        self._compacted: dict[str, bool] = {}
        self._source_reader = SampleReader(
            source, read_committed=flow.fetch.isolation_level == "read_committed", change=self._change
        )
        self._target_reader = SampleReader(target)

    def run(self, groups: Sequence[str], patience_s: float) -> Rehearsal:
        fetched = Groups(self._source).committed(groups)
        left_out: dict[str, set[str]] = defaultdict(set)
        due: list[PartitionRehearsal] = []
        for group, offsets in sorted(fetched.offsets.items()):
            for (topic, partition), committed in sorted(offsets.items()):
                if self._rules.wanted(topic):
                    due.append(
                        PartitionRehearsal(group=group, topic=topic, partition=partition, committed=committed.offset)
                    )
                elif self._rules.policy.topic_source(topic) != self._flow.target.alias:
                    left_out[group].add(topic)  # a copy of the target's is read on there, by its own name
        done: list[PartitionRehearsal] = []
        deadline = time.monotonic() + patience_s
        while due:
            looked = self._look(due)
            late = time.monotonic() + _PAUSE_S > deadline
            due = [each for each in looked if each.may_change and not late]
            done += [each for each in looked if late or not each.may_change]
            if due:
                time.sleep(_PAUSE_S)
        return Rehearsal(
            partitions=tuple(sorted(done, key=lambda each: (each.group, each.topic, each.partition))),
            refused=fetched.refused,
            not_copied={group: tuple(sorted(topics)) for group, topics in left_out.items()},
        )

    def _look(self, due: Sequence[PartitionRehearsal]) -> list[PartitionRehearsal]:
        """Look once at each partition of each group."""
        stored = [Stored(each.topic, each.partition, each.committed) for each in due]
        placed = [
            _placed(each, translation)
            for each, translation in zip(due, self._translator.translate_each(stored), strict=True)
        ]
        placed = self._at_first_places(placed)
        self._see_compaction(placed)
        looked: list[PartitionRehearsal] = []
        by_group: dict[str, list[PartitionRehearsal]] = defaultdict(list)
        for each in placed:
            by_group[each.group].append(each)
        for group, its in by_group.items():
            looked += self._look_at(group, its)
        return looked

    def _at_first_places(self, placed: Sequence[PartitionRehearsal]) -> list[PartitionRehearsal]:
        """Place groups in partitions that have no record to copy."""
        copies = {
            (each.topic, each.partition): (each.copy, each.partition)
            for each in placed
            if each.position is None and each.reason == NOTHING_YET.reason
        }
        places = first_places(self._source, self._target, copies)
        return [
            replace(each, position=places[each.topic, each.partition], reason="", waits=False)
            if (each.topic, each.partition) in copies and (each.topic, each.partition) in places
            else each
            for each in placed
        ]

    def _see_compaction(self, placed: Sequence[PartitionRehearsal]) -> None:
        """Learn which topics are compacted, at either cluster."""
        new = {each.topic: each.copy for each in placed if each.topic not in self._compacted}
        here, there = _compacted(self._source, new), _compacted(self._target, filter(None, new.values()))
        self._compacted |= {topic: topic in here or copy in there for topic, copy in new.items() if copy}

    def _look_at(self, group: str, its: Sequence[PartitionRehearsal]) -> list[PartitionRehearsal]:
        """Read and compare one group's partitions: a fetch asks a leader for all."""
        unread = {
            (each.topic, each.partition): each.committed
            for each in its
            if (group, (each.topic, each.partition)) not in self._samples
        }
        here = self._source_reader.read(unread, dict.fromkeys(unread, self._records))
        self._samples |= {(group, at): sample for at, sample in here.samples.items()}
        wanted, counts = {}, {}
        for each in its:
            sample = self._samples.get((group, (each.topic, each.partition)))
            if sample is not None and each.position is not None:
                wanted[each.copy, each.partition] = each.position
                counts[each.copy, each.partition] = len(sample)
        there = self._target_reader.read(wanted, counts)
        return [self._judged(each, here, there) for each in its]

    def _judged(self, each: PartitionRehearsal, here: Samples, there: Samples) -> PartitionRehearsal:
        at, copy = (each.topic, each.partition), (each.copy, each.partition)
        sample = self._samples.get((each.group, at))
        if sample is None:
            return replace(each, reason=here.reasons[at], final=at in here.deleted, waits=False)
        if each.position is None:
            return replace(each, comparison=SampleComparison(lag=len(sample) if each.waits else 0))
        if copy in there.reasons:
            return replace(each, reason=there.reasons[copy], final=copy in there.deleted)
        theirs = there.samples[copy]
        if not self._compacted.get(each.topic):
            return replace(each, comparison=compare(sample, theirs))
        places = self._translator.translate_each(
            [Stored(each.topic, each.partition, record.offset) for record in sample]
        )
        return replace(each, comparison=compare_compacted(sample, [place.offset for place in places], theirs))

    def _change(self, at: TopicPartition) -> RecordChange | None:
        if self._rules.is_heartbeats(at[0]):
            return None
        copy = self._rules.remote_name(at[0])
        return transform_of(self._flow.connect_transforms, PartitionPair(at[0], copy, at[1]))


def _placed(each: PartitionRehearsal, translation: Translation) -> PartitionRehearsal:
    waits = translation.offset is None and (
        translation.reason.startswith(NOT_YET) or translation.reason == NOTHING_YET.reason
    )
    return replace(each, copy=translation.topic, position=translation.offset, reason=translation.reason, waits=waits)


def _compacted(client: ClusterClient, topics: Iterable[str]) -> frozenset[str]:
    """Return the compacted topics; a topic with unreadable settings is left out."""
    described = describe_topic_configs(client, topics, [_CLEANUP])
    return frozenset(
        topic for topic, entries in described.items() if any("compact" in (entry.value or "") for entry in entries)
    )
