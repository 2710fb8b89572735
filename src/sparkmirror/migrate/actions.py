"""The actions of a switch, as frozen values.

Each has words, what clients see, the undo, and how to tell that it is done.

An action is done if the next observation shows its effect (`seen`), whoever brought it about. So a run that was killed
anywhere continues at the first action whose effect is missing. What no broker shows is noted: before a command stops
producers, or starts them, that they may run or not, and after it where they stopped, or that they run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.migrate import phase
from sparkmirror.migrate.file import Fence, Policies, SwitchStep
from sparkmirror.migrate.observation import Observation, Side, TopicSeen
from sparkmirror.migrate.phase import GroupPhase

_SHOWN = 5
"""Names that a line of words lists."""


def listed(names: Sequence[str]) -> str:
    """Return names in a sentence; many names are cut short with their number."""
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(ABC):
    """One action on some topics or groups that leave the side `leaving`."""

    step: ClassVar[SwitchStep]
    leaving: Side
    names: tuple[str, ...]
    """Topics, or groups."""

    @abstractmethod
    def words(self, seen: Observation) -> str:
        """Say what will be done."""

    @abstractmethod
    def seen(self, seen: Observation) -> bool:
        """True if the clusters show that it is done."""

    def undo(self, seen: Observation) -> str:
        """Say how the action is undone; empty: there is nothing to undo."""
        return ""

    def clients(self, seen: Observation) -> str:
        """Say what clients see; empty: nothing."""
        return ""

    def wait_s(self, policies: Policies) -> float:
        """Return how long to wait for `seen` at most, in seconds."""
        return policies.fence

    def waits_for(self, seen: Observation) -> str:
        """Say what `seen` still waits for."""
        return ""

    @property
    def arriving(self) -> Side:
        return self.leaving.other

    def _here(self, seen: Observation) -> str:
        return seen.clusters[self.leaving].alias

    def _there(self, seen: Observation) -> str:
        return seen.clusters[self.arriving].alias

    def _gone(self, seen: Observation, topic: str) -> bool:
        """True if the topic is live at the other side."""
        return phase.live_side(seen, topic) is self.arriving

    def _topics(self, seen: Observation) -> list[TopicSeen]:
        """Return the topics that have not left, at the side that they leave."""
        return [phase.topic_at(seen, self.leaving, name) for name in self.names if not self._gone(seen, name)]


# --- consumers --------------------------------------------------------------------------------------


class WaitEmpty(Action):
    """Wait until groups have no members at the side that they leave."""

    step = SwitchStep.EMPTY

    def words(self, seen: Observation) -> str:
        return f"wait until {listed(self.names)} have no members at {self._here(seen)}: YOU stop them now"

    def clients(self, seen: Observation) -> str:
        return "consumers: a rebalance at their stop"

    def seen(self, seen: Observation) -> bool:
        return not self._full(seen)

    def wait_s(self, policies: Policies) -> float:
        return policies.empty

    def waits_for(self, seen: Observation) -> str:
        told = []
        for name in self._full(seen):
            group = phase.group_at(seen, self.leaving, name)
            who = sorted({f"{member.client_id}@{member.host}" for member in group.members})
            told.append(f"{name} is {group.state}" + (f" with {listed(who)}" if who else ""))
        return "; ".join(told)

    def _full(self, seen: Observation) -> list[str]:
        return [name for name in self.names if not phase.group_at(seen, self.leaving, name).empty]


_AWAY = frozenset({GroupPhase.ARRIVED, GroupPhase.MOVED})


class WaitCopied(Action):
    """Wait until the other side has everything that groups have read."""

    step = SwitchStep.DRAIN

    def words(self, seen: Observation) -> str:
        return f"wait until {self._there(seen)} has everything read by {listed(self.names)}"

    def seen(self, seen: Observation) -> bool:
        return not self._missing(seen)

    def wait_s(self, policies: Policies) -> float:
        return policies.drain

    def waits_for(self, seen: Observation) -> str:
        why = seen.flows[self.leaving].untranslated
        return "; ".join(f"{name}: {why.get(name, 'a position is not known')}" for name in self._missing(seen))

    def _missing(self, seen: Observation) -> list[str]:
        return [
            name
            for name in self.names
            if phase.group_phase(seen, name, self.leaving) not in _AWAY
            and None in phase.lacking(seen, self.leaving, name).values()
        ]


class SetPositions(Action):
    """Commit groups' exact positions at the other side."""

    step = SwitchStep.POSITION

    def words(self, seen: Observation) -> str:
        count = sum(len(phase.lacking(seen, self.leaving, name)) for name in self.names)
        words = f"set {count:,} exact positions at {self._there(seen)} for {listed(self.names)}"
        further = [
            f"{topic}-{partition} of {name}"
            for name in self.names
            for topic, partition in sorted(phase.further(seen, self.leaving, name))
        ]
        if further:
            words += f"; these are further there and stay, so check that they were read there: {listed(further)}"
        return words

    def seen(self, seen: Observation) -> bool:
        return not self.due(seen)

    def due(self, seen: Observation) -> list[str]:
        """Return the groups whose positions are not set."""
        away = _AWAY | {GroupPhase.POSITIONED}
        return [name for name in self.names if phase.group_phase(seen, name, self.leaving) not in away]

    def offsets(self, seen: Observation) -> dict[str, dict[TopicPartition, int]]:
        """Return the offsets to commit at the other side, by group.

        Only empty groups have any, and no offset sets a group back.
        """
        offsets = {}
        for name in self.due(seen):
            if phase.group_phase(seen, name, self.leaving) is GroupPhase.STOPPED:
                lacking = phase.lacking(seen, self.leaving, name)
                offsets[name] = {copy: offset for copy, offset in lacking.items() if offset is not None}
        return offsets


class DenyReturn(Action):
    """Refuse groups a way back to the side that they have left.

    Only empty groups: a running member would lose its last commit.
    """

    step = SwitchStep.OPEN

    def words(self, seen: Observation) -> str:
        return (
            f"deny {listed(self.names)} to read at {self._here(seen)} again, and let them read at {self._there(seen)}"
        )

    def undo(self, seen: Observation) -> str:
        return f"lift the denials at {self._here(seen)}"

    def clients(self, seen: Observation) -> str:
        there = seen.clusters[self.arriving]
        return f"consumers: YOU start them with bootstrap.servers={there.bootstrap}; they read the next record"

    def seen(self, seen: Observation) -> bool:
        return not self._undenied(seen) and not self.to_let_in(seen)

    def waits_for(self, seen: Observation) -> str:
        still = [name for name in self._undenied(seen) if name not in self.to_deny(seen)]
        return f"{listed(still)} came back to {self._here(seen)}" if still else ""

    def to_deny(self, seen: Observation) -> list[str]:
        """Return the groups to be denied where they left: those without members there."""
        return [name for name in self._undenied(seen) if phase.group_at(seen, self.leaving, name).empty]

    def _undenied(self, seen: Observation) -> list[str]:
        if self.leaving not in seen.flows:
            return []  # such denials are written down where that flow's words are
        return [name for name in self.names if phase.group_at(seen, self.leaving, name).readers]

    def to_let_in(self, seen: Observation) -> list[str]:
        """Return the groups that an earlier switch has denied where they go."""
        return [name for name in self.names if phase.group_at(seen, self.arriving, name).read_denied]


# --- producers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Deny(Action):
    """Keep producers from writing to topics at the side that they leave."""

    step: ClassVar[SwitchStep] = SwitchStep.FENCE
    fence: Fence
    still_s: float
    """Seconds for which ends must stand still where no ACL denies."""

    def words(self, seen: Observation) -> str:
        topics, here = listed(self.names), self._here(seen)
        if self.fence is Fence.HOOK:
            return f"have your command stop the producers of {topics} at {here}"
        if self.fence is Fence.NONE:
            return f"YOU stop the producers of {topics} at {here}"
        who = sorted({name for topic in self._topics(seen) for name in topic.fence.open})
        return f"deny WRITE on {topics} at {here} to {listed(who) or 'no principal, since no ACL lets any write'}"

    def undo(self, seen: Observation) -> str:
        if self.fence is Fence.ACL:
            return f"lift these denials at {self._here(seen)}: producers that still run continue by themselves"
        return (
            "your command starts the producers again" if self.fence is Fence.HOOK else "YOU start the producers again"
        )

    def clients(self, seen: Observation) -> str:
        if self.fence is not Fence.ACL:
            return ""
        return (
            "producers that still run: TopicAuthorizationException for each record, not fatal; with acks=0 they lose"
            " what they send"
        )

    def seen(self, seen: Observation) -> bool:
        if self.fence is Fence.ACL:
            return all(phase.is_shut(seen, self.leaving, topic.name) for topic in self._topics(seen))
        return not self.to_stop(seen) and not self._growing(seen)

    def to_stop(self, seen: Observation) -> list[str]:
        """Return the topics of which nobody has noted that their producers stopped here."""
        here = self.leaving
        return [topic.name for topic in self._topics(seen) if phase.stopped_at(seen, topic.name) is not here]

    def wait_s(self, policies: Policies) -> float:
        return policies.empty if self.fence is Fence.NONE else policies.fence

    def _growing(self, seen: Observation) -> list[str]:
        return [
            topic.name
            for topic in self._topics(seen)
            if topic.still_s < self.still_s and not phase.is_published(seen, self.leaving, topic.name)
        ]

    def waits_for(self, seen: Observation) -> str:
        if self.fence is Fence.ACL:
            told = [f"{each.name}: {listed(sorted(each.fence.open))}" for each in self._topics(seen) if each.fence.open]
            return "not each broker denies " + "; ".join(told)
        growing = self._growing(seen)
        return f"{listed(growing)}: no {self.still_s:g} s without a new record yet" if growing else ""


class Settle(Action):
    """Wait until ends stand still on every leader, without an open transaction."""

    step = SwitchStep.FENCE

    def words(self, seen: Observation) -> str:
        return f"see that the ends of {listed(self.names)} at {self._here(seen)} stand still on every leader"

    def clients(self, seen: Observation) -> str:
        return "transactional producers: an open transaction is aborted by its time-out, or by its producer"

    def seen(self, seen: Observation) -> bool:
        return not self._moving(seen)

    def waits_for(self, seen: Observation) -> str:
        told = []
        for topic in self._moving(seen):
            if topic.open_transactions:
                told.append(f"{topic.name} has open transactions of {listed(topic.open_transactions)}")
            elif topic.leaderless:
                told.append(f"{topic.name}-{topic.leaderless[0]} has no leader")
            else:
                told.append(f"{topic.name} still grows, or its replicas follow")
        return "; ".join(told)

    def _moving(self, seen: Observation) -> list[TopicSeen]:
        return [
            topic for topic in self._topics(seen) if not topic.steady or topic.leaderless or topic.open_transactions
        ]


class Publish(Action):
    """Publish topics' ends: the flow copies up to them, and no farther."""

    step = SwitchStep.PUBLISH

    def words(self, seen: Observation) -> str:
        count = sum(len(topic.ends) for topic in self._topics(seen))
        return f"publish the {count:,} ends of {listed(self.names)} at {self._here(seen)}"

    def undo(self, seen: Observation) -> str:
        return f"take the published ends back: {self._there(seen)} gets later records, too"

    def seen(self, seen: Observation) -> bool:
        return not self.due(seen)

    def due(self, seen: Observation) -> list[str]:
        """Return the topics without published ends, or with records after these."""
        return [
            name
            for name in self.names
            if not self._gone(seen, name) and not phase.is_published(seen, self.leaving, name)
        ]


class Drain(Action):
    """Wait until the copies hold everything up to the published ends."""

    step = SwitchStep.DRAIN

    def words(self, seen: Observation) -> str:
        return f"wait until {self._there(seen)} has everything of {listed(self.names)}"

    def seen(self, seen: Observation) -> bool:
        return not self._missing(seen)

    def wait_s(self, policies: Policies) -> float:
        return policies.drain

    def waits_for(self, seen: Observation) -> str:
        told = []
        for name in self._missing(seen):
            said = phase.word(seen, self.leaving, name)
            left = len(said.ends.keys() - said.reached.keys())
            told.append(f"{name}: {left} of {len(said.ends)} partitions")
        return "the copy lacks " + "; ".join(told)

    def _missing(self, seen: Observation) -> list[str]:
        return [
            name
            for name in self.names
            if not self._gone(seen, name) and not phase.word(seen, self.leaving, name).drained
        ]


class Arm(Action):
    """Begin the turn of the flow back: exactly behind the published ends.

    Renamed copies need no start there; only the ends that the flow back had are taken back.
    """

    step = SwitchStep.ARM

    def words(self, seen: Observation) -> str:
        return (
            f"arm the way back: {self._there(seen)}->{self._here(seen)} begins exactly at the ends of"
            f" {listed(self.names)}"
        )

    def undo(self, seen: Observation) -> str:
        return "the same switch in the other direction, with nothing to copy"

    def seen(self, seen: Observation) -> bool:
        return not self.due(seen)

    def due(self, seen: Observation) -> list[str]:
        """Return the topics that are not live at the other side yet."""
        return [name for name in self.names if not self._gone(seen, name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Open(Action):
    """Let producers write at the side that the topics have come to."""

    step: ClassVar[SwitchStep] = SwitchStep.OPEN
    fence: Fence

    def words(self, seen: Observation) -> str:
        topics, there = listed(self.names), self._there(seen)
        if self.fence is Fence.HOOK:
            return f"have your command start the producers of {topics} at {there}"
        return f"let producers write to {topics} at {there}"

    def undo(self, seen: Observation) -> str:
        return "`sparkmirror migration reverse`"

    def clients(self, seen: Observation) -> str:
        there = seen.clusters[self.arriving]
        return f"producers: YOU start them with bootstrap.servers={there.bootstrap}"

    def seen(self, seen: Observation) -> bool:
        return self._all_came(seen) and not (self.denied(seen) or self.ungranted(seen) or self.to_start(seen))

    def to_start(self, seen: Observation) -> list[str]:
        """Return the topics with stopped producers.

        A command, or people, stopped the producers, and nobody has started them since.
        """
        return [name for name in self.names if phase.stopped(seen, name)] if self._all_came(seen) else []

    def waits_for(self, seen: Observation) -> str:
        missing = [name for name in self.names if phase.live_side(seen, name) is not self.arriving]
        return f"{listed(missing)} have not come to {self._there(seen)}" if missing else ""

    def _all_came(self, seen: Observation) -> bool:
        return all(phase.live_side(seen, name) is self.arriving for name in self.names)

    def denied(self, seen: Observation) -> list[str]:
        """Return the topics that this migration still denies where they have come to.

        None before all of the set's topics have come.
        """
        if not self._all_came(seen):
            return []
        return [name for name in self.names if phase.topic_at(seen, self.arriving, name).fence.added]

    def ungranted(self, seen: Observation) -> dict[str, list[str]]:
        """Return principals without the right to write that they had, by topic.

        They may write where the topics come from, and not where the topics have come to.
        """
        if not seen.clusters[self.arriving].authorizer or not self._all_came(seen):
            return {}
        missing = {}
        for name in self.names:
            if not phase.has_come(seen, name):
                continue
            fence = phase.topic_at(seen, self.leaving, name).fence
            had = fence.writers - (fence.denied_somewhere - fence.added)  # an operator's denials stay in force
            if left := sorted(had - phase.topic_at(seen, self.arriving, name).fence.writers):
                missing[name] = left
        return missing

    def lacks_newcomers_alone(self, seen: Observation) -> bool:
        """True if all are let in but principals that got their rights after the switch.

        The switch has denied all others where they come from.
        """
        if not self._all_came(seen) or self.denied(seen) or self.to_start(seen):
            return False
        lacking = self.ungranted(seen).items()
        return not any(phase.topic_at(seen, self.leaving, name).fence.added.intersection(who) for name, who in lacking)


class Withdraw(Action):
    """Take published ends back, so that the flow continues copying.

    `leaving` is the side whose ends were published.
    """

    step = SwitchStep.PUBLISH

    def words(self, seen: Observation) -> str:
        return f"take the published ends of {listed(self.names)} at {self._here(seen)} back"

    def seen(self, seen: Observation) -> bool:
        return not self.due(seen)

    def due(self, seen: Observation) -> list[str]:
        """Return the topics whose published ends still hold."""
        return [
            name
            for name in self.names
            if phase.word(seen, self.leaving, name).done
            and (phase.live_side(seen, name) is self.leaving or not phase.keeps_names(seen, name))
        ]
