"""Taking partitions over from a MirrorMaker 2 that has stopped: where it ended we go on.

A partition is looked at before it is pumped, where Connect has a stored offset for it, or MirrorMaker 2 an offset sync
(it may have been killed before an offset was stored), and its target log ends with records that are not ours. What is
found is claimed as this flow's start, so that every pump begins there; nothing was sent by then. If MirrorMaker 2 had
it back for a while, what we claimed before that is retracted.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.log_tail import TailUnread, each_readable
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import segments_topic
from sparkmirror.durable.identity import Identity
from sparkmirror.durable.losses import LossLedger, losses_topic
from sparkmirror.events import Event
from sparkmirror.mm2.connect_offsets import offsets_topics
from sparkmirror.mm2.records import OffsetSync
from sparkmirror.mm2.stored_offsets import read_stored_offsets
from sparkmirror.mm2.stored_syncs import read_syncs, syncs_place
from sparkmirror.position.route import PartitionPair
from sparkmirror.position.target_reading import Unserved
from sparkmirror.sync.topic_rules import topic_rules
from sparkmirror.takeover.last_copied import LastCopied, Ours, Untold, told_by_bounds
from sparkmirror.takeover.last_copied_pool import Answer, LastCopiedOfMany, Unread
from sparkmirror.takeover.log_bounds import BothLogs, Bounds, by_target_leader, read_bounds
from sparkmirror.takeover.our_progress import ForeignEnds, SoFar
from sparkmirror.takeover.start_claims import Start, claim_starts
from sparkmirror.wire.topic_partition import TopicPartition

_BY_SYNCS = "by its offset syncs"

log = logging.getLogger(__name__)


class Takeover:
    """For one flow, whose lease is held. Each partition is looked at until it is settled, then not again."""

    def __init__(self, flow: FlowConfig) -> None:
        self._flow = flow
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-takeover")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-takeover")
        self._segments = SegmentLog(TopicLog(self._target, segments_topic(flow.source.alias)))
        self._ledger = LossLedger(TopicLog(self._target, losses_topic(flow.source.alias)))
        self._reader = LastCopiedOfMany(
            flow.source,
            flow.target,
            f"{flow.name}|sparkmirror-takeover",
            read_committed=flow.fetch.isolation_level == "read_committed",
        )
        self._settled: set[TopicPartition] = set()
        self.refused: dict[PartitionPair, str] = {}
        """What can't be taken over, and why: it must not be pumped."""
        self.waiting = False
        """Some of that may be told soon."""
        self._strange_said = False
        self.taken = 0
        """Partitions taken over since this process began."""

    def begin(self) -> None:
        """The lease was got: somebody else may have written since it was ours last."""
        self._settled.clear()

    def look(self, identity: Identity, routes: Iterable[PartitionPair], *, made: Container[str] = ()) -> None:
        """Take over what can be; `refused` says what can't. Raises `ConnectionError`s of a whole cluster.

        `made`: target topics that this flow has created itself, where there is nothing to take over.
        """
        routes = list(routes)
        self._settled |= {route.target for route in routes if route.target_topic in made}
        todo = [route for route in routes if route.target not in self._settled]
        if not todo:
            return
        self.refused, self.waiting = {}, False
        ends = ForeignEnds(self._target, self._segments, self._ledger, identity)
        foreign, unread = self._foreign(ends, todo)
        if not foreign and not unread:
            return
        topics = offsets_topics(self._flow.source.alias, self._flow.connect.offset_storage_topic)
        stored = read_stored_offsets(self._target, topics, self._flow.mm2_source)
        syncs = self._offset_syncs()
        copied = {where: _Copied(some[0].upstream, some[0].of.connector) for where, some in stored.items()}
        copied = {where: _Copied(sync.upstream, _BY_SYNCS) for where, sync in syncs.items()} | copied
        self._settled |= {route.target for route in todo if route.source not in copied}
        for route, reason in unread.items():
            if route.source in copied:
                self._refuse(route, reason, wait=True)
        begun = list[SoFar]()
        for leader, group in foreign.items():
            ours = [both for both in group if both.route.source in copied]
            try:
                begun += self._begun(ends, leader, ours)
            except ConnectionError as error:
                for both in ours:
                    if both.route.target not in self._settled:
                        self._refuse(both.route, str(error), wait=True)
        self._claim(identity, self._last_copied(begun, copied, syncs))

    def close(self) -> None:
        """Hang up."""
        self._source.close()
        self._target.close()

    def _refuse(self, route: PartitionPair, reason: str, *, wait: bool = False) -> None:
        self.refused[route] = reason
        self.waiting |= wait
        log.warning(
            "flow %s: %s-%d is not taken over: %s",
            self._flow.name,
            *route.source,
            reason,
            extra=Event.TAKEOVER_REFUSED.extra,
        )

    def _foreign(
        self, ends: ForeignEnds, todo: Sequence[PartitionPair]
    ) -> tuple[dict[int, list[BothLogs]], dict[PartitionPair, str]]:
        """Those that end with records that are not ours, by the target's leader, and where that can't be told, and why.

        The others are settled.
        """
        found: dict[int, list[BothLogs]] = {}
        unread: dict[PartitionPair, str] = {}
        for leader, group in by_target_leader(self._source, self._target, todo, unread.__setitem__).items():
            told: set[PartitionPair] = set()
            try:
                for some, foreign in each_readable(group, functools.partial(ends.among, leader)):
                    told |= {both.route for both in some}
                    if isinstance(foreign, TailUnread):
                        unread[some[0].route] = str(foreign)
                        continue
                    self._settled |= {both.route.target for both in some} - {both.route.target for both in foreign}
                    if foreign:
                        found.setdefault(leader, []).extend(foreign)
            except ConnectionError as error:
                unread |= {both.route: str(error) for both in group if both.route not in told}
        return found, unread

    def _begun(self, ends: ForeignEnds, leader: int, foreign: Sequence[BothLogs]) -> list[SoFar]:
        """What we have in each, as far as it may be for us to begin there; the others are settled, or refused."""
        begun = []
        for both, one in zip(foreign, ends.so_far(leader, foreign), strict=True):
            if isinstance(one, Unserved):
                self._refuse(both.route, str(one), wait=True)
            elif one is None:
                self._settled.add(both.route.target)
            else:
                begun.append(one)
        return begun

    def _last_copied(
        self,
        begun: Sequence[SoFar],
        copied: Mapping[TopicPartition, _Copied],
        syncs: Mapping[TopicPartition, OffsetSync],
    ) -> list[_Found]:
        """Where MirrorMaker 2 ended in each; those where that can't be told are settled, or refused."""
        bounds = read_bounds(self._source, self._target, (one.both for one in begun))
        answers: list[tuple[SoFar, Answer]] = []
        unread: list[tuple[SoFar, Unread]] = []
        for one in begun:
            source, known = one.both.route.source, bounds[one.both.route]
            sync = syncs.get(source)
            if isinstance(known, Bounds) and sync is not None and sync.downstream >= known.target_end:
                self._say_strange(one.both.route, sync, known.target_end)
                sync = None
                if copied[source].connector == _BY_SYNCS:
                    self._settled.add(one.both.route.target)
                    continue
            stored = copied[source].upstream
            ours = Ours(one.upstream, one.end) if one.upstream is not None and stored >= one.upstream else None
            answer = known if isinstance(known, Unserved) else told_by_bounds(known, stored)
            if isinstance(known, Bounds) and (answer is None or (ours is not None and isinstance(answer, LastCopied))):
                unread.append((one, Unread(one.both, known, stored, sync, ours)))
            elif answer is not None:
                answers.append((one, answer))
        read = self._reader.find([one for _, one in unread])
        answers += zip((one for one, _ in unread), read, strict=True)
        found = []
        for one, answer in answers:
            route = one.both.route
            of = copied[route.source]
            if isinstance(answer, Unserved):
                self._refuse(route, str(answer), wait=True)
            elif isinstance(answer, Untold) and (
                one.upstream is None or of.upstream >= one.upstream or not answer.strange
            ):
                self._refuse(route, str(answer), wait=answer.wait)
            elif isinstance(answer, LastCopied) and (one.upstream is None or answer.upstream >= one.upstream):
                found.append(_Found(one, of, answer))
            else:
                self._settled.add(route.target)  # MirrorMaker 2 has nothing that we have not: somebody else wrote
        return found

    def _say_strange(self, route: PartitionPair, sync: OffsetSync, end: int) -> None:
        """Say once that offset syncs are not of this target: two of one alias may share a topic for them."""
        if not self._strange_said:
            self._strange_said = True
            log.warning(
                "flow %s: the offset syncs of %s-%d tell of offset %d of %s-%d, which ends at %d: they are of another "
                "cluster %s, or of an earlier topic, and are left alone",
                self._flow.name,
                *route.source,
                sync.downstream,
                *route.target,
                end,
                self._flow.target.alias,
                extra=Event.OFFSET_SYNCS_STRANGE.extra,
            )

    def _claim(self, identity: Identity, found: Sequence[_Found]) -> None:
        """This flow goes on behind what MirrorMaker 2 copied."""
        starts = [Start(one.begun, one.last.upstream + 1, one.last.log_end) for one in found]
        failed = claim_starts(self._target, self._segments, identity, starts, "MirrorMaker 2")
        for begun, of, last in found:
            route = begun.both.route
            if route in failed:
                self._refuse(route, failed[route], wait=True)
                continue
            self.taken += 1
            self._settled.add(route.target)
            log.info(
                "flow %s: %s-%d is taken over from MirrorMaker 2 (%s): source offset %d is next, it had stored %d",
                self._flow.name,
                *route.source,
                of.connector,
                last.upstream + 1,
                of.upstream,
                extra=Event.TAKEN_OVER.extra,
            )

    def _offset_syncs(self) -> dict[TopicPartition, OffsetSync]:
        """MirrorMaker 2's newest one for each source partition; none if there is no topic that we may read."""
        place = syncs_place(self._flow, topic_rules(self._flow, self._flow.originals).policy)
        syncs = read_syncs(self._source if place.at_source else self._target, place.topic)
        return {(sync.topic, sync.partition): sync for sync in syncs}


class _Copied(NamedTuple):
    """What MirrorMaker 2 says it has copied of a source partition, and which connector has stored that."""

    upstream: int
    connector: str


class _Found(NamedTuple):
    """A partition that can be taken over."""

    begun: SoFar
    copied: _Copied
    last: LastCopied
