"""Carry out a plan: look, act, and look again, until the plan is empty.

A plan needs no memory of earlier looks. After a killed run the same verb continues, because the next look shows the
clusters' state. If a step runs out of time, or a hook refuses, the executor undoes the switch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from sparkmirror.errors import SparkMirrorError
from sparkmirror.migrate import phase, switch_plan
from sparkmirror.migrate.actions import Action
from sparkmirror.migrate.file import Fence, Hook, MigrationFile, Set, SwitchStep
from sparkmirror.migrate.hooks import HookRefused
from sparkmirror.migrate.observation import Observation
from sparkmirror.migrate.phase import Blocker
from sparkmirror.migrate.switch_plan import SwitchGoal, Who
from sparkmirror.mirror.sync.turns import NotTurned

POLL_S = 0.05
"""Pause between two looks while a step waits, in seconds."""


class Code(IntEnum):
    """Exit codes of a switch."""

    DONE = 0
    """The set is at the goal."""
    BLOCKED = 1
    """A blocker stands in the way: the switch does not begin."""
    UNDONE = 4
    """Time was up, or a hook refused: the switch is undone."""


class Hands(Protocol):
    """Access to clusters, hooks and evidence for a switch."""

    def look(self) -> Observation:
        """Observe source and target."""

    def act(self, action: Action, seen: Observation) -> None:
        """Do the rest of an action.

        Raises `SparkMirrorError`s and `ConnectionError`s.
        """

    def readmit(self, moving_set: Set, goal: SwitchGoal) -> None:
        """Let a set's groups read again at the side opposite to the goal."""

    def ask(self, hook: Hook, told: dict[str, object]) -> None:
        """Run a hook; raises `HookRefused`."""

    def note(self, told: dict[str, object]) -> None:
        """Write a line of evidence; never read by a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvent:
    """An action's event, for terminals and evidence."""

    kind: str
    """`begins`, `waits`, `done`, `undo`, `blocked`, or `hook`."""
    words: str
    seconds: float = 0.0
    number: int = 0
    """The action's number in the plan; 0 for `undo`, `blocked` and `hook`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchOutcome:
    """A switch's end."""

    code: Code
    words: str
    seconds: float = 0.0
    """Duration in seconds, without the waits for people and hooks."""
    blockers: tuple[Blocker, ...] = ()


class TimeUp(SparkMirrorError):
    """A switch's step ran out of time."""

    exit_code = 4


_PEOPLES = frozenset({SwitchStep.EMPTY})
"""Steps that wait for people, not for clusters."""


class Executor:
    """Switch a set, and call `tell` with each event."""

    def __init__(self, file: MigrationFile, hands: Hands, tell: Callable[[StepEvent], None]) -> None:
        self._file = file
        self._hands = hands
        self._tell = tell
        self._people_s = 0.0

    def run(self, moving_set: Set, goal: SwitchGoal) -> SwitchOutcome:
        """Bring a set to a goal.

        Raises the clusters' `SparkMirrorError`s and `ConnectionError`s; the next run continues.
        """
        begun = time.monotonic()
        self._people_s = 0.0
        seen = self._hands.look()
        plan = switch_plan.plan(self._file, seen, moving_set, goal)
        if not plan:
            return SwitchOutcome(code=Code.DONE, words=f"{moving_set.name}: nothing is left to do")
        blockers = self._blockers(seen, moving_set, goal)
        if blockers:
            for blocker in blockers:
                self._tell(StepEvent(kind="blocked", words=str(blocker)))
            return SwitchOutcome(code=Code.BLOCKED, words=f"{moving_set.name}: {blockers[0]}", blockers=tuple(blockers))
        try:
            self._hooks(_whole_step(goal), moving_set, goal, before=True)
            self._steps(seen, moving_set, goal)
            self._hooks(_whole_step(goal), moving_set, goal, before=False)
        except (TimeUp, HookRefused) as error:
            self._tell(StepEvent(kind="undo", words=str(error)))
            self._undo(moving_set, goal)
            self._note(moving_set, goal, "undone", str(error))
            return SwitchOutcome(code=Code.UNDONE, words=f"{moving_set.name}: {error}; everything is undone")
        seconds = time.monotonic() - begun - self._people_s
        self._note(moving_set, goal, "done", f"{seconds:.2f} s")
        return SwitchOutcome(code=Code.DONE, words=f"{moving_set.name}: done", seconds=seconds)

    def _blockers(self, seen: Observation, moving_set: Set, goal: SwitchGoal) -> list[Blocker]:
        """Return the blockers, except for states that the switch itself waits for."""
        blockers = []
        if goal.who is not Who.CONSUMERS:
            blockers += phase.producers_blockers(seen, self._file, moving_set, goal.at)
        if goal.who is not Who.PRODUCERS:
            blockers += phase.consumers_blockers(seen, self._file, moving_set, goal.at)
        waited = {"leaking", "members", "not-copied"} | ({"consumers-first"} if goal.who is Who.ALL else set())
        return [each for each in blockers if each.id not in waited]

    def _steps(self, seen: Observation, moving_set: Set, goal: SwitchGoal) -> None:
        number, current, since, waits, words = 0, None, time.monotonic(), "", ""
        while todo := switch_plan.plan(self._file, seen, moving_set, goal):
            action = todo[0]
            if current is None or type(action) is not type(current):
                number, current, since, waits = number + 1, action, time.monotonic(), ""
                words = action.words(seen)  # of what is to be done: later words no longer count what is done
                self._tell(StepEvent(kind="begins", words=words, number=number))
                if self._hooks(action.step, moving_set, goal, before=True):
                    seen, since = self._hands.look(), time.monotonic()
                    continue  # a hook may take minutes: what it was asked about may look different now
            refused = ""
            try:
                self._hands.act(action, seen)
            except NotTurned as error:  # somebody has written since the look, or a copy lost records
                refused = str(error)
            seen = self._hands.look()
            seconds = time.monotonic() - since
            if action.seen(seen):
                self._people_s += seconds if action.step in _PEOPLES else 0.0
                self._tell(StepEvent(kind="done", words=words, seconds=seconds, number=number))
                self._note(moving_set, goal, type(action).__name__, f"{seconds:.3f} s")
                self._hooks(action.step, moving_set, goal, before=False)
                continue
            told = action.waits_for(seen) or refused
            if seconds > action.wait_s(self._file.policies):
                raise TimeUp(f"{words}: not within {seconds:.0f} s: {told or 'not seen'}")
            if told != waits:
                waits = told
                self._tell(StepEvent(kind="waits", words=told, seconds=seconds, number=number))
            time.sleep(POLL_S)

    def _undo(self, moving_set: Set, goal: SwitchGoal) -> None:
        """Bring the set back by the plan for the opposite goal, without the steps' hooks."""
        if goal.who is not Who.PRODUCERS:
            self._hands.readmit(moving_set, goal)
        if goal.who is Who.CONSUMERS:
            return
        back = SwitchGoal(Who.PRODUCERS, goal.at.other)
        until = time.monotonic() + 2 * (self._file.policies.fence + self._file.policies.drain)
        # The goal's side let no producer in, so the way back needs no fence by people or by hooks.
        file = self._file.model_copy(update={"fence": Fence.ACL if self._file.fence is Fence.ACL else Fence.NONE})
        seen = self._hands.look()
        while todo := switch_plan.plan(file, seen, moving_set, back):
            self._tell(StepEvent(kind="undo", words=todo[0].words(seen)))
            self._hands.act(todo[0], seen)
            seen = self._hands.look()
            if time.monotonic() > until:
                raise TimeUp(f"undoing: {todo[0].words(seen)}: not in time; `--back` continues")
            time.sleep(POLL_S)
        if self._file.hooks.fence is not None and self._file.fence is Fence.HOOK:
            self._hands.ask(self._file.hooks.fence.start, self._told(moving_set, goal, SwitchStep.FENCE, "undo"))

    def _hooks(self, step: SwitchStep, moving_set: Set, goal: SwitchGoal, *, before: bool) -> bool:
        """Ask a step's hooks; return True if the step has hooks."""
        hooks = (self._file.hooks.before if before else self._file.hooks.after).get(step, ())
        begun = time.monotonic()
        for hook in hooks:
            self._tell(StepEvent(kind="hook", words=hook.run))
            self._hands.ask(hook, self._told(moving_set, goal, step, "before" if before else "after"))
        self._people_s += time.monotonic() - begun
        return bool(hooks)

    def _told(self, moving_set: Set, goal: SwitchGoal, step: SwitchStep, when: str) -> dict[str, object]:
        return {
            "migration": self._file.name,
            "set": moving_set.name,
            "owner": moving_set.owner,
            "topics": list(moving_set.topics),
            "groups": list(moving_set.groups),
            "who": str(goal.who),
            "to": str(goal.at),
            "step": str(step),
            "when": when,
        }

    def _note(self, moving_set: Set, goal: SwitchGoal, what: str, words: str) -> None:
        self._hands.note(
            {"set": moving_set.name, "who": str(goal.who), "to": str(goal.at), "what": what, "words": words}
        )


def _whole_step(goal: SwitchGoal) -> SwitchStep:
    return SwitchStep.CONSUMERS if goal.who is Who.CONSUMERS else SwitchStep.PRODUCERS


def batches(moving_set: Set, size: int) -> list[Set]:
    """Divide a set by groups into sets with at most `size` groups each.

    The consumers' switch takes the parts in turn.
    """
    groups = [moving_set.groups[at : at + size] for at in range(0, len(moving_set.groups), size)]
    return [moving_set.model_copy(update={"groups": part}) for part in groups]
