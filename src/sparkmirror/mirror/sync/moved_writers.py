"""The operator's notes that source topics' writers have moved to the copies.

The running mirror reads the notes from the control topic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ClusterUnreachable, NotAtRest
from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.exact.durable.losses import LossLedger, losses_topic
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_descriptions import TopicDescription
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.mirror.sync.turns import NotTurned, read_turns, turn_side
from sparkmirror.pump.messages.control import AcceptedLate, Control, ControlState, DoneTopic, control_topic

_CONNECT_S = 10.0
_ROLE = "sparkmirror-cli"
_NAMED = 5
"""Most partitions named in a refusal."""


class Moved(NamedTuple):
    """Notes on one source topic."""

    topic: str
    ends: dict[int, int]
    """The source offsets up to which the partitions are copied."""
    expected: int
    """Number of the loss ledger's foreign entries that are now expected.

    The topic's own writers wrote the records to the copy.
    """
    accepted: dict[int, int]
    """The source offsets up to which late records stay at the source."""
    recreated: bool = False
    """True if the notes on an earlier topic of the name stay as they are."""


def say_moved(flow: FlowConfig, chosen: Callable[[str], bool]) -> Iterator[Moved]:
    """Note the ends of the chosen source topics that the flow copies.

    Each topic is yielded once its notes are in force. Where a partition is already copied up to an earlier note's end,
    this end stays, and the late records are accepted: they may not come after the new writers' records. So are those of
    a topic that the opposite flow copies now, as a turn of this flow is over.

    The ends are the leaders' log ends, or with read_committed the last stable offsets. Of a flow that takes turns the
    logs must be at rest (M4): raises `NotAtRest` otherwise, and `NotTurned` if it is not its turn. Records that foreign
    producers wrote to the copies become expected in the loss ledger, unless the flow takes turns: their writers wrote
    too early. Raises `ClusterUnreachable`.
    """
    rules = topic_rules(flow)
    timeout_s = min(flow.admin_timeout_ms / 1000, _CONNECT_S)
    with ClusterAdmin.connect(flow.source, _ROLE, timeout_s) as source:
        topics = {name: topic for name, topic in source.topics().items() if chosen(name) and rules.wanted(name)}
        over = _ended_turns(flow, topics)
        partitions = [(name, part.partition) for name, topic in topics.items() for part in topic.partitions]
        ends = {
            **_ends(flow, source, [each for each in partitions if each[0] not in over], at_rest=bool(flow.turn)),
            **_ends(flow, source, [each for each in partitions if each[0] in over], at_rest=False),
        }
    with closing(ClusterClient(flow.target, f"{flow.name}|{_ROLE}")) as client:
        try:
            control_log = TopicLog(client, control_topic(flow.source.alias))
            control = Control(control_log)
            ledger = LossLedger(TopicLog(client, losses_topic(flow.source.alias)))
            before = {} if flow.turn else _words(control_log)
            for name, topic in sorted(topics.items()):
                mine = {part.partition: ends[name, part.partition] for part in topic.partitions}
                if name in over:
                    yield _accept(control, topic, mine, over[name])
                    continue
                yield from _say(control, ledger, topic, mine, before.get(name), turn=bool(flow.turn))
        except ConnectionError as error:
            raise ClusterUnreachable(f"flow {flow.name}: {error}; has the mirror run before?") from error


def _demand_turn(flow: FlowConfig, topics: Iterable[str]) -> None:
    """Raise `NotTurned` for a topic that is not the flow's turn."""
    for topic, told in read_turns(flow, topics).items() if flow.turn else ():
        if told.turn.side is not turn_side(flow):
            raise NotTurned(f"flow {flow.name}: it is not its turn in {topic}, so nothing was written down")


def _ended_turns(flow: FlowConfig, topics: Iterable[str]) -> dict[str, DoneTopic]:
    """Return the flow's ends of topics whose turn in the flow is over.

    Raises `NotTurned` for a topic that waits for the flow's first turn.
    """
    told = read_turns(flow, topics) if flow.turn else {}
    over = {
        topic: each.own.done
        for topic, each in told.items()
        if each.own.done is not None and each.turn.side is not turn_side(flow)
    }
    _demand_turn(flow, told.keys() - over.keys())
    return over


def _accept(control: Control, topic: TopicDescription, ends: Mapping[int, int], done: DoneTopic) -> Moved:
    """Leave the late records of a topic at the source, after the flow's turn."""
    if not done.is_of(topic.topic_id):
        return Moved(topic=topic.name, ends=done.ends, expected=0, accepted={}, recreated=True)
    late = {partition: end for partition, end in ends.items() if end > done.late_from(partition)}
    if late:
        control.accept(topic.name, AcceptedLate(source_topic_id=topic.topic_id.hex(), ends=late))
    return Moved(topic=topic.name, ends=done.ends, expected=0, accepted=late)


def _ends(
    flow: FlowConfig, source: ClusterAdmin, partitions: Collection[TopicPartition], *, at_rest: bool
) -> Mapping[TopicPartition, int]:
    if not partitions:
        return {}
    if at_rest:
        ends, moving = source.still_ends(partitions)
        if moving:
            named = [f"{topic}-{partition}: {reason}" for (topic, partition), reason in sorted(moving.items())]
            more = f" (and {len(named) - _NAMED} more partitions)" if len(named) > _NAMED else ""
            raise NotAtRest(
                f"flow {flow.name}: nothing was written down, as the source's logs are not at rest: "
                f"{'; '.join(named[:_NAMED])}{more}; stop the topics' producers first"
            )
        return ends
    if flow.fetch.isolation_level == "read_committed":
        ends = source.end_offsets(partitions, isolation=flow.fetch.isolation_level)
    else:
        ends = source.log_ends(partitions)
    unknown = [f"{topic}-{partition}" for topic, partition in partitions if (topic, partition) not in ends]
    if unknown:
        raise ClusterUnreachable(
            f"flow {flow.name}: {unknown[0]} has no leader, so its end can't be noted: nothing was written down"
        )
    return ends


def _words(log: TopicLog) -> Mapping[str, DoneTopic]:
    state = ControlState()
    state.apply(log.read(0, 0)[0])
    return state.done


def _say(
    control: Control,
    ledger: LossLedger,
    topic: TopicDescription,
    ends: Mapping[int, int],
    before: DoneTopic | None,
    *,
    turn: bool,
) -> Iterator[Moved]:
    if before is not None and not before.is_of(topic.topic_id):
        yield Moved(topic=topic.name, ends=before.ends, expected=0, accepted=before.accepted, recreated=True)
        return
    word = word_on(topic, ends, before)
    control.done(topic.name, word)
    said = Moved(topic=topic.name, ends=word.ends, expected=0, accepted=word.accepted)
    try:
        expected = 0 if turn else _expect(ledger, topic.name)
    except ConnectionError:  # the notes are in force
        yield said
        raise
    yield said._replace(expected=expected)


def word_on(topic: TopicDescription, ends: Mapping[int, int], before: DoneTopic | None) -> DoneTopic:
    """Return the word on a topic with these source ends, after the word `before`.

    Only what `before` does not call late is still to be copied.
    """
    if before is None:
        return DoneTopic(source_topic_id=topic.topic_id.hex(), ends=dict(ends))
    copying = before.ends.keys() - before.reached.keys()
    return before.model_copy(
        update={
            "ends": before.ends | {partition: end for partition, end in ends.items() if partition in copying},
            "accepted": {
                partition: end
                for partition, end in ends.items()
                if partition not in copying and end > before.end_of(partition)
            },
        }
    )


def _expect(ledger: LossLedger, topic: str) -> int:
    """Mark the topic's foreign entries as expected, and return their number."""
    foreign = [loss for loss in ledger.read() if loss.source_topic == topic and loss.outcome is LossOutcome.FOREIGN]
    for loss in foreign:
        ledger.record(loss.model_copy(update={"action": "expected"}))
    return len(foreign)


def take_back(flow: FlowConfig, chosen: Callable[[str], bool]) -> Iterator[str]:
    """Remove the notes by `say_moved` on the chosen topics, and yield each topic then.

    Raises `ClusterUnreachable`, and `NotTurned` where the opposite flow's turn has begun.
    """
    with closing(ClusterClient(flow.target, f"{flow.name}|{_ROLE}")) as client:
        try:
            log = TopicLog(client, control_topic(flow.source.alias))
            topics = sorted(filter(chosen, _words(log)))
            _demand_turn(flow, topics)
            for topic in topics:
                Control(log).done(topic, None)
                yield topic
        except ConnectionError as error:
            raise ClusterUnreachable(f"flow {flow.name}: {error}; has the mirror run before?") from error
