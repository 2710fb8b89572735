"""The executor in the model world: hooks, and clusters that refuse, or can't be reached, for a moment or for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

import pytest
from tests.migrate.driver import Driver
from tests.migrate.world import SOURCE, TARGET, World

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.migrate import actions, phase
from sparkmirror.migrate.actions import Action
from sparkmirror.migrate.executor import Code, Executor, StepEvent
from sparkmirror.migrate.file import Fence, Hook, Hooks, MigrationFile, Set, SwitchStep
from sparkmirror.migrate.hooks import HookRefused
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
        self.noted: list[dict[str, object]] = []
        self.told: list[str] = []
        """What hooks were asked about."""

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
        self.told.append(f"{told['when']} {told['step']}")
        self.asked(hook)

    def note(self, told: dict[str, object]) -> None:
        self.noted.append(told)


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


def test_what_the_fences_command_takes_is_not_the_steps_time() -> None:
    world = World(topics=("orders",), groups=(), partitions=1, fence=Fence.HOOK)
    driver = Driver(world, Random(1), faults=False)
    refused = times(1, ConnectionError("A: gone"))

    class Slow(ModelHands):
        def act(self, action: Action, seen: Observation) -> None:
            super().act(action, seen)
            if isinstance(action, actions.Deny):
                time.sleep(0.6)  # longer than the step may take
                if error := refused():
                    raise error

    policies = driver.file.policies.model_copy(update={"fence": 0.5})
    file = driver.file.model_copy(update={"policies": policies})
    outcome = Executor(file, Slow(world), lambda _: None).run(driver.one, PRODUCERS)
    assert outcome.code is Code.DONE
    assert outcome.seconds < 0.6, "it is not the tool's time either"


def test_a_group_that_began_too_early_at_the_target_is_named() -> None:
    """Nothing is left to do for it, and it reads again what it has read."""
    world = World(topics=("orders",), groups=("billing",), partitions=1)
    driver = Driver(world, Random(1), faults=False)
    world.start_group(SOURCE, "billing")
    world.write(SOURCE, "orders", 0)
    world.poll(SOURCE, "billing", "orders", 0)
    world.stop_groups(SOURCE)
    hands = ModelHands(world)
    hands.look()
    world.clusters[TARGET].groups["billing"].members = 1
    outcome = Executor(driver.file, hands, lambda _: None).run(driver.one, SwitchGoal(Who.CONSUMERS, TARGET))
    assert outcome.code is Code.BLOCKED
    assert "billing reads at B from before its position at A" in outcome.words
    world.stop_groups(TARGET)
    outcome = Executor(driver.file, hands, lambda _: None).run(driver.one, SwitchGoal(Who.CONSUMERS, TARGET))
    assert outcome.code is Code.DONE
    assert world.clusters[TARGET].groups["billing"].offsets == {("orders", 0): 1}


# --- clusters that can't be reached, and undos that stop ------------------------------------------

PRODUCERS = SwitchGoal(Who.PRODUCERS, TARGET)


class Trouble(ModelHands):
    """Hands of which `in_act` and `in_look` raise; None: do it."""

    def __init__(
        self,
        world: World,
        in_act: Callable[[Action], Exception | None] = lambda _: None,
        in_look: Callable[[], Exception | None] = lambda: None,
    ) -> None:
        super().__init__(world)
        self.in_act, self.in_look = in_act, in_look

    def look(self) -> Observation:
        if error := self.in_look():
            raise error
        return super().look()

    def act(self, action: Action, seen: Observation) -> None:
        if error := self.in_act(action):
            raise error
        super().act(action, seen)


def in_haste(driver: Driver, **others: object) -> MigrationFile:
    """The driver's file with short limits."""
    policies = driver.file.policies.model_copy(update={"fence": 0.3, "drain": 0.2, "empty": 0.2})
    return driver.file.model_copy(update={"policies": policies, **others})


def times(count: int, error: Exception) -> Callable[..., Exception | None]:
    """Raise so many times."""
    left = [error] * count
    return lambda *_: left.pop() if left else None


@pytest.mark.parametrize("error", [ClusterUnreachable("A: a broker restarts"), ConnectionError("A: a broker restarts")])
def test_a_broker_that_restarts_is_waited_for(error: Exception) -> None:
    world, driver = world_with_records()
    began: list[StepEvent] = []
    look = times(2, error)
    hands = Trouble(world, times(2, error), lambda: look() if began else None)
    outcome = Executor(driver.file, hands, began.append).run(driver.one, PRODUCERS)
    assert outcome.code is Code.DONE
    assert "A: a broker restarts" in [each.words for each in began if each.kind == "waits"]


@pytest.mark.parametrize("kind", [actions.Deny, actions.Publish])
def test_a_cluster_that_refuses_too_long_undoes_the_switch(kind: type[Action]) -> None:
    world, driver = world_with_records()
    hands = Trouble(world, lambda action: ConnectionError("A: gone") if isinstance(action, kind) else None)
    outcome = Executor(in_haste(driver), hands, lambda _: None).run(driver.one, PRODUCERS)
    assert outcome.code is Code.UNDONE
    assert "A: gone; everything is undone" in outcome.words
    assert phase.set_phase(hands.look(), driver.one).phase is Phase.COPYING
    assert not world.clusters[SOURCE].topics["orders"].added


def test_evidence_begins_before_any_client_has_to_wait() -> None:
    """The first line may have to create the topic."""
    world, driver = world_with_records()
    noted_before: list[int] = []

    def act(_: Action) -> None:
        noted_before.append(len(hands.noted))

    hands = Trouble(world, act)
    assert Executor(in_haste(driver), hands, lambda _: None).run(driver.one, PRODUCERS).code is Code.DONE
    assert noted_before[0] == 1
    assert hands.noted[0]["what"] == "begins"
    assert str(hands.noted[0]["words"]).startswith("deny WRITE on orders at A to User:batch, User:shop; ")


def test_an_undo_that_reaches_no_cluster_says_what_may_be_denied() -> None:
    """Nobody has looked since the denials."""
    world, driver = world_with_records()

    def look() -> Exception | None:
        return ConnectionError("A: gone") if world.clusters[SOURCE].topics["orders"].added else None

    outcome = Executor(in_haste(driver), Trouble(world, in_look=look), lambda _: None).run(driver.one, PRODUCERS)
    assert outcome.code is Code.STUCK
    assert "everything is undone" not in outcome.words
    assert "perhaps also: deny WRITE on orders at A to User:batch, User:shop" in outcome.words
    assert "`sparkmirror migration switch producers FILE --set shop --back` continues" in outcome.words


def test_an_undo_that_reaches_no_cluster_says_what_was_seen_last() -> None:
    world, driver = world_with_records()
    begun: list[StepEvent] = []

    def gone(*_: object) -> Exception | None:
        published = [each for each in begun if each.kind == "begins" and each.words.startswith("publish")]
        return ConnectionError("A: gone") if published else None

    hands = Trouble(world, gone, gone)
    outcome = Executor(in_haste(driver), hands, begun.append).run(driver.one, PRODUCERS)
    assert outcome.code is Code.STUCK
    assert "WRITE on orders at A is denied to User:batch, User:shop" in outcome.words
    assert [each["what"] for each in hands.noted][-1] == "stuck"


def test_what_an_undo_is_refused_for_a_moment_it_does_later() -> None:
    world, driver = world_with_records()
    refused = times(3, NotTurned("orders-0: not yet"))

    def act(action: Action) -> Exception | None:
        if isinstance(action, actions.Arm) and action.leaving is SOURCE:
            return HookRefused(Hook(run="./no"), "exit code 1")
        return refused() if isinstance(action, actions.Withdraw) else None

    hands = Trouble(world, act)
    outcome = Executor(in_haste(driver), hands, lambda _: None).run(driver.one, PRODUCERS)
    assert outcome.code is Code.UNDONE
    assert not refused()
    assert phase.set_phase(hands.look(), driver.one).phase is Phase.COPYING


def test_an_undo_that_is_refused_too_long_is_not_called_undone() -> None:
    world, driver = world_with_records()

    def act(action: Action) -> Exception | None:
        return NotTurned("not now") if isinstance(action, (actions.Arm, actions.Withdraw)) else None

    outcome = Executor(in_haste(driver), Trouble(world, act), lambda _: None).run(driver.one, PRODUCERS)
    assert outcome.code is Code.STUCK
    assert "the ends of orders at A are published" in outcome.words


def test_a_start_hook_that_refuses_is_told() -> None:
    world = World(topics=("orders",), groups=(), partitions=1, fence=Fence.HOOK)
    driver = Driver(world, Random(1), faults=False)

    def act(action: Action) -> Exception | None:
        refuses = isinstance(action, actions.Open) or (isinstance(action, actions.Publish) and action.leaving is SOURCE)
        return HookRefused(Hook(run="./start --token s3cret"), "exit code 1", b"the answer") if refuses else None

    hands = Trouble(world, act)
    outcome = Executor(driver.file, hands, lambda _: None).run(driver.one, PRODUCERS)
    assert outcome.code is Code.STUCK
    assert "the producers of orders are stopped" in outcome.words
    assert "the answer" in outcome.words
    assert "hook ./start: exit code 1" in str(hands.noted[-1])
    assert "s3cret" not in str(hands.noted)
    assert "answer" not in str(hands.noted)


def test_a_command_that_was_not_reached_is_asked_again() -> None:
    """That the producers shall stop is noted, and then A is gone: their command has not run, whatever ends do."""
    world = World(topics=("orders",), groups=(), partitions=1, fence=Fence.HOOK)
    driver = Driver(world, Random(1), faults=False)
    refused, acts = times(1, ConnectionError("A: gone")), []

    class Noted(ModelHands):
        def act(self, action: Action, seen: Observation) -> None:
            super().act(action, seen)
            if isinstance(action, actions.Deny):
                acts.append(action)
                if error := refused():
                    raise error

    hands = Noted(world)
    hands.look()
    assert Executor(driver.file, hands, lambda _: None).run(driver.one, PRODUCERS).code is Code.DONE
    assert len(acts) == 2


@pytest.mark.parametrize(("step", "stops"), [(SwitchStep.ARM, 0), (SwitchStep.OPEN, 1)])
def test_a_command_stops_at_the_target_whom_it_has_started_there(step: SwitchStep, stops: int) -> None:
    """Before producers were let in, an undo needs no command that stops them."""
    world = World(topics=("orders",), groups=(), partitions=1, fence=Fence.HOOK)
    driver = Driver(world, Random(1), faults=False)
    acted: list[Action] = []

    class Keeps(ModelHands):
        def act(self, action: Action, seen: Observation) -> None:
            acted.append(action)
            super().act(action, seen)

    def refuse(hook: Hook) -> None:
        raise HookRefused(hook, "exit code 1")

    no = Hooks(after={step: (Hook(run="./no"),)}, fence=driver.file.hooks.fence)
    file = driver.file.model_copy(update={"hooks": no})
    assert Executor(file, Keeps(world, refuse), lambda _: None).run(driver.one, PRODUCERS).code is Code.UNDONE
    commands = [each for each in acted if isinstance(each, actions.Deny) and each.fence is Fence.HOOK]
    assert len([each for each in commands if each.leaving is TARGET]) == stops
    assert world.running == {SOURCE: True, TARGET: False}


class Members(ModelHands):
    """Hands in a world where nobody stops one of the groups."""

    def act(self, action: Action, seen: Observation) -> None:
        if isinstance(action, actions.WaitEmpty):
            for name in set(action.names) - {"stays"}:
                self.world.clusters[action.leaving].groups[name].members = 0
        else:
            super().act(action, seen)


def test_groups_that_moved_in_earlier_batches_are_named() -> None:
    groups = ("first", "second", "stays", "later")
    world = World(topics=("orders",), groups=groups, partitions=1)
    driver = Driver(world, Random(1), faults=False)
    file = in_haste(driver)
    file = file.model_copy(update={"policies": file.policies.model_copy(update={"batch": 1})})
    outcome = Executor(file, Members(world), lambda _: None).run(driver.one, SwitchGoal(Who.CONSUMERS, TARGET))
    assert outcome.code is Code.UNDONE
    assert "everything is undone" not in outcome.words
    assert "the move of stays is undone; first, second moved before, and stay" in outcome.words
    assert "`sparkmirror migration switch consumers FILE --set shop --back` takes them back" in outcome.words


def test_a_last_batch_with_nothing_to_do_does_not_say_so_of_all() -> None:
    world = World(topics=("orders",), groups=("first", "last"), partitions=1)
    driver = Driver(world, Random(1), faults=False)
    world.start_group(SOURCE, "first")
    world.write(SOURCE, "orders", 0)
    world.poll(SOURCE, "first", "orders", 0)
    world.stop_groups(SOURCE)
    file = driver.file.model_copy(update={"policies": driver.file.policies.model_copy(update={"batch": 1})})
    goal = SwitchGoal(Who.CONSUMERS, TARGET)
    alone = driver.one.model_copy(update={"groups": ("last",)})
    assert Executor(file, ModelHands(world), lambda _: None).run(alone, goal).code is Code.DONE
    outcome = Executor(file, ModelHands(world), lambda _: None).run(driver.one, goal)
    assert (outcome.code, outcome.words) == (Code.DONE, "shop: done")
    assert outcome.seconds > 0
    again = Executor(file, ModelHands(world), lambda _: None).run(driver.one, goal)
    assert (again.code, again.words, again.seconds) == (Code.DONE, "shop: nothing is left to do", 0.0)


# --- hooks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", list(Who))
def test_each_steps_hooks_are_asked_once_around_its_actions(who: Who) -> None:
    world = World(topics=("orders",), groups=("billing",), partitions=1)
    world.write(SOURCE, "orders", 0)
    driver = Driver(world, Random(1), faults=False)
    every: dict[SwitchStep, tuple[Hook, ...]] = dict.fromkeys(
        SwitchStep, (Hook(run="https://me:s3cret@flags/x?s3cret"),)
    )
    file = driver.file.model_copy(update={"hooks": Hooks(before=every, after=every)})
    hands = ModelHands(world)
    told: list[StepEvent] = []
    assert Executor(file, hands, told.append).run(driver.one, SwitchGoal(who, TARGET)).code is Code.DONE
    assert {each.words for each in told if each.kind == "hook"} == {"https://flags/x"}
    whole = {Who.ALL: ["consumers", "producers"]}.get(who, [str(who)])
    assert hands.told[: len(whole)] == [f"before {each}" for each in whole]
    assert hands.told[-len(whole) :] == [f"after {each}" for each in reversed(whole)]
    assert len(set(hands.told)) == len(hands.told)
    assert {each.split()[1] for each in hands.told if each.startswith("before")} == {
        each.split()[1] for each in hands.told if each.startswith("after")
    }
    if who is Who.PRODUCERS:
        assert [each for each in hands.told if "fence" in each or "publish" in each] == [
            "before fence",
            "after fence",
            "before publish",
            "after publish",
        ]
