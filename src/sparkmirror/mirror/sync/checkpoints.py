"""The checkpoints duty: source groups' translated positions.

The exact map translates the offsets that groups have committed at the source (`mm2.md` 3.7). The duty writes the
results to the checkpoints topic. Committed offsets are read before the maps: so the copy has nearly always reached a
group's position (`mirror/sync/group_maps.py`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing

from sparkmirror.config import FlowConfig
from sparkmirror.config.model import GroupConfig
from sparkmirror.events import Event
from sparkmirror.exact.mm2.checkpoint_store import CheckpointStore
from sparkmirror.exact.mm2.record_formats import Checkpoint
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import SINKS, Groups, ListedGroup, Offsets
from sparkmirror.kafka.cluster.share_groups import SHARE
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.group_maps import GroupMaps, PlacedGroup
from sparkmirror.mirror.sync.group_moments import GroupMoments
from sparkmirror.mirror.sync.internal_topic import InternalTopic
from sparkmirror.mirror.sync.pattern_matches import Matches, group_matches
from sparkmirror.mirror.sync.translated_groups import translate_groups
from sparkmirror.policy import GroupFilter, NamePatterns, ReplicationPolicy
from sparkmirror.policy.group_filter import DEFAULT as GROUP_FILTER
from sparkmirror.pump.messages.orders import Receipt
from sparkmirror.snapshot.group_standing import GroupStanding, standing

TYPES = frozenset({"", "classic", "consumer"})
PROTOCOLS = frozenset({"", "consumer"})
"""Group types and protocols that MirrorMaker 2 mirrors.

Brokers before Kafka 4.0 name no type.
"""

log = logging.getLogger(__name__)


class Checkpoints:
    """Translate one flow's group offsets; `run` is one turn, for one thread."""

    def __init__(
        self,
        flow: FlowConfig,
        policy: ReplicationPolicy,
        wanted: GroupFilter,
        wanted_topic: Callable[[str], bool],
        receipts: Callable[[], Iterable[Receipt]] = tuple,
    ) -> None:
        """Prepare the duty.

        `wanted_topic` is the topic filter alone and takes source topics. `receipts` gives each partition's newest
        receipt.
        """
        self._flow = flow
        self._wanted = wanted
        self._wanted_topic = wanted_topic
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-checkpoints")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-checkpoints")
        self._groups = Groups(self._source)
        # mirror/sync/share_group_offsets.py looks after share groups, if the setting is on
        self._looked_after = TYPES | {SHARE} if flow.group.sync_group_offsets_enabled else TYPES
        self._maps = GroupMaps(flow, policy, self._source, self._target, receipts)
        self._moments = GroupMoments()
        self._topic = policy.checkpoints_topic(flow.mm2_source)
        self._store: CheckpointStore | None = None
        """The topic's checkpoints; `None`: the topic is to be created and read first."""
        self.written = 0
        """Number of checkpoints that the last good turn wrote."""
        self._refreshed_at = float("-inf")
        self._known: tuple[str, ...] = ()
        self._others: dict[str, GroupStanding] = {}
        self.matches = Matches()
        """Patterns that match no group at the source."""
        self.excluded_sinks: tuple[str, ...] = ()
        """Sink connectors' groups that the filter excludes."""
        self.standings: Mapping[str, GroupStanding] = {}
        """Every wanted group's standing at the last turn."""
        self.current: Mapping[str, Mapping[TopicPartition, Checkpoint]] = {}
        """Every known group's checkpoints from the last turn, by target partition."""

    def run(self) -> None:
        """Do one turn.

        Raises `ConnectionError` and `SparkMirrorError`; then no checkpoint counts as written.
        """
        store = self._opened()
        committed = self._committed()
        translated = translate_groups(
            self._maps,
            self._moments,
            {
                group: {partition: commit.offset for partition, commit in offsets.items()}
                for group, offsets in committed.items()
            },
        )
        due: list[Checkpoint] = []
        for group, (results, _) in translated.items():
            for partition, result in results.items():
                commit = committed[group][partition]
                checkpoint = Checkpoint(
                    group=group,
                    topic=result.remote[0],
                    partition=result.remote[1],
                    upstream=commit.offset,
                    downstream=result.offset,
                    metadata=commit.metadata,
                )
                if store.is_due(checkpoint, result.log_end, exact=result.exact):
                    due.append(checkpoint)
        self._write(store, due)
        self.written = len(due)
        self.current = {
            group: store.of(group, [result.remote for result in results.values()])
            for group, (results, _) in translated.items()
            if results
        }
        self.standings = self._others | {group: its_standing for group, (_, its_standing) in translated.items()}
        log.debug("flow %s: %d checkpoints of %d groups", self._flow.name, len(due), len(committed))

    def place(self, partition: TopicPartition, source: int, target: int | None) -> PlacedGroup:
        """Return a group's place, as `GroupMaps.place`; for any thread."""
        return self._maps.place(partition, source, target)

    def close(self) -> None:
        self._maps.close()
        self._source.close()
        self._target.close()

    def _opened(self) -> CheckpointStore:
        if self._store is None:
            with closing(
                InternalTopic(
                    self._flow.target,
                    self._topic,
                    f"{self._flow.name}|sparkmirror-checkpoints",
                    replication_factor=self._flow.group.checkpoints_topic_replication_factor,
                    factor_key="checkpoints.topic.replication.factor",
                    timeout_s=self._flow.admin_timeout_ms / 1000,
                )
            ) as topic:
                topic.create()
            store = CheckpointStore(TopicLog(self._target, self._topic))
            store.load()
            self._store = store
        return self._store

    def _write(self, store: CheckpointStore, due: Sequence[Checkpoint]) -> None:
        try:
            store.write(due)
        except LogUnavailable as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._store = None  # it was deleted: the next turn creates it, and writes all checkpoints again
            raise

    # --- groups ---------------------------------------------------------------------------------

    def _committed(self) -> dict[str, Offsets]:
        """Return every group's committed offsets on topics that are copied."""
        settings, now = self._flow.group, time.monotonic()
        first = self._refreshed_at == float("-inf")
        refresh = first or (
            settings.refresh_groups_enabled and now - self._refreshed_at >= settings.refresh_groups_interval_seconds
        )
        candidates = self._listed() if refresh else self._known
        answer = self._groups.committed(candidates)
        offsets = {
            group: {partition: commit for partition, commit in commits.items() if self._wanted_topic(partition[0])}
            for group, commits in answer.offsets.items()
        }
        if refresh:
            self._refreshed_at = now
            self._known = tuple(group for group in candidates if offsets.get(group) or group in answer.refused)
        for group, reason in answer.refused.items():
            self._others[group] = standing(group, 0, missing=[f"{self._groups.alias}: {reason}"])
        return {group: commits for group, commits in offsets.items() if commits}

    def _listed(self) -> list[str]:
        """Return the consumer groups that the filter wants.

        Wanted groups whose type has no duty get a standing with the reason.
        """
        there = self._groups.listed()
        before = self.matches
        consumers = {entry.group for entry in there.values() if is_consumer(entry)}
        self.matches = group_matches(self._flow, self._wanted, consumers)
        for line in self.matches.news(before):
            log.warning("flow %s: groups: %s", self._flow.name, line, extra=Event.PATTERN_UNMATCHED.extra)
        listed = [entry for entry in there.values() if self._wanted.should_replicate_group(entry.group)]
        self.excluded_sinks = excluded_sinks(there.values(), self._flow.group)
        self._others = {
            entry.group: standing(entry.group, 0, missing=[f"it is a {entry.type} group at {self._groups.alias}"])
            for entry in listed
            if entry.type not in self._looked_after
        }
        return [entry.group for entry in listed if is_consumer(entry)]


def excluded_sinks(listed: Iterable[ListedGroup], settings: GroupConfig) -> tuple[str, ...]:
    """Return the sink connectors' groups that `groups.exclude` takes out.

    Groups that `groups` does not match are left out. By default `groups.exclude` has `connect-.*`.
    """
    if settings.group_filter_class != GROUP_FILTER:
        return ()
    included, excluded = NamePatterns(settings.groups), NamePatterns(settings.groups_exclude)
    sinks = (entry.group for entry in listed if entry.group.startswith(SINKS) and is_consumer(entry))
    return tuple(sorted(group for group in sinks if included.accepts(group) and excluded.accepts(group)))


def is_looked_after(group: ListedGroup, settings: GroupConfig) -> bool:
    """True if a duty translates groups like this one.

    `mirror/sync/share_group_offsets.py` looks after share groups, if the setting is on.
    """
    return is_consumer(group) or (group.type == SHARE and settings.sync_group_offsets_enabled)


def is_consumer(group: ListedGroup) -> bool:
    """True if MirrorMaker 2 mirrors groups with this type and protocol."""
    return group.type in TYPES and group.protocol in PROTOCOLS
