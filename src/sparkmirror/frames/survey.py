"""The driver's questions to both clusters before it plans. Blocking.

The answers are topics, offsets, sizes and claims.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.exact.durable.known_topics import KnownTopic, TopicMemory
from sparkmirror.exact.durable.loss_kinds import LossKind, LossOutcome
from sparkmirror.exact.durable.losses import LossLedger, losses_topic
from sparkmirror.frames.claims import CopyMap, FlowClaims
from sparkmirror.frames.listed_offsets import ROLE, Offsets, by_leader, by_topic, listed, reads_transactions
from sparkmirror.frames.ranges import (
    ANOTHERS,
    EARLIER,
    MOVED,
    LogPlan,
    PartitionPlan,
    Window,
    copied_twice,
    cut,
    extent,
)
from sparkmirror.frames.stream_comparison import MOST_UNMATCHED
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, LATEST
from sparkmirror.kafka.cluster.log_sizes import log_sizes
from sparkmirror.kafka.cluster.topic_configs import ConfigEntry
from sparkmirror.kafka.cluster.topic_descriptions import PartitionDescription, TopicDescription
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_ids import same_topic
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine.queried_topics import QueriedTopics
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.pump.messages.control import ControlState, control_topic

_CONNECT_S = 10.0
_GUESSED_BYTES_PER_OFFSET = 500.0
_DAY_MS = 86_400_000

ABSENT = "the target has no such partition yet"

_ALL = Window()


class Due(NamedTuple):
    """Source offsets [first, end) not copied when the target ended at `downstream`."""

    first: int
    end: int
    downstream: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Topics and offsets that the user wants compared."""

    topics: Callable[[str], bool]
    """Filter on source topic names."""
    offsets: Window = _ALL
    from_ms: int | None = None
    to_ms: int | None = None
    due: Mapping[TopicPartition, Due] | None = None
    """Source partitions' parts that an earlier plan left out; no more is compared."""

    @property
    def bounded(self) -> bool:
        """True if each partition is wanted only in part."""
        return self.offsets != _ALL or self.from_ms is not None or self.to_ms is not None


class FlowSurvey:
    """One flow's planner; a context manager."""

    def __init__(self, flow: FlowConfig, scope: Scope) -> None:
        self._flow = flow
        self._scope = scope
        self._source = ClusterClient(flow.source, ROLE)
        self._target = ClusterClient(flow.target, ROLE)
        self._read_committed = flow.fetch.isolation_level == "read_committed"

    def __enter__(self) -> FlowSurvey:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._source.close()
        self._target.close()

    def plan(self, first_range: int) -> list[PartitionPlan]:
        """Return a plan for each partition that the flow copies.

        Ranges are numbered from `first_range` on.
        """
        timeout_s = min(self._flow.admin_timeout_ms / 1000, _CONNECT_S)
        with (
            ClusterAdmin.connect(self._flow.source, ROLE, timeout_s) as source,
            ClusterAdmin.connect(self._flow.target, ROLE, timeout_s) as target,
        ):
            rules = topic_rules(self._flow)
            queried = QueriedTopics(self._flow.transform_queries, rules.is_heartbeats)
            names = {
                name: rules.remote_name(name)
                for name in sorted(source.topics())
                if rules.wanted(name) and self._scope.topics(name) and not queried.query_of(name)
            }
            here, there = source.topics(names), target.topics(names.values())
            configs = source.topic_configs(here), target.topic_configs(there)
        try:
            self._see_that_they_may_be_read(names.values())
            return self._plan(names, here, there, *configs, first_range)
        except ConnectionError as error:
            raise ClusterUnreachable(f"flow {self._flow.name}: {error}") from error

    def _see_that_they_may_be_read(self, targets: Iterable[str]) -> None:
        """Raise `ClusterUnreachable` if the principal may not describe a topic.

        Such a topic would look missing, and therefore without differences.
        """
        for name, topic in self._target.metadata(targets).items():
            if topic.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise ClusterUnreachable(
                    f"flow {self._flow.name}: cluster {self._flow.target.alias} does not let sparkmirror read {name}, "
                    "so it can't be compared: grant sparkmirror's principal READ and DESCRIBE on it"
                )

    def _plan(
        self,
        names: Mapping[str, str],
        here: Mapping[str, TopicDescription],
        there: Mapping[str, TopicDescription],
        source_configs: Mapping[str, tuple[ConfigEntry, ...]],
        target_configs: Mapping[str, tuple[ConfigEntry, ...]],
        first_range: int,
    ) -> list[PartitionPlan]:
        pairs = [
            ((name, part.partition), (names[name], part.partition))
            for name, topic in here.items()
            for part in topic.partitions
        ]
        if self._scope.due is not None:
            pairs = [pair for pair in pairs if pair[0] in self._scope.due]
        ours = [source for source, _ in pairs]
        # Records at the source by now are due at the target; later records come during the survey.
        began = listed(self._source, ours, LATEST, isolation_level=int(self._read_committed))
        copied_to = {
            theirs for _, theirs in pairs if any(p.partition == theirs[1] for p in _partitions(there, theirs[0]))
        }
        # Target before source: records at the target were at the source by then.
        target_ends = listed(self._target, copied_to, LATEST, isolation_level=int(reads_transactions(self._flow)))
        target_starts = listed(self._target, copied_to, EARLIEST)
        maps, undecided = self._maps(there, target_starts, target_ends)
        source_starts = listed(self._source, ours, EARLIEST)
        source_ends = listed(self._source, ours, LATEST, isolation_level=int(self._read_committed))
        windows = self._without_moved(self._windows(ours), here, there)
        sizes = self._sizes(ours)
        plans: list[PartitionPlan] = []
        for source, target in pairs:
            log = _log(here[source[0]], source_starts[source], source_ends[source], source_configs.get(source[0], ()))
            if target not in copied_to:
                topic_id = there[target[0]].topic_id.hex() if target[0] in there else ""
                absent = LogPlan(topic=target[0], topic_id=topic_id, start=0, end=0)
                plans.append(self._uncopied(source[1], log, absent, windows[source], began[source], ABSENT))
                continue
            configs = target_configs.get(target[0], ())
            copy = _log(there[target[0]], target_starts[target], target_ends[target], configs)
            known = maps.get(target)
            if known is None and copy.start == copy.end:
                note = "the target partition is empty"
                plans.append(self._uncopied(source[1], log, copy, windows[source], began[source], note))
                continue
            if known is not None and not same_topic(known.source_topic_id, here[source[0]].topic_id):
                note = f"the source topic was created again; of the new one nothing was copied yet to {target[0]}"
                plans.append(self._uncopied(source[1], log, copy, windows[source], began[source], note))
                continue
            per_offset = sizes.get(source, 0) / max(log.end - log.start, 1) or _GUESSED_BYTES_PER_OFFSET
            unread = [
                f"the settings of {topic} on cluster {cluster.alias} can't be read, so it is taken for one that is not "
                "compacted and not stamped by brokers: grant sparkmirror's principal DESCRIBE_CONFIGS on it"
                for cluster, topic, read in (
                    (self._flow.source, source[0], source_configs),
                    (self._flow.target, target[0], target_configs),
                )
                if topic not in read
            ]
            copied = known or undecided.get(target)
            window, end = windows[source], began[source]
            plans.append(
                self._partition(source[1], log, copy, configs, copied, window, end, per_offset, first_range, unread)
            )
            first_range += len(plans[-1].ranges)
        return self._without_due_deletions(plans, source_configs)

    def _without_due_deletions(
        self, plans: Sequence[PartitionPlan], source_configs: Mapping[str, tuple[ConfigEntry, ...]]
    ) -> list[PartitionPlan]:
        """Return the plans without deletions of records that are due at the source, too.

        Both sides delete whole segments, at their own times. So a record that is older than the source's retention may
        be gone on either side.
        """
        by_retention: dict[int, list[TopicPartition]] = defaultdict(list)
        for plan in plans:
            kept_ms = _kept_ms(source_configs.get(plan.source.topic, ()))
            if plan.deleted[0] < plan.deleted[1] and kept_ms >= 0:
                by_retention[kept_ms].append((plan.source.topic, plan.partition))
        now_ms = int(time.time() * 1000)
        due: Offsets = {}
        for kept_ms, partitions in by_retention.items():
            due |= listed(self._source, partitions, max(now_ms - kept_ms, 0))
        return [plan.deleted_from(due.get((plan.source.topic, plan.partition), 0)) for plan in plans]

    def _partition(
        self,
        partition: int,
        source: LogPlan,
        target: LogPlan,
        target_configs: Iterable[ConfigEntry],
        known: CopyMap | str | None,
        window: Window,
        began: int,
        bytes_per_offset: float,
        first_range: int,
        unread: Sequence[str],
    ) -> PartitionPlan:
        notes = [*unread]
        copied = known if isinstance(known, CopyMap) else None
        offsets = copied.offsets if copied else None
        if offsets is None:
            why = f"its offset map is not known now ({known})" if known else "it was not copied by sparkmirror"
            if self._scope.bounded:
                raise ConfigError(
                    f"{target.topic}-{partition}: {why}, so nothing tells which of its offsets belong to a part of the "
                    "source: leave the range out",
                    origin=f"flow {self._flow.name}",
                )
            notes.append(f"{why}: compared by content alone, as one range")
        taken_over, others = (copied.taken_over, copied.others) if copied else (False, ())
        compared = extent(source, target, offsets, window, began=began, taken_over=taken_over, others=others)
        if self._scope.due is not None:
            compared = compared.behind(self._scope.due[source.topic, partition].downstream)
        stamped = _value(target_configs, "message.timestamp.type") == "LogAppendTime"
        if stamped:
            notes.append("timestamps are not compared: the target stamps records itself (LogAppendTime)")
        again = copied_twice(target, offsets, window) if offsets is not None else []
        twice = sum(repeat.records for repeat in again)
        moved = sum(gap.end - gap.first for gap in compared.theirs)
        not_compared = {EARLIER: max(compared.former - twice, 0), ANOTHERS: compared.others, MOVED: moved}
        if again:
            first = again[0]
            notes.append(
                f"{twice} records were copied again: source offset {first.upstream} and the records after it lie at "
                f"target offset {first.first} and at {first.again}"
            )
        # The opposite side may have a record at each offset where a cleaner has left few.
        most = MOST_UNMATCHED if source.compacted or target.compacted else None
        ranges = cut(compared, offsets, bytes_per_offset, first_range, most_offsets=most)
        if offsets is not None:
            offsets.close()
        return PartitionPlan(
            flow=self._flow.name,
            partition=partition,
            source=source,
            target=target,
            isolation="read_committed" if self._read_committed else "read_uncommitted",
            timestamps=not stamped,
            bytes_per_offset=bytes_per_offset,
            ranges=tuple(ranges),
            due=compared.due,
            expired=compared.expired,
            deleted=compared.deleted,
            twice=twice,
            began=began if offsets is None else None,
            not_compared={reason: count for reason, count in not_compared.items() if count},
            notes=tuple(notes),
        )

    def _uncopied(
        self, partition: int, source: LogPlan, target: LogPlan, window: Window, began: int, note: str
    ) -> PartitionPlan:
        first, end = extent(source, target, None, window).upstream
        known = self._remembered.get(target.topic)
        gone = known is not None and not (
            target.topic_id and same_topic(bytes.fromhex(known.target_topic_id), bytes.fromhex(target.topic_id))
        )
        if gone:
            note = "the target topic was deleted since it was copied: all of it is missing until it is copied again"
        return PartitionPlan(
            flow=self._flow.name,
            partition=partition,
            source=source,
            target=target,
            isolation="read_committed" if self._read_committed else "read_uncommitted",
            timestamps=True,
            bytes_per_offset=0,
            ranges=(),
            due=(0, 0) if gone else (first, max(min(end, began), first)),
            why_due=note,
            gone=end - first if gone else 0,
            notes=(note,),
        )

    @cached_property
    def _remembered(self) -> Mapping[str, KnownTopic]:
        """Target topics that the flow has copied to, as they were then."""
        self._target.metadata([])
        try:
            return TopicMemory(TopicLog(self._target, losses_topic(self._flow.source.alias))).known
        except LogUnavailable as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return {}

    def _maps(
        self, there: Mapping[str, TopicDescription], starts: Offsets, ends: Offsets
    ) -> tuple[dict[TopicPartition, CopyMap], dict[TopicPartition, str]]:
        """Return each partition's map if it has claims, or the reason for having no map."""
        claims = FlowClaims(self._target, self._flow.source.alias)
        ids = {name: topic.topic_id for name, topic in there.items()}
        read = claims.read((ids[topic], partition) for topic, partition in ends)
        by_partition = {
            partition: read[ids[partition[0]], partition[1]]
            for partition in ends
            if (ids[partition[0]], partition[1]) in read
        }
        maps: dict[TopicPartition, CopyMap] = {}
        for leader, group in by_leader(self._target, by_partition):
            logs = {partition: (starts[partition], ends[partition]) for partition in group}
            maps |= claims.maps(leader, ids, logs, {partition: by_partition[partition] for partition in group})
        return maps, claims.undecided

    def _windows(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Window]:
        scope, partitions = self._scope, list(partitions)
        if scope.due is not None:
            return {partition: Window(*scope.due[partition][:2]) for partition in partitions}
        windows = dict.fromkeys(partitions, scope.offsets)
        if scope.from_ms is None and scope.to_ms is None:
            return windows
        ends = listed(self._source, partitions, LATEST)
        first, last = (
            listed(self._source, partitions, at) if at is not None else {} for at in (scope.from_ms, scope.to_ms)
        )
        for partition in partitions:  # -1: no record is so late
            starts_at = first.get(partition)
            ends_at = last.get(partition)
            windows[partition] = Window(
                ends[partition] if starts_at == -1 else starts_at, ends[partition] if ends_at == -1 else ends_at
            )
        return windows

    def _without_moved(
        self,
        windows: Mapping[TopicPartition, Window],
        here: Mapping[str, TopicDescription],
        there: Mapping[str, TopicDescription],
    ) -> dict[TopicPartition, Window]:
        """Return the windows without records from after the topic's writers moved.

        Also left out are the target offsets that the moved writers wrote.
        """
        state = ControlState()
        try:
            state.apply(TopicLog(self._target, control_topic(self._flow.source.alias)).read(0, 0)[0])
        except LogUnavailable as error:  # without READ on it all is compared, and later writes show as differences
            if error.code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
                raise
        narrowed = dict(windows)
        theirs = self._written_by_moved({topic.topic_id.hex() for topic in there.values()}) if state.done else {}
        for place, window in windows.items():
            done = state.done.get(place[0])
            if done is not None and done.is_of(here[place[0]].topic_id):
                end = done.copied_to(place[1])
                last = end if window.end is None else min(window.end, end)
                narrowed[place] = Window(window.first, last, moved=True, theirs=tuple(theirs.get(place, ())))
        return narrowed

    def _written_by_moved(self, target_topic_ids: Container[str]) -> Mapping[TopicPartition, list[tuple[int, int]]]:
        """Return target offsets that moved writers wrote, by source partition."""
        stretches: defaultdict[TopicPartition, list[tuple[int, int]]] = defaultdict(list)
        try:
            losses = LossLedger(TopicLog(self._target, losses_topic(self._flow.source.alias))).read()
        except LogUnavailable as error:
            if error.code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
                raise
            return {}
        for loss in sorted(losses, key=lambda loss: loss.first):
            if (
                loss.kind is LossKind.FOREIGN
                and loss.outcome is LossOutcome.EXPECTED
                and loss.target_topic_id in target_topic_ids
            ):
                stretches[loss.source_topic, loss.partition].append((loss.first, loss.end))
        return stretches

    def _sizes(self, partitions: Iterable[TopicPartition]) -> Offsets:
        sizes: Offsets = {}
        for leader, group in by_leader(self._source, partitions):
            sizes |= log_sizes(self._source, leader, by_topic(group))
        return sizes


def _partitions(topics: Mapping[str, TopicDescription], name: str) -> Iterable[PartitionDescription]:
    return topics[name].partitions if name in topics else ()


def _log(topic: TopicDescription, start: int, end: int, configs: Iterable[ConfigEntry]) -> LogPlan:
    kept_ms = int(_value(configs, "delete.retention.ms") or _DAY_MS)
    return LogPlan(
        topic=topic.name,
        topic_id=topic.topic_id.hex(),
        start=start,
        end=end,
        compacted="compact" in (_value(configs, "cleanup.policy") or ""),
        tombstones_kept_ms=kept_ms,
    )


def _value(configs: Iterable[ConfigEntry], name: str) -> str | None:
    return next((entry.value for entry in configs if entry.name == name), None)


def _kept_ms(configs: Iterable[ConfigEntry]) -> int:
    """Return the time that a topic keeps records, in milliseconds; -1: without end."""
    configs = list(configs)
    if "delete" not in (_value(configs, "cleanup.policy") or "delete"):
        return -1
    return int(_value(configs, "retention.ms") or -1)
