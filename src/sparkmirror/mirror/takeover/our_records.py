"""Partitions whose target logs end with foreign records, and the flow's own.

Blocking; for the driver.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.chunks import chunks
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.losses import LossLedger
from sparkmirror.exact.position.decision import Doubt, TargetReading
from sparkmirror.exact.position.foreign import ForeignRecords
from sparkmirror.exact.position.led_positions import LedPositions
from sparkmirror.exact.position.log_probe import LogProbe
from sparkmirror.exact.position.target_reading import Unserved, by_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import DEBUG_CONSUMER, LATEST, list_offsets
from sparkmirror.kafka.cluster.log_tail import TailUnread, each_readable, is_ours
from sparkmirror.mirror.takeover.log_bounds import BothLogs

PROBED_AT_ONCE = 100
"""Partitions whose last batches are looked at in one request."""


class OurRecords(NamedTuple):
    """The flow's records in a target partition, by its position and claims.

    Foreign records may follow.
    """

    pair: BothLogs
    sequence: int
    """Number of records: the next sequence."""
    upstream: int | None
    """Next source offset; `None` if the flow has copied no record."""
    end: int = -1
    """End of the flow's records at the target; -1 if there are no records."""


class ForeignEnds:
    """Examine one flow's partitions that one target broker leads."""

    def __init__(self, target: ClusterClient, claim_log: ClaimLog, ledger: LossLedger, identity: Identity) -> None:
        self._target = target
        self._claim_log = claim_log
        self._ledger = ledger
        self._identity = identity

    def among(self, leader: int, group: Sequence[BothLogs]) -> list[BothLogs]:
        """Return the partitions that end with foreign records.

        Raises `TailUnread` if the end is unknown now.
        """
        targets = by_topic(pair.route.target for pair in group)
        ends = list_offsets(self._target, leader, targets, LATEST, replica_id=DEBUG_CONSUMER)
        for (topic, partition), end in ends.items():
            if end.error:  # the leader may not know a new topic yet
                raise TailUnread(topic, partition, end.error)
        probe = self._probe(leader, group)
        foreign = []
        for chunk in chunks(group, PROBED_AT_ONCE):
            batch = [pair for pair in chunk if ends[pair.route.target].offset]
            asked = {pair.route.target: ends[pair.route.target].offset - 1 for pair in batch}
            headers = probe.headers(asked) if asked else {}
            for pair in batch:
                last = headers.get(pair.route.target, ([], -1))[0][-1:]
                if not last or not is_ours(last[0], self._identity.wrote):
                    foreign.append(pair)
        return foreign

    def so_far(
        self, leader: int, group: Sequence[BothLogs], *, whoever: bool = False
    ) -> list[OurRecords | Unserved | None]:
        """Return the flow's progress in each partition; `None` if it must not begin.

        By default the flow may begin only where a foreign producer wrote last; with `whoever`, the last producer does
        not matter. Raises `ConnectionError`s.
        """
        if not group:
            return []
        result: list[OurRecords | Unserved | None] = []
        for _, progress in each_readable(group, functools.partial(self._so_far, leader, whoever)):
            result += [Unserved(str(progress))] if isinstance(progress, TailUnread) else progress
        return result

    def _so_far(self, leader: int, whoever: bool, group: Sequence[BothLogs]) -> list[OurRecords | Unserved | None]:
        topics = {pair.target.name: pair.target for pair in group}
        pairs = [pair.route for pair in group]
        positions = LedPositions(self._target, self._claim_log, self._ledger, self._identity, leader, pairs, topics)
        self._claim_log.refresh((pair.target.topic_id, pair.route.partition) for pair in group)
        readings = positions.read([pair.route.target for pair in group if self._claims(pair)])
        answers = positions.resolve(positions.readings)
        progress: list[OurRecords | Unserved | None] = []
        for pair in group:
            partition = pair.route.target
            reading = readings.get(partition)
            if reading is None:
                progress.append(OurRecords(pair, 0, None))
            elif isinstance(reading, Unserved):
                progress.append(reading)
            else:
                resolved = answers[partition]
                position = resolved.position
                if isinstance(position, Doubt) and position.unreplicated:
                    progress.append(Unserved(position.reason))
                elif isinstance(position, Doubt):
                    unsettled = Unserved(position.reason) if position.wait else None
                    progress.append(self._never_sent(pair, reading) or unsettled)
                elif not reading.is_replicated(position):
                    progress.append(Unserved("its replicas have not confirmed the flow's newest records yet"))
                else:
                    may_begin = whoever or _ends_foreign(resolved.foreign, reading.log_end_after)
                    upstream = position.upstream
                    if whoever and position.supposed:
                        upstream = _proven(self._claims(pair)[-1])
                    progress.append(OurRecords(pair, position.sequence, upstream, position.end) if may_begin else None)
        return progress

    def _never_sent(self, pair: BothLogs, reading: TargetReading) -> OurRecords | None:
        """Return a progress for a claimed start without records: it may be claimed again."""
        self._claim_log.refresh([(pair.target.topic_id, pair.route.partition)])
        claims = self._claims(pair)
        if claims and reading.last_sequence is None and all(claim.is_start for claim in claims):
            return OurRecords(pair, claims[0].sequence, None)
        return None

    def _claims(self, pair: BothLogs) -> list[Claim]:
        """Return this flow's claims, the lowest first."""
        claims = self._identity.own(self._claim_log.claims(pair.target.topic_id, pair.route.partition))
        return sorted(claims, key=_sequence)

    def _probe(self, leader: int, group: Sequence[BothLogs]) -> LogProbe:
        ids = {pair.target.name: pair.target.topic_id for pair in group}
        return LogProbe(self._target, leader, ids, self._identity)


def _proven(claim: Claim) -> int:
    """Return the source offset up to which claims prove the copy into an emptied log."""
    return claim.next_upstream(claim.sequence + claim.announced * claim.confirmed)


def _ends_foreign(stretches: Sequence[ForeignRecords], end: int) -> bool:
    """Tell whether foreign records end a log; this flow's own fences are left out."""
    for stretch in reversed(stretches):
        if stretch.end != end or not stretch.fence:
            return stretch.end == end
        end = stretch.first
    return False


def _sequence(claim: Claim) -> int:
    return claim.sequence
