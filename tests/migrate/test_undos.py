"""What an undo leaves: producers and groups that this run did not move, and what earlier runs may have let in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from tests.migrate.driver import Driver
from tests.migrate.test_executor import ModelHands, in_haste
from tests.migrate.world import SOURCE, TARGET, World

from sparkmirror.migrate import actions, phase
from sparkmirror.migrate.actions import Action
from sparkmirror.migrate.executor import Code, Executor, SwitchOutcome
from sparkmirror.migrate.file import Fence, Hook, Hooks, Set, SwitchStep
from sparkmirror.migrate.hooks import HookRefused
from sparkmirror.migrate.observation import Observation, Side
from sparkmirror.migrate.switch_plan import SwitchGoal, Who

FENCES = pytest.mark.parametrize("fence", list(Fence))
RENAMED = pytest.mark.parametrize("renamed", [False, True])
ALL = SwitchGoal(Who.ALL, TARGET)
PRODUCERS = SwitchGoal(Who.PRODUCERS, TARGET)
CONSUMERS = SwitchGoal(Who.CONSUMERS, TARGET)


class Killed(Exception):
    """The program is killed."""


class Stubborn(ModelHands):
    """Hands in a world where nobody stops the groups of `stay`, and that keep what was done."""

    def __init__(self, world: World, *stay: str, asked: Callable[[Hook], None] = lambda _: None) -> None:
        super().__init__(world, asked)
        self.stay, self.acted = stay, list[Action]()

    def act(self, action: Action, seen: Observation) -> None:
        self.acted.append(action)
        if isinstance(action, actions.WaitEmpty):
            for name in set(action.names) - {*self.stay}:
                self.world.clusters[action.leaving].groups[name].members = 0
            return
        super().act(action, seen)

    def readmit(self, one: Set, goal: SwitchGoal) -> None:
        for name in one.groups:
            self.world.clusters[goal.at.other].groups[name].denied = False


def a_world(
    fence: Fence, *, renamed: bool = False, groups: tuple[str, ...] = ("billing",), back: bool = True
) -> tuple[World, Driver]:
    world = World(topics=("orders",), groups=groups, partitions=1, renamed=renamed, fence=fence, back=back)
    world.write(SOURCE, "orders", 0)
    for group in groups:
        world.poll(SOURCE, group, "orders", 0)
    return world, Driver(world, Random(1), faults=False)


def run(driver: Driver, hands: ModelHands, goal: SwitchGoal, hooks: Hooks | None = None) -> SwitchOutcome:
    driver.world.new_process()
    file = in_haste(driver, **({"hooks": hooks} if hooks else {}))
    return Executor(file, hands, lambda _: None).run(driver.one, goal)


def switched(driver: Driver, goal: SwitchGoal) -> None:
    assert run(driver, Stubborn(driver.world), goal).code is Code.DONE


def refuse(hook: Hook) -> None:
    if hook.run == "./ask":
        raise HookRefused(hook, "no")


def before_open(driver: Driver) -> Hooks:
    return Hooks(before={SwitchStep.OPEN: (Hook(run="./ask"),)}, fence=driver.file.hooks.fence)


def live(world: World) -> Side:
    return phase.live_side(world.observe(), "orders")


def killed_in(driver: Driver, kind: type[Action], goal: SwitchGoal, effects: int = 1) -> None:
    """Have a run be killed behind so many effects of an action."""

    class Mortal(ModelHands):
        def act(self, action: Action, seen: Observation) -> None:
            if not isinstance(action, kind):
                super().act(action, seen)
                return
            for effect in self.world.effects(action, seen)[:effects]:
                effect()
            raise Killed

    with pytest.raises(Killed):
        run(driver, Mortal(driver.world), goal)


# --- producers that this run did not move ---------------------------------------------------------


@FENCES
@RENAMED
def test_an_undo_leaves_producers_that_had_never_left(fence: Fence, renamed: bool) -> None:
    """Only groups had moved, and they are not stopped for the way back."""
    world, driver = a_world(fence, renamed=renamed)
    switched(driver, CONSUMERS)
    world.start_group(TARGET, "billing")
    hands = Stubborn(world, "billing")
    outcome = run(driver, hands, ALL.opposite)
    assert outcome.code is Code.UNDONE
    assert outcome.words.endswith("the move of billing is undone; the producers were at A before, and stay")
    assert live(world) is SOURCE
    assert world.open_sides() == {SOURCE}
    assert {type(each) for each in hands.acted} == {actions.WaitEmpty}


@FENCES
@RENAMED
def test_an_undo_leaves_producers_that_had_moved(fence: Fence, renamed: bool) -> None:
    world, driver = a_world(fence, renamed=renamed)
    switched(driver, PRODUCERS)
    assert world.write(TARGET, "orders", 0)
    hands = Stubborn(world, "billing")
    outcome = run(driver, hands, ALL)
    assert outcome.code is Code.UNDONE
    assert outcome.words.endswith("the move of billing is undone; the producers were at B before, and stay")
    assert live(world) is TARGET
    assert world.open_sides() == {TARGET}
    assert {type(each) for each in hands.acted} == {actions.WaitEmpty}


@FENCES
def test_an_undo_leaves_the_producers_of_a_finished_switch_without_a_way_back(fence: Fence) -> None:
    world, driver = a_world(fence, renamed=True, back=False)
    switched(driver, ALL)
    assert world.write(TARGET, "orders", 0)
    world.clusters[SOURCE].groups["billing"].members = 1
    outcome = run(driver, Stubborn(world, "billing"), ALL)
    assert outcome.code is Code.UNDONE
    assert outcome.words.endswith("the producers were at B before, and stay")
    assert world.flows[SOURCE].words["orders"].ends == {0: 1}
    assert world.open_sides() == {TARGET}


@FENCES
@RENAMED
@pytest.mark.parametrize("newcomer", [False, True])
def test_an_undo_leaves_the_producers_of_a_complete_set(fence: Fence, renamed: bool, newcomer: bool) -> None:
    """Also when somebody has a right to write at A since, which the switch would give at B, too."""
    world, driver = a_world(fence, renamed=renamed)
    switched(driver, ALL)
    assert world.write(TARGET, "orders", 0)
    world.clusters[SOURCE].groups["billing"].members = 1
    if newcomer:
        world.clusters[SOURCE].topics["orders"].writers.add("User:new")

    class Complete(Stubborn):
        def look(self) -> Observation:
            seen = super().look()
            forth = seen.flows[SOURCE]
            topics = {name: replace(word, closed=True) for name, word in forth.topics.items()}
            return replace(seen, flows={**seen.flows, SOURCE: replace(forth, topics=topics)})

    hands = Complete(world, "billing")
    outcome = run(driver, hands, ALL)
    assert outcome.code is Code.UNDONE
    assert outcome.words.endswith("the producers were at B before, and stay")
    assert world.may_write(TARGET, "orders")
    assert {type(each) for each in hands.acted} == {actions.WaitEmpty}


@FENCES
@RENAMED
@pytest.mark.parametrize("who", [Who.PRODUCERS, Who.ALL])
def test_a_way_back_that_is_refused_does_not_lead_on_to_the_target(fence: Fence, renamed: bool, who: Who) -> None:
    """A switch was killed before producers had left: they stay, held as they are, and that is told."""
    world, driver = a_world(fence, renamed=renamed)
    goal = SwitchGoal(who, SOURCE)
    killed_in(driver, actions.Publish, goal.opposite, 0)
    outcome = run(driver, ModelHands(world, refuse), goal, before_open(driver))
    assert outcome.code is Code.STUCK
    assert "still to do: " in outcome.words
    assert "came to" not in outcome.words
    assert outcome.words.endswith("The same command continues the switch")
    assert live(world) is SOURCE
    assert not world.open_sides()
    switched(driver, goal)
    assert world.open_sides() == {SOURCE}


# --- groups that this run did not move ------------------------------------------------------------


def test_an_undo_admits_only_groups_that_the_run_has_moved() -> None:
    """An earlier run had moved them, and they read at B."""
    world, driver = a_world(Fence.ACL)
    switched(driver, CONSUMERS)
    world.start_group(TARGET, "billing")
    outcome = run(driver, Stubborn(world, asked=refuse), ALL, before_open(driver))
    assert outcome.code is Code.UNDONE
    assert outcome.words.endswith("everything is undone")
    assert world.open_sides() == {SOURCE}
    assert world.clusters[SOURCE].groups["billing"].denied


def test_an_undo_admits_groups_that_the_run_has_moved() -> None:
    world, driver = a_world(Fence.ACL, groups=("first", "second"))
    killed_in(driver, actions.DenyReturn, CONSUMERS)
    hooks = Hooks(after={SwitchStep.OPEN: (Hook(run="./ask"),)})
    outcome = run(driver, Stubborn(world, asked=refuse), CONSUMERS, hooks)
    assert outcome.code is Code.UNDONE
    assert outcome.words.endswith("the move of second is undone")
    groups = world.clusters[SOURCE].groups
    assert (groups["first"].denied, groups["second"].denied) == (True, False)


# --- what earlier runs may have let in ------------------------------------------------------------


@FENCES
@pytest.mark.parametrize("early", [False, True])
def test_an_undo_knows_that_an_earlier_run_may_have_let_producers_in(fence: Fence, early: bool) -> None:
    """Killed while it let them in; they write before the same command looks, or after. Nothing flows back."""
    world, driver = a_world(fence, renamed=True, groups=(), back=False)
    killed_in(driver, actions.Open, ALL)
    world.running[TARGET] = True
    if early:
        assert world.write(TARGET, "orders", 0)

    def asked(hook: Hook) -> None:
        if not early and hook.run == "./ask":
            world.write(TARGET, "orders", 0)
        refuse(hook)

    outcome = run(driver, Stubborn(world, asked=asked), ALL, before_open(driver))
    assert outcome.code is Code.STUCK
    assert "producers may have written to orders at B" in outcome.words
    assert outcome.words.endswith("The same command continues the switch")
    assert world.open_sides() == {TARGET}
    assert world.flows[SOURCE].words["orders"].ends == {0: 1}


@RENAMED
def test_an_undo_has_the_command_stop_whom_an_earlier_run_has_started(renamed: bool) -> None:
    world, driver = a_world(Fence.HOOK, renamed=renamed, groups=())
    killed_in(driver, actions.Open, ALL, 2)  # behind the start
    assert world.write(TARGET, "orders", 0)
    hands = Stubborn(world, asked=refuse)
    assert run(driver, hands, ALL, before_open(driver)).code is Code.UNDONE
    stops = [each for each in hands.acted if isinstance(each, actions.Deny) and each.leaving is TARGET]
    assert [each.fence for each in stops] == [Fence.HOOK]
    assert world.running == {SOURCE: True, TARGET: False}
