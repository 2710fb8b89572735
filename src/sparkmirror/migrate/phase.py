"""Phases of a migration's sets and groups: pure functions of an observation.

A topic is *live* at one side. The topic leaves by the published ends of the flow from there, and is live at the other
side once the flow back begins exactly behind the published ends. Where copies keep the topic's name, the words on turns
tell whose turn is the newest; where copies are renamed, the two flows may copy at any time, and the published ends
alone tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.migrate.file import Fence, MigrationFile, MigrationType, Set
from sparkmirror.migrate.observation import GroupSeen, Observation, Side, TopicSeen, WordSeen


class Phase(StrEnum):
    """Progress of a topic's producers from the side where the topic is live."""

    COPYING = "copying"
    """The topic is live, and copied."""
    HALF_FENCED = "half-fenced"
    """Some principals, or some brokers only, are denied writing."""
    FENCED = "fenced"
    """No principal can write; the ends are not published yet."""
    DRAINING = "draining"
    """The ends are published; the copy lacks records."""
    LEAKING = "leaking"
    """A producer wrote behind the published ends."""
    DRAINED = "drained"
    """The copy has all records up to the published ends; the other side is unarmed."""
    ARMED = "armed"
    """The topic is live at its new side; no producer has written there yet."""
    MOVED = "moved"
    """Producers write at the topic's new side."""
    COMPLETED = "completed"
    """Moved for good: there is no way back."""


_ORDER = tuple(Phase)
_NOT_BEGUN = frozenset({Phase.COPYING, Phase.ARMED, Phase.MOVED})
"""Phases before the topic begins to leave its side."""


class GroupPhase(StrEnum):
    """The side where a group reads, seen from the side that the group leaves."""

    THERE = "at its side"
    """Members at the side to leave, no members at the other."""
    STOPPED = "stopped"
    """No members; the positions at the other side differ from the commits."""
    POSITIONED = "positioned"
    """No members; the positions at the other side are exactly the commits'."""
    ARRIVED = "at the other side"
    MOVED = "moved"
    """No members now; the group has read at the other side, beyond its stop here."""
    CAME_BACK = "came back"
    """Members at the side to leave, though the group has read on at the other side.

    The positions there are beyond the commits here.
    """
    ON_BOTH_SIDES = "on both sides"


@dataclass(frozen=True, slots=True)
class Blocker:
    """Reason why a switch can't begin, or can't continue."""

    id: str
    words: str

    def __str__(self) -> str:
        return f"{self.id}: {self.words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPhase:
    """A topic's phase, and the side where it is live."""

    topic: str
    live: Side
    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPhase:
    """A set's phase, taken from its least advanced topic."""

    set: Set
    live: Side
    """The side where all topics are live, or the side still to leave for some."""
    phase: Phase
    mixed: tuple[TopicPhase, ...] = ()
    """All topics' phases, if different."""


def word(seen: Observation, side: Side, topic: str) -> WordSeen:
    """Return the word on a topic by the flow that copies from `side`.

    Without a flow, the word is empty.
    """
    flow = seen.flows.get(side)
    return (flow.topics.get(topic) if flow else None) or WordSeen(copy=topic)


def topic_at(seen: Observation, side: Side, topic: str) -> TopicSeen:
    """Return a topic at `side`; a missing topic is empty."""
    return seen.clusters[side].topics.get(topic) or TopicSeen(name=topic)


def keeps_names(seen: Observation, topic: str) -> bool:
    """True if the copy has the topic's own name.

    The two sides then share the content of a single log.
    """
    return word(seen, Side.SOURCE, topic).copy == topic


def live_side(seen: Observation, topic: str) -> Side:
    """Return the side where producers belong by the two flows' words.

    Where copies keep the topic's name, the newest turn decides; before the first turn the topic is at the source. A
    completed topic stays at the target, also when the flow back is gone.
    """
    forth, back = word(seen, Side.SOURCE, topic), word(seen, Side.TARGET, topic)
    if not keeps_names(seen, topic):
        return Side.TARGET if forth.done and (back.done or forth.drained) else Side.SOURCE
    return Side.TARGET if back.begun or forth.closed else Side.SOURCE


def stopped(seen: Observation, topic: str) -> bool:
    """True if the topic's producers were ordered to stop, and not to start since.

    The order went to a command, or to people.
    """
    return word(seen, Side.SOURCE, topic).stopped


def stopped_at(seen: Observation, topic: str) -> Side | None:
    """Return the side where the topic's producers stopped, and did not start since.

    None if they may run: no order, or one that was cut off.
    """
    return word(seen, Side.SOURCE, topic).stopped_at


def is_published(seen: Observation, side: Side, topic: str) -> bool:
    """True if the topic's ends at `side` are published, and no records follow."""
    return word(seen, side, topic).done and not leaks(seen, side, topic)


def leaks(seen: Observation, side: Side, topic: str) -> dict[int, int]:
    """Count the offsets behind a topic's published ends at `side`, by partition."""
    said, there = word(seen, side, topic), topic_at(seen, side, topic)
    if not said.done:
        return {}
    return {part: end - said.ends.get(part, 0) for part, end in there.ends.items() if end > said.ends.get(part, 0)}


def is_shut(seen: Observation, side: Side, topic: str) -> bool:
    """True if no producer can write to a topic at `side`.

    Each is denied; or the topic has come there, and nobody has been let in yet.
    """
    fence = topic_at(seen, side, topic).fence
    return fence.complete or (
        fence.shut and live_side(seen, topic) is side and has_come(seen, topic) and not _written(seen, side, topic)
    )


def has_come(seen: Observation, topic: str) -> bool:
    """True if an earlier switch brought the topic to its live side."""
    live = live_side(seen, topic)
    return live is Side.TARGET or (live is Side.SOURCE and word(seen, Side.TARGET, topic).done)


def topic_phase(seen: Observation, topic: str) -> TopicPhase:
    """Return a topic's phase."""
    live = live_side(seen, topic)
    return TopicPhase(topic=topic, live=live, phase=_leaving(seen, live, topic) or _arriving(seen, live, topic))


def _leaving(seen: Observation, live: Side, topic: str) -> Phase | None:
    """Return the phase of leaving `live`; `None` before the topic begins to leave."""
    said, fence = word(seen, live, topic), topic_at(seen, live, topic).fence
    if said.done:
        if leaks(seen, live, topic):
            return Phase.LEAKING
        return Phase.DRAINED if said.drained else Phase.DRAINING
    if not fence.added or (has_come(seen, topic) and not _written(seen, live, topic)):
        return None  # where it came to, nobody has been let in yet
    return Phase.FENCED if fence.complete else Phase.HALF_FENCED


def _arriving(seen: Observation, live: Side, topic: str) -> Phase:
    if not has_come(seen, topic):
        return Phase.COPYING
    if word(seen, live.other, topic).closed:
        return Phase.COMPLETED
    return Phase.MOVED if _written(seen, live, topic) else Phase.ARMED


def _written(seen: Observation, live: Side, topic: str) -> bool:
    """True if a producer has written at `live`, the topic's new side."""
    ends = topic_at(seen, live, topic).ends
    if not keeps_names(seen, topic):
        return any(ends.values())
    reached = word(seen, live.other, topic).reached
    return any(end > reached.get(part, 0) for part, end in ends.items())


def set_phase(seen: Observation, moving: Set) -> SetPhase:
    """Return a set's phase: the phase of the topic farthest from the target."""
    topics = [topic_phase(seen, topic) for topic in moving.topics]
    least = min(topics, key=lambda each: (each.live is Side.TARGET, _ORDER.index(each.phase)))
    mixed = len({(each.live, each.phase) for each in topics}) > 1
    return SetPhase(set=moving, live=least.live, phase=least.phase, mixed=tuple(topics) if mixed else ())


def group_phase(seen: Observation, group: str, side: Side) -> GroupPhase:
    """Return a group's phase on the way from `side` to the other side."""
    here, there = group_at(seen, side, group), group_at(seen, side.other, group)
    if here.members or not here.empty:
        if there.members:
            return GroupPhase.ON_BOTH_SIDES
        return GroupPhase.CAME_BACK if _has_read_on(seen, side, group) else GroupPhase.THERE
    if there.members or not there.empty:
        return GroupPhase.ARRIVED
    if lacking(seen, side, group):
        return GroupPhase.STOPPED
    return GroupPhase.MOVED if _has_read_on(seen, side, group) else GroupPhase.POSITIONED


def lacking(seen: Observation, side: Side, group: str) -> dict[TopicPartition, int | None]:
    """Return the positions a group lacks at the other side.

    A position is `None` while the commit at `side` can't be translated. Where the group is further at the other side,
    it has read there, and lacks nothing in that partition.
    """
    known = group_at(seen, side.other, group).offsets
    return {
        topic_partition: offset
        for topic_partition, offset in positions(seen, side, group).items()
        if (
            not _is_ahead(seen, side, group, topic_partition)
            if offset is None
            else known.get(topic_partition, -1) < offset
        )
    }


def further(seen: Observation, side: Side, group: str) -> list[TopicPartition]:
    """Return the partitions where a group is further at the other side than at `side`."""
    known = group_at(seen, side.other, group).offsets
    wanted = positions(seen, side, group).items()
    return [place for place, offset in wanted if offset is not None and known.get(place, -1) > offset]


def _has_read_on(seen: Observation, side: Side, group: str) -> bool:
    return bool(further(seen, side, group))


def _is_ahead(seen: Observation, side: Side, group: str, topic_partition: TopicPartition) -> bool:
    """True if the flow back shows a position as far as the commit at `side`.

    The position is the group's at the other side. Before its first turn a flow can't translate offsets at its source.
    """
    topic, partition = topic_partition
    from_here, from_there = seen.flows.get(side), seen.flows.get(side.other)
    names = [name for name, said in from_here.topics.items() if said.copy == topic] if from_here else []
    if from_there and topic in from_there.topics:
        names.append(from_there.topics[topic].copy)
    committed, as_far = group_at(seen, side, group).offsets, positions(seen, side.other, group)
    for name in names:
        offset = as_far.get((name, partition))
        if offset is not None and offset >= committed.get((name, partition), 0):
            return True
    return False


def positions(seen: Observation, side: Side, group: str) -> Mapping[TopicPartition, int | None]:
    """Return a group's translated commits at `side`; empty without a flow."""
    flow = seen.flows.get(side)
    return flow.positions.get(group, {}) if flow else {}


def group_at(seen: Observation, side: Side, group: str) -> GroupSeen:
    """Return a group at `side`; a missing group is empty."""
    return seen.clusters[side].groups.get(group) or GroupSeen()


# --- what stands in the way -------------------------------------------------------------------------


def producers_blockers(seen: Observation, file: MigrationFile, moving: Set, to: Side) -> list[Blocker]:
    """Return the reasons why the set's producers can't move to `to` now, in order."""
    return list(_producers_blockers(seen, file, moving, to))


def _producers_blockers(seen: Observation, file: MigrationFile, moving: Set, to: Side) -> Iterator[Blocker]:
    leaving = to.other
    forth, back = seen.flows.get(leaving), seen.flows.get(to)
    if all(live_side(seen, topic) is to for topic in moving.topics):
        if blocker := written_for_good(seen, moving, leaving):
            yield blocker
        return
    over = [topic for topic in moving.topics if topic_phase(seen, topic).phase is Phase.COMPLETED]
    if over:
        yield from (Blocker("completed", f"{topic} was completed: there is no way back") for topic in over)
        return
    if forth is None:
        if blocker := written_for_good(seen, moving, leaving):
            yield blocker
            return
        for topic in moving.topics:
            yield from _fence_blockers(seen, file, topic, leaving)
        return
    if not forth.at_work:
        yield Blocker("mirror-down", f"no mirror works on {forth.name}")
    for topic in moving.topics:
        yield from _topic_blockers(seen, file, topic, to)
        if keeps_names(seen, topic) and (back is None or not back.at_work):
            why = "there is no flow back" if back is None else f"no mirror works on {back.name}"
            yield Blocker("reverse-flow-ready", f"{why}, so {topic} would have no way back")
    if file.type is MigrationType.CONSUMERS_FIRST and to is Side.TARGET:
        behind = [group for group in moving.groups if group_phase(seen, group, leaving) in _NOT_ARRIVED]
        if behind:
            yield Blocker("consumers-first", f"{', '.join(behind)} must move to {seen.clusters[to].alias} first")


_NOT_ARRIVED = frozenset({GroupPhase.THERE, GroupPhase.STOPPED, GroupPhase.CAME_BACK})


def _topic_blockers(seen: Observation, file: MigrationFile, topic: str, to: Side) -> Iterator[Blocker]:
    phase = topic_phase(seen, topic)
    if phase.live is to:
        return
    said, there = word(seen, to.other, topic), topic_at(seen, to.other, topic)
    if not there.ends:
        yield Blocker("missing-topic", f"{seen.clusters[to.other].alias} has no topic {topic}")
    if there.leaderless:
        yield Blocker("leaderless", f"{topic}-{there.leaderless[0]} has no leader, so its end is not known")
    if phase.phase in _NOT_BEGUN and (said.lag is None or said.lag > file.policies.lag):
        known = "an unknown number of" if said.lag is None else f"{said.lag:,}"
        yield Blocker("lag", f"the copy of {topic} lacks {known} offsets; at most {file.policies.lag:,} may be missing")
    yield from _fence_blockers(seen, file, topic, to.other)
    if phase.phase is Phase.LEAKING:
        counts = leaks(seen, to.other, topic)
        yield Blocker("leaking", f"{sum(counts.values()):,} offsets of {topic} lie beyond its published ends")


def _fence_blockers(seen: Observation, file: MigrationFile, topic: str, side: Side) -> Iterator[Blocker]:
    fence = topic_at(seen, side, topic).fence
    if file.fence is Fence.ACL and fence.impossible and not is_shut(seen, side, topic):
        yield Blocker("fence-complete", f"{topic}: {fence.impossible}")


def written_for_good(seen: Observation, moving: Set, side: Side, began: Observation | None = None) -> Blocker | None:
    """Return why producers can't go back from `side`, if they have written there.

    Nothing copies from there then. A partition without a leader may have records. Topics count that are live there, or
    were when the switch `began`; and those whose way back a killed run began, when nobody had written there.
    """
    here, there, first = seen.clusters[side].alias, seen.clusters[side.other].alias, began or seen
    leaving = [topic for topic in moving.topics if side in (live_side(first, topic), stopped_at(first, topic))]
    written = [each for each in leaving if topic_at(seen, side, each).leaderless or _written(seen, side, each)]
    if side in seen.flows or not written:
        return None
    told = f"nothing copies from {here} to {there}, and producers may have written to {', '.join(written)} at {here}"
    if all(live_side(first, topic) is not side for topic in written):
        told += f": switch the producers to {here} again"
    return Blocker("no-flow", told)


def read_for_good(seen: Observation, moving: Set, side: Side, began: Observation | None = None) -> Blocker | None:
    """Return why groups can't go back from `side`, if they have read there.

    Nothing copies from there then. With `began`, groups count that have read there since a switch began.
    """
    read = [
        group
        for group in moving.groups
        if not _is_unread(seen, group, side) and (began is None or _has_read_since(began, seen, group, side))
    ]
    return None if side in seen.flows or not read else no_way_back_for(seen, read, side)


def no_way_back_for(seen: Observation, groups: Sequence[str], side: Side) -> Blocker:
    """Return why groups that may have read at `side` can't go back without a flow."""
    here, there = seen.clusters[side].alias, seen.clusters[side.other].alias
    return Blocker("no-flow", f"nothing copies from {here} to {there}, and {', '.join(groups)} may have read at {here}")


def read_meanwhile(began: Observation, seen: Observation, groups: Sequence[str], side: Side) -> list[str]:
    """Return the groups that may have read at `side` since a run towards it began."""
    return [group for group in groups if _may_have_read(began, seen, group, side)]


def _may_have_read(began: Observation, seen: Observation, group: str, side: Side) -> bool:
    before, now = group_at(began, side, group), group_at(seen, side, group)
    if before.members or not before.empty:
        return False
    if now.members or not now.empty:
        return True
    if not group_at(seen, side.other, group).empty:
        return False  # the mirror may set its places at this moment
    wanted = positions(seen, side.other, group)
    return any(
        offset > max(before.offsets.get(place, 0), wanted.get(place) or 0) for place, offset in now.offsets.items()
    )


def _has_read_since(began: Observation, seen: Observation, group: str, side: Side) -> bool:
    """True if a group that had not left `side` has used it since."""
    before, now = group_at(began, side, group), group_at(seen, side, group)
    used = now.members or not now.empty or any(offset > before.offsets.get(p, -1) for p, offset in now.offsets.items())
    return bool(used) and not _has_left(began, group, side)


def consumers_blockers(seen: Observation, file: MigrationFile, moving: Set, to: Side) -> list[Blocker]:
    """Return the reasons why the set's groups can't move to `to` now."""
    leaving = to.other
    forth = seen.flows.get(leaving)
    here, there = seen.clusters[leaving].alias, seen.clusters[to].alias
    early = [group for group in moving.groups if _began_early(seen, group, leaving)]
    if not early and all(_has_left(seen, group, leaving) for group in moving.groups):
        return []
    if forth is None:
        return [blocker] if (blocker := read_for_good(seen, moving, leaving)) else []
    blockers = [] if forth.at_work else [Blocker("mirror-down", f"no mirror works on {forth.name}")]
    for group in moving.groups:
        phase = group_phase(seen, group, leaving)
        if phase is GroupPhase.ON_BOTH_SIDES:
            blockers.append(Blocker("on-both-sides", f"{group} has members at {here} and at {there}"))
        elif phase is GroupPhase.CAME_BACK:
            told = f"{group} reads at {here} again, though it has read on at {there}: stop it at {here}"
            blockers.append(Blocker("unrouted-commits", told))
        elif group in early:
            told = f"{group} reads at {there} from before its position at {here}: stop it at {there}"
            blockers.append(Blocker("unrouted-commits", told))
        elif phase is GroupPhase.THERE:
            count = len(group_at(seen, leaving, group).members)
            blockers.append(Blocker("members", f"{group} has {count or 'unknown'} members at {here}: stop them"))
        elif phase is GroupPhase.STOPPED and (why := forth.untranslated.get(group)):
            blockers.append(Blocker("not-copied", f"{group}: {why}"))
    return blockers


def _began_early(seen: Observation, group: str, side: Side) -> bool:
    """True if a group reads at the other side from before its commit at `side`."""
    arrived = group_phase(seen, group, side) is GroupPhase.ARRIVED
    return arrived and any(offset is not None for offset in lacking(seen, side, group).values())


def _has_left(seen: Observation, group: str, side: Side) -> bool:
    """True if a group is at the other side, or was never at `side`."""
    here = group_at(seen, side, group)
    if here.members or not here.empty:
        return False
    return not here.offsets or group_phase(seen, group, side) in (GroupPhase.ARRIVED, GroupPhase.MOVED)


def _is_unread(seen: Observation, group: str, side: Side) -> bool:
    """True if a group has read nothing at `side`: at most its positions were set."""
    here, wanted = group_at(seen, side, group), positions(seen, side.other, group)
    if here.members or not here.empty:
        return False
    return all(offset <= (wanted.get(place) or 0) for place, offset in here.offsets.items())


def complete_blockers(seen: Observation, moving: Set) -> list[Blocker]:
    """Return the reasons why a set's way back can't be given up now."""
    now, here = set_phase(seen, moving), seen.clusters[Side.SOURCE].alias
    blockers = []
    if now.live is not Side.TARGET or now.phase not in (Phase.MOVED, Phase.COMPLETED):
        stands = f"{now.phase} at {seen.clusters[now.live].alias}"
        blockers.append(Blocker("not-moved", f"{moving.name} is {stands}: producers must write at the target"))
    for group in moving.groups:
        positioned = group_phase(seen, group, Side.SOURCE) is GroupPhase.POSITIONED
        if not positioned and not _has_left(seen, group, Side.SOURCE):
            blockers.append(Blocker("consumers-first", f"{group} has not left {here}"))
    return blockers


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVerdict:
    """A set's phase, and the blockers of a switch, there and back."""

    phase: SetPhase
    to_target: tuple[Blocker, ...]
    """Reasons why producers can't move to the target; empty if the set is there."""
    to_source: tuple[Blocker, ...]

    @property
    def can_switch(self) -> bool:
        return self.phase.live is Side.SOURCE and not self.to_target

    @property
    def can_reverse(self) -> bool:
        return self.phase.live is Side.TARGET and not self.to_source


def verdict(seen: Observation, file: MigrationFile, moving: Set) -> SetVerdict:
    """Return a set's verdict, with the blockers of the next possible switch only."""
    phase = set_phase(seen, moving)
    onward = phase.live is Side.SOURCE
    return SetVerdict(
        phase=phase,
        to_target=tuple(producers_blockers(seen, file, moving, Side.TARGET)) if onward else (),
        to_source=() if onward else tuple(producers_blockers(seen, file, moving, Side.SOURCE)),
    )
