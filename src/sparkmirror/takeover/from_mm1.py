"""Taking partitions over from a MirrorMaker 1 that has stopped: its consumer group at the source says where it was.

What is found is claimed as this flow's start, so that every pump begins there; nothing was sent by then. A partition
is looked at where this flow has copied nothing of it yet, or where MirrorMaker 1 had it back for a while: then it has
committed itself, and is further on than we are.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Sequence

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.groups import Committed, Groups, Offsets
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.config.model import LegacyConfig
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import segments_topic
from sparkmirror.durable.identity import Identity
from sparkmirror.durable.losses import LossLedger, losses_topic
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.position.route import PartitionPair
from sparkmirror.position.target_reading import Unserved
from sparkmirror.sync.group_commits import OURS
from sparkmirror.sync.group_offsets import IDLE
from sparkmirror.takeover.log_bounds import BothLogs, Bounds, by_target_leader, read_bounds
from sparkmirror.takeover.our_progress import ForeignEnds, SoFar
from sparkmirror.takeover.start_claims import Start, claim_starts
from sparkmirror.wire.topic_partition import TopicPartition

log = logging.getLogger(__name__)


class GroupTakeover:
    """For one flow, whose lease is held. Each partition is looked at until it is settled, then not again."""

    def __init__(self, flow: FlowConfig, legacy: LegacyConfig) -> None:
        self._flow = flow
        self._group = legacy.group_id
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-takeover")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-takeover")
        self._groups = Groups(self._source)
        self._segments = SegmentLog(TopicLog(self._target, segments_topic(flow.source.alias)))
        self._ledger = LossLedger(TopicLog(self._target, losses_topic(flow.source.alias)))
        self._settled: set[TopicPartition] = set()
        self.refused: dict[PartitionPair, str] = {}
        """What can't be taken over, and why: it must not be pumped."""
        self.waiting = False
        """Some of that may be told soon."""
        self.awaited: set[str] = set()
        """Every reason so far for which something only waits: it is no failure."""
        self.taken = 0
        """Partitions taken over since this process began."""

    def begin(self) -> None:
        """The lease was got: somebody else may have written since it was ours last."""
        self._settled.clear()

    def look(self, identity: Identity, routes: Iterable[PartitionPair], *, made: Container[str] = ()) -> None:
        """Take over what can be; `refused` says what can't. Into a new topic, too, the group says where to begin."""
        todo = [route for route in routes if route.target not in self._settled]
        if not todo:
            return
        self.refused, self.waiting = {}, False
        try:
            self._look(identity, todo)
        except (ConnectionError, SparkMirrorError) as error:
            # What is not settled must not be pumped: it would begin somewhere else.
            for route in todo:
                if route.target not in self._settled and route not in self.refused:
                    self._refuse(route, str(error), wait=True)

    def close(self) -> None:
        """Hang up."""
        self._source.close()
        self._target.close()

    def _look(self, identity: Identity, routes: Sequence[PartitionPair]) -> None:
        reason, wait = self._why_not()
        committed: Offsets = {}
        if not reason:
            found = self._groups.committed([self._group])
            reason, wait = found.refused.get(self._group, ""), False
            committed = found.offsets.get(self._group, {})
            if reason:
                reason = f"group {self._group} can't be read: {reason}"
        if reason:
            for route in routes:
                self._refuse(route, reason, wait=wait, tell=False)
            log.warning("flow %s: %s", self._flow.name, reason, extra=Event.TAKEOVER_REFUSED.extra)
            return
        by_leader = by_target_leader(
            self._source, self._target, routes, lambda route, reason: self._refuse(route, reason, wait=True)
        )
        for leader, group in by_leader.items():
            self._take(identity, self._begun(identity, leader, group, committed), committed)

    def _why_not(self) -> tuple[str, bool]:
        """Why nothing can begin now, by how the group stands, and whether that may pass; empty if it can."""
        listed = self._groups.listed().get(self._group)
        where = f"group {self._group} at {','.join(self._flow.source.bootstrap_servers)}"
        if listed is None:
            return "", False
        if listed.type == "share" or listed.protocol not in ("", "consumer"):
            return f"{where} is no consumer group ({listed.type or listed.protocol}): write another group.id", False
        if listed.state in IDLE:
            return "", False
        return f"MirrorMaker 1 still runs: {where} has members ({listed.state}); stop it, we wait for that", True

    def _refuse(self, route: PartitionPair, reason: str, *, wait: bool, tell: bool = True) -> None:
        self.refused[route] = reason
        if wait:
            self.waiting = True
            self.awaited.add(reason)
        if tell:
            log.warning(
                "flow %s: %s-%d is not taken over: %s",
                self._flow.name,
                *route.source,
                reason,
                extra=Event.TAKEOVER_REFUSED.extra,
            )

    def _begun(self, identity: Identity, leader: int, group: Sequence[BothLogs], committed: Offsets) -> list[SoFar]:
        """What we have in each of those that may be for us to begin; the others are settled, or refused."""
        self._segments.refresh([(both.target.topic_id, both.route.partition) for both in group])
        ours, begun = [], []
        for both in group:
            claims = self._segments.claims(both.target.topic_id, both.route.partition)
            if identity.own(claims):
                ours.append(both)
            else:
                begun.append(SoFar(both, 0, None))
        # MirrorMaker 1 chose partitions by key, or at random: where its records ended up says nothing.
        moved = [both for both in ours if _is_theirs(committed.get(both.route.source))]
        self._settled |= {both.route.target for both in ours} - {both.route.target for both in moved}
        so_far = ForeignEnds(self._target, self._segments, self._ledger, identity).so_far(leader, moved, whoever=True)
        for both, one in zip(moved, so_far, strict=True):
            if isinstance(one, Unserved):
                self._refuse(both.route, str(one), wait=True)
            elif one is not None and (one.upstream is None or committed[both.route.source].offset > one.upstream):
                begun.append(one)
            else:
                self._settled.add(both.route.target)  # it has nothing that we have not
        return begun

    def _take(self, identity: Identity, begun: Sequence[SoFar], committed: Offsets) -> None:
        """Claim where each begins, where anything but `auto.offset.reset` says so, or the target is not empty."""
        bounds = read_bounds(self._source, self._target, (one.both for one in begun))
        starts = []
        for one in begun:
            route, known = one.both.route, bounds[one.both.route]
            stood = committed.get(route.source)
            if isinstance(known, Unserved):
                self._refuse(route, str(known), wait=True)
            elif stood is not None:
                starts.append(Start(one, stood.offset, known.target_end))
            elif known.target_end:
                starts.append(Start(one, self._reset(known), known.target_end))
            else:
                self._settled.add(route.target)
        failed = claim_starts(self._target, self._segments, identity, starts, "MirrorMaker 1")
        for start in starts:
            route = start.begun.both.route
            if route in failed:
                self._refuse(route, failed[route], wait=True)
                continue
            self._settled.add(route.target)
            if route.source in committed:
                self.taken += 1
            how = f"group {self._group} has committed" if route.source in committed else "by auto.offset.reset"
            log.info(
                "flow %s: %s-%d begins at source offset %d, %s",
                self._flow.name,
                *route.source,
                start.upstream,
                how,
                extra=Event.TAKEN_OVER.extra,
            )

    def _reset(self, bounds: Bounds) -> int:
        """Where MirrorMaker 1 would have begun without a committed offset."""
        return bounds.source_end if self._flow.fetch.auto_offset_reset == "latest" else bounds.source_start


def _is_theirs(committed: Committed | None) -> bool:
    """Whether MirrorMaker 1 has committed it, and not we."""
    return committed is not None and committed.metadata != OURS
