"""A flow's duties and their schedules.

MirrorMaker 2's three connectors do the same next to copying (`mm2.md` 1.2 to 1.4).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sparkmirror.config import FlowConfig
from sparkmirror.exact.durable.claim_expiry import ClaimExpiry
from sparkmirror.exact.mm2.record_formats import Checkpoint
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine.duties import DutyTurns, Schedule
from sparkmirror.mirror.sync.checkpoints import Checkpoints
from sparkmirror.mirror.sync.client_quotas import ClientQuotaSync
from sparkmirror.mirror.sync.connect_offsets import ConnectOffsets
from sparkmirror.mirror.sync.copy_retention import CopyRetention, ShorterCopies
from sparkmirror.mirror.sync.group_maps import PlacedGroup
from sparkmirror.mirror.sync.group_offsets import GroupOffsetSync
from sparkmirror.mirror.sync.group_watch import GroupWatch, Whereabouts
from sparkmirror.mirror.sync.heartbeat_duty import Heartbeats
from sparkmirror.mirror.sync.mm1_commits import Mm1Commits
from sparkmirror.mirror.sync.offset_syncs import CopiedTo, OffsetSyncEmitter
from sparkmirror.mirror.sync.pattern_matches import Matches
from sparkmirror.mirror.sync.progress_notes import ProgressNotes
from sparkmirror.mirror.sync.share_group_offsets import ShareGroupOffsets
from sparkmirror.mirror.sync.topic_acls import TopicAclSync
from sparkmirror.mirror.sync.topic_config_duty import TopicConfigSync
from sparkmirror.mirror.sync.topic_rules import TopicRules
from sparkmirror.mirror.sync.topics import TopicSync
from sparkmirror.policy import GroupFilter
from sparkmirror.pump.messages.orders import Receipt
from sparkmirror.snapshot.group_standing import GroupStanding, GroupState

OFFSET_SYNCS_S = 1.0
"""Seconds between looks for due offset syncs: pumps report as often."""

RETENTION_S = 300.0
"""Seconds between retention comparisons on both sides.

Brokers look for records to delete as often (`log.retention.check.interval.ms`).
"""

TIDY_S = 600.0
"""Seconds between searches for old claims."""

GROUP_WATCH_S = 10.0
"""Seconds between readings of the groups' offsets."""

CONNECT_OFFSETS = "Connect's offsets"
"""Name of the duty that stores them, in status and metrics."""
PROGRESS_NOTES_S = 60.0
"""Seconds between notes on the flow's progress."""

_NONE: Mapping[str, Mapping[TopicPartition, Checkpoint]] = MappingProxyType({})


@dataclass(slots=True)
class FlowGroups:
    """The flow's groups in their newest state, which the duties share."""

    checkpoints: Checkpoints | None = None
    sync: GroupOffsetSync | None = None
    share: ShareGroupOffsets | None = None
    watch: GroupWatch | None = None

    @property
    def current(self) -> Mapping[str, Mapping[TopicPartition, Checkpoint]]:
        return self.checkpoints.current if self.checkpoints is not None else _NONE

    @property
    def standings(self) -> Mapping[str, GroupStanding]:
        return self.checkpoints.standings if self.checkpoints is not None else {}

    @property
    def excluded_sinks(self) -> tuple[str, ...]:
        return self.checkpoints.excluded_sinks if self.checkpoints is not None else ()

    @property
    def newest(self) -> Mapping[str, GroupStanding]:
        """State of each group at the target, if its offsets are set; else `standings`.

        Before the first turn of the duty that sets offsets ends, it has no standings.
        """
        consumers = (self.sync.standings if self.sync is not None else None) or self.standings
        return {**consumers, **self.share.standings} if self.share is not None else consumers

    @property
    def matches(self) -> Matches:
        """Patterns that match no group at the source."""
        return self.checkpoints.matches if self.checkpoints is not None else Matches()

    @property
    def watched(self) -> Collection[str]:
        """Groups to look up in `whereabouts`, by name."""
        beyond = (name for name, standing in self.standings.items() if standing.state is GroupState.BEYOND_END)
        return {*self.current, *beyond}

    def place(self, partition: TopicPartition, source: int, target: int | None) -> PlacedGroup:
        if self.checkpoints is None:
            return PlacedGroup(None, is_ahead=False)
        return self.checkpoints.place(partition, source, target)

    @property
    def whereabouts(self) -> Mapping[str, Mapping[TopicPartition, Whereabouts]]:
        """Each group's present place on both sides, by source partition."""
        return self.watch.whereabouts if self.watch is not None else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowDuties:
    """Settings and objects that a flow's duties need."""

    flow: FlowConfig
    rules: TopicRules
    wanted_groups: GroupFilter
    source: ClusterAdmin
    target: ClusterAdmin
    topics: Callable[[], TopicSync]
    receipts: Callable[[], Iterable[Receipt]]
    receipts_mark: Callable[[], object]
    """Equal for equal receipts."""
    copied: Callable[[], Mapping[TopicPartition, int]]
    """Source partition to its last copied record's upstream offset."""
    ended: Callable[[], Mapping[TopicPartition, int]]
    """Target partition to the copy's end, where the topic has moved to the target."""
    groups: FlowGroups
    shorter_copies: ShorterCopies
    once: bool
    """True if the mirror ends when everything is copied.

    Duties about offsets then take a last turn, and no heartbeats are sent.
    """

    def schedules(self) -> list[Schedule]:
        """Return the duties that the settings ask for, in the order of their last turns."""
        sync, group, copies = self.flow.topic_sync, self.flow.group, self.flow.copies
        sync_groups = group.emit_checkpoints_enabled and group.sync_group_offsets_enabled
        flush_s = self.flow.connect.offset_flush_interval_ms / 1000
        wanted = [
            (copies, Schedule(name="old segments", interval_s=TIDY_S, make=self._old_segments, delayed=True)),
            (
                copies and sync.sync_topic_configs_enabled,
                Schedule(
                    name="topic configurations",
                    interval_s=sync.sync_topic_configs_interval_seconds,
                    make=self._topic_configs,
                ),
            ),
            (
                copies and not self.once,
                Schedule(name="copies' retention", interval_s=RETENTION_S, make=self._copy_retention, delayed=True),
            ),
            (
                copies and sync.syncs_acls,
                Schedule(name="topic ACLs", interval_s=sync.sync_topic_acls_interval_seconds, make=self._topic_acls),
            ),
            (
                copies and sync.sync_client_quotas_enabled,
                Schedule(
                    name="client quotas", interval_s=sync.sync_topic_acls_interval_seconds, make=self._client_quotas
                ),
            ),
            (
                self.flow.heartbeat.emit_heartbeats_enabled and not self.once,
                Schedule(
                    name="heartbeats",
                    interval_s=self.flow.heartbeat.emit_heartbeats_interval_seconds,
                    make=self._heartbeats,
                ),
            ),
            (
                copies and self.flow.offset_sync.emit_offset_syncs_enabled,
                Schedule(name="offset syncs", interval_s=OFFSET_SYNCS_S, make=self._offset_syncs, at_end=True),
            ),
            (
                copies and self.flow.legacy is None,
                Schedule(
                    name=CONNECT_OFFSETS, interval_s=flush_s, make=self._connect_offsets, delayed=True, at_end=True
                ),
            ),
            (
                True,
                Schedule(
                    name="standing", interval_s=PROGRESS_NOTES_S, make=self._progress_notes, delayed=True, at_end=True
                ),
            ),
            (
                group.emit_checkpoints_enabled,
                Schedule(
                    name="checkpoints",
                    interval_s=group.emit_checkpoints_interval_seconds,
                    make=self._checkpoints,
                    at_end=self.once,
                ),
            ),
            (
                sync_groups,
                Schedule(
                    name="group offsets",
                    interval_s=group.sync_group_offsets_interval_seconds,
                    make=self._group_offsets,
                    delayed=True,
                    at_end=self.once,
                ),
            ),
            (
                group.emit_checkpoints_enabled and not self.once,
                Schedule(name="group watch", interval_s=GROUP_WATCH_S, make=self._group_watch),
            ),
            (
                sync_groups,
                Schedule(
                    name="share groups",
                    interval_s=group.sync_group_offsets_interval_seconds,
                    make=self._share_groups,
                    at_end=self.once,
                ),
            ),
        ]
        return [schedule for is_wanted, schedule in wanted if is_wanted] + self._legacy_schedules()

    def _legacy_schedules(self) -> list[Schedule]:
        legacy = self.flow.legacy
        if legacy is None:
            return []
        return [
            Schedule(
                name="group commits",
                interval_s=legacy.offset_commit_interval_ms / 1000,
                make=lambda: Mm1Commits(self.flow, legacy, self.receipts),
                delayed=True,
                at_end=True,
            )
        ]

    def _old_segments(self) -> DutyTurns:
        return ClaimExpiry(self.flow, self._remotes)

    def _topic_configs(self) -> DutyTurns:
        return TopicConfigSync(self.flow, self.rules, self.source, self.target, self.topics)

    def _copy_retention(self) -> DutyTurns:
        return CopyRetention(self.flow, lambda: self.topics().mirrored, self.receipts, self.shorter_copies)

    def _topic_acls(self) -> DutyTurns:
        wanted_group = self.wanted_groups.should_replicate_group
        return TopicAclSync(self.flow, self.rules, self._copies, wanted_group, self._moved_copies)

    def _client_quotas(self) -> DutyTurns:
        return ClientQuotaSync(self.flow)

    def _heartbeats(self) -> DutyTurns:
        return Heartbeats(self.flow, self.rules.policy)

    def _offset_syncs(self) -> DutyTurns:
        return OffsetSyncEmitter(self.flow, self.rules.policy, self._last_copied, self.receipts_mark)

    def _checkpoints(self) -> DutyTurns:
        self.groups.checkpoints = Checkpoints(
            self.flow,
            self.rules.policy,
            self.wanted_groups,
            self.rules.topics.should_replicate_topic,
            self.receipts,
        )
        return self.groups.checkpoints

    def _group_offsets(self) -> DutyTurns:
        self.groups.sync = GroupOffsetSync(self.flow, self.groups, self.ended)
        return self.groups.sync

    def _share_groups(self) -> DutyTurns:
        self.groups.share = ShareGroupOffsets(
            self.flow,
            self.rules.policy,
            self.wanted_groups.should_replicate_group,
            self.rules.topics.should_replicate_topic,
            self.receipts,
        )
        return self.groups.share

    def _group_watch(self) -> DutyTurns:
        wanted = self.rules.topics.should_replicate_topic
        self.groups.watch = GroupWatch(self.flow, self.rules.policy, wanted, self.groups)
        return self.groups.watch

    def _connect_offsets(self) -> DutyTurns:
        return ConnectOffsets(self.flow, self.target, self.copied)

    def _progress_notes(self) -> DutyTurns:
        return ProgressNotes(self.flow, self.receipts)

    def _last_copied(self) -> Iterable[CopiedTo]:
        return [
            CopiedTo(receipt.source_topic, receipt.partition, receipt.last_upstream, receipt.last_downstream)
            for receipt in self.receipts()
        ]

    def _copies(self) -> Mapping[str, str]:
        """Source topic to its copy's name."""
        return {topic.source.name: topic.remote.name for topic in self.topics().mirrored}

    def _moved_copies(self) -> Iterable[str]:
        return {topic for topic, _ in self.ended()}

    def _remotes(self) -> Iterable[str]:
        return [topic.remote.name for topic in self.topics().mirrored]
