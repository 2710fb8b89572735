"""Orders to stop and start producers by a command: one that was cut off is given again where they may run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.migrate.test_one_way import Log
from tests.migrate.test_undos import ALL, Stubborn, a_world, killed_in, run
from tests.migrate.world import SOURCE, TARGET

from sparkmirror.migrate import actions, hands
from sparkmirror.migrate.actions import Action
from sparkmirror.migrate.executor import Code
from sparkmirror.migrate.file import Fence, Hook, MigrationFile
from sparkmirror.migrate.hands import RealHands
from sparkmirror.migrate.hooks import HookRefused
from sparkmirror.migrate.observation import Observation, Side
from sparkmirror.mirror.sync.migration_words import MigrationWords


class Idle(Stubborn):
    """Hands in a world whose producers send nothing, and whose ends stand still from the first look on."""

    def look(self) -> Observation:
        super().look()
        return super().look()


def stops(of: Idle) -> list[Side]:
    return [each.leaving for each in of.acted if isinstance(each, actions.Deny)]


@pytest.mark.parametrize("effects", [2, 3])
def test_a_way_back_stops_whom_a_killed_run_has_started(effects: int) -> None:
    """It was killed behind the start, whose note is missing: idle producers run at the target."""
    world, driver = a_world(Fence.HOOK)
    killed_in(driver, actions.Open, ALL, effects)
    assert world.running[TARGET]
    there = Idle(world)
    assert run(driver, there, ALL.opposite).code is Code.DONE
    assert stops(there) == [TARGET]
    assert world.running == {SOURCE: True, TARGET: False}
    assert not world.stopped


def test_a_switch_stops_whom_a_killed_run_has_started_again() -> None:
    """An undo was killed behind the start at the source."""
    world, driver = a_world(Fence.HOOK)
    killed_in(driver, actions.Publish, ALL, 0)
    killed_in(driver, actions.Open, ALL.opposite, 2)
    assert world.open_sides() == {SOURCE}
    there = Idle(world)
    assert run(driver, there, ALL).code is Code.DONE
    assert stops(there) == [SOURCE]
    assert world.open_sides() == {TARGET}


def test_a_command_that_was_cut_off_before_it_ran_is_run() -> None:
    world, driver = a_world(Fence.HOOK)
    killed_in(driver, actions.Deny, ALL, 1)
    assert world.open_sides() == {SOURCE}
    there = Idle(world)
    assert run(driver, there, ALL).code is Code.DONE
    assert stops(there) == [SOURCE]
    assert world.open_sides() == {TARGET}


def test_a_command_that_has_run_is_not_run_again() -> None:
    world, driver = a_world(Fence.HOOK)
    killed_in(driver, actions.Deny, ALL, 3)
    there = Idle(world)
    assert run(driver, there, ALL).code is Code.DONE
    assert stops(there) == []


# --- notes ----------------------------------------------------------------------------------------


def test_a_note_tells_the_side_and_an_older_one_none() -> None:
    log: Any = Log()
    words = MigrationWords(log)
    words.stop(["orders", "stock"], "source")
    words.stop(["stock"], "")
    log.append(0, [(b"stopped:old", b"{}"), (b"stopped:odd", b"[]"), (b"stopped:odder", b"\xff")])
    words.read()
    assert words.stopped == {"orders": "source", "stock": "", "old": "", "odd": "", "odder": ""}
    words.start(["orders", "old"])
    words.read()
    assert words.stopped == {"stock": "", "odd": "", "odder": ""}


class Writing:
    """What hands write and ask, in order; `refuses` is the command that says no."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses, self.done = refuses, list[object]()

    def note_stopped(self, topics: list[str], at: Side | None) -> None:
        self.done.append((*topics, at))

    def note_started(self, topics: list[str]) -> None:
        self.done.append((*topics, "started"))

    def ask(self, hook: Hook, told: dict[str, object]) -> None:
        self.done.append(hook.run)
        if hook.run == self.refuses:
            raise HookRefused(hook, "no")


def real_hands(file: MigrationFile, writing: Any, patch: pytest.MonkeyPatch) -> RealHands:
    patch.setattr(hands, "PairObserver", lambda *_: None)
    pair: Any = SimpleNamespace(named={SOURCE: "", TARGET: ""})
    return RealHands(file, pair, writing)


def deny(leaving: Side) -> Action:
    return actions.Deny(leaving=leaving, names=("orders",), fence=Fence.HOOK, still_s=5.0)


def opening(leaving: Side) -> Action:
    return actions.Open(leaving=leaving, names=("orders",), fence=Fence.HOOK)


def test_notes_are_written_around_each_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """An order that was given before is given again, once its opposite was given."""
    world, driver = a_world(Fence.HOOK)
    writing = Writing()
    acting = real_hands(driver.file, writing, monkeypatch)
    for action in (deny(SOURCE), opening(TARGET), deny(SOURCE)):
        acting.act(action, world.observe())
        for effect in world.effects(action, world.observe()):
            effect()
        acting.act(action, world.observe())
    stopped = [("orders", None), "./stop", ("orders", SOURCE)]
    assert writing.done == [*stopped, ("orders", None), "./start", ("orders", "started"), *stopped]


@pytest.mark.parametrize("kind", ["./stop", "./start"])
def test_the_note_of_a_command_that_says_no_leaves_open_where_producers_run(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, driver = a_world(Fence.HOOK)
    if kind == "./start":
        world.stopped = {"orders": TARGET}
    writing = Writing(kind)
    with pytest.raises(HookRefused):
        real_hands(driver.file, writing, monkeypatch).act(
            deny(SOURCE) if kind == "./stop" else opening(TARGET), world.observe()
        )
    assert writing.done == [("orders", None), kind]
