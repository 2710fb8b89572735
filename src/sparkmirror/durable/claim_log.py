"""The segments topic as a pump uses it: claims appended, confirmed, retracted and read, the identity agreed.

What was read is kept in memory and only the rest is read at the next refresh; the topic is a log, so
that is sound as long as the topic is the same. Of a partition's claims only the newest are kept, from a confirmed
one on: a position is nearly always among those, and history can be long.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.durable.claims import (
    ClaimKey,
    Record,
    Retracted,
    Segment,
    home_partition,
    identity_record,
    read_record,
    segment_key,
    segment_record,
)
from sparkmirror.durable.identity import Identity, succession

KEPT_CLAIMS = 32
"""Confirmed claims kept in memory for each target partition."""

_IDENTITY_PARTITION = 0
_UNIQUE_BYTES = 16

TargetPartition = tuple[bytes, int]
"""Topic id at the target, partition."""


class SegmentLog:
    """Claims and identity of one flow."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log
        self._read_to: dict[int, int] = {}
        self._claims: dict[TargetPartition, dict[ClaimKey, Segment]] = defaultdict(dict)
        self._floors: dict[TargetPartition, int] = {}
        """The sequences below which claims were left out; a position there needs all of them."""
        self._went_back: set[TargetPartition] = set()
        """Those whose target lost what lay there: a claim came that goes on below all that were kept."""
        self._proposals: list[tuple[int, Identity]] = []

    def refresh(self, partitions: Iterable[TargetPartition]) -> None:
        """Read what was appended to the homes of these target partitions since the last time."""
        count = self._log.partitions
        for home in {home_partition(topic_id, index, count) for topic_id, index in partitions}:
            self._read_home(home)
        while self._went_back:
            where = self._went_back.pop()
            self._floors.pop(where, None)
            self._claims[where] = {one.key: one for one in self.whole(*where)}
            self._forget_oldest(where, self._claims[where])

    def claims(self, topic_id: bytes, partition: int) -> Sequence[Segment]:
        """The claims read so far for a target partition, rivals' too; of a long history the newest."""
        return tuple(self._claims.get((topic_id, partition), {}).values())

    def whole(self, topic_id: bytes, partition: int) -> Sequence[Segment]:
        """All claims for a target partition, read anew from the topic's start."""
        return self.wholes([(topic_id, partition)])[topic_id, partition]

    def wholes(self, partitions: Iterable[TargetPartition]) -> dict[TargetPartition, Sequence[Segment]]:
        """All claims for these, read anew from the topic's start."""
        found: dict[TargetPartition, dict[ClaimKey, Segment]] = {where: {} for where in partitions}
        count = self._log.partitions
        for home in sorted({home_partition(topic_id, index, count) for topic_id, index in found}):
            for one in self.history(home):
                claims = found.get((one.target_topic_id, one.partition))
                if claims is None:
                    continue
                if isinstance(one, Segment):
                    claims[one.key] = one
                else:
                    claims.pop(one.key, None)
        return {where: tuple(claims.values()) for where, claims in found.items()}

    def history(self, home: int) -> Iterator[Segment | Retracted]:
        """Everything that one partition of the segments topic says of claims, in the order it was written."""
        offset, more = 0, True
        while more:
            entries, offset, more = self._log.read_some(home, offset)
            for _, key, value in entries:
                one = read_record(key, value)
                if isinstance(one, Segment | Retracted):
                    yield one

    @property
    def topic(self) -> str:
        """The segments topic's name."""
        return self._log.topic

    @property
    def homes(self) -> int:
        """How many partitions the segments topic has."""
        return self._log.partitions

    def claim(self, segments: Sequence[Segment]) -> None:
        """Make these claims durable. When this returns their first batches may be sent."""
        self._write(segments)

    def settle(self, claimed: Iterable[Segment], retracted: Iterable[Segment | Retracted]) -> None:
        """Write claims, or the same ones confirmed, and take others back, in the order of `settling`."""
        self._write(settling(claimed, retracted))

    def _write(self, changes: Iterable[Segment | Retracted]) -> None:
        count = self._log.partitions
        homes: dict[int, list[Record]] = defaultdict(list)
        for one in changes:
            record = segment_record(one) if isinstance(one, Segment) else (segment_key(one), None)
            homes[home_partition(one.target_topic_id, one.partition, count)].append(record)
        for home, records in homes.items():
            self._log.append(home, records)

    def agree(self, cluster_id: str, proposal: Identity | None) -> Identity | None:
        """The identity that all who ask agree on: the newest for this cluster (invariant 7, `identity`).

        With a proposal it is appended first if there is none yet, and what is then read back counts.
        """
        agreed = self._agreed(cluster_id)
        if not agreed and proposal is not None:
            agreed = self._propose(proposal)
        return agreed[-1] if agreed else None

    def is_present(self, identity: Identity) -> bool:
        """Tell whether this identity is still the flow's: release 0.1 could have another one follow (marker fence).

        A pump with a former identity would take its successor's records for foreign ones.
        """
        agreed = self._agreed(identity.cluster_id)
        return not agreed or agreed[-1].producer == identity.producer

    def _propose(self, proposal: Identity) -> list[Identity]:
        self._log.append(_IDENTITY_PARTITION, [identity_record(proposal, os.urandom(_UNIQUE_BYTES))])
        return self._agreed(proposal.cluster_id)

    def _agreed(self, cluster_id: str) -> list[Identity]:
        """All, from the first to the one that counts."""
        self._read_home(_IDENTITY_PARTITION)
        return succession([one for _, one in sorted(self._proposals, key=_offset)], cluster_id)

    def _read_home(self, home: int) -> None:
        more = True
        while more:
            entries, self._read_to[home], more = self._log.read_some(home, self._read_to.get(home, 0))
            for offset, key, value in entries:
                self._take(offset, read_record(key, value))

    def _take(self, offset: int, one: Segment | Identity | Retracted | None) -> None:
        if isinstance(one, Identity):
            self._proposals.append((offset, one))
        elif isinstance(one, Segment):
            where = one.target_topic_id, one.partition
            if one.sequence < self._floors.get(where, one.sequence):
                if one.heals and not one.confirmed:
                    self._went_back.add(where)
                return
            claims = self._claims[where]
            claims[one.key] = one
            if len(claims) > 2 * KEPT_CLAIMS:
                self._forget_oldest(where, claims)
        elif isinstance(one, Retracted):
            self._claims[one.target_topic_id, one.partition].pop(one.key, None)

    def _forget_oldest(self, where: TargetPartition, claims: dict[ClaimKey, Segment]) -> None:
        """All older ones, unconfirmed too: one that is left would seem to count until the first that is kept."""
        confirmed = sorted(sequence for (sequence, _), claim in claims.items() if claim.confirmed)
        if len(confirmed) > KEPT_CLAIMS:
            self._floors[where] = confirmed[-KEPT_CLAIMS]
            for key in [key for key in claims if key[0] < self._floors[where]]:
                del claims[key]


def settling(claimed: Iterable[Segment], retracted: Iterable[Segment | Retracted]) -> list[Segment | Retracted]:
    """The order in which changes are written, lest a kill among large ones leave less known than before.

    Where a claim was split it is shortened after the parts behind that are there, and only then others are taken back;
    nothing is that was claimed anew.
    """
    claimed = sorted(claimed, key=_sequence, reverse=True)
    kept = {_name(one) for one in claimed}
    gone = [_retracted(one) for one in retracted if _name(one) not in kept]
    return [*claimed, *gone]


def _sequence(segment: Segment) -> int:
    return segment.sequence


def _name(one: Segment | Retracted) -> tuple[bytes, int, ClaimKey]:
    return one.target_topic_id, one.partition, one.key


def _retracted(one: Segment | Retracted) -> Retracted:
    return Retracted(one.target_topic_id, one.partition, *one.key)


def _offset(proposal: tuple[int, Identity]) -> int:
    return proposal[0]
