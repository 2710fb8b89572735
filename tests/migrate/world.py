"""Model world of a migration, without brokers: two clusters, two flows, producers, groups, and whom ACLs let in.

A record is a number. Producers and the flows append to logs, groups read them, and `observe` shows what the real
clusters would. `effects` are an action's effects one by one, so that a run can be killed behind any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.migrate import actions, phase
from sparkmirror.migrate.actions import Action
from sparkmirror.migrate.file import Fence
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

SOURCE, TARGET = Side.SOURCE, Side.TARGET
Effect = Callable[[], None]


@dataclass
class Topic:
    """A topic at one cluster."""

    logs: list[list[int]]
    writers: set[str] = field(default_factory=set)
    operator: set[str] = field(default_factory=set)
    """Principals that an operator denies writing."""
    added: set[str] = field(default_factory=set)
    """Principals that the migration denies writing."""
    behind: set[str] = field(default_factory=set)
    """Principals whose denial one of the brokers has not heard of yet."""
    grows: bool = False
    """True if somebody wrote since the last observation."""
    still: bool = False
    """True if this run's last observation found that nobody had written since the one before."""


@dataclass
class Group:
    """A consumer group at one cluster."""

    members: int = 0
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    denied: bool = False


@dataclass
class Cluster:
    """One of the two clusters."""

    alias: str
    topics: dict[str, Topic]
    groups: dict[str, Group]


@dataclass
class Word:
    """What a flow's durable topics say of one topic, and where the flow is."""

    copy: str
    ends: dict[int, int] | None = None
    claims: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Claimed starts by partition: offset at the source, offset at the target."""
    turn: int = 0
    """Number of the flow's newest turn."""
    copied: dict[int, int] = field(default_factory=dict)
    """Next offset at the source, by partition."""


@dataclass
class Flow:
    """The flow that copies from one of the clusters."""

    words: dict[str, Word]
    at_work: bool = True


class World:
    """Both clusters and both flows.

    Its topics have `partitions` each. A flow obeys published ends and claimed starts as sparkmirror's flows do (M1).
    """

    def __init__(
        self,
        topics: Iterable[str] = ("orders", "stock"),
        groups: Iterable[str] = ("billing",),
        *,
        partitions: int = 2,
        renamed: bool = False,
        fence: Fence = Fence.ACL,
        back: bool = True,
    ) -> None:
        """Begin empty, at the source; without `back` nothing flows from the target, which needs renamed copies."""
        self.names, self.groups, self.fence, self.renamed = tuple(topics), tuple(groups), fence, renamed
        self.partitions = range(partitions)
        at_source = {name: Topic([[] for _ in self.partitions], {"User:shop", "User:batch"}) for name in self.names}
        at_target = {name: Topic([[] for _ in self.partitions]) for name in self.names}
        if renamed:
            at_source |= {self.copy(TARGET, name): Topic([[] for _ in self.partitions]) for name in self.names}
            at_target |= {self.copy(SOURCE, name): Topic([[] for _ in self.partitions]) for name in self.names}
        self.clusters = {
            SOURCE: Cluster("A", at_source, {name: Group(members=2) for name in self.groups}),
            TARGET: Cluster("B", at_target, {name: Group() for name in self.groups}),
        }
        self.flows = {
            side: Flow({name: Word(self.copy(side, name)) for name in self.names})
            for side in ((SOURCE, TARGET) if back else (SOURCE,))
        }
        for word in self.flows[SOURCE].words.values():
            word.turn = 1
        self.running = {SOURCE: True, TARGET: fence is Fence.ACL}
        """True where producers try to write; where ACLs refuse them, they try all the time."""
        self.stopped: dict[str, Side | None] = {}
        """Topics of which it is noted that a command, or people, shall stop the producers, and where these did."""
        self.written: dict[TopicPartition, list[int]] = {(name, p): [] for name in self.names for p in self.partitions}
        self.read: dict[tuple[str, str, int], list[int]] = {
            (group, name, p): [] for group in self.groups for name in self.names for p in self.partitions
        }
        self.began_at: dict[int, Side] = {}
        """Where each record was written."""
        self._next = 0

    def copy(self, side: Side, topic: str) -> str:
        """Return the copy's name at the other side of a topic at `side`."""
        return f"{'A' if side is SOURCE else 'B'}.{topic}" if self.renamed else topic

    # --- what clients do ------------------------------------------------------------------------

    def may_write(self, side: Side, topic: str) -> bool:
        """True if producers at this side get a record into the topic, by at least one broker."""
        if not self.running[side]:
            return False
        if self.fence is not Fence.ACL:
            return True
        there = self.clusters[side].topics[topic]
        return bool(there.writers - there.operator - (there.added - there.behind))

    def write(self, side: Side, topic: str, partition: int) -> bool:
        """Have a producer try to write a record; return True if a broker took it."""
        if not self.may_write(side, topic):
            return False
        self.append(side, topic, partition)
        return True

    def append(self, side: Side, topic: str, partition: int) -> int:
        """Append a record, whoever may write, and return it."""
        there = self.clusters[side].topics[topic]
        there.logs[partition].append(self._next)
        self.written[topic, partition].append(self._next)
        there.grows = True
        self.began_at[self._next] = side
        self._next += 1
        return self._next - 1

    def poll(self, side: Side, group: str, topic: str, partition: int) -> None:
        """Have a member read the next record at a side, and commit."""
        one = self.clusters[side].groups[group]
        for name in {topic, self.copy(side.other, topic)}:
            log = self.clusters[side].topics[name].logs[partition]
            offset = one.offsets.get((name, partition), 0)
            if one.members and offset < len(log):
                self.read[group, topic, partition].append(log[offset])
                one.offsets[name, partition] = offset + 1

    def start_group(self, side: Side, group: str) -> bool:
        """Have an instance of the group start; return False if the cluster refuses it."""
        one = self.clusters[side].groups[group]
        if not one.denied:
            one.members = 2
        return bool(one.members)

    def stop_groups(self, side: Side) -> None:
        """Have people stop all members at a side."""
        for one in self.clusters[side].groups.values():
            one.members = 0

    def sync(self) -> None:
        """Have both flows' duty set positions of groups without members, forwards only."""
        for side, flow in self.flows.items():
            for name, there in self.clusters[side.other].groups.items() if flow.at_work else ():
                if there.members:
                    continue
                for (topic, part), offset in self.clusters[side].groups[name].offsets.items():
                    where = self._counterpart(side, topic), part
                    wanted = self._translated(side, topic, *where, offset)
                    if wanted is not None and wanted > there.offsets.get(where, -1):
                        there.offsets[where] = wanted

    # --- what flows do --------------------------------------------------------------------------

    def flow(self, most: int = 1_000_000) -> None:
        """Have both flows copy at most so many records of each partition, and note what they have reached."""
        for side, flow in self.flows.items():
            for topic in self.names if flow.at_work else ():
                for partition in self.partitions:
                    self._copy(side, topic, partition, most)

    def _copy(self, side: Side, topic: str, partition: int, most: int) -> None:
        word = self.flows[side].words[topic]
        log = self.clusters[side].topics[topic].logs[partition]
        copy = self.clusters[side.other].topics[word.copy].logs[partition]
        if not (self.renamed or self._has_turn(side, topic)):
            return
        at = max(word.copied.get(partition, 0), word.claims.get(partition, (0, 0))[0])
        end = len(log) if word.ends is None else min(word.ends[partition], len(log))
        for record in log[at : min(end, at + most)]:
            assert record not in copy, f"{record} would be copied twice"
            copy.append(record)
            at += 1
        word.copied[partition] = max(at, word.copied.get(partition, 0))

    def _has_turn(self, side: Side, topic: str) -> bool:
        """True if a topic's newest turn is this flow's: only then it copies (M1)."""
        back = self.flows.get(side.other)
        return self.flows[side].words[topic].turn > (back.words[topic].turn if back else 0)

    def _reached(self, word: Word, side: Side) -> dict[int, int]:
        """Return the ends of a copy, of partitions that are copied up to their published ends."""
        logs = self.clusters[side.other].topics[word.copy].logs
        mine = word.ends or {}
        if self.renamed:
            return {part: end for part, end in mine.items() if word.copied.get(part, 0) >= end}
        # As the offset map tells it: later records of the copy are not this turn's.
        reached = {}
        for part, end in mine.items():
            if end <= word.claims.get(part, (0, 0))[0]:
                reached[part] = word.claims.get(part, (0, 0))[1]
            elif word.copied.get(part, 0) >= end:
                reached[part] = min(len(logs[part]), end)
        return reached

    # --- what an observer sees ------------------------------------------------------------------

    def observe(self) -> Observation:
        """Return what the clusters show."""
        seen = Observation(
            at_ms=0,
            clusters={side: self._cluster(side) for side in (SOURCE, TARGET)},
            flows={side: self._flow(side) for side in self.flows},
        )
        for cluster in self.clusters.values():
            for topic in cluster.topics.values():
                topic.still, topic.grows = not topic.grows, False
        return seen

    def new_process(self) -> None:
        """Have a new process look: it doesn't know for how long ends have stood still."""
        for cluster in self.clusters.values():
            for topic in cluster.topics.values():
                topic.still = False

    def _cluster(self, side: Side) -> ClusterSeen:
        cluster = self.clusters[side]
        return ClusterSeen(
            alias=cluster.alias,
            bootstrap=f"{cluster.alias.lower()}1:9092",
            brokers=2,
            authorizer=self.fence is Fence.ACL,
            topics={name: self._topic(name, topic) for name, topic in cluster.topics.items()},
            groups={
                name: GroupSeen(
                    state="Stable" if group.members else "Empty",
                    members=tuple(MemberSeen(f"{name}-{n}", "10.0.3.7") for n in range(group.members)),
                    offsets=dict(group.offsets),
                    readers=frozenset() if group.denied or self.fence is not Fence.ACL else frozenset({"User:shop"}),
                    read_denied=group.denied,
                )
                for name, group in cluster.groups.items()
            },
        )

    def _topic(self, name: str, topic: Topic) -> TopicSeen:
        ends = {part: len(log) for part, log in enumerate(topic.logs)}
        denied = topic.operator | topic.added
        fence = FenceSeen(
            writers=frozenset(topic.writers),
            denied=frozenset(denied - (topic.behind - topic.operator)),
            denied_somewhere=frozenset(denied),
            added=frozenset(topic.added),
        )
        still_s = 10.0 if topic.still and not topic.grows else 0.0
        return TopicSeen(name=name, ends=ends, watermarks=ends, steady=not topic.grows, still_s=still_s, fence=fence)

    def _flow(self, side: Side) -> FlowSeen:
        flow, other = self.flows[side], side.other
        words = {}
        for topic, word in flow.words.items():
            logs = self.clusters[side].topics[topic].logs
            words[topic] = WordSeen(
                copy=word.copy,
                done=word.ends is not None,
                ends=dict(word.ends or {}),
                reached=self._reached(word, side),
                begun=self._has_turn(side, topic),
                stopped=side is SOURCE and topic in self.stopped,
                stopped_at=self.stopped.get(topic) if side is SOURCE else None,
                lag=sum(max(len(log) - word.copied.get(part, 0), 0) for part, log in enumerate(logs)),
            )
        positions = {}
        for name, group in self.clusters[side].groups.items():
            positions[name] = {
                (there, part): self._translated(side, topic, there, part, offset)
                for (topic, part), offset in group.offsets.items()
                for there in [self._counterpart(side, topic)]
            }
        names = f"{self.clusters[side].alias}->{self.clusters[other].alias}"
        untranslated = {name: "not copied yet" for name, each in positions.items() if None in each.values()}
        return FlowSeen(name=names, at_work=flow.at_work, topics=words, positions=positions, untranslated=untranslated)

    def _counterpart(self, side: Side, topic: str) -> str:
        """Return the name at the other side of a topic, or copy, at `side`."""
        own = topic.removeprefix("B." if side is SOURCE else "A.")
        return own if own != topic else self.copy(side, topic)

    def _translated(self, side: Side, topic: str, there: str, partition: int, offset: int) -> int | None:
        if not offset:
            return 0
        record = self.clusters[side].topics[topic].logs[partition][offset - 1]
        log = self.clusters[side.other].topics[there].logs[partition]
        return log.index(record) + 1 if record in log else None

    # --- what actions do ------------------------------------------------------------------------

    def effects(self, action: Action, seen: Observation) -> list[Effect]:
        """Return an action's effects, in order."""
        here, there = self.clusters[action.leaving], self.clusters[action.arriving]
        match action:
            case actions.WaitEmpty():
                return [lambda: self.stop_groups(action.leaving)]
            case actions.WaitCopied() | actions.Drain():
                return [self.flow]
            case actions.Settle():
                return []
            case actions.SetPositions():
                return [
                    partial(self._commit, there, group, where, offset)
                    for group, offsets in action.offsets(seen).items()
                    for where, offset in offsets.items()
                ]
            case actions.DenyReturn():
                assert not action.to_deny(seen) or action.leaving in self.flows, "nowhere to write it down"
                return [
                    *(lambda name=name: self._deny_group(here, name) for name in action.to_deny(seen)),
                    *(
                        lambda name=name: setattr(there.groups[name], "denied", False)
                        for name in action.to_let_in(seen)
                    ),
                ]
            case actions.Deny():
                if self.fence is not Fence.ACL:
                    return [
                        *(partial(self._note, name, None) for name in action.to_stop(seen)),
                        lambda: self.running.update({action.leaving: False}),
                        *(partial(self._note, name, action.leaving) for name in action.to_stop(seen)),
                    ]
                return [
                    effect
                    for name in action.names
                    for who in sorted(seen.clusters[action.leaving].topics[name].fence.open)
                    for effect in self._denial(here.topics[name], who)
                ]
            case actions.Publish():
                return [partial(self._publish, action.leaving, name, seen) for name in action.due(seen)]
            case actions.Withdraw():
                return [partial(self._withdraw, self.flows[action.leaving].words[name]) for name in action.due(seen)]
            case actions.Arm():
                return [effect for name in action.due(seen) for effect in self._turn(action.arriving, name, seen)]
            case actions.Open():
                return [
                    *(lambda name=name: self._lift(there.topics[name]) for name in action.denied(seen)),
                    *(
                        lambda name=name, who=who: there.topics[name].writers.add(who)
                        for name, missing in action.ungranted(seen).items()
                        for who in missing
                    ),
                    *(partial(self._note, name, None) for name in action.to_start(seen)),
                    *([lambda: self.running.update({action.arriving: True})] if action.to_start(seen) else []),
                    *(partial(self.stopped.__delitem__, name) for name in action.to_start(seen)),
                ]
        raise AssertionError(f"no such action: {action}")

    def _note(self, topic: str, side: Side | None) -> None:
        self.stopped[topic] = side

    @staticmethod
    def _commit(there: Cluster, group: str, where: TopicPartition, offset: int) -> None:
        one = there.groups[group]
        assert not one.members, f"{group} has members: Kafka refuses the commit"
        assert offset >= one.offsets.get(where, -1), f"{group} would be set back in {where}"
        one.offsets[where] = offset

    @staticmethod
    def _deny_group(here: Cluster, name: str) -> None:
        assert not here.groups[name].members, f"{name} has members, which would lose their last commit"
        here.groups[name].denied = True

    @staticmethod
    def _denial(topic: Topic, who: str) -> list[Effect]:
        def first_broker() -> None:
            topic.added.add(who)
            topic.behind.add(who)

        return [first_broker, lambda: topic.behind.discard(who)]

    @staticmethod
    def _lift(topic: Topic) -> None:
        topic.added.clear()
        topic.behind.clear()

    def _publish(self, side: Side, name: str, seen: Observation) -> None:
        topic = seen.clusters[side].topics[name]
        assert topic.steady, f"{name} still grows"
        assert self.fence is not Fence.ACL or topic.fence.complete, f"{name} is open"
        self.flows[side].words[name].ends = dict(topic.ends)

    @staticmethod
    def _withdraw(word: Word) -> None:
        word.ends = None

    def _turn(self, side: Side, name: str, seen: Observation) -> list[Effect]:
        """Begin the turn of the flow that copies from `side`: claims first, then one word that replaces its ends."""
        word, told = self.flows[side].words[name], phase.word(seen, side.other, name)
        if self.renamed:
            return [lambda: self._withdraw(word)]
        assert told.drained, f"the copy of {name} lacks records"
        assert not phase.leaks(seen, side.other, name), f"{name} has records behind its ends"

        def begin() -> None:
            word.turn, word.ends = self.flows[side.other].words[name].turn + 1, None

        return [
            *(
                lambda part=part, end=end: word.claims.update({part: (told.reached[part], end)})
                for part, end in told.ends.items()
            ),
            begin,
        ]

    def spread(self) -> None:
        """Have all brokers hear of all denials."""
        for cluster in self.clusters.values():
            for topic in cluster.topics.values():
                topic.behind.clear()

    # --- what must hold -------------------------------------------------------------------------

    def _is_sources(self, record: int) -> bool:
        return self.began_at[record] is SOURCE

    def open_sides(self) -> set[Side]:
        """Return the sides where producers get a record into any topic."""
        return {side for side in (SOURCE, TARGET) if any(self.may_write(side, name) for name in self.names)}

    def prove(self) -> None:
        """Assert that each side has each record once and in order, once everything is copied.

        Where nothing flows back, the source has only what was written there.
        """
        for (topic, part), records in self.written.items():
            for side in (SOURCE, TARGET):
                cluster = self.clusters[side]
                names = {topic, self.copy(side.other, topic)}
                logs = [cluster.topics[name].logs[part] for name in names]
                came = [each for each in records if side is TARGET or TARGET in self.flows or self._is_sources(each)]
                assert sorted(record for log in logs for record in log) == came
                assert all(log == sorted(log) for log in logs)
        for (group, topic, part), read in self.read.items():
            records = self.written[topic, part]
            if self.renamed:
                assert len(set(read)) == len(read), f"{group} read records of {topic}-{part} twice"
            else:
                assert read == records[: len(read)], f"{group} read {topic}-{part} twice, or skipped records"
