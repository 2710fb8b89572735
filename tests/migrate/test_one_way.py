"""Switches of renamed copies where nothing flows back: they are undone until somebody has used the target."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.migrate.driver import Driver
from tests.migrate.test_executor import ModelHands, in_haste
from tests.migrate.world import SOURCE, TARGET, World

from sparkmirror.migrate import hands, switch_plan
from sparkmirror.migrate.executor import Code, Executor
from sparkmirror.migrate.file import Fence, Hook, Hooks, SwitchStep
from sparkmirror.migrate.hands import RealHands
from sparkmirror.migrate.hooks import HookRefused
from sparkmirror.migrate.migration import SwitchPlan
from sparkmirror.migrate.observation import Observation
from sparkmirror.migrate.switch_plan import SwitchGoal, Who

STEPS = [step for step in SwitchStep if step is not SwitchStep.ARM]
"""Steps of a switch; there is no way back to arm."""


def one_way(fence: Fence = Fence.ACL, groups: tuple[str, ...] = ("billing",)) -> tuple[World, Driver]:
    world = World(topics=("orders",), groups=groups, partitions=1, renamed=True, fence=fence, back=False)
    world.write(SOURCE, "orders", 0)
    for group in groups:
        world.poll(SOURCE, group, "orders", 0)
    return world, Driver(world, None, faults=False)  # type: ignore[arg-type]


class Waiting(ModelHands):
    """Hands in a world where records are copied while the switch waits for that."""

    def look(self) -> Observation:
        self.world.spread()
        return self.world.observe()


def no(hook: Hook) -> None:
    raise HookRefused(hook, "no")


@pytest.mark.parametrize("fence", list(Fence))
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_hook_that_says_no_at_any_step_undoes_the_switch(step: SwitchStep, when: str, fence: Fence) -> None:
    world, driver = one_way(fence)
    asks: dict[SwitchStep, tuple[Hook, ...]] = {step: (Hook(run="./ask"),)}
    hooks = Hooks(
        before=asks if when == "before" else {}, after=asks if when == "after" else {}, fence=driver.file.hooks.fence
    )
    file = in_haste(driver).model_copy(update={"hooks": hooks})
    asked = Waiting(world, lambda hook: no(hook) if hook.run == "./ask" else None)
    outcome = Executor(file, asked, lambda _: None).run(driver.one, SwitchGoal(Who.ALL, TARGET))
    assert outcome.code is Code.UNDONE, outcome.words
    assert world.may_write(SOURCE, "orders")
    assert world.flows[SOURCE].words["orders"].ends is None


def test_an_undo_leaves_what_others_had_written_at_the_target_before() -> None:
    """Their records are no reason to keep the producers that were denied."""
    world, driver = one_way()
    world.append(TARGET, "orders", 0)
    file = in_haste(driver).model_copy(update={"hooks": Hooks(before={SwitchStep.OPEN: (Hook(run="./ask"),)})})
    outcome = Executor(file, ModelHands(world, no), lambda _: None).run(driver.one, SwitchGoal(Who.PRODUCERS, TARGET))
    assert outcome.code is Code.UNDONE, outcome.words
    assert world.may_write(SOURCE, "orders")


def test_an_undo_stops_at_once_where_producers_have_written() -> None:
    world, driver = one_way(groups=())
    file = in_haste(driver).model_copy(update={"hooks": Hooks(after={SwitchStep.OPEN: (Hook(run="./ask"),)})})

    def written(hook: Hook) -> None:
        assert world.write(TARGET, "orders", 0)
        no(hook)

    outcome = Executor(file, ModelHands(world, written), lambda _: None).run(driver.one, SwitchGoal(Who.ALL, TARGET))
    assert outcome.code is Code.STUCK
    assert "nothing copies from B to A, and producers may have written to orders at B" in outcome.words
    assert outcome.words.endswith("The same command continues the switch")
    assert world.flows[SOURCE].words["orders"].ends is not None


def dry(driver: Driver, goal: SwitchGoal, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what a dry run says, by the hands that write to clusters."""
    monkeypatch.setattr(hands, "PairObserver", lambda *_: None)
    monkeypatch.setattr(hands, "not_there", lambda _, acls: list(acls))
    pair: Any = SimpleNamespace(
        named={SOURCE: "User:mirror", TARGET: "User:mirror"},
        clients={SOURCE: None, TARGET: None},
        configs={SOURCE: SimpleNamespace(alias="A"), TARGET: SimpleNamespace(alias="B")},
        words={SOURCE: SimpleNamespace(read=dict)},
        controls={SOURCE: None},
        flows={SOURCE: SimpleNamespace(name="A->B")},
    )
    file, seen = driver.file, driver.world.observe()
    migration: Any = SimpleNamespace(file=file, pair=pair, hands=lambda writing: RealHands(file, pair, writing))
    todo = switch_plan.plan(file, seen, driver.one, goal)
    said: list[str] = []
    SwitchPlan(migration=migration, set=driver.one, goal=goal, seen=seen, actions=todo).dry_run(said.append)
    return said


def test_a_set_that_has_not_moved_has_nothing_to_take_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world, driver = one_way()
    assert dry(driver, SwitchGoal(Who.ALL, SOURCE), monkeypatch) == []
    outcome = Executor(driver.file, ModelHands(world), lambda _: None).run(driver.one, SwitchGoal(Who.ALL, SOURCE))
    assert outcome.code is Code.DONE


def test_a_dry_run_names_what_keeps_the_switch_first(monkeypatch: pytest.MonkeyPatch) -> None:
    world, driver = one_way()
    goal = SwitchGoal(Who.ALL, TARGET)
    assert Executor(driver.file, ModelHands(world), lambda _: None).run(driver.one, goal).code is Code.DONE
    assert dry(driver, goal.opposite, monkeypatch) == ["B: would take the published ends of orders back"]
    assert world.write(TARGET, "orders", 0)
    said = dry(driver, goal.opposite, monkeypatch)
    assert said[0] == (
        "can't begin: no-flow: nothing copies from B to A, and producers may have written to orders at B"
    )
