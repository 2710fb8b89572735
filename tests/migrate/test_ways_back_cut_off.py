"""Ways back where nothing flows back, killed before producers are let in: a straggler's record refuses the rest."""

from __future__ import annotations

import pytest
from tests.migrate.test_undos import ALL, PRODUCERS, Stubborn, a_world, killed_in, refuse, run, switched
from tests.migrate.world import SOURCE, TARGET

from sparkmirror.migrate import actions
from sparkmirror.migrate.executor import Code
from sparkmirror.migrate.file import Fence, Hook, Hooks, SwitchStep
from sparkmirror.migrate.switch_plan import SwitchGoal

BY_ORDER = pytest.mark.parametrize("fence", [Fence.HOOK, Fence.NONE])
GOALS = pytest.mark.parametrize("goal", [ALL, PRODUCERS], ids=lambda each: str(each.who))


@BY_ORDER
@GOALS
@pytest.mark.parametrize("kind", [actions.Withdraw, actions.Open])
def test_a_stragglers_record_at_the_target_refuses_the_rest(
    fence: Fence, goal: SwitchGoal, kind: type[actions.Action]
) -> None:
    """The published ends are taken back, and the source's producers not started."""
    world, driver = a_world(fence, renamed=True, back=False)
    switched(driver, ALL)
    killed_in(driver, kind, goal.opposite, int(kind is actions.Withdraw))
    assert world.flows[SOURCE].words["orders"].ends is None
    world.append(TARGET, "orders", 0)
    outcome = run(driver, Stubborn(world), goal.opposite)
    assert outcome.code is Code.BLOCKED
    assert "no-flow: nothing copies from B to A, and producers may have written to orders at B" in outcome.words
    assert outcome.words.endswith(": switch the producers to B again")
    assert not world.open_sides()
    switched(driver, goal)
    assert world.open_sides() == {TARGET}


@BY_ORDER
def test_a_stragglers_record_after_the_look_stops_the_rest(fence: Fence) -> None:
    world, driver = a_world(fence, renamed=True, back=False, groups=())
    switched(driver, ALL)
    killed_in(driver, actions.Withdraw, ALL.opposite)

    class Late(Stubborn):
        def act(self, action: actions.Action, seen: object) -> None:
            if isinstance(action, actions.Open) and not self.acted:
                world.append(TARGET, "orders", 0)
            super().act(action, seen)  # type: ignore[arg-type]

    outcome = run(driver, Late(world), ALL.opposite)
    assert outcome.code is not Code.DONE
    assert "producers may have written to orders at B" in outcome.words


@BY_ORDER
@GOALS
def test_a_way_back_without_a_straggler_comes_to_its_end(fence: Fence, goal: SwitchGoal) -> None:
    world, driver = a_world(fence, renamed=True, back=False)
    switched(driver, ALL)
    killed_in(driver, actions.Withdraw, goal.opposite)
    switched(driver, goal.opposite)
    assert world.open_sides() == {SOURCE}
    world.append(TARGET, "orders", 0)
    assert run(driver, Stubborn(world), goal.opposite).code is Code.DONE, "a write after the switch is none of its own"


@BY_ORDER
def test_others_records_keep_no_switch_that_was_killed_before_it_let_anybody_in(fence: Fence) -> None:
    world, driver = a_world(fence, renamed=True, back=False, groups=())
    world.append(TARGET, "orders", 0)
    killed_in(driver, actions.Publish, ALL, 0)
    switched(driver, ALL.opposite)
    assert world.open_sides() == {SOURCE}


@BY_ORDER
def test_an_undo_of_the_next_switch_sees_the_straggler_too(fence: Fence) -> None:
    """A hook says no before the source's producers would be stopped: nobody is let in there."""
    world, driver = a_world(fence, renamed=True, back=False, groups=())
    switched(driver, ALL)
    killed_in(driver, actions.Withdraw, ALL.opposite)
    world.append(TARGET, "orders", 0)
    hooks = Hooks(before={SwitchStep.FENCE: (Hook(run="./ask"),)}, fence=driver.file.hooks.fence)
    outcome = run(driver, Stubborn(world, asked=refuse), ALL, hooks)
    assert outcome.code is Code.STUCK
    assert "producers may have written to orders at B" in outcome.words
    assert world.open_sides() == {TARGET}
