"""Partitions whose target logs end with records that are not ours, and what this flow has in them.

Blocking; for the driver.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.list_offsets import DEBUG_CONSUMER, LATEST, list_offsets
from sparkmirror.cluster.log_tail import TailUnread, each_readable, is_ours
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import Segment
from sparkmirror.durable.identity import Identity
from sparkmirror.durable.losses import LossLedger
from sparkmirror.position.decision import Doubt, TargetReading
from sparkmirror.position.foreign import ForeignRecords
from sparkmirror.position.foreign_notes import ForeignNotes
from sparkmirror.position.log_probe import LogProbe
from sparkmirror.position.settling import Settler, settle_replicated
from sparkmirror.position.target_reading import TargetReader, Unserved, by_topic
from sparkmirror.takeover.log_bounds import BothLogs

PROBED_AT_ONCE = 100
"""Partitions whose last batches are looked at in one request."""


class SoFar(NamedTuple):
    """What this flow has in a partition: so many records, and where it would go on; None: nowhere."""

    both: BothLogs
    sequence: int
    upstream: int | None
    end: int = -1
    """Where its records end at the target; -1: there are none."""


class ForeignEnds:
    """For one flow; what it is asked about is led by one broker of the target."""

    def __init__(self, target: ClusterClient, segments: SegmentLog, ledger: LossLedger, identity: Identity) -> None:
        self._target = target
        self._segments = segments
        self._ledger = ledger
        self._identity = identity

    def among(self, leader: int, group: Sequence[BothLogs]) -> list[BothLogs]:
        """Those that end with something we did not write. Raises `TailUnread` where that can't be told now."""
        targets = by_topic(both.route.target for both in group)
        ends = list_offsets(self._target, leader, targets, LATEST, replica_id=DEBUG_CONSUMER)
        for (topic, partition), end in ends.items():
            if end.error:  # a topic that was just created may not be known to its leader yet
                raise TailUnread(topic, partition, end.error)
        probe = self._probe(leader, group)
        foreign = []
        for start in range(0, len(group), PROBED_AT_ONCE):
            some = [both for both in group[start : start + PROBED_AT_ONCE] if ends[both.route.target].offset]
            asked = {both.route.target: ends[both.route.target].offset - 1 for both in some}
            headers = probe.headers(asked) if asked else {}
            for both in some:
                last = headers.get(both.route.target, ([], -1))[0][-1:]
                if not last or not is_ours(last[0], self._identity.wrote):
                    foreign.append(both)
        return foreign

    def so_far(self, leader: int, group: Sequence[BothLogs], *, whoever: bool = False) -> list[SoFar | Unserved | None]:
        """What we have in each of these; None if it is not for us to begin there. Raises `ConnectionError`s.

        `whoever` wrote last: else it is for us only where somebody else did.
        """
        if not group:
            return []
        result: list[SoFar | Unserved | None] = []
        for _, found in each_readable(group, functools.partial(self._so_far, leader, whoever)):
            result += [Unserved(str(found))] if isinstance(found, TailUnread) else found
        return result

    def _so_far(self, leader: int, whoever: bool, group: Sequence[BothLogs]) -> list[SoFar | Unserved | None]:
        topics = {both.target.name: both.target for both in group}
        ids = {name: topic.topic_id for name, topic in topics.items()}
        reader = TargetReader(self._target, self._identity)
        floors = reader.floors([both.route.target for both in group], topics, leader, self._segments)
        claimed = [both.route.target for both in group if self._claims(both)]
        readings = reader.read(claimed, topics, leader, floors) if claimed else {}
        foreign = ForeignNotes(self._ledger, {both.route.target: both.route for both in group}, ids)
        settler = Settler(self._segments, self._probe(leader, group), self._identity, foreign)
        read = {where: one for where, one in readings.items() if isinstance(one, TargetReading)}
        settled_ones = settle_replicated(settler, reader, leader, read, ids, settler.evidence(read, ids))
        found: list[SoFar | Unserved | None] = []
        for both in group:
            where = both.route.target
            reading = readings.get(where)
            if reading is None:
                found.append(SoFar(both, 0, None))
            elif isinstance(reading, Unserved):
                found.append(reading)
            else:
                settled = settled_ones[where]
                position = settled.position
                if isinstance(position, Doubt) and position.unreplicated:
                    found.append(Unserved(position.reason))
                elif isinstance(position, Doubt):
                    found.append(self._never_sent(both, reading))
                else:
                    theirs = whoever or _ends_foreign(settled.foreign, reading.log_end_after)
                    upstream = position.upstream
                    if whoever and position.supposed:
                        upstream = _proven(self._claims(both)[-1])
                    found.append(SoFar(both, position.sequence, upstream, position.end) if theirs else None)
        return found

    def _never_sent(self, both: BothLogs, reading: TargetReading) -> SoFar | None:
        """A start that was claimed, and nothing was sent: it may be claimed anew."""
        self._segments.refresh([(both.target.topic_id, both.route.partition)])
        claims = self._claims(both)
        if claims and reading.last_sequence is None and all(claim.is_start for claim in claims):
            return SoFar(both, claims[0].sequence, None)
        return None

    def _claims(self, both: BothLogs) -> list[Segment]:
        """Ours, the lowest first."""
        claims = self._identity.own(self._segments.claims(both.target.topic_id, both.route.partition))
        return sorted(claims, key=_sequence)

    def _probe(self, leader: int, group: Sequence[BothLogs]) -> LogProbe:
        ids = {both.target.name: both.target.topic_id for both in group}
        return LogProbe(self._target, leader, ids, self._identity)


def _proven(claim: Segment) -> int:
    """The source offset up to which it is known to be copied, where the target's log shows nothing any more."""
    return claim.next_upstream(claim.sequence + claim.announced * claim.confirmed)


def _ends_foreign(stretches: Sequence[ForeignRecords], end: int) -> bool:
    """Whether somebody else's records are a log's last, our own fences left out."""
    for stretch in reversed(stretches):
        if stretch.end != end or not stretch.fence:
            return stretch.end == end
        end = stretch.first
    return False


def _sequence(claim: Segment) -> int:
    return claim.sequence
