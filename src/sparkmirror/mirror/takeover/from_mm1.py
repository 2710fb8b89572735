"""Take partitions over from a stopped MirrorMaker 1.

MirrorMaker 1's consumer group at the source tells where it ended. The end is claimed as this flow's start, so that
every pump begins there; no record was sent by then. The takeover looks at a partition if this flow has copied no record
of it yet, or if MirrorMaker 1 ran again for a while: then MirrorMaker 1 has committed an offset itself, further on than
this flow's progress.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Sequence

from sparkmirror.config import FlowConfig
from sparkmirror.config.model import LegacyConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.losses import LossLedger, losses_topic
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.exact.position.target_reading import Unserved
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Committed, Groups, Offsets
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.group_offsets import IDLE
from sparkmirror.mirror.sync.mm1_commits import OURS
from sparkmirror.mirror.takeover.log_bounds import BothLogs, Bounds, by_target_leader, read_bounds
from sparkmirror.mirror.takeover.our_records import ForeignEnds, OurRecords
from sparkmirror.mirror.takeover.start_claims import Start, claim_starts

log = logging.getLogger(__name__)


class GroupTakeover:
    """Takeover for one flow, which holds the lease.

    Each partition is looked at until decided, and then not again.
    """

    def __init__(self, flow: FlowConfig, legacy: LegacyConfig) -> None:
        self._flow = flow
        self._group = legacy.group_id
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-takeover")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-takeover")
        self._groups = Groups(self._source)
        self._claim_log = ClaimLog(TopicLog(self._target, segments_topic(flow.source.alias)))
        self._ledger = LossLedger(TopicLog(self._target, losses_topic(flow.source.alias)))
        self._decided: set[TopicPartition] = set()
        self.refused: dict[PartitionPair, str] = {}
        """Partitions that can't be taken over and must not be pumped, with the reason."""
        self.waiting = False
        """True if some refusals may pass soon."""
        self.awaited: set[str] = set()
        """All reasons so far that only mean waiting; waiting is no failure."""
        self.taken = 0
        """Number of partitions taken over since this process began."""

    def begin(self) -> None:
        """Begin again after getting the lease: another mirror may have written meanwhile."""
        self._decided.clear()

    def look(self, identity: Identity, routes: Iterable[PartitionPair], *, made: Container[str] = ()) -> None:
        """Take over partitions where possible; `refused` has the rest.

        For a new topic, too, the group tells where to begin.
        """
        todo = [route for route in routes if route.target not in self._decided]
        self.refused, self.waiting = {}, False  # also if no partition is left: a topic may be gone, or made anew
        if not todo:
            return
        try:
            self._look(identity, todo)
        except (ConnectionError, SparkMirrorError) as error:
            # An undecided partition must not be pumped: the pump would begin elsewhere.
            for route in todo:
                if route.target not in self._decided and route not in self.refused:
                    self._refuse(route, str(error), wait=True)

    def close(self) -> None:
        self._source.close()
        self._target.close()

    def _look(self, identity: Identity, routes: Sequence[PartitionPair]) -> None:
        reason, wait = self._why_not()
        committed: Offsets = {}
        if not reason:
            answer = self._groups.committed([self._group])
            reason, wait = answer.refused.get(self._group, ""), False
            committed = answer.offsets.get(self._group, {})
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
        """Return why no partition can begin now, and True if the reason may pass.

        The reason follows from the group's state; empty if partitions can begin.
        """
        listed = self._groups.listed().get(self._group)
        named = f"group {self._group} at {','.join(self._flow.source.bootstrap_servers)}"
        if listed is None:
            return "", False
        if listed.type == "share" or listed.protocol not in ("", "consumer"):
            return f"{named} is no consumer group ({listed.type or listed.protocol}): write another group.id", False
        if listed.state in IDLE:
            return "", False
        return (
            f"MirrorMaker 1 still runs: {named} has members ({listed.state}); stop it; sparkmirror waits for that",
            True,
        )

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

    def _begun(
        self, identity: Identity, leader: int, group: Sequence[BothLogs], committed: Offsets
    ) -> list[OurRecords]:
        """Return this flow's progress in partitions that the flow may have to begin.

        The rest is decided or refused.
        """
        self._claim_log.refresh([(pair.target.topic_id, pair.route.partition) for pair in group])
        ours, begun = [], []
        for pair in group:
            claims = self._claim_log.claims(pair.target.topic_id, pair.route.partition)
            if identity.own(claims):
                ours.append(pair)
            else:
                begun.append(OurRecords(pair, 0, None))
        # MirrorMaker 1 chose partitions by key, or at random: the places of its records tell nothing.
        moved = [pair for pair in ours if _is_theirs(committed.get(pair.route.source))]
        self._decided |= {pair.route.target for pair in ours} - {pair.route.target for pair in moved}
        so_far = ForeignEnds(self._target, self._claim_log, self._ledger, identity).so_far(leader, moved, whoever=True)
        for pair, progress in zip(moved, so_far, strict=True):
            if isinstance(progress, Unserved):
                self._refuse(pair.route, str(progress), wait=True)
            elif progress is not None and (
                progress.upstream is None or committed[pair.route.source].offset > progress.upstream
            ):
                begun.append(progress)
            else:
                self._decided.add(pair.route.target)  # MirrorMaker 1 has copied no record that this flow lacks
        return begun

    def _take(self, identity: Identity, begun: Sequence[OurRecords], committed: Offsets) -> None:
        """Claim the starts; decide on the partitions that need no claim.

        A start is claimed if the group has committed an offset, or if the target is not empty; else `auto.offset.reset`
        alone says where to begin.
        """
        bounds = read_bounds(self._source, self._target, (so_far.pair for so_far in begun))
        starts = []
        for so_far in begun:
            route, known = so_far.pair.route, bounds[so_far.pair.route]
            stood = committed.get(route.source)
            if isinstance(known, Unserved):
                self._refuse(route, str(known), wait=True)
            elif stood is not None:
                starts.append(Start(so_far, stood.offset, known.target_end))
            elif known.target_end:
                starts.append(Start(so_far, self._reset(known), known.target_end))
            else:
                self._decided.add(route.target)
        failed = claim_starts(self._target, self._claim_log, identity, starts, "MirrorMaker 1")
        for start in starts:
            route = start.begun.pair.route
            if route in failed:
                self._refuse(route, failed[route], wait=True)
                continue
            self._decided.add(route.target)
            stood = committed.get(route.source)
            if _is_theirs(stood):
                self.taken += 1
                how = f"group {self._group} has committed"
            else:
                how = "by auto.offset.reset" if stood is None else "as this flow has committed before"
            log.info(
                "flow %s: %s-%d begins at source offset %d, %s",
                self._flow.name,
                *route.source,
                start.upstream,
                how,
                extra=Event.TAKEN_OVER.extra,
            )

    def _reset(self, bounds: Bounds) -> int:
        """Return the offset at which MirrorMaker 1 begins without a committed offset."""
        return bounds.source_end if self._flow.fetch.auto_offset_reset == "latest" else bounds.source_start


def _is_theirs(committed: Committed | None) -> bool:
    """True if MirrorMaker 1 committed the offset, and not sparkmirror."""
    return committed is not None and committed.metadata != OURS
