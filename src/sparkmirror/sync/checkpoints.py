"""The checkpoints duty: where every consumer group of the source stands at the target (`mm2.md` 3.7).

What groups have committed at the source is translated by the exact map and written to the checkpoints topic. Offsets
are read before the maps: so the copy has nearly always reached what a group has read. Where it has not, the
group is given the end of the copy, which is inside the log, and not a record is skipped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sparkmirror.cluster.admin import ClusterAdmin
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.groups import Groups, ListedGroup, Offsets
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.offsets.checkpoint_store import CheckpointStore
from sparkmirror.offsets.map_keeper import NOTHING_YET, MapKeeper, PartitionMap, Reached, Unmapped
from sparkmirror.offsets.mirror_records import Checkpoint
from sparkmirror.policy import ReplicationPolicy
from sparkmirror.pump.orders import Receipt
from sparkmirror.sync.before_us import BeforeUs
from sparkmirror.sync.group_standing import GroupStanding, GroupState, standing

TopicPartition = tuple[str, int]

CONNECT_TIMEOUT_S = 15.0
TYPES = frozenset({"", "classic", "consumer"})
PROTOCOLS = frozenset({"", "consumer"})
"""Of groups that MirrorMaker 2 looks at; brokers before Kafka 4.0 name no type."""

log = logging.getLogger(__name__)


class Route(NamedTuple):
    """What the target has in place of a partition of the source."""

    remote: TopicPartition
    back: bool
    """The source's topic is the copy, made by the flow in the other direction."""


def route_of(where: TopicPartition, policy: ReplicationPolicy, flow: FlowConfig) -> Route:
    """A topic's copy; of what is itself a copy of the target's topic, that topic (`mm2.md` 3.7, "Rename")."""
    topic, partition = where
    original = policy.upstream_topic(topic)
    if policy.topic_source(topic) == flow.target.alias and original is not None:
        return Route((original, partition), back=True)
    return Route((policy.format_remote_topic(flow.source.alias, topic), partition), back=False)


class Place(NamedTuple):
    """An offset at the target."""

    offset: int
    copied: bool
    """Whether the copy has reached it; else it is the copy's end."""
    log_end: int | None
    """The target's, where it is known."""


class Checkpoints:
    """Translates the offsets of one flow's groups. `run` is one turn; one thread."""

    def __init__(
        self,
        flow: FlowConfig,
        policy: ReplicationPolicy,
        wanted_group: Callable[[str], bool],
        wanted_topic: Callable[[str], bool],
        receipts: Callable[[], Iterable[Receipt]] = tuple,
    ) -> None:
        """`wanted_topic`: the topic filter alone, of source topics. `receipts`: the newest of each partition."""
        self._flow = flow
        self._policy = policy
        self._wanted_group = wanted_group
        self._wanted_topic = wanted_topic
        self._receipts = receipts
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-checkpoints")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-checkpoints")
        self._groups = Groups(self._source)
        self._copied = MapKeeper(self._target, flow.source.alias)
        self._copied_back = MapKeeper(self._source, flow.target.alias)
        topic = policy.checkpoints_topic(flow.source.alias)
        self._before_us = BeforeUs(flow, policy, self._source, self._target)
        self._store = CheckpointStore(TopicLog(self._target, topic))
        self._topic = topic
        self._opened = False
        self._refreshed_at = float("-inf")
        self._known: tuple[str, ...] = ()
        self._others: dict[str, GroupStanding] = {}
        self.standings: Mapping[str, GroupStanding] = {}
        """Of every group that the filter wants, as of the last turn."""
        self.current: Mapping[str, Mapping[TopicPartition, Checkpoint]] = {}
        """The checkpoints of every known group that the last turn has looked at, by target partition."""

    def run(self) -> None:
        """One turn. Raises `ConnectionError` and `SparkMirrorError`: then nothing counts as written."""
        self._open()
        committed = self._committed()
        reached = {
            (one.target_topic, one.partition): Reached(one.upstream, one.downstream, one.target_topic_id)
            for one in self._receipts()
            if one.upstream >= 0 and one.downstream >= 0
        }
        routes = {
            where: route_of(where, self._policy, self._flow) for offsets in committed.values() for where in offsets
        }
        maps = self._maps(routes, reached)
        due: list[Checkpoint] = []
        standings = dict(self._others)
        translated: dict[str, list[TopicPartition]] = {}
        for group, offsets in committed.items():
            missing: list[str] = []
            ahead: list[str] = []
            for where, one in offsets.items():
                place = self._place(where, routes[where], maps, one.offset)
                if isinstance(place, Unmapped):
                    (ahead if place is NOTHING_YET else missing).append(f"{where[0]}-{where[1]}: {place.reason}")
                    continue
                if not place.copied:
                    ahead.append(f"{where[0]}-{where[1]}: at {one.offset}, the copy is not so far yet")
                remote = routes[where].remote
                checkpoint = Checkpoint(group, *remote, one.offset, place.offset, one.metadata)
                translated.setdefault(group, []).append(remote)
                if self._store.is_due(checkpoint, place.log_end):
                    due.append(checkpoint)
            standings[group] = standing(group, len(offsets), missing, ahead)
        self._store.write(due)
        self.current = {group: self._store.of(group, remotes) for group, remotes in translated.items()}
        self.standings = standings
        log.debug("flow %s: %d checkpoints of %d groups", self._flow.name, len(due), len(committed))

    def close(self) -> None:
        """Hang up."""
        self._copied.close()
        self._copied_back.close()
        self._source.close()
        self._target.close()

    def _open(self) -> None:
        if self._opened:
            return
        timeout_s = min(self._flow.admin_timeout_ms / 1000, CONNECT_TIMEOUT_S)
        admin = ClusterAdmin.connect(self._flow.target, f"{self._flow.name}|checkpoints", timeout_s)
        try:
            factor = self._flow.group.checkpoints_topic_replication_factor
            admin.create_compacted_topic(self._topic, 1, factor)
        finally:
            admin.close()
        self._store.load()
        self._opened = True

    # --- groups ---------------------------------------------------------------------------------

    def _committed(self) -> dict[str, Offsets]:
        """What every group has committed on topics that are copied."""
        settings, now = self._flow.group, time.monotonic()
        first = self._refreshed_at == float("-inf")
        refresh = first or (
            settings.refresh_groups_enabled and now - self._refreshed_at >= settings.refresh_groups_interval_seconds
        )
        candidates = self._listed() if refresh else self._known
        found = self._groups.committed(candidates)
        offsets = {
            group: {where: one for where, one in some.items() if self._wanted_topic(where[0])}
            for group, some in found.offsets.items()
        }
        if refresh:
            self._refreshed_at = now
            self._known = tuple(group for group in candidates if offsets.get(group) or group in found.refused)
        for group, reason in found.refused.items():
            self._others[group] = GroupStanding(group, GroupState.NOT_SYNCED, f"{self._groups.alias}: {reason}")
        return {group: some for group, some in offsets.items() if some}

    def _listed(self) -> list[str]:
        """Consumer groups that the filter wants. Others that it would have are named."""
        listed = [one for one in self._groups.listed().values() if self._wanted_group(one.group)]
        self._others = {
            one.group: GroupStanding(
                one.group, GroupState.NOT_SYNCED, f"it is a {one.type} group at {self._groups.alias}"
            )
            for one in listed
            if one.type not in TYPES
        }
        return [one.group for one in listed if _is_consumer(one)]

    # --- places ---------------------------------------------------------------------------------

    def _maps(
        self, routes: Mapping[TopicPartition, Route], reached: Mapping[TopicPartition, Reached]
    ) -> dict[TopicPartition, PartitionMap | Unmapped]:
        """By source partition."""
        forth = {route.remote: where for where, route in routes.items() if not route.back}
        back = [where for where, route in routes.items() if route.back]
        found = self._copied.refresh({remote: reached.get(remote) for remote in forth}) if forth else {}
        maps = {forth[remote]: one for remote, one in found.items()}
        if back:
            maps |= self._copied_back.refresh(dict.fromkeys(back))
        return maps

    def _place(
        self, where: TopicPartition, route: Route, maps: Mapping[TopicPartition, PartitionMap | Unmapped], offset: int
    ) -> Place | Unmapped:
        one = maps[where]
        if isinstance(one, Unmapped):
            return one
        if route.back:
            if unknown := one.began_after(downstream=offset):
                return Unmapped(unknown)
            original = one.upstream(offset)
            return Place(one.offsets.copied.upstream if original is None else original, original is not None, None)
        if unknown := one.began_after(upstream=offset):
            theirs = self._before_us.downstream(where, offset, one.begins)
            return Unmapped(unknown) if theirs is None else Place(theirs.downstream, True, one.log.end)
        downstream = one.downstream(offset)
        return Place(one.end if downstream is None else downstream, downstream is not None, one.log.end)


def _is_consumer(group: ListedGroup) -> bool:
    return group.type in TYPES and group.protocol in PROTOCOLS
