"""Undos that take a part back: sets of which a part had moved before, and groups that have read at the goal since."""

from __future__ import annotations

from random import Random

import pytest
from tests.migrate.driver import Driver
from tests.migrate.test_undos import (
    ALL,
    CONSUMERS,
    FENCES,
    PRODUCERS,
    RENAMED,
    Stubborn,
    a_world,
    before_open,
    killed_in,
    refuse,
    run,
    switched,
)
from tests.migrate.world import SOURCE, TARGET, World

from sparkmirror.migrate import actions, phase
from sparkmirror.migrate.executor import Code
from sparkmirror.migrate.file import Fence, Hook, Hooks, SwitchStep
from sparkmirror.migrate.observation import Side
from sparkmirror.migrate.switch_plan import SwitchGoal

# --- topics that had moved before -----------------------------------------------------------------


def part_switched(fence: Fence, *, renamed: bool, back: bool = True) -> tuple[World, Driver]:
    """A switch has moved the first topic, and somebody has put the second into its set since."""
    world = World(groups=(), partitions=1, renamed=renamed, fence=fence, back=back)
    driver = Driver(world, Random(1), faults=False)
    for name in world.names:
        world.write(SOURCE, name, 0)
    whole = driver.file
    first = driver.one.model_copy(update={"topics": world.names[:1]})
    driver.file = whole.model_copy(update={"sets": (first,)})
    switched(driver, PRODUCERS)
    driver.file = whole
    world.append(TARGET, world.names[0], 0)
    world.running[SOURCE] = True  # the second topic's
    return world, driver


def live(world: World) -> list[Side]:
    seen = world.observe()
    return [phase.live_side(seen, name) for name in world.names]


@FENCES
@RENAMED
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_undo_leaves_topics_that_had_moved(fence: Fence, renamed: bool, when: str) -> None:
    world, driver = part_switched(fence, renamed=renamed)
    asks: dict[SwitchStep, tuple[Hook, ...]] = {SwitchStep.OPEN: (Hook(run="./ask"),)}
    fences = driver.file.hooks.fence
    hooks = Hooks(before=asks, fence=fences) if when == "before" else Hooks(after=asks, fence=fences)
    hands = Stubborn(world, asked=refuse)
    outcome = run(driver, hands, ALL, hooks)
    assert outcome.code is Code.UNDONE
    assert outcome.words.endswith("all else is undone; the producers of orders were at B before, and stay")
    assert live(world) == [TARGET, SOURCE]
    assert not [each for each in hands.acted if each.leaving is TARGET and "orders" in each.names]
    if fence is Fence.ACL:
        assert world.may_write(TARGET, "orders")
        assert world.may_write(SOURCE, "stock")
    assert not world.stopped


@FENCES
def test_records_of_topics_that_had_moved_keep_no_other_topic_there(fence: Fence) -> None:
    """Nothing flows back: the second topic's producers were not let in, and go back."""
    world, driver = part_switched(fence, renamed=True, back=False)
    outcome = run(driver, Stubborn(world, asked=refuse), ALL, before_open(driver))
    assert outcome.code is Code.UNDONE
    assert live(world) == [TARGET, SOURCE]
    assert world.flows[SOURCE].words["stock"].ends is None


@FENCES
@RENAMED
def test_a_refused_way_back_leaves_topics_that_had_never_moved(fence: Fence, renamed: bool) -> None:
    world, driver = part_switched(fence, renamed=renamed)
    outcome = run(driver, Stubborn(world, asked=refuse), ALL.opposite, before_open(driver))
    assert outcome.code is Code.UNDONE
    assert outcome.words.endswith("all else is undone; the producers of stock were at A before, and stay")
    assert live(world) == [TARGET, SOURCE]


@RENAMED
def test_an_undo_leaves_moved_producers_though_another_got_a_right_since(renamed: bool) -> None:
    """The switch would give the right at the target, too: nothing that the producers there wait for."""
    world, driver = a_world(Fence.ACL, renamed=renamed)
    switched(driver, PRODUCERS)
    assert world.write(TARGET, "orders", 0)
    world.clusters[SOURCE].topics["orders"].writers.add("User:new")
    hands = Stubborn(world, "billing")
    outcome = run(driver, hands, ALL)
    assert outcome.code is Code.UNDONE
    assert outcome.words.endswith("the producers were at B before, and stay")
    assert {type(each) for each in hands.acted} == {actions.WaitEmpty}
    assert live(world) == [TARGET]


@RENAMED
def test_an_undo_takes_producers_back_that_a_killed_run_was_letting_in(renamed: bool) -> None:
    """One of two has its right at the target: the other waits for it."""
    world, driver = a_world(Fence.ACL, renamed=renamed, groups=())
    killed_in(driver, actions.Open, ALL)
    assert len(world.clusters[TARGET].topics["orders"].writers) == 1
    assert run(driver, Stubborn(world, asked=refuse), ALL, before_open(driver)).code is Code.UNDONE
    assert world.open_sides() == {SOURCE}


# --- groups that have read at the goal ------------------------------------------------------------


def reading(
    fence: Fence, goal: SwitchGoal, *, renamed: bool, back: bool, stops: bool
) -> tuple[World, Driver, str, Code]:
    """Refuse a switch behind its last step, by when a group has read at the target; return what is told."""
    world, driver = a_world(fence, renamed=renamed, back=back)
    for _ in range(3):
        world.write(SOURCE, "orders", 0)

    def asked(hook: Hook) -> None:
        if hook.run == "./ask":
            assert world.start_group(TARGET, "billing")
            for _ in range(3):
                world.poll(TARGET, "billing", "orders", 0)
            if stops:
                world.stop_groups(TARGET)
        refuse(hook)

    step = SwitchStep.POSITION if goal is CONSUMERS else SwitchStep.OPEN
    hooks = Hooks(after={step: (Hook(run="./ask"),)}, fence=driver.file.hooks.fence)
    outcome = run(driver, Stubborn(world, asked=asked), goal, hooks)
    return world, driver, outcome.words, outcome.code


@FENCES
@pytest.mark.parametrize("goal", [ALL, CONSUMERS], ids=str)
@pytest.mark.parametrize("stops", [False, True])
def test_an_undo_leaves_groups_that_have_read_where_nothing_flows_back(
    fence: Fence, goal: SwitchGoal, stops: bool
) -> None:
    """At the source they would read the same records again. The producers have not written, and go back."""
    world, driver, words, code = reading(fence, goal, renamed=True, back=False, stops=stops)
    assert code is Code.STUCK
    assert "NOT all is undone: no-flow: nothing copies from B to A, and billing may have read at B. Left" in words
    assert words.endswith("The same command continues the switch")
    assert world.open_sides() == {SOURCE}
    assert world.clusters[SOURCE].groups["billing"].denied == (fence is Fence.ACL and goal is ALL)
    switched(driver, goal)
    assert world.read["billing", "orders", 0] == [0, 1, 2, 3]


@FENCES
@RENAMED
@pytest.mark.parametrize("goal", [ALL, CONSUMERS], ids=str)
@pytest.mark.parametrize("stops", [False, True])
def test_the_way_back_positions_groups_that_an_undo_has_left(
    fence: Fence, renamed: bool, goal: SwitchGoal, stops: bool
) -> None:
    world, driver, words, code = reading(fence, goal, renamed=renamed, back=True, stops=stops)
    assert code is Code.STUCK
    assert "NOT all is undone: billing may have read at B meanwhile. Left" in words
    assert words.endswith(f"`sparkmirror migration switch {goal.who} FILE --set shop --back` continues the undo")
    assert world.open_sides() == {SOURCE}
    switched(driver, goal.opposite)
    assert world.start_group(SOURCE, "billing")
    assert world.write(SOURCE, "orders", 0)
    for _ in range(4):
        world.poll(SOURCE, "billing", "orders", 0)
    assert world.read["billing", "orders", 0] == [0, 1, 2, 3, 4]


def test_an_undo_admits_groups_that_still_run_where_they_were() -> None:
    """The mirror sets a group's places at the target between the looks at both sides."""
    world, driver = a_world(Fence.ACL)
    world.write(SOURCE, "orders", 0)
    world.flow()
    world.sync()
    began = world.observe()
    world.clusters[TARGET].groups["billing"].offsets["orders", 0] = 2
    world.clusters[SOURCE].groups["billing"].members = 1
    assert phase.read_meanwhile(began, world.observe(), driver.one.groups, TARGET) == []
    world.stop_groups(SOURCE)
    assert phase.read_meanwhile(began, world.observe(), driver.one.groups, TARGET) == ["billing"]
    there = world.clusters[TARGET].groups["billing"]
    there.members = 1
    assert phase.read_meanwhile(world.observe(), world.observe(), driver.one.groups, TARGET) == []
