"""Translate any of a flow's offsets, both ways, for applications.

The module serves applications that keep offsets in their own database, and uses the same maps as consumer groups do. An
application that stopped at the source continues at the translated target offset with no record read twice and none
skipped; and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import NamedTuple, Self

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.maps.map_keeper import MapKeeper
from sparkmirror.exact.maps.offset_map import Copied
from sparkmirror.exact.maps.partition_map import NOTHING_YET, PartitionMap, Unmapped
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import LATEST
from sparkmirror.kafka.cluster.range_reader import OffsetBounds
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_ids import same_topic
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.noted_markers import NotedMarkers, pass_over
from sparkmirror.mirror.sync.offsets_and_ids import offsets_and_ids
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.policy import ReplicationPolicy
from sparkmirror.pump.messages.control import ControlState, control_topic
from sparkmirror.pump.messages.receipts import read_reports, receipts_topic

NOT_YET = "not copied yet"
"""First words of the reason for an offset that translates once more is copied."""


class Stored(NamedTuple):
    """The offset that an application would read next."""

    topic: str
    partition: int
    offset: int


class Translation(NamedTuple):
    """Position in the opposite cluster."""

    topic: str
    """The topic's name in the opposite cluster."""
    partition: int
    offset: int | None
    """Translated offset; `None` if unknown."""
    reason: str = ""
    """Reason why the offset is unknown."""


class ApplicationTranslator:
    """Translator between a source and a target, with maps kept for later questions.

    For one thread. A context manager.
    """

    def __init__(self, target: ClusterConfig, source_alias: str, policy: ReplicationPolicy) -> None:
        self._source_alias = source_alias
        self._policy = policy
        self._client = ClusterClient(target, f"{source_alias}->{target.alias}|sparkmirror-translator")
        self._maps = MapKeeper(self._client, source_alias)
        self._receipts = TopicLog(self._client, receipts_topic(source_alias), may_be_absent=True)
        self._receipts_read_to = 0
        self._reached: dict[TopicPartition, ReportedProgress] = {}
        self._noted = NotedMarkers(self._client, source_alias)
        self._control = TopicLog(self._client, control_topic(source_alias), may_be_absent=True)
        self._control_read_to = 0
        self._words = ControlState()
        self._source_ids: dict[str, bytes] = {}

    @classmethod
    def of(cls, flow: FlowConfig) -> Self:
        """Build an mm2.properties flow's translator; only the target is asked."""
        return cls(flow.target, flow.source.alias, topic_rules(flow).policy)

    def translate(self, topic: str, partition: int, offset: int, *, reverse: bool = False) -> Translation:
        """Translate a source consumer's next offset to the target, or in reverse."""
        return self.translate_each([Stored(topic, partition, offset)], reverse=reverse)[0]

    def translate_each(self, stored: Sequence[Stored], *, reverse: bool = False) -> list[Translation]:
        """Translate many positions; results are in the order given.

        `topic` is the source's name, in reverse the target's. Raises `ClusterUnreachable`.
        """
        targets = [position.topic if reverse else self._remote(position.topic) for position in stored]
        maps = self._maps_of(targets, stored, reverse=reverse)
        return [
            self._back(position, mapped) if reverse else _forth(topic, position, mapped)
            for topic, position, mapped in zip(targets, stored, maps, strict=True)
        ]

    def passed_over(self, stored: Sequence[Stored]) -> list[OffsetBounds | None]:
        """Return the source offsets that a move from each position passes over.

        Results are in the order given, as of `PartitionMap.passed_over`. Raises `ClusterUnreachable`.
        """
        maps = self._maps_of([self._remote(position.topic) for position in stored], stored, reverse=False)
        return [
            mapped.passed_over(position.offset) if isinstance(mapped, PartitionMap) else None
            for position, mapped in zip(stored, maps, strict=True)
        ]

    def _maps_of(
        self, targets: Sequence[str], stored: Sequence[Stored], *, reverse: bool
    ) -> list[PartitionMap | Unmapped]:
        try:
            self._read_receipts()
            wanted = {(topic, position.partition): None for topic, position in zip(targets, stored, strict=True)}
            maps = self._maps.refresh(self._progress(wanted))
            if not reverse:
                self._pass_over_noted(targets, stored, maps)
        except ConnectionError as error:
            raise ClusterUnreachable(f"cluster {self._client.config.alias}: {error}") from error
        return [maps[topic, position.partition] for topic, position in zip(targets, stored, strict=True)]

    def copied(
        self, partitions: Sequence[TopicPartition], ids: Mapping[str, bytes] = MappingProxyType({})
    ) -> dict[TopicPartition, Copied | Unmapped]:
        """Return where each source partition's copy ends at the target.

        Where nothing was ever copied a pump's report tells, if there is one. `ids` are the present source topics' ids:
        of a topic that was created again nothing is copied yet. Raises `ClusterUnreachable`.
        """
        remotes = {(self._remote(topic), index): (topic, index) for topic, index in partitions}
        self._source_ids |= ids
        try:
            self._read_receipts()
            maps = self._maps.refresh(self._progress(remotes))
            told = self._told(remote for remote, mapped in maps.items() if mapped is NOTHING_YET)
        except ConnectionError as error:
            raise ClusterUnreachable(f"cluster {self._client.config.alias}: {error}") from error
        ends: dict[TopicPartition, Copied | Unmapped] = {}
        for remote, mapped in maps.items():
            topic, _ = remotes[remote]
            if isinstance(mapped, PartitionMap):
                is_same = topic not in ids or same_topic(mapped.source_topic_id, ids[topic])
                ends[remotes[remote]] = mapped.offsets.copied if is_same else NOTHING_YET
            else:
                ends[remotes[remote]] = told.get(remote, mapped)
        return ends

    def _told(self, unmapped: Iterable[TopicPartition]) -> dict[TopicPartition, Copied]:
        """Return the ends that pumps report for copies without a record."""
        reports = {remote: self._reached[remote] for remote in unmapped if remote in self._reached}
        return {
            remote: Copied(0, reports[remote].upstream, reports[remote].downstream)
            for remote, end in offsets_and_ids(self._client, reports, LATEST).items()
            if end.is_end_for(reports[remote])
        }

    def _remote(self, topic: str) -> str:
        return self._policy.format_remote_topic(self._source_alias, topic)

    def _back(self, stored: Stored, mapped: PartitionMap | Unmapped) -> Translation:
        topic = source_name(self._policy, self._source_alias, stored.topic)
        if not topic:
            no_copy = f"it is no copy of a topic of {self._source_alias}: in reverse, give its name at the target"
            return Translation(topic, stored.partition, None, no_copy)
        if isinstance(mapped, Unmapped):
            return Translation(topic, stored.partition, None, mapped.reason)
        if foreign := mapped.foreign_range(downstream=stored.offset):
            return Translation(topic, stored.partition, None, foreign.reason)
        offset = mapped.upstream(stored.offset)
        reason = "" if offset is not None else f"nothing is there yet: the copy ends at {mapped.end}"
        return Translation(topic, stored.partition, offset, reason)

    def _pass_over_noted(
        self, targets: Sequence[str], stored: Sequence[Stored], maps: Mapping[TopicPartition, PartitionMap | Unmapped]
    ) -> None:
        """Let maps without a receipt pass over noted markers, if offsets lie beyond."""
        copies, beyond = {}, {}
        for topic, position in zip(targets, stored, strict=True):
            remote = topic, position.partition
            mapped = maps[remote]
            if (
                remote in self._reached
                or isinstance(mapped, Unmapped)
                or mapped.downstream(position.offset) is not None
            ):
                continue
            copies[remote], beyond[remote] = (position.topic, position.partition), mapped
        for remote, notes in self._noted.of(copies, beyond).items():
            pass_over(beyond[remote], notes)

    def _progress(self, remotes: Iterable[TopicPartition]) -> dict[TopicPartition, ReportedProgress | None]:
        """Return pumps' last reports, or where the flow ended in a topic.

        Receipts are deleted after an hour or two, and then only a search back through all that others wrote behind the
        end would tell it.
        """
        if not self._source_ids:
            return {remote: self._reached.get(remote) for remote in remotes}
        try:
            entries, self._control_read_to = self._control.read(0, self._control_read_to)
        except LogUnavailable as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            entries = []
        self._words.apply(entries)
        ended = {
            (self._remote(topic), partition): ReportedProgress(done.copied_to(partition), downstream)
            for topic, done in self._words.done.items()
            if topic in self._source_ids and done.is_of(self._source_ids[topic])
            for partition, downstream in done.reached.items()
        }
        return {remote: self._reached.get(remote) or ended.get(remote) for remote in remotes}

    def _read_receipts(self) -> None:
        """Read new receipts; only pumps know that markers alone follow the last record."""
        known_to = self._receipts_read_to
        try:
            entries, self._receipts_read_to = self._receipts.read(0, known_to)
        except LogUnavailable as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return
        if known_to < (entries[0].offset if entries else self._receipts_read_to):
            self._reached.clear()  # newer receipts were deleted unread
        for report in read_reports(entries):
            for receipt in report.receipts:
                if receipt.upstream >= 0 and receipt.downstream >= 0:
                    self._reached[receipt.target_topic, receipt.partition] = receipt.progress

    def close(self) -> None:
        """Close the connections, and free the maps."""
        self._maps.close()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def source_name(policy: ReplicationPolicy, source_alias: str, topic: str) -> str:
    """Return the source's name of a topic at the target; empty if it is no copy.

    A policy that keeps all names may not tell (Amazon's `CustomMM2ReplicationPolicy`): then the name is the same.
    """
    if policy.topic_source(topic) != source_alias:
        return ""
    upstream = policy.upstream_topic(topic)
    if upstream is None and policy.format_remote_topic(source_alias, topic) == topic:
        return topic
    return upstream or ""


def _forth(topic: str, stored: Stored, mapped: PartitionMap | Unmapped) -> Translation:
    if isinstance(mapped, Unmapped):
        return Translation(topic, stored.partition, None, mapped.reason)
    if foreign := mapped.foreign_range(upstream=stored.offset):
        return Translation(topic, stored.partition, None, foreign.reason)
    offset = mapped.downstream(stored.offset)
    copied = mapped.offsets.copied.upstream
    reason = "" if offset is not None else f"{NOT_YET}: everything below {copied} is"
    return Translation(topic, stored.partition, offset, reason)
