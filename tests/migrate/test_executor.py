"""The executor in the model world: what a hook takes, and a step that the clusters refuse for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

from tests.migrate.driver import Driver
from tests.migrate.world import SOURCE, TARGET, World

from sparkmirror.migrate import actions, phase
from sparkmirror.migrate.actions import Action
from sparkmirror.migrate.executor import Code, Executor, StepEvent
from sparkmirror.migrate.file import Hook, Hooks, Set, SwitchStep
from sparkmirror.migrate.observation import Observation
from sparkmirror.migrate.phase import Phase
from sparkmirror.migrate.switch_plan import SwitchGoal, Who
from sparkmirror.mirror.sync.turns import NotTurned


class ModelHands:
    """Hands in a model world, where all is copied at each look; `asked` is what hooks do."""

    def __init__(self, world: World, asked: Callable[[Hook], None] = lambda _: None) -> None:
        self.world, self.asked = world, asked
        self.refusals = 0
        """Number of times that the clusters refuse to begin a turn."""

    def look(self) -> Observation:
        self.world.flow()
        self.world.spread()
        return self.world.observe()

    def act(self, action: Action, seen: Observation) -> None:
        if isinstance(action, actions.Arm) and self.refusals:
            self.refusals -= 1
            raise NotTurned("orders-0: records came after its end")
        for effect in self.world.effects(action, seen):
            effect()

    def readmit(self, one: Set, goal: SwitchGoal) -> None:
        """Nothing is denied to groups here."""

    def ask(self, hook: Hook, told: dict[str, object]) -> None:
        self.asked(hook)

    def note(self, told: dict[str, object]) -> None:
        """Write nothing."""


class LateHands(ModelHands):
    """Hands whose first look sees nothing copied."""

    def look(self) -> Observation:
        looks = super().look if self.looked else self.world.observe
        self.looked = True
        return looks()

    looked = False


def world_with_records() -> tuple[World, Driver]:
    world = World(topics=("orders",), groups=(), partitions=1)
    world.write(SOURCE, "orders", 0)
    return world, Driver(world, Random(1), faults=False)


def test_a_turn_that_is_refused_for_a_moment_begins_later() -> None:
    """Somebody wrote between a look and the act: the reason is told, and the switch comes to its end."""
    world, driver = world_with_records()
    hands = ModelHands(world)
    hands.refusals = 2
    told: list[StepEvent] = []
    outcome = Executor(driver.file, hands, told.append).run(driver.one, SwitchGoal(Who.PRODUCERS, TARGET))
    assert outcome.code is Code.DONE
    assert "orders-0: records came after its end" in [each.words for each in told if each.kind == "waits"]
    assert phase.set_phase(hands.look(), driver.one).phase is Phase.ARMED


def test_what_a_group_has_read_before_it_was_copied_is_waited_for() -> None:
    """A group that reads live is ahead of the copy by the copy's latency: no reason to refuse a switch of all."""
    world = World(topics=("orders",), groups=("billing",), partitions=1)
    driver = Driver(world, Random(1), faults=False)
    world.start_group(SOURCE, "billing")
    world.write(SOURCE, "orders", 0)
    world.poll(SOURCE, "billing", "orders", 0)
    world.stop_groups(SOURCE)
    goal = SwitchGoal(Who.ALL, TARGET)
    assert [each.id for each in phase.consumers_blockers(world.observe(), driver.file, driver.one, TARGET)] == [
        "not-copied"
    ]
    outcome = Executor(driver.file, LateHands(world), lambda _: None).run(driver.one, goal)
    assert outcome.code is Code.DONE
    assert world.clusters[TARGET].groups["billing"].offsets == {("orders", 0): 1}


def test_what_a_hook_takes_is_not_the_steps_time() -> None:
    """A record that comes while a hook is asked is part of the ends; the step's limit begins after the hook."""
    world, driver = world_with_records()
    written: list[Hook] = []

    def straggle(hook: Hook) -> None:
        if not written:
            world.clusters[SOURCE].topics["orders"].logs[0].append(99)
        written.append(hook)
        time.sleep(0.6)  # longer than the step may take

    hook = Hook(run="./ask")
    policies = driver.file.policies.model_copy(update={"fence": 0.5})
    file = driver.file.model_copy(update={"hooks": Hooks(before={SwitchStep.PUBLISH: (hook,)}), "policies": policies})
    outcome = Executor(file, ModelHands(world, straggle), lambda _: None).run(
        driver.one, SwitchGoal(Who.PRODUCERS, TARGET)
    )
    assert outcome.code is Code.DONE
    assert written
    assert 99 in world.clusters[TARGET].topics["orders"].logs[0]
