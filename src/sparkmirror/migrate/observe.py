"""Look at both clusters: make an `Observation`. Nothing is written.

A look takes about a dozen requests a broker. Fences are read before ends: so an end that is read under a complete fence
is one that nobody passes any more.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.exact.durable.losses import LossLedger, losses_topic
from sparkmirror.exact.maps.offset_map import Copied
from sparkmirror.exact.maps.partition_map import NOTHING_YET, Unmapped
from sparkmirror.kafka.cluster.acls import Acl, SecurityDisabled
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.group_members import describe_groups
from sparkmirror.kafka.cluster.groups import Groups
from sparkmirror.kafka.cluster.log_ends import APART_S, LogEnds, read_log_ends, settled
from sparkmirror.kafka.cluster.open_transactions import OpenTransaction, open_transactions
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.migrate.empty_partitions import first_places
from sparkmirror.migrate.fences_seen import NO_AUTHORIZER, fence_seen, group_readers, read_by_broker, read_denied
from sparkmirror.migrate.file import Fence, MigrationFile
from sparkmirror.migrate.observation import (
    ClusterSeen,
    FenceSeen,
    FlowSeen,
    GroupSeen,
    MemberSeen,
    Observation,
    Side,
    TopicSeen,
    WordSeen,
)
from sparkmirror.migrate.pair import Pair
from sparkmirror.mirror.sync.application_translator import Stored, Translation
from sparkmirror.mirror.sync.turn_order import FlowWords, TurnSide, words_in
from sparkmirror.snapshot.status_topic import read_status

_STATUS_S = 2.0
"""Seconds between two readings of status and loss ledger.

They take longer than all else.
"""

_ABSENT = {0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
"""Answers on a topic that is there, isn't, or can't be told from one that isn't."""

_Copied = Mapping[TopicPartition, Copied | Unmapped]
"""Ends of the partitions' copies, by the topic at its source."""


class PairObserver:
    """Look again and again; keeps what speeds up the next look. For one thread."""

    def __init__(self, file: MigrationFile, pair: Pair) -> None:
        self._file = file
        self._pair = pair
        self._topics = [topic for each in file.sets for topic in each.topics]
        self._names = {
            Side.SOURCE: list(self._topics),
            Side.TARGET: sorted({*self._topics, *(pair.copy_of(Side.SOURCE, topic) for topic in self._topics)}),
        }
        copies = {side: {pair.copy_of(side.other, topic) for topic in self._topics} for side in Side}
        self._read_names = {side: {*self._topics, *copies[side]} for side in Side}
        """Topics that the migration's groups read, by side.

        The topics themselves, and the other side's copies.
        """
        self._groups = [group for each in file.sets for group in each.groups]
        self._readers = {side: Groups(client) for side, client in pair.clients.items()}
        self._ends = {side: _Ends() for side in Side}
        self._slow = {side: _Slow(pair, side) for side in pair.flows}

    def look(self) -> Observation:
        """Observe both clusters.

        Raises `ClusterUnreachable`, and other `ConnectionError`s.
        """
        clusters = {side: self._cluster(side) for side in Side}
        copied = {side: self._copied(side, clusters[side]) for side in self._pair.flows}
        flows = {side: self._flow(side, clusters[side], copied) for side in self._pair.flows}
        return Observation(at_ms=int(time.time() * 1000), clusters=clusters, flows=flows)

    # --- clusters -------------------------------------------------------------------------------

    def _cluster(self, side: Side) -> ClusterSeen:
        pair = self._pair
        client, config = pair.clients[side], pair.configs[side]
        names = self._names[side]
        leaders = client.metadata(names)
        silent = {name: topic.error for name, topic in leaders.items() if topic.error not in _ABSENT}
        if silent:
            name, error = next(iter(silent.items()))
            raise ClusterUnreachable(f"cluster {config.alias}: {name} can't be seen now: {error_name(error)}")
        there = {name: topic for name, topic in leaders.items() if not topic.error}
        acls = self._acls(side)
        denials = pair.denials(side)
        own = pair.own(side)
        fences = {
            name: FenceSeen(impossible=acls) if isinstance(acls, str) else fence_seen(acls, name, own, denials)
            for name in there
        }
        partitions = [(name, index) for name, topic in there.items() for index in topic.partitions]
        ends, steady = self._ends[side].read(read_log_ends(client, partitions), fences)
        open_ones = open_transactions(client, partitions)
        topics = {}
        for name, topic in there.items():
            indexes = sorted(topic.partitions)
            known = {index: ends.ends[name, index] for index in indexes if (name, index) in ends.ends}
            topics[name] = TopicSeen(
                name=name,
                topic_id=topic.topic_id.hex(),
                ends={index: end.log_end for index, end in known.items()},
                watermarks={index: end.high_watermark for index, end in known.items()},
                steady=all((name, index) in steady for index in indexes),
                still_s=min((self._ends[side].still_s((name, index)) for index in indexes), default=0.0),
                leaderless=tuple(index for index in indexes if index not in known),
                open_transactions=tuple(
                    sorted(
                        {
                            _called(opened)
                            for index in indexes
                            if (opened := _open(open_ones, (name, index))) is not None
                        }
                    )
                ),
                transactions_untold=next(filter(None, (_untold(open_ones, (name, index)) for index in indexes)), ""),
                fence=fences[name],
            )
        return ClusterSeen(
            alias=config.alias,
            bootstrap=",".join(config.bootstrap_servers),
            cluster_id=client.cluster_id,
            brokers=len(client.brokers),
            authorizer=not isinstance(acls, str),
            topics=topics,
            groups=self._groups_at(side, acls, denials),
        )

    def _acls(self, side: Side) -> list[set[Acl]] | str:
        """Return each broker's ACLs; a text says why there are none to look at."""
        if self._file.fence is not Fence.ACL:
            return "the migration denies nothing by ACLs"
        try:
            return read_by_broker(self._pair.clients[side])
        except SecurityDisabled:
            return NO_AUTHORIZER

    def _groups_at(
        self, side: Side, acls: list[set[Acl]] | str, words: Mapping[str, tuple[Acl, ...]]
    ) -> dict[str, GroupSeen]:
        groups = self._readers[side]
        listed = groups.listed()
        fetched = groups.committed(self._groups)
        if fetched.refused:
            group, why = next(iter(fetched.refused.items()))
            raise ClusterUnreachable(f"cluster {groups.alias}: the offsets of group {group} can't be read: {why}")
        full = [name for name in self._groups if name in listed and listed[name].state not in ("", "Empty", "Dead")]
        members = describe_groups(self._pair.clients[side], full).groups if full else {}
        seen = {}
        for group in self._groups:
            state = listed[group].state if group in listed else ""
            offsets = fetched.offsets.get(group, {})
            seen[group] = GroupSeen(
                state=state,
                members=tuple(MemberSeen(each.client_id, each.host) for each in members[group].members)
                if group in members
                else (),
                offsets={read: each.offset for read, each in offsets.items() if read[0] in self._read_names[side]},
                readers=frozenset() if isinstance(acls, str) else group_readers(acls, group, self._pair.own(side)),
                read_denied=not isinstance(acls, str) and read_denied(acls, group, words),
            )
        return seen

    # --- flows ----------------------------------------------------------------------------------

    def _copied(self, side: Side, here: ClusterSeen) -> _Copied:
        """Return where the copies of the topics at `side` end."""
        topics = [here.topics[topic] for topic in self._topics if topic in here.topics]
        return self._pair.translators[side].copied(
            [(topic.name, part) for topic in topics for part in topic.watermarks],
            {topic.name: bytes.fromhex(topic.topic_id) for topic in topics},
        )

    def _flow(self, side: Side, here: ClusterSeen, copied: Mapping[Side, _Copied]) -> FlowSeen:
        slow = self._slow[side].read()
        positions, untranslated = self._positions(side, here, copied)
        return FlowSeen(
            name=self._pair.flows[side].name,
            at_work=slow.at_work,
            standbys=slow.standbys,
            topics={topic: self._word(side, here.topics.get(topic), topic, copied[side]) for topic in self._topics},
            positions=positions,
            untranslated=untranslated,
        )

    def _word(self, side: Side, there: TopicSeen | None, topic: str, copied: _Copied) -> WordSeen:
        words = {each: words_in(said.state, topic) for each, said in self._pair.words.items()}
        said_of_it = WordSeen(
            copy=self._pair.copy_of(side, topic),
            begun=_number(words, side) > _number(words, side.other),
            stopped=topic in self._pair.words[side].stopped,
            stopped_at=next((at for at in Side if at == self._pair.words[side].stopped.get(topic)), None),
            closed=topic in self._pair.words[side].closed,
        )
        if there is None:  # whether it can't be seen just now or was deleted: what was said of it stays said
            return said_of_it
        done = words[side].done
        if done is not None and not done.is_of(bytes.fromhex(there.topic_id)):
            done = None  # the word is about a topic that was deleted since
        ends = dict(done.ends) if done is not None else {}
        later = self._pair.words[side].state.accepted.get(topic)
        lags = [_lag(copied[topic, part], end) for part, end in there.watermarks.items()]
        return replace(
            said_of_it,
            done=done is not None,
            ends=ends,
            accepted={part: done.left_below(part, later) for part in there.ends} if done is not None else {},
            reached={
                part: copy_end.downstream
                for part, end in ends.items()
                if isinstance(copy_end := copied.get((topic, part)), Copied) and copy_end.upstream >= end
            }
            | (dict(done.reached) if done is not None else {}),
            lag=None if None in lags else sum(lag for lag in lags if lag is not None),
            foreign=self._slow[side].foreign.get(topic, ()),
        )

    def _positions(
        self, side: Side, here: ClusterSeen, copied: Mapping[Side, _Copied]
    ) -> tuple[dict[str, dict[TopicPartition, int | None]], dict[str, str]]:
        """Translate all groups' commits at `side`.

        By group and partition at the other side, with the first reason for None by group.
        """
        stored = [
            (group, Stored(topic, partition, offset))
            for group, seen in here.groups.items()
            for (topic, partition), offset in seen.offsets.items()
        ]
        positions: dict[str, dict[TopicPartition, int | None]] = {group: {} for group in here.groups}
        reasons: dict[str, str] = {}
        translated = self._translated(side, [each for _, each in stored], copied, self._last_ends(side, here))
        for (group, _), each in zip(stored, translated, strict=True):
            positions[group][each.topic, each.partition] = each.offset
            if each.offset is None:
                reasons.setdefault(group, f"{each.topic}-{each.partition}: {each.reason}")
        return positions, reasons

    def _last_ends(self, side: Side, here: ClusterSeen) -> dict[TopicPartition, int]:
        """Return the published ends of topics with renamed copies.

        Nothing behind them is copied.
        """
        ends: dict[TopicPartition, int] = {}
        for topic, there in here.topics.items():
            done = words_in(self._pair.words[side].state, topic).done
            if (
                done is not None
                and done.is_of(bytes.fromhex(there.topic_id))
                and self._pair.copy_of(side, topic) != topic
            ):
                ends |= {(topic, part): end for part, end in done.ends.items()}
        return ends

    def _translated(
        self,
        side: Side,
        stored: list[Stored],
        copied: Mapping[Side, _Copied],
        last_ends: Mapping[TopicPartition, int],
    ) -> list[Translation]:
        """Translate commits by both flows' maps.

        An offset among records that the other flow has written here is translated by that flow's map, backwards; all
        else by this side's flow. At a seam both agree.
        """
        forth = self._pair.translators[side].translate_each(stored)
        forth = [_at_end(each, answer, copied[side], last_ends) for each, answer in zip(stored, forth, strict=True)]
        forth = self._at_first_places(side, stored, forth, copied[side])
        if side.other not in self._pair.translators:
            return forth
        back = self._pair.translators[side.other].translate_each(stored, reverse=True)
        back = [_at_copys_end(each, answer, copied[side.other]) for each, answer in zip(stored, back, strict=True)]
        return [there if there.offset is not None else here for here, there in zip(forth, back, strict=True)]

    def _at_first_places(
        self, side: Side, stored: Sequence[Stored], answers: Sequence[Translation], copied: _Copied
    ) -> list[Translation]:
        """Place groups in partitions that have no record to copy."""
        copies = {
            each[:2]: (answer.topic, answer.partition)
            for each, answer in zip(stored, answers, strict=True)
            if answer.offset is None and copied.get(each[:2]) is NOTHING_YET
        }
        places = first_places(self._pair.clients[side], self._pair.clients[side.other], copies)
        return [
            answer._replace(offset=places[each[:2]], reason="") if each[:2] in places else answer
            for each, answer in zip(stored, answers, strict=True)
        ]


class _Ends:
    """One cluster's ends, compared with the reading before."""

    def __init__(self) -> None:
        self._before: LogEnds | None = None
        self._at = 0.0
        self._fences: Mapping[str, FenceSeen] = {}
        self._steady: frozenset[TopicPartition] = frozenset()
        self._changed: dict[TopicPartition, tuple[int, float]] = {}
        """Each partition's end, and when it was first seen."""

    def still_s(self, partition: TopicPartition) -> float:
        """Return for how many seconds a partition's end has not changed."""
        return time.monotonic() - self._changed[partition][1] if partition in self._changed else 0.0

    def read(self, now: LogEnds, fences: Mapping[str, FenceSeen]) -> tuple[LogEnds, frozenset[TopicPartition]]:
        """Return the reading, and the partitions that stand still.

        They have stood still since a reading that is older by `APART_S` at least.

        Both readings are made under the same fences.
        """
        at = time.monotonic()
        for partition, end in now.ends.items():
            if self._changed.get(partition, (-1, 0.0))[0] != end.log_end:
                self._changed[partition] = end.log_end, at
        if self._before is None or fences != self._fences:
            self._before, self._at, self._fences, self._steady = now, at, fences, frozenset()
        elif at - self._at >= APART_S:
            self._steady = frozenset(settled(self._before, now).ends)
            self._before, self._at = now, at
        else:
            self._steady = frozenset(
                still for still in self._steady if now.ends.get(still) == self._before.ends.get(still)
            )
        return now, self._steady


class _Slow:
    """A flow's status and loss ledger, read now and then."""

    def __init__(self, pair: Pair, side: Side) -> None:
        self._flow = pair.flows[side]
        client = pair.clients[side.other]
        self._ledger = TopicLog(client, losses_topic(self._flow.source.alias), may_be_absent=True)
        self._read_at = -_STATUS_S
        self.at_work = False
        self.standbys = 0
        self.foreign: dict[str, tuple[str, ...]] = {}

    def read(self) -> _Slow:
        """Read both again if they are old."""
        if time.monotonic() - self._read_at >= _STATUS_S:
            self._read()
            self._read_at = time.monotonic()
        return self

    def _read(self) -> None:
        self.at_work, self.standbys = False, 0
        with suppress(ClusterUnreachable):  # no mirror has run yet
            if (at_work := read_status(self._flow).at_work) is not None:
                self.at_work = True
                self.standbys = max((at_work.processes or 1) - 1, 0)
        foreign: dict[str, list[str]] = {}
        with suppress(ConnectionError):  # what was read before still stands
            for loss in LossLedger(self._ledger).read():
                if loss.outcome is LossOutcome.FOREIGN and loss.action != "expected":
                    foreign.setdefault(loss.source_topic, []).append(loss.words)
            self.foreign = {topic: tuple(words) for topic, words in foreign.items()}


def _lag(copied: Copied | Unmapped, end: int) -> int | None:
    """Return the offsets below `end` that a copy lacks; None: not known."""
    if isinstance(copied, Unmapped):
        return end if copied is NOTHING_YET else None
    return max(end - copied.upstream, 0)


def _at_end(
    stored: Stored, answer: Translation, copied: _Copied, last_ends: Mapping[TopicPartition, int]
) -> Translation:
    """Take the copy's end as the place in a partition without a record.

    And as the place behind a published end: a group there has read stragglers, which are never copied.
    """
    place = stored[:2]
    end = copied.get(place)
    if answer.offset is None and isinstance(end, Copied):
        is_last = place in last_ends and end.upstream >= last_ends[place]
        if end.upstream == stored.offset or (is_last and stored.offset > end.upstream):
            return answer._replace(offset=end.downstream, reason="")
    return answer


def _at_copys_end(stored: Stored, answer: Translation, copied: _Copied) -> Translation:
    """Take the end of the copied records as the place at a copy's end.

    A renamed copy without a record has nothing to read yet, and neither has a group at its beginning.
    """
    end = copied.get((answer.topic, answer.partition)) if answer.offset is None else None
    if isinstance(end, Copied) and end.downstream == stored.offset:
        return answer._replace(offset=end.upstream, reason="")
    if end is NOTHING_YET and stored.offset == 0 and stored.topic != answer.topic:
        return answer._replace(offset=0, reason="")
    return answer


def _number(words: Mapping[Side, FlowWords], side: Side) -> int:
    """Return the number of the newest turn that the flow from `side` has begun."""
    place = TurnSide.FIRST if side is Side.SOURCE else TurnSide.SECOND
    return words.get(side, FlowWords()).number(place)


def _open(told: Mapping[TopicPartition, OpenTransaction | str], partition: TopicPartition) -> OpenTransaction | None:
    opened = told.get(partition)
    return opened if isinstance(opened, OpenTransaction) else None


def _untold(told: Mapping[TopicPartition, OpenTransaction | str], partition: TopicPartition) -> str:
    reason = told.get(partition)
    return f"open transactions of partition {partition[1]}: {reason}" if isinstance(reason, str) else ""


def _called(opened: OpenTransaction) -> str:
    return opened.coordinated.transactional_id if opened.coordinated else f"producer id {opened.producer_id}"
