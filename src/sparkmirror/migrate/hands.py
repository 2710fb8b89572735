"""Carry out actions: turn an action and an observation into writes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatchmethod

from sparkmirror.kafka.cluster.acl_changes import not_there
from sparkmirror.kafka.cluster.acls import Acl, AclResource, read_acls
from sparkmirror.kafka.cluster.write_fence import read_denials, write_denials, write_grants
from sparkmirror.migrate import actions, phase
from sparkmirror.migrate.actions import Action
from sparkmirror.migrate.file import Fence, Hook, MigrationFile, Set
from sparkmirror.migrate.hooks import payload
from sparkmirror.migrate.observation import Observation, Side
from sparkmirror.migrate.observe import PairObserver
from sparkmirror.migrate.pair import Pair
from sparkmirror.migrate.switch_plan import SwitchGoal, Who
from sparkmirror.migrate.writers import Writing
from sparkmirror.mirror.sync.migration_words import fence_key
from sparkmirror.pump.messages.control import DoneTopic


class RealHands:
    """Look at a pair of clusters, and act on it through `writing`."""

    def __init__(self, file: MigrationFile, pair: Pair, writing: Writing) -> None:
        self._file = file
        self._pair = pair
        self._writing = writing
        self._observer = PairObserver(file, pair)
        self._asked: dict[str, tuple[str, Side]] = {}
        """The last order to a hook by topic: stop or start, and where the producers go."""
        self._tried: dict[Side, set[str]] = {side: set() for side in Side}
        self._own: dict[Side, set[str]] = {side: {own} for side, own in pair.named.items() if own}
        """The mirror's principals by side, by name or as trials have found them."""

    def look(self) -> Observation:
        return self._observer.look()

    def ask(self, hook: Hook, told: dict[str, object]) -> None:
        self._writing.ask(hook, told)

    def note(self, told: dict[str, object]) -> None:
        self._writing.note(told)

    def readmit(self, moving: Set, goal: SwitchGoal) -> None:
        for group in moving.groups:
            self._let_in(goal.at.other, AclResource.GROUP, group)

    @singledispatchmethod
    def act(self, action: Action, seen: Observation) -> None:
        """Do what is missing; a wait has nothing to do."""

    @act.register
    def _(self, action: actions.SetPositions, seen: Observation) -> None:
        for group, offsets in action.offsets(seen).items():
            self._writing.commit(action.arriving, group, offsets)

    @act.register
    def _(self, action: actions.DenyReturn, seen: Observation) -> None:
        for group in action.to_deny(seen):
            if who := self._others(action.leaving, phase.group_at(seen, action.leaving, group).readers):
                denials = read_denials({group: who}, self._pair.named[action.leaving])
                self._deny(action.leaving, AclResource.GROUP, group, denials)
        for group in action.to_let_in(seen):
            self._let_in(action.arriving, AclResource.GROUP, group)

    @act.register
    def _(self, action: actions.Deny, seen: Observation) -> None:
        if action.fence is not Fence.ACL:
            to_stop = action.to_stop(seen)
            if action.fence is Fence.HOOK and self._file.hooks.fence is not None:
                if to_stop:
                    self._writing.note_stopped(to_stop, None)
                self._once("stop", action, self._file.hooks.fence.stop)
            if to_stop:
                self._writing.note_stopped(to_stop, action.leaving)
            return
        for topic in action.names:
            if who := self._others(action.leaving, phase.topic_at(seen, action.leaving, topic).fence.open):
                denials = write_denials({topic: who}, self._pair.named[action.leaving])
                self._deny(action.leaving, AclResource.TOPIC, topic, denials)

    @act.register
    def _(self, action: actions.Publish, seen: Observation) -> None:
        for topic in action.due(seen):
            there = phase.topic_at(seen, action.leaving, topic)
            if there.steady and not there.leaderless:
                word = DoneTopic(source_topic_id=there.topic_id, ends=dict(there.ends))
                self._writing.publish(action.leaving, topic, word)

    @act.register
    def _(self, action: actions.Withdraw, seen: Observation) -> None:
        for topic in action.due(seen):
            self._writing.publish(action.leaving, topic, None)

    @act.register
    def _(self, action: actions.Arm, seen: Observation) -> None:
        due = action.due(seen)
        if kept := [topic for topic in due if phase.keeps_names(seen, topic)]:
            self._writing.begin_turn(action.arriving, kept)
        for topic in due:
            if topic not in kept:  # renamed copies: the flow back copies at any time, once its own ends are taken back
                self._writing.publish(action.arriving, topic, None)

    @act.register
    def _(self, action: actions.Open, seen: Observation) -> None:
        for topic in action.denied(seen):
            self._let_in(action.arriving, AclResource.TOPIC, topic)
        if ungranted := action.ungranted(seen):
            self._grant(action.leaving, ungranted)
        to_start = action.to_start(seen)
        if self._file.fence is Fence.HOOK and self._file.hooks.fence is not None:
            if to_start:
                self._writing.note_stopped(to_start, None)
            self._once("start", action, self._file.hooks.fence.start)
        if to_start:
            self._writing.note_started(to_start)

    def _grant(self, leaving: Side, ungranted: Mapping[str, list[str]]) -> None:
        theirs = read_acls(self._pair.clients[leaving], AclResource.TOPIC)
        wanted = [
            grant
            for topic, who in ungranted.items()
            for grant in write_grants(theirs, {topic: topic})
            if grant.principal in who
        ]
        self._writing.add_acls(leaving.other, not_there(self._pair.clients[leaving.other], wanted))

    def _deny(self, side: Side, resource: AclResource, name: str, denials: tuple[Acl, ...]) -> None:
        """Add denials, and write down first which of them are this migration's."""
        missing = not_there(self._pair.clients[side], denials)
        known = self._pair.denials(side).get(fence_key(resource, name), ())
        self._writing.note_fence(side, resource, name, sorted({*known, *missing}))
        self._writing.add_acls(side, missing)

    def _others(self, side: Side, who: frozenset[str]) -> frozenset[str]:
        """Return the principals but for the mirror's own.

        A certificate or a token does not tell a name. What an earlier run has found counts for looks alone: the mirror
        may sign in otherwise now.
        """
        if not self._pair.named[side] and (untried := who - self._tried[side]):
            self._own.setdefault(side, set()).update(self._writing.find_own(side, untried))
            self._tried[side] |= untried
        return who - self._own.get(side, set())

    def _let_in(self, side: Side, resource: AclResource, name: str) -> None:
        """Remove this migration's denials, and then the word on them."""
        if added := self._pair.denials(side).get(fence_key(resource, name), ()):
            self._writing.remove_acls(side, added)
            self._writing.note_fence(side, resource, name, ())

    def _once(self, when: str, action: Action, hook: Hook) -> None:
        order = when, action.arriving
        if any(self._asked.get(name) != order for name in action.names):
            moving = next(each for each in self._file.sets if action.names[0] in each.topics)
            moving = moving.model_copy(update={"topics": action.names})
            self._asked |= dict.fromkeys(action.names, order)
            self.ask(hook, payload(self._file, moving, who=Who.PRODUCERS, to=action.arriving, step="fence", when=when))
