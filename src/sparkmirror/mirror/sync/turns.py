"""Turns of two opposite flows: drain, and begin the next turn.

Each function may be repeated: it finds out by both flows' words, claims and logs what is left to do. A topic's turn
ends in this order: its ends are published (`moved_writers`), `drained` until nothing is missing, then `start_turn` for
the opposite flow with what `drained` returned. The way back from there is the next turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import NamedTuple

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ClusterUnreachable, SparkMirrorError
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim, segments_topic, turn_claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.losses import LossLedger, losses_topic
from sparkmirror.exact.durable.noted_progress import ProgressLog, ReportedProgress, TopicProgress
from sparkmirror.exact.maps.offset_map import Copied
from sparkmirror.exact.maps.partition_map import Unmapped
from sparkmirror.exact.position.decision import unwrap
from sparkmirror.exact.position.loss_detection import LedgerPosition, turned
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.exact.position.target_reading import by_topic
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.list_offsets import DEBUG_CONSUMER, LATEST, offsets_by_leader
from sparkmirror.kafka.cluster.producers import describe_producers
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.application_translator import ApplicationTranslator
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.mirror.sync.turn_order import FlowWords, TurnSide, WhoseTurn, whose_turn, words_in
from sparkmirror.pump.messages.control import Border, Control, ControlState, DoneTopic, TurnStart, control_topic

_ROLE = "sparkmirror-turns"


class NotTurned(SparkMirrorError):
    """A turn that can't begin or end now; the message has the reason."""


class TopicTurn(NamedTuple):
    """Words of both flows on a topic, and whose turn it is."""

    own: FlowWords
    """Words of the flow that was asked about."""
    opposite: FlowWords
    turn: WhoseTurn


class Drained(NamedTuple):
    """Progress of topics with published ends."""

    borders: Mapping[str, Mapping[int, Border]]
    """Border for each source partition that is copied to its end, by topic."""
    missing: Mapping[TopicPartition, str]
    """Reason for each other partition, in one line."""


Borders = Mapping[str, Mapping[int, Border]]
"""Borders by source topic of the flow whose turn ended, and partition."""


def read_turns(flow: FlowConfig, topics: Iterable[str]) -> dict[str, TopicTurn]:
    """Return both flows' words on the flow's source topics, and whose turn it is.

    Raises `ClusterUnreachable`, and `NotTurned` if the flow takes no turns.
    """
    side = turn_side(flow)
    own = _words(flow.target, flow.source.alias, flow.name)
    theirs = _words(flow.source, flow.target.alias, flow.name)
    turns = {}
    for topic in topics:
        mine, opposite = words_in(own, topic), words_in(theirs, topic)
        first, second = (mine, opposite) if side is TurnSide.FIRST else (opposite, mine)
        turns[topic] = TopicTurn(mine, opposite, whose_turn(first, second))
    return turns


def drained(flow: FlowConfig, topics: Collection[str]) -> Drained:
    """Tell how far the flow has come to the published ends of these source topics.

    By the offset map: claims, and the target's logs below their high watermarks. So nothing waits for the word in the
    control topic. Raises `NotTurned` for a topic without published ends, and `ClusterUnreachable`.
    """
    told = read_turns(flow, topics)
    ends: dict[TopicPartition, int] = {}
    for topic, each in told.items():
        if each.own.done is None or each.turn.side is not turn_side(flow):
            raise NotTurned(f"flow {flow.name}: no end of its turn is published for {topic}")
        ends |= {(topic, partition): end for partition, end in each.own.done.ends.items()}
    with _client(flow, flow.source) as source, closing(ApplicationTranslator.of(flow)) as translator:
        ids = {topic: there.topic_id for topic, there in source.metadata(list(topics)).items()}
        copied = translator.copied(list(ends), ids)
        log_ends = offsets_by_leader(source, ends, LATEST, replica_id=DEBUG_CONSUMER)
    borders: dict[str, dict[int, Border]] = {topic: {} for topic in topics}
    missing: dict[TopicPartition, str] = {}
    for (topic, partition), end in ends.items():
        words = told[topic].own
        border = _border(words, partition, copied[topic, partition], log_ends.get((topic, partition)))
        if isinstance(border, Border):
            borders[topic][partition] = border
        else:
            missing[topic, partition] = f"{topic}-{partition}: {border} (its end is {end})"
    return Drained(borders, missing)


def _border(words: FlowWords, partition: int, copied: Copied | Unmapped, log_end: int | None) -> Border | str:
    """Return the border, or the reason why the partition is not drained."""
    assert words.done is not None  # noqa: S101 - the caller has looked
    end, is_told = words.done.ends[partition], partition in words.done.reached
    if isinstance(copied, Unmapped):
        return copied.reason
    if copied.upstream < end:
        return f"copied up to offset {copied.upstream}"
    if not is_told and log_end is None:
        return "it has no leader now"
    if not is_told and log_end != end:
        return f"records came after its end, up to offset {log_end}, and its pump has not said that it has stopped"
    begun = words.begun
    at_target = copied.downstream
    if begun is not None and partition in begun.starts and copied.records == begun.sequences.get(partition):
        at_target = begun.starts[partition].downstream  # nothing was copied: what lies there is not the flow's
    return Border(at_target, max(end, words.done.copied_to(partition)), copied.records)


def start_turn(flow: FlowConfig, borders: Borders) -> dict[TopicPartition, int]:
    """Begin the flow's turn in topics that the opposite flow has drained.

    `borders` are what `drained` has returned for the opposite flow. The start claims are durable before the word.
    Return how many offsets lie behind each border at the flow's target already, if any: stragglers, which the flow
    names in its ledger and steps over. Raises `NotTurned` and `ClusterUnreachable`.
    """
    told = read_turns(flow, borders)
    due = {topic: parts for topic, parts in borders.items() if not _has_begun(told[topic].own, parts)}
    for topic, parts in due.items():
        _refuse_early(flow, topic, told[topic], parts)
    with _client(flow, flow.source) as source, _client(flow, flow.target) as target, _asking(flow):
        beginning = _Beginning(flow, source, target, due)
        _refuse_short(flow, source, {(topic, index): at.upstream for topic in due for index, at in due[topic].items()})
        _refuse_short(
            flow,
            target,
            {(beginning.remote(topic), index): at.downstream for topic in due for index, at in due[topic].items()},
        )
        _refuse_changed(flow, due, told)
        for topic, parts in due.items():
            sequences = beginning.claim(topic, parts, told[topic])
            word = TurnStart(
                number=told[topic].turn.number + 1,
                starts=dict(parts),
                sequences=sequences,
            )
            beginning.control.turn(topic, word, None)
        wanted = {
            (topic, partition): border.downstream
            for topic, parts in borders.items()
            for partition, border in parts.items()
        }
        at_target = offsets_by_leader(
            target, [(beginning.remote(topic), index) for topic, index in wanted], LATEST, replica_id=DEBUG_CONSUMER
        )
    behind = {at: at_target.get((beginning.remote(at[0]), at[1]), end) - end for at, end in wanted.items()}
    return {at: count for at, count in behind.items() if count > 0}


def _has_begun(words: FlowWords, parts: Mapping[int, Border]) -> bool:
    return words.begun is not None and words.begun.starts == parts and words.done is None


def _refuse_early(flow: FlowConfig, topic: str, told: TopicTurn, parts: Mapping[int, Border]) -> None:
    done = told.opposite.done
    if told.turn.side is turn_side(flow):
        raise NotTurned(f"flow {flow.name}: its turn in {topic} has begun already, with other starts")
    if done is None or done.ends.keys() != parts.keys():
        raise NotTurned(f"flow {flow.name}: the opposite flow's turn in {topic} has no published end")
    low = [partition for partition, border in parts.items() if border.downstream < done.ends[partition]]
    if low:
        raise NotTurned(f"flow {flow.name}: {topic}-{low[0]} is not copied up to its published end")


def _refuse_short(flow: FlowConfig, client: ClusterClient, starts: Mapping[TopicPartition, int]) -> None:
    """Raise `NotTurned` if a log ends before the offset at which the turn starts.

    New records would get offsets that the turn passes over.
    """
    ends = offsets_by_leader(client, starts, LATEST, replica_id=DEBUG_CONSUMER)
    for (topic, partition), start in starts.items():
        end = ends.get((topic, partition))
        place = f"flow {flow.name}: {topic}-{partition} at {client.config.alias}"
        if end is None:
            raise NotTurned(f"{place} is not there, or has no leader")
        if end < start:
            raise NotTurned(
                f"{place} ends at offset {end}, and the turn would start at {start}: the log has lost records, or its "
                "topic was created again"
            )


def _refuse_changed(flow: FlowConfig, topics: Iterable[str], told: Mapping[str, TopicTurn]) -> None:
    """Raise `NotTurned` if another run has changed the words since.

    This process may have stood still.
    """
    for topic, now in read_turns(flow, topics).items():
        if _gist(now) != _gist(told[topic]):
            raise NotTurned(f"flow {flow.name}: another run has changed the turn of {topic} meanwhile")


def _gist(told: TopicTurn) -> tuple[object, ...]:
    """Return the part of the words on a topic that only migrations change."""
    ends = [words.done.ends if words.done is not None else None for words in (told.own, told.opposite)]
    return told.own.begun, told.opposite.begun, *ends


class _Beginning:
    """Topics, claims and ledger at a flow's clusters, for turns that begin."""

    def __init__(self, flow: FlowConfig, source: ClusterClient, target: ClusterClient, topics: Iterable[str]) -> None:
        self._flow = flow
        self._policy = topic_rules(flow)
        names = list(topics)
        self._sources = source.metadata(names)
        self._targets = target.metadata([self.remote(name) for name in names])
        self._target = target
        alias = flow.source.alias
        self._claim_log = ClaimLog(TopicLog(target, segments_topic(alias)))
        ledger = TopicLog(target, losses_topic(alias))
        self._ledger, self._progress = LossLedger(ledger), ProgressLog(ledger)
        self.control = Control(TopicLog(target, control_topic(alias)))
        self._identity = self._agreed()

    def remote(self, topic: str) -> str:
        return self._policy.remote_name(topic)

    def _agreed(self) -> Identity:
        identity = None
        try:
            identity = self._claim_log.agree(self._target.cluster_id, None)
        except LogUnavailable as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
        if identity is None:
            raise NotTurned(f"flow {self._flow.name}: its mirror has never run: start it first, it waits for its turn")
        return identity

    def claim(self, topic: str, parts: Mapping[int, Border], told: TopicTurn) -> dict[int, int]:
        """Claim where the turn begins; return the flow's sequences there."""
        source, target = self._there(self._sources[topic]), self._there(self._targets[self.remote(topic)])
        if lacking := parts.keys() - source.partitions.keys() | parts.keys() - target.partitions.keys():
            raise NotTurned(f"flow {self._flow.name}: {topic} lacks partition {min(lacking)} at one of the clusters")
        before = told.opposite.begun.starts if told.opposite.begun is not None else {}
        known = {partition: before[partition].records if partition in before else 0 for partition in parts}
        sequences = self._sequences(target, known)
        whole = self._claim_log.wholes((target.topic_id, partition) for partition in parts)
        claims, outdated = list[Claim](), list[Claim]()
        progress: dict[int, ReportedProgress] = {}
        for partition, border in parts.items():
            sequence = sequences[partition]
            own = self._identity.own(whole[target.topic_id, partition])
            outdated += [claim for claim in own if claim.sequence >= sequence and not claim.is_start]
            claims.append(
                turn_claim(
                    self._identity,
                    (target.topic_id, partition),
                    source.topic_id,
                    sequence=sequence,
                    upstream=border.upstream,
                    downstream=border.downstream,
                )
            )
            self._note_passed(topic, partition, border, told.own.done)
            progress[partition] = ReportedProgress(-1, -1, border.downstream)
        self._progress.learn(
            [TopicProgress(target_topic=target.name, standing_of=target.topic_id.hex(), partitions=progress)]
        )
        self._claim_log.revise(claims, outdated)
        return sequences

    def _sequences(self, target: TopicLeaders, known: Mapping[int, int]) -> dict[int, int]:
        """Return the flow's next sequences: as known from its last turn's end, or later.

        The leader's producer state counts where there is one.
        """
        sequences = dict(known)
        for leader in {target.partitions[partition].leader for partition in known}:
            led = [(target.name, partition) for partition in known if target.partitions[partition].leader == leader]
            for (_, partition), described in describe_producers(self._target, leader, by_topic(led)).items():
                states = [
                    entry for entry in described.producers if self._is_present(entry.producer_id, entry.producer_epoch)
                ]
                for state in states:
                    if state.last_sequence >= 0:
                        sequences[partition] = unwrap(state.last_sequence + 1, near=known[partition])
        if lower := [partition for partition in known if sequences[partition] < known[partition]]:
            raise NotTurned(
                f"flow {self._flow.name}: {target.name}-{lower[0]} has fewer of its records than at the end of its "
                "last turn: the target has lost some; sparkmirror verify tells which"
            )
        return sequences

    def _is_present(self, producer_id: int, epoch: int) -> bool:
        return (producer_id, epoch) == (self._identity.producer_id, self._identity.producer_epoch)

    def _note_passed(self, topic: str, partition: int, border: Border, before: DoneTopic | None) -> None:
        """Note which source offsets are the opposite flow's copies, and not copied (M3)."""
        if before is None or partition not in before.ends:
            return
        copied_to = before.copied_to(partition)
        if copied_to < border.upstream:
            target = self._targets[self.remote(topic)]
            route = PartitionPair(topic, target.name, partition)
            self._ledger.record(
                turned(route, LedgerPosition(target.topic_id, border.downstream), copied_to, border.upstream)
            )

    def _there(self, topic: TopicLeaders) -> TopicLeaders:
        if topic.error or not topic.partitions:
            raise NotTurned(f"flow {self._flow.name}: topic {topic.name} is not there, or has no leader")
        return topic


def turn_side(flow: FlowConfig) -> TurnSide:
    """Return the flow's place among two.

    Raises `NotTurned` if the flow takes no turns.
    """
    if not flow.turn:
        raise NotTurned(f"flow {flow.name}: it takes no turns: write sparkmirror.turn for it and its opposite flow")
    return TurnSide(flow.turn)


def _words(cluster: ClusterConfig, source_alias: str, flow: str) -> ControlState:
    """Return the words in a flow's control topic at its target `cluster`."""
    state = ControlState()
    with closing(ClusterClient(cluster, f"{flow}|{_ROLE}")) as client:
        try:
            state.apply(TopicLog(client, control_topic(source_alias)).read(0, 0)[0])
        except LogUnavailable as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise ClusterUnreachable(f"flow {flow}: {error}") from error
        except ConnectionError as error:
            raise ClusterUnreachable(f"flow {flow}: cluster {cluster.alias}: {error}") from error
    return state


@contextmanager
def _client(flow: FlowConfig, cluster: ClusterConfig) -> Iterator[ClusterClient]:
    with closing(ClusterClient(cluster, f"{flow.name}|{_ROLE}")) as client:
        yield client


@contextmanager
def _asking(flow: FlowConfig) -> Iterator[None]:
    try:
        yield
    except ConnectionError as error:
        raise ClusterUnreachable(f"flow {flow.name}: {error}") from error
