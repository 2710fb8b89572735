"""Any switch, killed anywhere and turned round at any moment, ends at its goal, and each record is there once.

All runs are in the model world (`world.py`), in which producers never rest.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.migrate.driver import Driver
from tests.migrate.world import SOURCE, TARGET, World

from sparkmirror.migrate import phase, switch_plan
from sparkmirror.migrate.file import Fence
from sparkmirror.migrate.observation import Side
from sparkmirror.migrate.phase import Phase
from sparkmirror.migrate.switch_plan import SwitchGoal, Who

WORLDS = st.builds(
    World,
    topics=st.sampled_from((("orders",), ("orders", "stock"))),
    groups=st.sampled_from(((), ("billing",), ("billing", "app"))),
    partitions=st.integers(1, 2),
    renamed=st.booleans(),
    fence=st.sampled_from((Fence.ACL, Fence.ACL, Fence.HOOK, Fence.NONE)),
)
_ONE_WAY = st.builds(
    World,
    topics=st.sampled_from((("orders",), ("orders", "stock"))),
    groups=st.sampled_from(((), ("billing",))),
    renamed=st.just(True),
    fence=st.sampled_from(Fence),
    back=st.just(False),
)
_GOALS = st.builds(SwitchGoal, st.sampled_from(Who), st.sampled_from(Side))
_SEEDS = st.integers(0, 2**32).map(Random)


def _arrive(driver: Driver, goal: SwitchGoal) -> None:
    """Run to a goal, have people start what it tells them to, and assert that nothing is left and nothing was lost."""
    world = driver.world
    assert driver.run(goal), [action.waits_for(world.observe()) for action in driver.left(goal)]
    for group in world.groups if goal.who is not Who.PRODUCERS else ():
        assert world.start_group(goal.at, group)
    driver.rest()
    assert not driver.left(goal)
    world.prove()


@settings(max_examples=150, deadline=None)
@given(WORLDS, st.lists(_GOALS, min_size=1, max_size=6), _SEEDS)
def test_any_goals_one_after_the_other(world: World, goals: list[SwitchGoal], random: Random) -> None:
    driver = Driver(world, random)
    driver.clients(20)
    for goal in goals:
        _arrive(driver, goal)
    if world.fence is Fence.ACL:
        assert len(world.open_sides()) == 1 or world.renamed


@settings(max_examples=150, deadline=None)
@given(WORLDS, _GOALS, st.integers(1, 30), st.integers(1, 6), _SEEDS)
def test_a_switch_is_turned_round_anywhere(
    world: World, goal: SwitchGoal, steps: int, turns: int, random: Random
) -> None:
    driver = Driver(world, random)
    driver.clients(20)
    for _ in range(turns):
        driver.run(goal, most=steps)
        goal = goal.opposite
    _arrive(driver, goal)
    _arrive(driver, SwitchGoal(Who.ALL, SOURCE))


@settings(max_examples=150, deadline=None)
@given(_ONE_WAY, st.lists(st.tuples(_GOALS, st.integers(1, 40)), min_size=1, max_size=6), _SEEDS)
def test_without_a_flow_back_a_switch_is_turned_round_until_it_was_used(
    world: World, runs: list[tuple[SwitchGoal, int]], random: Random
) -> None:
    """Killed anywhere, it is taken back; what was written or read at the target by then refuses the way back."""
    driver = Driver(world, random)
    driver.clients(20)
    for goal, steps in runs:
        if not _is_one_way(driver, goal):
            driver.run(goal, most=steps)
    goal = SwitchGoal(Who.ALL, SOURCE)
    if not _is_one_way(driver, goal) and driver.run(goal):
        driver.rest()
        world.prove()
        assert all(world.may_write(SOURCE, name) for name in world.names)
        return
    at_target, groups = world.clusters[TARGET], world.clusters[TARGET].groups.values()
    assert _is_one_way(driver, goal)
    assert any(any(at_target.topics[name].logs) for name in world.names) or any(
        group.members or group.offsets for group in groups
    )
    _arrive(driver, SwitchGoal(Who.ALL, TARGET))


def _is_one_way(driver: Driver, goal: SwitchGoal) -> bool:
    """True if a switch to the goal is refused since nothing flows there."""
    blockers = switch_plan.blockers(driver.file, driver.world.observe(), driver.one, goal)
    return "no-flow" in [each.id for each in blockers]


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("fence", list(Fence))
def test_turns_of_topics_that_nobody_writes_to(renamed: bool, fence: Fence) -> None:
    """Both flows' ends are the same in each turn: only the turns' numbers tell the newest."""
    world = World(groups=("billing",), renamed=renamed, fence=fence)
    driver = Driver(world, Random(0), faults=False)
    for side in (TARGET, SOURCE) * 4:
        if fence is not Fence.ACL:
            world.running = {SOURCE: False, TARGET: False}
        assert driver.run(SwitchGoal(Who.PRODUCERS, side))
        seen = world.observe()
        assert {phase.live_side(seen, name) for name in world.names} == {side}
        assert world.running[side]
    world.flow()
    _arrive(driver, SwitchGoal(Who.ALL, TARGET))


@pytest.mark.parametrize("fence", list(Fence))
@pytest.mark.parametrize("side", [SOURCE, TARGET])
@pytest.mark.parametrize("seed", range(10))
def test_a_switch_is_taken_back_though_no_mirror_works(side: Side, fence: Fence, seed: int) -> None:
    """Before the way back is armed, taking back needs no mirror: producers and groups continue where they were."""
    world = World(groups=("billing",), fence=fence)
    driver = Driver(world, Random(seed), faults=False)
    driver.clients(30)
    if side is SOURCE:
        _arrive(driver, SwitchGoal(Who.ALL, TARGET))
    for flow in world.flows.values():
        flow.at_work = False
    assert world.write(side.other, "orders", 0)
    assert not driver.run(SwitchGoal(Who.ALL, side))
    seen = world.observe()
    assert {phase.topic_phase(seen, name).phase for name in world.names} <= {Phase.DRAINING, Phase.DRAINED}
    assert driver.run(SwitchGoal(Who.ALL, side.other))
    assert world.write(side.other, "orders", 0)
    _arrive(driver, SwitchGoal(Who.ALL, side.other))


@settings(max_examples=50, deadline=None)
@given(st.booleans(), st.lists(st.sampled_from(Side), min_size=1, max_size=4), _SEEDS)
def test_an_operators_own_denial_stays(renamed: bool, sides: list[Side], random: Random) -> None:
    """A principal that an operator denies is neither let in where it was, nor where its topics go."""
    world = World(renamed=renamed)
    for name in world.names:
        world.clusters[SOURCE].topics[name].operator = {"User:batch"}
    driver = Driver(world, random)
    driver.clients(20)
    for side in sides:
        _arrive(driver, SwitchGoal(Who.ALL, side))
        for name in world.names:
            assert "User:batch" not in world.clusters[TARGET].topics[name].writers
            assert "User:batch" not in world.clusters[SOURCE].topics[name].added


def test_a_straggler_is_copied_before_the_way_back_is_armed() -> None:
    """Records behind the published ends: they are published again, and nothing is armed before."""
    world = World(groups=(), fence=Fence.NONE)
    driver = Driver(world, Random(3), faults=False)
    driver.clients(30)
    goal = SwitchGoal(Who.PRODUCERS, TARGET)
    world.flows[SOURCE].at_work = False
    world.write(SOURCE, "orders", 0)
    assert not driver.run(goal)
    straggler = world.append(SOURCE, "orders", 0)
    assert phase.topic_phase(world.observe(), "orders").phase is Phase.LEAKING
    world.flows[SOURCE].at_work = True
    _arrive(driver, goal)
    assert straggler in world.clusters[TARGET].topics["orders"].logs[0]
