"""A flow's claims and identity in the segments topic.

Claims are appended, confirmed, retracted and read here, and the identity is agreed on. Claims stay in memory after a
read, and the next refresh reads only newer records: sound as long as the topic is the same, since the topic is a log.
For each partition only the newest claims stay in memory, from a confirmed claim on: a position is nearly always among
the newest claims, and the history can be long.

An unclean leader election may cut the topic. A reader notices by the leader epoch of the last batch read (KIP-320), and
reads that partition from its start; a writer writes again what it has written behind the cut.
"""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from sparkmirror.events import Event
from sparkmirror.exact.durable.claims import (
    Claim,
    ClaimKey,
    Homes,
    OwnTopicRecord,
    Record,
    Retracted,
    TargetPartition,
    claim_key,
    claim_record,
    home_partition,
    homes_record,
    identity_record,
    read_record,
    source_record,
)
from sparkmirror.exact.durable.identity import Identity, succession
from sparkmirror.exact.durable.own_records import OwnRecord, OwnRecords
from sparkmirror.exact.durable.source_cluster import SourceCluster, agreed_source
from sparkmirror.kafka.cluster.topic_log import LogCut, LogEntry, LogPlace, LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.rpc import AnswerTooLarge, BrokerUnreachable

log = logging.getLogger(__name__)

KEPT_CLAIMS = 32
"""Number of confirmed claims kept in memory for each target partition."""

TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
"""Error codes for records that are too large, maybe only together."""

_IDENTITY_PARTITION = 0
_UNIQUE_BYTES = 16

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class HomesUnavailable(LogUnavailable):
    """Error for claims that can't be read or written now, in some home partitions."""

    def __init__(self, homes: Set[int], error: ConnectionError) -> None:
        ConnectionError.__init__(self, str(error))
        self.code = getattr(error, "code", 0)
        self.homes = homes


class _LastWrite(NamedTuple):
    """Place up to which this process has written to a home partition."""

    place: LogPlace
    last: Record | None
    """Record before the place; None: the place's epoch is the log's own."""
    cut: LogCut | None = None
    """Cut before the place, until all that was lost is written again."""


class ClaimLog:
    """One flow's claims and identity, in one segments topic."""

    def __init__(self, topic: TopicLog, homes: int = 0, *, remembers: bool = False) -> None:
        """Take the topic's log, and how many home partitions it has; 0: to be read.

        With `remembers` the newest claims written are kept in memory, to be written again if the topic is cut.
        """
        self._remembers = remembers
        self._log = topic
        self._homes = 0
        if homes:
            self._fix(homes)
        self._noted_homes: list[tuple[int, int]] = []
        """Offset and count of each record that says how many homes there are."""
        self._read_to: dict[int, LogPlace] = {}
        self._wrote_to: dict[int, _LastWrite] = {}
        self._own: dict[int, OwnRecords] = defaultdict(OwnRecords)
        """Newest own records in each home partition."""
        self._cut: set[int] = set()
        self._rescued: dict[int, dict[tuple[bytes, int, ClaimKey], Claim]] = defaultdict(dict)
        """Claims read before their home was cut, until the lost are written again."""
        self._claims: dict[TargetPartition, dict[ClaimKey, Claim]] = defaultdict(dict)
        self._floors: dict[TargetPartition, int] = {}
        """Sequences below which claims are not in memory.

        A position below needs all its partition's claims.
        """
        self._went_back: set[TargetPartition] = set()
        """Partitions with a new healing claim below all claims in memory.

        The target lost the records there.
        """
        self._proposals: list[tuple[int, Identity]] = []
        self._sources: list[tuple[int, SourceCluster]] = []

    def reach(self) -> None:
        """Connect, since there will be claims to write soon."""
        self._log.reach()

    def refresh(self, partitions: Iterable[TargetPartition]) -> None:
        """Read new records in the home partitions of these target partitions."""
        for home in {self.home(partition) for partition in partitions}:
            with self._needed(home):
                self._read_home(home)
        while self._went_back:
            partition = self._went_back.pop()
            self._floors.pop(partition, None)
            self._claims[partition] = {claim.key: claim for claim in self.whole(*partition)}
            self._forget_oldest(partition, self._claims[partition])

    def claims(self, topic_id: bytes, partition: int) -> Sequence[Claim]:
        """Return the claims read so far for a target partition.

        Claims of rival pumps are included. Only a long history's newest claims are returned.
        """
        return tuple(self._claims.get((topic_id, partition), {}).values())

    def whole(self, topic_id: bytes, partition: int) -> Sequence[Claim]:
        """Return all claims for a target partition, read again from the topic's start."""
        return self.wholes([(topic_id, partition)])[topic_id, partition]

    def wholes(self, partitions: Iterable[TargetPartition]) -> dict[TargetPartition, Sequence[Claim]]:
        """Return all claims for these partitions, read again from the topic's start."""
        by_partition: dict[TargetPartition, dict[ClaimKey, Claim]] = {partition: {} for partition in partitions}
        for home in sorted({self.home(partition) for partition in by_partition}):
            with self._needed(home):
                for record in self.history(home):
                    claims = by_partition.get((record.target_topic_id, record.partition))
                    if claims is None:
                        continue
                    if isinstance(record, Claim):
                        claims[record.key] = record
                    else:
                        claims.pop(record.key, None)
        return {partition: tuple(claims.values()) for partition, claims in by_partition.items()}

    def history(self, home: int) -> Iterator[Claim | Retracted]:
        """Yield the claims and retractions in one partition of the segments topic.

        They come in the order in which they were written.
        """
        place, more = LogPlace(), True
        while more:
            entries, place, more = self._log.read_on(home, place)
            for _, key, value in entries:
                record = read_record(key, value)
                if isinstance(record, Claim | Retracted):
                    yield record

    @contextmanager
    def _needed(self, home: int) -> Iterator[None]:
        """Raise `HomesUnavailable` for what fails.

        If a broker is away, the error names all homes that it leads.
        """
        try:
            yield
        except HomesUnavailable:
            raise
        except ConnectionError as error:
            is_away = isinstance(error, BrokerUnreachable) and not isinstance(error, AnswerTooLarge)
            raise HomesUnavailable(self._log.led_alike(home) if is_away else {home}, error) from error

    @property
    def topic(self) -> str:
        return self._log.topic

    @property
    def homes(self) -> int:
        """Number of partitions of the segments topic among which claims are dealt.

        The number is fixed when the flow begins (`fix_homes`): more partitions, that the topic got later, have no
        claims. Without a record of the number, the topic's present number counts.
        """
        if not self._homes:
            self._read_home(_IDENTITY_PARTITION)
            self._fix(min(self._noted_homes)[1] if self._noted_homes else self._log.partitions)
        return self._homes

    def home(self, partition: TargetPartition) -> int:
        """Return the segments topic's partition that has a target partition's claims."""
        return home_partition(*partition, self.homes)

    @property
    def has_fixed_homes(self) -> bool:
        """True if the topic says how many homes there are."""
        self._read_home(_IDENTITY_PARTITION)
        return bool(self._noted_homes)

    def fix_homes(self, count: int) -> None:
        """Write durably how many homes there are, unless the topic says so already."""
        if not self.has_fixed_homes:
            self._log.append(_IDENTITY_PARTITION, [homes_record(count, os.urandom(_UNIQUE_BYTES))])
            self._homes = 0

    def fitting_homes(self) -> int | None:
        """Return the highest home count that fits all claims in the topic.

        None if no number fits: claims were dealt by several numbers.
        """
        homes = {
            (home, record.target_topic_id, record.partition)
            for home in range(self._log.partitions)
            for record in self.history(home)
        }
        for count in range(self._log.partitions, 0, -1):
            if all(home_partition(topic_id, partition, count) == home for home, topic_id, partition in homes):
                return count
        return None

    def _fix(self, homes: int) -> None:
        self._homes = homes
        self._log.expect(homes)

    def claim(self, claims: Sequence[Claim]) -> None:
        """Make claims durable: new claims before their first batches, or confirmed claims."""
        _all_written(self._write(claims))

    def claim_each(self, claims: Sequence[Claim]) -> Mapping[int, ConnectionError]:
        """Make claims durable, as `claim` does, but each home partition's on their own.

        Return the home partitions whose claims are not known to be durable, with the reason.
        """
        return self._write(claims)

    def revise(self, claimed: Iterable[Claim], retracted: Iterable[Claim | Retracted]) -> None:
        """Write new or confirmed claims, and retract others: false, expired or replaced.

        They are written in the order of `in_safe_order`.
        """
        _all_written(self._write(in_safe_order(claimed, retracted)))

    def _write(self, changes: Iterable[Claim | Retracted]) -> dict[int, ConnectionError]:
        """Append changes; return the home partitions for which that failed."""
        homes: dict[int, list[OwnRecord]] = defaultdict(list)
        for change in changes:
            partition = change.target_topic_id, change.partition
            homes[self.home(partition)].append(_own(partition, change))
        appended = self._log.append_all({home: [own.record for own in listed] for home, listed in homes.items()})
        failed = dict(appended.failed)
        for home, place in appended.places.items() if self._remembers else ():
            self._keep(home, homes[home], appended.firsts[home])
            try:
                before = self._wrote_to.get(home)
                is_next = before is None or (before.cut is None and before.place.epoch == place.epoch)
                if is_next or not self._restore(home):
                    self._wrote_to[home] = _LastWrite(place, homes[home][-1].record)
            except ConnectionError as error:
                failed[home] = error
        return failed

    def _keep(self, home: int, written: Sequence[OwnRecord], first: int) -> None:
        for own in written:
            self._own[home].add(own._replace(first=first))

    def look_for_cuts(self) -> None:
        """Ask whether the homes written to still have all; write again what they lost."""
        if self._wrote_to:
            self._log.look_again()
            failed: dict[int, ConnectionError] = {}
            for home in tuple(self._wrote_to):
                try:
                    self._restore(home)
                except ConnectionError as error:
                    failed[home] = error
            _all_written(failed)

    def _restore(self, home: int) -> bool:
        """Write again what the log has lost of what was written, if the log was cut.

        Return True if that was looked for: then all is there that this process has written up to now.

        The order among records with different keys does not matter. The leader epoch of what was written is not known
        for sure, as a Produce tells none: a leader may have got another epoch unnoticed. So the answer by epochs may be
        wrong about whether the log was cut, and where. The log itself shows what is gone.
        """
        wrote = self._wrote_to[home]
        cut = wrote.cut or self._cut_before(home, wrote.place)
        if cut is None:
            return False
        missing, is_whole, seen_to = self._look_back(home, wrote)
        if is_whole and not missing and wrote.cut is None:
            self._wrote_to[home] = _LastWrite(seen_to, None)
            return True
        self._wrote_to[home] = wrote._replace(cut=cut)
        *before, place = seen_to, *_in_halves(missing, lambda part: self._write_again(home, part))
        for each in before:
            if each.epoch >= 0:
                self._log.see_whole(home, each)  # it may have been cut once more before the next write
        if missing:
            self._wrote_to[home] = _LastWrite(place, missing[-1].record)
        else:
            self._wrote_to[home] = _LastWrite(cut.place if place.epoch < 0 else place, None)
        self._note_cut(home, cut, f"{len(missing)} records are written again")
        return True

    def _cut_before(self, home: int, place: LogPlace) -> LogCut | None:
        try:
            self._log.see_whole(home, place)
        except LogCut as cut:
            return cut
        return None

    def _write_again(self, home: int, lost: Sequence[OwnRecord]) -> LogPlace:
        """Append lost records; return the place behind."""
        appended = self._log.append_all({home: [own.record for own in lost]})
        for error in appended.failed.values():
            if len(lost) == 1 and getattr(error, "code", 0) in TOO_LARGE:
                lacks = f"it lost a claim of {lost[0].size} bytes, more than it takes: raise its max.message.bytes"
                raise LogUnavailable(self.topic, lacks, 0) from error
            raise error
        self._keep(home, lost, appended.firsts[home])
        return appended.places[home]

    def _look_back(self, home: int, wrote: _LastWrite) -> tuple[list[OwnRecord], bool, LogPlace]:
        """Return the own records that a home partition has no more.

        Also return True if the last record before the place is still there: then the log was not cut. And return the
        place up to which the log was read, with the log's own epoch; without an epoch no own record is below.
        """
        own, last_at = self._own[home], wrote.place.offset - 1
        newest: dict[bytes, LogEntry] = {}
        place, more, is_whole = LogPlace(min(own.lowest_offset, last_at)), True, False
        while more:
            try:
                entries, place, more = self._log.read_on(home, place)
            except LogCut:
                if place.epoch >= 0:
                    raise
                break  # the log ends before
            for entry in entries:
                if entry.key is not None and entry.key in own:
                    newest[entry.key] = entry
                is_whole |= entry.offset == last_at and (entry.key, entry.value) == wrote.last
        return own.missing(newest), is_whole, place

    def _note_cut(self, home: int, cut: LogCut, then: str) -> None:
        self._cut.add(home)
        log.warning("%s (an unclean leader election?): %s", cut, then, extra=Event.SEGMENTS_CUT.extra)

    def take_cut(self) -> frozenset[int]:
        """Return the home partitions found cut since the last call; for any thread."""
        cut = frozenset(self._cut)
        self._cut -= cut
        return cut

    def forget(self, partition: TargetPartition, end: int) -> None:
        """Never again write a target partition's claim beyond a sequence."""
        for own in self._own.values():
            own.forget(partition, end)

    def agree(self, cluster_id: str, proposal: Identity | None) -> Identity | None:
        """Return the identity that all the flow's processes agree on, or None.

        The agreed identity is the last of the succession for this cluster (`identity`); of rival proposals the lowest
        offset wins (invariant 7). Without an agreed identity the
        proposal, if given, is appended; then the identity that is read back counts.
        """
        agreed = self._agreed(cluster_id)
        if not agreed and proposal is not None:
            agreed = self._propose(proposal)
        return agreed[-1] if agreed else None

    def source_cluster(self) -> SourceCluster | None:
        """Return the flow's source cluster, as agreed (R20); None: nothing was agreed."""
        self._read_home(_IDENTITY_PARTITION)
        return agreed_source(source for _, source in sorted(self._sources, key=_offset))

    def agree_source(self, proposal: SourceCluster) -> SourceCluster | None:
        """Append a proposal for the flow's source cluster; return the one that counts."""
        self._log.append(_IDENTITY_PARTITION, [source_record(proposal, os.urandom(_UNIQUE_BYTES))])
        return self.source_cluster()

    def is_present(self, identity: Identity) -> bool:
        """Tell whether this identity is still the flow's.

        Release 0.1's marker fence could replace the identity. A pump with a former identity would take its successor's
        records for foreign records.
        """
        agreed = self._agreed(identity.cluster_id)
        return not agreed or agreed[-1].producer == identity.producer

    def _propose(self, proposal: Identity) -> list[Identity]:
        self._log.append(_IDENTITY_PARTITION, [identity_record(proposal, os.urandom(_UNIQUE_BYTES))])
        return self._agreed(proposal.cluster_id)

    def _agreed(self, cluster_id: str) -> list[Identity]:
        """Return the agreed identities in order; the last counts."""
        self._read_home(_IDENTITY_PARTITION)
        return succession([identity for _, identity in sorted(self._proposals, key=_offset)], cluster_id)

    def _read_home(self, home: int) -> None:
        """Read news in a home partition, or the whole partition if its log was cut."""
        if home not in self._rescued:
            try:
                self._read_on(home)
            except LogCut as cut:
                self._note_cut(home, cut, "lost claims that were read before are written again")
            else:
                return
        known = self._rescued[home]
        known |= {_name(claim): claim for claim in self._forget_home(home)}
        retracted = self._read_on(home)
        lost = [claim for claim in known.values() if self._lacks(claim) and _retracted(claim) not in retracted]
        _in_halves(lost, self.claim)
        del self._rescued[home]

    def _read_on(self, home: int) -> set[Retracted]:
        """Read what is new in a home partition; return the retractions among it."""
        retracted, more = set[Retracted](), True
        while more:
            entries, self._read_to[home], more = self._log.read_on(home, self._read_to.get(home, LogPlace()))
            for offset, key, value in entries:
                record = read_record(key, value)
                self._take(offset, record)
                if isinstance(record, Retracted):
                    retracted.add(record)
        return retracted

    def _forget_home(self, home: int) -> list[Claim]:
        """Forget all that was read in a home partition; return its claims."""
        self._read_to.pop(home, None)
        known: list[Claim] = []
        for partition in [partition for partition in self._claims if self.home(partition) == home]:
            known += self._claims.pop(partition).values()
            self._floors.pop(partition, None)
            self._went_back.discard(partition)
        if home == _IDENTITY_PARTITION:
            self._proposals.clear()
            self._sources.clear()
            self._noted_homes.clear()
        return known

    def _lacks(self, claim: Claim) -> bool:
        """True if a claim should be in memory and is not."""
        partition = claim.target_topic_id, claim.partition
        is_kept = claim.sequence >= self._floors.get(partition, claim.sequence)
        return is_kept and claim.key not in self._claims.get(partition, {})

    def _take(self, offset: int, record: OwnTopicRecord | None) -> None:
        if isinstance(record, Identity):
            self._proposals.append((offset, record))
        elif isinstance(record, SourceCluster):
            self._sources.append((offset, record))
        elif isinstance(record, Homes):
            self._noted_homes.append((offset, record.number))
        elif isinstance(record, Claim):
            partition = record.target_topic_id, record.partition
            if record.sequence < self._floors.get(partition, record.sequence):
                if record.heals and not record.confirmed:
                    self._went_back.add(partition)
                return
            claims = self._claims[partition]
            claims[record.key] = record
            if len(claims) > 2 * KEPT_CLAIMS:
                self._forget_oldest(partition, claims)
        elif isinstance(record, Retracted):
            self._claims[record.target_topic_id, record.partition].pop(record.key, None)

    def _forget_oldest(self, partition: TargetPartition, claims: dict[ClaimKey, Claim]) -> None:
        """Drop all claims older than the newest confirmed claims, unconfirmed too.

        An old claim left in memory would seem to count until the first kept claim.
        """
        confirmed = sorted(sequence for (sequence, _), claim in claims.items() if claim.confirmed)
        if len(confirmed) > KEPT_CLAIMS:
            self._floors[partition] = confirmed[-KEPT_CLAIMS]
            for key in [key for key in claims if key[0] < self._floors[partition]]:
                del claims[key]


def in_safe_order(claimed: Iterable[Claim], retracted: Iterable[Claim | Retracted]) -> list[Claim | Retracted]:
    """Return the changes in a writing order that is safe against a kill between.

    A kill among large changes must not leave less known than before. So the claims are written with the highest
    sequence first: a split claim is shortened after its later parts are there. Retractions come last. A claim that is
    also written again is not retracted.
    """
    claimed = sorted(claimed, key=_sequence, reverse=True)
    kept = {_name(claim) for claim in claimed}
    gone = [_retracted(claim) for claim in retracted if _name(claim) not in kept]
    return [*claimed, *gone]


def _all_written(failed: Mapping[int, ConnectionError]) -> None:
    """Raise the first failure."""
    for error in failed.values():
        raise HomesUnavailable(failed.keys(), error) from error


def _in_halves(items: Sequence[Item], write: Callable[[Sequence[Item]], Answer]) -> list[Answer]:
    """Write items, in halves if they are too large together; return the answers."""
    if not items:
        return []
    try:
        return [write(items)]
    except ConnectionError as error:
        if len(items) == 1 or getattr(error, "code", 0) not in TOO_LARGE:
            raise
    middle = len(items) // 2
    return _in_halves(items[:middle], write) + _in_halves(items[middle:], write)


def _own(partition: TargetPartition, change: Claim | Retracted) -> OwnRecord:
    if isinstance(change, Claim):
        return OwnRecord(-1, partition, change.sequence + change.announced, claim_record(change))
    return OwnRecord(-1, partition, change.sequence, (claim_key(change), None))


def _sequence(claim: Claim) -> int:
    return claim.sequence


def _name(claim: Claim | Retracted) -> tuple[bytes, int, ClaimKey]:
    return claim.target_topic_id, claim.partition, claim.key


def _retracted(claim: Claim | Retracted) -> Retracted:
    return Retracted(claim.target_topic_id, claim.partition, *claim.key)


def _offset(proposal: tuple[int, Identity | SourceCluster]) -> int:
    return proposal[0]
