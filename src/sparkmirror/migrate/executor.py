"""Carry out a plan: look, act, and look again, until the plan is empty.

A plan needs no memory of earlier looks. After a killed run the same verb continues, because the next look shows the
clusters' state. If a step runs out of time, or a hook refuses, the executor undoes the switch. A cluster that refuses,
or can't be reached, is tried again until the step's time is up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from typing import Protocol

from sparkmirror.errors import SparkMirrorError
from sparkmirror.migrate import phase, switch_plan
from sparkmirror.migrate.actions import Action, Open, listed
from sparkmirror.migrate.file import Fence, Hook, MigrationFile, Set, SwitchStep
from sparkmirror.migrate.found_at_goal import FoundAtGoal, found_at_goal, producers_left
from sparkmirror.migrate.hooks import HookRefused, payload, shown
from sparkmirror.migrate.left_behind import command_back, left_behind
from sparkmirror.migrate.observation import Observation
from sparkmirror.migrate.phase import Blocker
from sparkmirror.migrate.switch_plan import SwitchGoal, Who

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
    STUCK = 5
    """The undo, or a switch in batches, stopped half way: the words say what is left."""


class Hands(Protocol):
    """Access to clusters, hooks and evidence for a switch."""

    def look(self) -> Observation:
        """Observe source and target."""

    def act(self, action: Action, seen: Observation) -> None:
        """Do the rest of an action.

        Raises `HookRefused` for good, other `SparkMirrorError`s and `ConnectionError`s for now.
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
    """Duration of the steps in seconds, without the waits for people and hooks."""
    blockers: tuple[Blocker, ...] = ()


class TimeUp(SparkMirrorError):
    """A switch's step ran out of time, or nothing more can be waited for."""

    exit_code = 4


class TooLate(TimeUp):
    """A blocker has come up during a switch: clients use the side to leave."""

    def __init__(self, blocker: Blocker) -> None:
        self.blocker = blocker
        super().__init__(str(blocker))


class _Patience:
    """A step's time: what it waits for is told, until its limit."""

    def __init__(self, words: str, limit_s: float, tell: Callable[[StepEvent], None], number: int = 0) -> None:
        self.words = words
        self._limit_s = limit_s
        self._tell = tell
        self._number = number
        self._told = ""
        self.restart()

    def restart(self) -> None:
        self._since = time.monotonic()

    def leave_out(self, seconds: float) -> None:
        """Leave out time that a hook has taken."""
        self._since += seconds

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._since

    def wait(self, told: str) -> None:
        """Pause; raises `TimeUp` at the limit."""
        if self.seconds > self._limit_s:
            raise TimeUp(f"{self.words}: not within {self.seconds:.0f} s: {told or 'not seen'}")
        if told != self._told:
            self._told = told
            self._tell(StepEvent(kind="waits", words=told, seconds=self.seconds, number=self._number))
        time.sleep(POLL_S)


class Executor:
    """Switch a set, and call `tell` with each event."""

    def __init__(self, file: MigrationFile, hands: Hands, tell: Callable[[StepEvent], None]) -> None:
        self._file = file
        self._hands = hands
        self._tell = tell
        self._peoples = {SwitchStep.EMPTY} | ({SwitchStep.FENCE} if file.fence is not Fence.ACL else set())
        """Steps that wait for people, not for clusters."""
        self._people_s = 0.0
        self._seen: Observation
        """The last observation."""
        self._unseen = ""
        """An action in words that may have an effect, if nobody has looked since."""
        self._opened = False
        """True if this run, or one before, may have let producers in at the goal's side."""
        self._before: FoundAtGoal
        """Topics and groups at the goal before this run, where the undo leaves them."""
        self._late: Blocker | None = None
        """Reason why the undo can't come to its end."""
        self._no_return: Blocker | None = None
        """Reason why groups that this run has moved can't go back."""

    def run(self, moving_set: Set, goal: SwitchGoal) -> SwitchOutcome:
        """Bring a set to a goal.

        Consumers move in batches; each is a switch of its own, with its hooks, and is undone by itself. Raises
        `SparkMirrorError`s and `ConnectionError`s of the first look; nothing is changed then.
        """
        parts = batches(moving_set, self._file.policies.batch) if goal.who is Who.CONSUMERS else [moving_set]
        outcome = SwitchOutcome(code=Code.DONE, words=f"{moving_set.name}: nothing is left to do")
        done: list[str] = []
        for part in parts:
            try:
                result = self._run(part, goal)
            except (SparkMirrorError, ConnectionError) as error:
                if not done:
                    raise
                result = SwitchOutcome(code=Code.STUCK, words=f"{moving_set.name}: {error}")
            if result.code is not Code.DONE:
                stay = f"; {', '.join(done)} moved before, and stay: `{command_back(goal, moving_set)}` takes them back"
                return replace(result, words=result.words + stay) if done else result
            done += part.groups
            if result.seconds:  # the last batch may have nothing to do
                outcome = replace(result, seconds=outcome.seconds + result.seconds)
        return outcome

    def _run(self, moving_set: Set, goal: SwitchGoal) -> SwitchOutcome:
        self._people_s, self._unseen, self._late, self._no_return = 0.0, "", None, None
        seen = self._seen = self._hands.look()
        self._before = found_at_goal(self._file, seen, moving_set, goal)
        self._opened = self._before.opened
        plan = switch_plan.plan(self._file, seen, moving_set, goal)
        blockers = switch_plan.blockers(self._file, seen, moving_set, goal)
        if not plan and not blockers:
            return SwitchOutcome(code=Code.DONE, words=f"{moving_set.name}: nothing is left to do")
        if blockers:
            for blocker in blockers:
                self._tell(StepEvent(kind="blocked", words=str(blocker)))
            return SwitchOutcome(code=Code.BLOCKED, words=f"{moving_set.name}: {blockers[0]}", blockers=tuple(blockers))
        # The first line of evidence creates its topic: before clients wait.
        self._note(moving_set, goal, "begins", "; ".join(action.words(seen) for action in plan))
        begun = time.monotonic()
        self._seen = self._hands.look()
        try:
            self._steps(seen, moving_set, goal)
        except (TimeUp, HookRefused) as error:
            self._tell(StepEvent(kind="undo", words=str(error)))
            outcome = self._take_back(moving_set, goal, error)
            if isinstance(error, TooLate) and outcome.code is Code.UNDONE:  # as if it had been seen at the begin
                return replace(outcome, code=Code.BLOCKED, blockers=(error.blocker,))
            return outcome
        seconds = time.monotonic() - begun - self._people_s
        self._note(moving_set, goal, "done", f"{seconds:.2f} s")
        return SwitchOutcome(code=Code.DONE, words=f"{moving_set.name}: done", seconds=seconds)

    def _steps(self, began: Observation, moving_set: Set, goal: SwitchGoal) -> None:
        """Carry the plan out; `began` is the look that showed no blockers.

        Each step's hooks are asked once, around all of the step's actions.
        """
        seen = self._seen
        whole = _whole_steps(goal)
        begun: list[SwitchStep] = []
        over: set[SwitchStep] = set()
        number, current = 0, None
        patience = _Patience(moving_set.name, self._file.policies.fence, self._tell)
        while True:
            if late := switch_plan.too_late(began, seen, moving_set, goal):
                raise TooLate(late)
            todo = switch_plan.plan(self._file, seen, moving_set, goal)
            left = {*whole, *(each.step for each in todo)} if todo else set()
            ended = [step for step in reversed(begun) if step not in left and step not in over]
            over.update(ended)
            if self._hooks(ended, moving_set, goal, before=False):
                patience.restart()
                seen = self._look(patience)
                continue  # a hook may take minutes: what it was asked about may look different now
            if not todo:
                return
            action = todo[0]
            if type(action) is not type(current):
                number, current = number + 1, action
                # Words of what is to be done: later words no longer count what is done.
                wait_s = action.wait_s(self._file.policies)
                patience = _Patience(action.words(seen), wait_s, self._tell, number)
                self._tell(StepEvent(kind="begins", words=patience.words, number=number))
                begins = [step for step in (*whole, action.step) if step not in begun]
                begun += begins
                if self._hooks(begins, moving_set, goal, before=True):
                    patience.restart()
                    seen = self._look(patience)
                    continue
                self._opened |= isinstance(action, Open)
            seen, refused = self._act(action, seen, patience)
            if action.seen(seen):
                seconds, current = patience.seconds, None
                self._people_s += seconds if action.step in self._peoples else 0.0
                self._tell(StepEvent(kind="done", words=patience.words, seconds=seconds, number=number))
                self._note(moving_set, goal, type(action).__name__, f"{seconds:.3f} s")
                continue
            patience.wait(refused or action.waits_for(seen))

    def _act(self, action: Action, seen: Observation, patience: _Patience) -> tuple[Observation, str]:
        """Act and look again.

        Return what is seen, and why the clusters refuse the action for now; empty if they don't.
        """
        while True:
            self._unseen = action.words(seen) if action.undo(seen) else ""
            begun = time.monotonic()
            refused = _refusal(partial(self._hands.act, action, seen))
            if self._file.fence is Fence.HOOK:  # acting may be a command of minutes
                patience.leave_out(time.monotonic() - begun)
                self._people_s += time.monotonic() - begun
            seen = self._look(patience)
            if not refused or not action.seen(seen):
                return seen, refused
            patience.wait(refused)  # a part that no observation shows, such as a command, may be missing

    def _look(self, patience: _Patience) -> Observation:
        """Look until the clusters answer; raises `TimeUp`."""
        while refused := _refusal(self._look_once):
            patience.wait(refused)
        return self._seen

    def _look_once(self) -> None:
        self._seen = self._hands.look()
        self._unseen = ""

    def _take_back(self, moving_set: Set, goal: SwitchGoal, why: TimeUp | HookRefused) -> SwitchOutcome:
        """Undo a switch, or say what is left of it."""
        before = self._before
        try:
            self._undo(goal)
        except (TimeUp, HookRefused) as error:
            told = moving_set if before.stay else moving_set.model_copy(update={"topics": before.set.topics})
            left = "; ".join(left_behind(self._seen, told, goal)) or "nothing that the last look has shown"
            left += f"; perhaps also: {self._unseen}" if self._unseen else ""
            self._note(moving_set, goal, "stuck", f"{_kept(why)}; the undo: {_kept(error)}; left: {left}")
            words = f"{why}; NOT all is undone: {error}. Left, as last seen: {left}."
            written = before.stay or phase.written_for_good(self._seen, before.set, goal.at)
            if self._late or self._no_return or (goal.who is not Who.CONSUMERS and written):
                words += " The same command continues the switch"
            else:
                words += f" `{command_back(goal, moving_set)}` continues the undo"
            return SwitchOutcome(code=Code.STUCK, words=f"{moving_set.name}: {words}")
        self._note(moving_set, goal, "undone", _kept(why))
        return SwitchOutcome(code=Code.UNDONE, words=f"{moving_set.name}: {why}; {self._undone(goal)}")

    def _undone(self, goal: SwitchGoal) -> str:
        """Say what is undone, and what stays."""
        before, here = self._before, self._seen.clusters[goal.at].alias
        told = [f"the move of {', '.join(before.set.groups)} is undone"] if before.set.groups else []
        if goal.who is Who.CONSUMERS:
            return "; ".join(told)
        if before.stay:
            told = told if goal.who is Who.ALL else []
            return "; ".join([*told, f"the producers were at {here} before, and stay"])
        if before.settled:
            return f"all else is undone; the producers of {listed(before.settled)} were at {here} before, and stay"
        return "everything is undone"

    def _undo(self, goal: SwitchGoal) -> None:
        """Bring the set back by the plan for the opposite goal, without the steps' hooks.

        What was at the goal before this run stays there. Raises `TimeUp`, and `HookRefused` by the fence's hooks.
        """
        policies = self._file.policies
        patience = _Patience("undoing", 2 * (policies.fence + policies.drain), self._tell)
        stay = self._readmit(goal, patience) if goal.who is not Who.PRODUCERS and self._before.set.groups else None
        if goal.who is not Who.CONSUMERS:
            self._undo_producers(goal, patience)
        if stay:
            raise stay

    def _readmit(self, goal: SwitchGoal, patience: _Patience) -> TimeUp | None:
        """Let the groups read where they were; return why some stay at the goal.

        One that has read there would read the same records again.
        """
        before, seen = self._before, self._look(patience)
        read = phase.read_meanwhile(before.began, seen, before.set.groups, goal.at)
        held = before.set.model_copy(update={"groups": tuple(name for name in before.set.groups if name not in read)})
        while refused := _refusal(partial(self._hands.readmit, held, goal)):
            patience.wait(refused)
        if not read:
            return None
        if goal.at not in seen.flows:
            self._no_return = phase.no_way_back_for(seen, read, goal.at)
            return TooLate(self._no_return)
        return TimeUp(f"{listed(read)} may have read at {seen.clusters[goal.at].alias} meanwhile")

    def _undo_producers(self, goal: SwitchGoal, patience: _Patience) -> None:
        moving_set = self._before.set
        if self._before.stay:
            seen = self._look(patience)
            if left := producers_left(self._file, seen, moving_set, goal):
                raise TimeUp("still to do: " + "; ".join(action.words(seen) for action in left))
            return
        back = SwitchGoal(Who.PRODUCERS, goal.at.other)
        file = self._file
        if file.fence is Fence.HOOK and not self._opened:
            # The goal's side let no producer in, so the way back needs no command that stops them.
            file = file.model_copy(update={"fence": Fence.NONE})
        began, words = self._look(patience), ""
        seen = began
        while True:
            self._late = switch_plan.too_late(began, seen, moving_set, back) if self._opened else None
            to = back.opposite if self._late else back
            todo = switch_plan.plan(file, seen, moving_set, to, let_in=self._opened)
            if self._late and not todo:
                raise TooLate(self._late)
            if not todo:
                return
            action = todo[0]
            if action.words(seen) != words:
                words = action.words(seen)
                self._tell(StepEvent(kind="undo", words=words))
            seen, refused = self._act(action, seen, patience)
            if not action.seen(seen):
                patience.wait(refused or action.waits_for(seen))

    def _hooks(self, steps: Sequence[SwitchStep], moving_set: Set, goal: SwitchGoal, *, before: bool) -> bool:
        """Ask steps' hooks; return True if the steps have any."""
        hooks = self._file.hooks.before if before else self._file.hooks.after
        begun, when = time.monotonic(), "before" if before else "after"
        asked = [(step, hook) for step in steps for hook in hooks.get(step, ())]
        for step, hook in asked:
            self._tell(StepEvent(kind="hook", words=shown(hook)))
            self._hands.ask(hook, payload(self._file, moving_set, who=goal.who, to=goal.at, step=step, when=when))
        self._people_s += time.monotonic() - begun
        return bool(asked)

    def _note(self, moving_set: Set, goal: SwitchGoal, what: str, words: str) -> None:
        self._hands.note(
            {"set": moving_set.name, "who": str(goal.who), "to": str(goal.at), "what": what, "words": words}
        )


def _refusal(do: Callable[[], None]) -> str:
    """Do something; return why the clusters refuse it for now, empty if they don't.

    A broker may restart, somebody may have written since the look, or a copy has lost records.
    """
    try:
        do()
    except HookRefused:
        raise
    except (SparkMirrorError, ConnectionError) as error:
        return str(error) or type(error).__name__
    return ""


def _kept(error: TimeUp | HookRefused) -> str:
    return error.for_evidence if isinstance(error, HookRefused) else str(error)


def _whole_steps(goal: SwitchGoal) -> tuple[SwitchStep, ...]:
    """Return the steps that stand for the whole switch."""
    consumers = () if goal.who is Who.PRODUCERS else (SwitchStep.CONSUMERS,)
    return consumers if goal.who is Who.CONSUMERS else (*consumers, SwitchStep.PRODUCERS)


def batches(moving_set: Set, size: int) -> list[Set]:
    """Divide a set by groups into sets with at most `size` groups each.

    The consumers' switch takes the parts in turn.
    """
    groups = [moving_set.groups[at : at + size] for at in range(0, len(moving_set.groups), size)]
    return [moving_set.model_copy(update={"groups": part}) for part in groups]
