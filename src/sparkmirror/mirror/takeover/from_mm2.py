"""Take partitions over from a stopped MirrorMaker 2, where its copy ends.

The takeover looks at a partition before a pump does, if Connect has a stored offset, or MirrorMaker 2 an offset sync,
for the partition, and if the target log ends with foreign records. (MirrorMaker 2 may have been killed before an offset
was stored.) The end is claimed as this flow's start, so that every pump begins there; no record was sent by then. If
MirrorMaker 2 ran again for a while, this flow's earlier claims are retracted.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.events import Event
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.losses import LossKind, LossLedger, losses_topic
from sparkmirror.exact.mm2.connect_offsets import offsets_topics
from sparkmirror.exact.mm2.connector_names import is_configured, may_be
from sparkmirror.exact.mm2.record_formats import OffsetSync
from sparkmirror.exact.mm2.stored_offsets import StoredOffset, read_stored_offsets
from sparkmirror.exact.mm2.stored_syncs import read_syncs, syncs_topic
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.exact.position.target_reading import Unserved
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.log_tail import TailUnread, each_readable
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.mirror.takeover.last_copied import LastCopied, OurEnd, Untold, told_by_bounds
from sparkmirror.mirror.takeover.last_copied_pool import Answer, LastCopiedOfMany, Unread
from sparkmirror.mirror.takeover.log_bounds import BothLogs, Bounds, by_target_leader, read_bounds
from sparkmirror.mirror.takeover.our_records import ForeignEnds, OurRecords
from sparkmirror.mirror.takeover.start_claims import Start, claim_starts

_BY_SYNCS = "by its offset syncs"

log = logging.getLogger(__name__)


class Takeover:
    """Takeover for one flow, which holds the lease.

    Each partition is looked at until decided, and then not again.
    """

    def __init__(self, flow: FlowConfig) -> None:
        self._flow = flow
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-takeover")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-takeover")
        self._claim_log = ClaimLog(TopicLog(self._target, segments_topic(flow.source.alias)))
        self._ledger = LossLedger(TopicLog(self._target, losses_topic(flow.source.alias)))
        self._reader = LastCopiedOfMany(
            flow.source,
            flow.target,
            f"{flow.name}|sparkmirror-takeover",
            read_committed=flow.fetch.isolation_level == "read_committed",
        )
        self._decided: set[TopicPartition] = set()
        self.refused: dict[PartitionPair, str] = {}
        """Partitions that can't be taken over and must not be pumped, with the reason."""
        self.waiting = False
        """True if some refusals may pass soon."""
        self._strange_said = False
        self.taken = 0
        """Number of partitions taken over since this process began."""

    def begin(self) -> None:
        """Begin again after getting the lease: another mirror may have written meanwhile."""
        self._decided.clear()

    def look(self, identity: Identity, routes: Iterable[PartitionPair], *, made: Container[str] = ()) -> None:
        """Take over partitions where possible; `refused` has the rest.

        `made` are target topics that this flow has created itself, without records to take over. Raises
        `ConnectionError`s if a whole cluster fails.
        """
        routes = list(routes)
        self._decided |= {route.target for route in routes if route.target_topic in made}
        todo = [route for route in routes if route.target not in self._decided]
        self.refused, self.waiting = {}, False  # also if no partition is left: a topic may be gone, or made anew
        if not todo:
            return
        ends = ForeignEnds(self._target, self._claim_log, self._ledger, identity)
        foreign, unread = self._foreign(ends, todo)
        if not foreign and not unread:
            return
        topics = offsets_topics(self._flow.source.alias, self._flow.connect.offset_storage_topic)
        stored = read_stored_offsets(self._target, topics, self._flow.mm2_source)
        syncs = self._offset_syncs()
        copied = {partition: [_Copied(sync.upstream, _BY_SYNCS)] for partition, sync in syncs.items()}
        counted = {partition: self._stored(offsets) for partition, offsets in stored.by_partition.items()}
        copied |= {partition: offsets for partition, offsets in counted.items() if offsets}
        if topics[0] not in stored.unreadable:  # the others' topics may well not exist
            self._decided |= {route.target for route in todo if route.source not in copied}
        for route, reason in unread.items():
            if route.target not in self._decided:
                self._refuse(route, reason, wait=True)
        self._ledger.outdate()
        begun = list[OurRecords]()
        for leader, group in foreign.items():
            ours = [pair for pair in group if pair.route.target not in self._decided]
            try:
                begun += self._begun(ends, leader, ours)
            except ConnectionError as error:
                for pair in ours:
                    if pair.route.target not in self._decided:
                        self._refuse(pair.route, str(error), wait=True)
        untold = [so_far.pair.route for so_far in begun if so_far.pair.route.source not in copied]
        for route in untold:
            self._refuse(route, self._may_be_told_by(topics[0]), wait=True)
        told = [so_far for so_far in begun if so_far.pair.route.source in copied]
        self._claim(identity, self._last_copied(told, copied, syncs))

    def close(self) -> None:
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

    def _may_be_told_by(self, topic: str) -> str:
        """Return the reason to wait for an offsets topic that can't be read now."""
        return (
            "the copy's last records, or those that it had, are not this flow's, and sparkmirror's principal may not "
            f"read topic {topic} of cluster {self._flow.target.alias}, which may say that MirrorMaker 2 copied them: "
            "grant READ on it"
        )

    def _foreign(
        self, ends: ForeignEnds, todo: Sequence[PartitionPair]
    ) -> tuple[dict[int, list[BothLogs]], dict[PartitionPair, str]]:
        """Return the partitions that end with foreign records, by target leader.

        Also return the partitions whose end is unknown, with the reason. The rest is decided.
        """
        by_leader: dict[int, list[BothLogs]] = {}
        unread: dict[PartitionPair, str] = {}
        for leader, group in by_target_leader(self._source, self._target, todo, unread.__setitem__).items():
            told: set[PartitionPair] = set()
            try:
                for batch, foreign in each_readable(group, functools.partial(ends.among, leader)):
                    told |= {pair.route for pair in batch}
                    if isinstance(foreign, TailUnread):
                        unread[batch[0].route] = str(foreign)
                        continue
                    self._decided |= {pair.route.target for pair in batch} - {pair.route.target for pair in foreign}
                    if foreign:
                        by_leader.setdefault(leader, []).extend(foreign)
            except ConnectionError as error:
                unread |= {pair.route: str(error) for pair in group if pair.route not in told}
        return by_leader, unread

    def _begun(self, ends: ForeignEnds, leader: int, foreign: Sequence[BothLogs]) -> list[OurRecords]:
        """Return this flow's progress in partitions that the flow may have to begin.

        The rest is decided or refused.
        """
        begun = []
        for pair, so_far in zip(foreign, ends.so_far(leader, foreign), strict=True):
            if isinstance(so_far, Unserved):
                self._refuse(pair.route, str(so_far), wait=True)
            elif so_far is None:
                self._decided.add(pair.route.target)
            else:
                begun.append(so_far)
        return begun

    def _stored(self, offsets: Sequence[StoredOffset]) -> list[_Copied]:
        """Return the stored offsets that count, the newest first.

        The newest alone counts if its connector name follows from the configuration. Any other name may be this flow's,
        or belong to a flow to a further target; a lone one is likely to be this flow's. Of offsets stored in the same
        millisecond none is the newest alone.
        """
        ours = [stored for stored in offsets if may_be(self._flow, stored.of.connector)]
        configured = [stored for stored in ours if is_configured(self._flow, stored.of.connector)]
        ours.sort(key=lambda stored: (-stored.stored_ms, stored in configured))
        if configured[:1] == ours[:1]:
            return [_Copied(stored.upstream, stored.of.connector) for stored in configured[:1]]
        likely = len({stored.of.connector for stored in ours if stored not in configured}) == 1
        told: dict[int, _Copied] = {}
        for stored in ours:
            if stored not in configured[1:]:
                of = _Copied(stored.upstream, stored.of.connector, older=likely and bool(told))
                told.setdefault(stored.upstream, of)
        return list(told.values())

    def _begun_anew(self, so_far: OurRecords, bounds: Bounds) -> tuple[OurRecords, bool]:
        """Return the progress, and True for a target topic that this flow begins again.

        The target topic was created again, and has no record from this flow yet: the flow begins at the source's start.
        """
        topic_id, partition = so_far.pair.target.topic_id.hex(), so_far.pair.route.partition
        if so_far.sequence or not any(
            loss.kind is LossKind.TARGET_RECREATED for loss in self._ledger.known(topic_id, partition)
        ):
            return so_far, False
        upstream = bounds.source_start if so_far.upstream is None else so_far.upstream
        return so_far._replace(upstream=upstream, end=max(so_far.end, 0)), True

    def _last_copied(
        self,
        begun: Sequence[OurRecords],
        copied: Mapping[TopicPartition, Sequence[_Copied]],
        syncs: Mapping[TopicPartition, OffsetSync],
    ) -> list[_Found]:
        """Return the partitions with MirrorMaker 2's end; the rest is decided or refused."""
        bounds = read_bounds(self._source, self._target, (so_far.pair for so_far in begun))
        answers: list[tuple[OurRecords, _Copied, Answer]] = []
        unread: list[tuple[OurRecords, _Copied, Unread]] = []
        for so_far in begun:
            source, known = so_far.pair.route.source, bounds[so_far.pair.route]
            if isinstance(known, Unserved):
                answers.append((so_far, copied[source][0], known))
                continue
            sync = syncs.get(source)
            if sync is not None and sync.downstream >= known.target_end:
                self._say_strange(so_far.pair.route, sync, known.target_end)
                sync = None
                if copied[source][0].connector == _BY_SYNCS:
                    self._decided.add(so_far.pair.route.target)
                    continue
            so_far, recreated = self._begun_anew(so_far, known)
            # Any tail agrees with an offset below the source's log start: such an older offset can be neither proved
            # nor disproved. It may be right, so the newest offset counts only if the target's last record shows it.
            gone = [of for of in copied[source] if of.older and of.upstream < known.source_start]
            doubted = any(so_far.upstream is None or of.upstream >= so_far.upstream for of in gone)
            for of in copied[source]:
                if of in gone:
                    continue
                ours = None
                if so_far.upstream is not None and of.upstream >= so_far.upstream:
                    ours = OurEnd(so_far.upstream, so_far.end, recreated)
                told = told_by_bounds(known, of.upstream)
                if told is None or ((doubted or ours is not None) and isinstance(told, LastCopied)):
                    question = Unread(
                        pair=so_far.pair, bounds=known, stored=of.upstream, sync=sync, ours=ours, doubted=doubted
                    )
                    unread.append((so_far, of, question))
                else:
                    answers.append((so_far, of, told))
        read = self._reader.find([question for _, _, question in unread])
        answers += [(so_far, of, answer) for (so_far, of, _), answer in zip(unread, read, strict=True)]
        outcomes: dict[PartitionPair, list[_Found | _Refused | None]] = {}
        for so_far, of, answer in answers:
            outcome = _outcome(so_far, of, answer)
            if not of.older or not _is_disproved(outcome):
                outcomes.setdefault(so_far.pair.route, []).append(outcome)
        takeovers = []
        for route, several in outcomes.items():
            match _settled(several, copied[route.source]):
                case _Refused(reason, wait):
                    self._refuse(route, reason, wait=wait)
                case None:
                    self._decided.add(route.target)  # no further record of MirrorMaker 2: a foreign producer wrote
                case takeover:
                    takeovers.append(takeover)
        return takeovers

    def _say_strange(self, route: PartitionPair, sync: OffsetSync, end: int) -> None:
        """Warn once that offset syncs are for a different target.

        Two targets with the same alias may share an offset syncs topic.
        """
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

    def _claim(self, identity: Identity, takeovers: Sequence[_Found]) -> None:
        """Claim that this flow continues after the records copied by MirrorMaker 2."""
        starts = [Start(takeover.begun, takeover.last.upstream + 1, takeover.last.log_end) for takeover in takeovers]
        failed = claim_starts(self._target, self._claim_log, identity, starts, "MirrorMaker 2")
        for begun, of, last in takeovers:
            route = begun.pair.route
            if route in failed:
                self._refuse(route, failed[route], wait=True)
                continue
            self.taken += 1
            self._decided.add(route.target)
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
        """Return MirrorMaker 2's newest offset sync for each source partition.

        Empty if the topic is missing or the principal may not read the topic.
        """
        topic = syncs_topic(self._flow, topic_rules(self._flow).policy)
        syncs = read_syncs(self._source if topic.at_source else self._target, topic.name)
        return {(sync.topic, sync.partition): sync for sync in syncs}


class _Copied(NamedTuple):
    """Last offset that MirrorMaker 2 says it has copied, and the storing connector."""

    upstream: int
    connector: str
    older: bool = False
    """True next to a newer offset from the likely connector.

    Then this offset counts unless the logs disagree with it, or no longer reach back to it.
    """


class _Found(NamedTuple):
    """A partition that can be taken over."""

    begun: OurRecords
    copied: _Copied
    last: LastCopied


class _Refused(NamedTuple):
    """Reason why a partition can't be taken over; `wait`: the reason may pass.

    `strange`: the logs disagree with the stored offset.
    """

    reason: str
    wait: bool
    strange: bool = False


def _outcome(so_far: OurRecords, of: _Copied, answer: Answer) -> _Found | _Refused | None:
    """Return what follows from an answer.

    `None` if MirrorMaker 2 has copied no record that this flow lacks.
    """
    if isinstance(answer, Unserved):
        return _Refused(str(answer), wait=True)
    if isinstance(answer, Untold):
        is_theirs = so_far.upstream is None or of.upstream >= so_far.upstream or not answer.strange
        return _Refused(str(answer), answer.wait, answer.strange) if is_theirs else None
    return _Found(so_far, of, answer) if so_far.upstream is None or answer.upstream >= so_far.upstream else None


def _is_disproved(outcome: _Found | _Refused | None) -> bool:
    """Tell whether the logs disagree with a stored offset.

    A leader that does not answer, or a tail with several readings, disproves no offset.
    """
    return outcome is None or (isinstance(outcome, _Refused) and outcome.strange)


def _settled(outcomes: Sequence[_Found | _Refused | None], copied: Sequence[_Copied]) -> _Found | _Refused | None:
    """Return the outcome on which all stored offsets agree, else a refusal."""
    refused = [outcome for outcome in outcomes if isinstance(outcome, _Refused)]
    waiting = next((outcome for outcome in refused if outcome.wait), None)
    ends = {outcome.last.upstream if isinstance(outcome, _Found) else None for outcome in outcomes}
    if waiting is not None or len(refused) == len(outcomes):
        return waiting or refused[0]
    if len(ends) == 1 and not refused:
        return outcomes[0]
    names = " and ".join(f"{of.connector} ({of.upstream})" for of in copied)
    return _Refused(
        f"several connectors have stored an offset, {names}, and the logs don't tell which of them copies to this "
        "target: run sparkmirror on the right connector's own file, or name its offsets topic as offset.storage.topic",
        wait=False,
    )
