"""Switches of renamed copies where nothing flows back: they are undone until somebody has used the target."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.migrate.driver import Driver
from tests.migrate.test_executor import ModelHands, in_haste
from tests.migrate.world import SOURCE, TARGET, World

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.kafka.cluster.acls import DENY, WRITE, Acl
from sparkmirror.kafka.cluster.topic_log import LogEntry
from sparkmirror.migrate import hands, switch_plan
from sparkmirror.migrate import pair as pairs
from sparkmirror.migrate.actions import Action, Arm, Deny, Withdraw
from sparkmirror.migrate.executor import Code, Executor, StepEvent
from sparkmirror.migrate.file import Fence, Hook, Hooks, SwitchStep
from sparkmirror.migrate.hands import RealHands
from sparkmirror.migrate.hooks import HookRefused
from sparkmirror.migrate.migration import SwitchPlan
from sparkmirror.migrate.observation import Observation
from sparkmirror.migrate.pair import Pair
from sparkmirror.migrate.switch_plan import SwitchGoal, Who
from sparkmirror.migrate.writers import ClusterWriters
from sparkmirror.mirror.sync.migration_words import fence_key

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
        denials=lambda _: {},
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
    assert dry(driver, goal.opposite, monkeypatch) == [
        "B: would write down 2 denials on topic orders",
        "B: would add the ACL `DENY WRITE on topic orders to User:batch from *`",
        "B: would add the ACL `DENY WRITE on topic orders to User:shop from *`",
        "B: would take the published ends of orders back",
    ]
    assert world.write(TARGET, "orders", 0)
    said = dry(driver, goal.opposite, monkeypatch)
    assert said[0] == (
        "can't begin: no-flow: nothing copies from B to A, and producers may have written to orders at B"
    )


GOAL = SwitchGoal(Who.ALL, TARGET)


def moved(fence: Fence = Fence.ACL, groups: tuple[str, ...] = ("billing",)) -> tuple[World, Driver]:
    """Return a world that a switch has moved, where nobody has used the target."""
    world, driver = one_way(fence, groups)
    assert Executor(in_haste(driver), Waiting(world), lambda _: None).run(driver.one, GOAL).code is Code.DONE
    return world, driver


class Meanwhile(Waiting):
    """Hands that do something just before an action of some type, after the look that led to it."""

    def __init__(self, world: World, kind: type[Action], do: Callable[[], object], asked: Any = lambda _: None) -> None:
        super().__init__(world, asked)
        self.kind, self.do = kind, do

    def act(self, action: Action, seen: Observation) -> None:
        if isinstance(action, self.kind):
            self.kind = type(None)  # type: ignore[assignment]
            self.do()
        super().act(action, seen)


def test_the_way_back_holds_the_targets_producers_and_the_next_switch_lets_them_in() -> None:
    world, driver = moved()
    assert world.may_write(TARGET, "orders")
    told: list[StepEvent] = []
    outcome = Executor(in_haste(driver), Waiting(world), told.append).run(driver.one, GOAL.opposite)
    assert outcome.code is Code.DONE
    assert next(each.words for each in told if each.kind == "begins") == (
        "deny WRITE on orders at B to User:batch, User:shop"
    )
    assert world.open_sides() == {SOURCE}
    assert not driver.left(GOAL.opposite)
    assert Executor(in_haste(driver), Waiting(world), lambda _: None).run(driver.one, GOAL).code is Code.DONE
    assert world.open_sides() == {TARGET}


@pytest.mark.parametrize("fence", list(Fence))
@pytest.mark.parametrize("kind", [Deny, Withdraw])
def test_a_record_that_comes_while_the_way_back_is_taken_stops_it(kind: type[Action], fence: Fence) -> None:
    world, driver = moved(fence)
    ends = world.flows[SOURCE].words["orders"].ends
    late = Meanwhile(world, kind, lambda: world.append(TARGET, "orders", 0))
    outcome = Executor(in_haste(driver), late, lambda _: None).run(driver.one, GOAL.opposite)
    assert outcome.code is Code.BLOCKED, outcome.words
    assert [each.id for each in outcome.blockers] == ["no-flow"]
    assert "nothing copies from B to A, and producers may have written to orders at B; everything" in outcome.words
    assert world.open_sides() == {TARGET}
    assert world.flows[SOURCE].words["orders"].ends == ends
    assert not driver.left(SwitchGoal(Who.PRODUCERS, TARGET))


@pytest.mark.parametrize("fence", list(Fence))
@pytest.mark.parametrize("kind", [Deny, Withdraw])
def test_a_record_that_comes_during_an_undo_stops_it(kind: type[Action], fence: Fence) -> None:
    """What was undone is done again: the record's side stays the only one."""
    world, driver = one_way(fence, groups=())
    asks = {SwitchStep.OPEN: (Hook(run="./ask"),)}
    file = in_haste(driver)
    file = file.model_copy(update={"hooks": file.hooks.model_copy(update={"after": asks})})

    def refuse(hook: Hook) -> None:
        if hook.run == "./ask":
            late.kind = kind
            no(hook)

    # Nothing is armed without a way back, so nothing comes before the undo.
    late = Meanwhile(world, Arm, lambda: world.append(TARGET, "orders", 0), refuse)
    outcome = Executor(file, late, lambda _: None).run(driver.one, GOAL)
    assert outcome.code is Code.STUCK, outcome.words
    assert "producers may have written to orders at B" in outcome.words
    assert outcome.words.endswith("The same command continues the switch")
    assert world.open_sides() == {TARGET}
    assert world.flows[SOURCE].words["orders"].ends is not None
    assert not driver.left(GOAL)


@pytest.mark.parametrize(("who", "fence"), [(Who.CONSUMERS, Fence.ACL), *((Who.ALL, fence) for fence in Fence)])
@pytest.mark.parametrize("stopped", [True, False])
def test_a_group_that_reads_at_the_target_meanwhile_does_not_go_back(stopped: bool, who: Who, fence: Fence) -> None:
    """Its places there can't be translated: at the source it would read the same records again."""
    world, driver = one_way(fence)
    for _ in range(3):
        world.write(SOURCE, "orders", 0)
    assert Executor(in_haste(driver), Waiting(world), lambda _: None).run(driver.one, GOAL).code is Code.DONE

    class Reads(Waiting):
        looks = 0

        def look(self) -> Observation:
            self.looks += 1
            if self.looks == 2:  # after the look for blockers
                self.read()
            return super().look()

        def read(self) -> None:
            self.world.start_group(TARGET, "billing")
            for _ in range(3):
                self.world.poll(TARGET, "billing", "orders", 0)
            if stopped:
                self.world.stop_groups(TARGET)

    before = world.clusters[SOURCE].groups["billing"].offsets.copy()
    world.clusters[SOURCE].groups["billing"].denied = True
    outcome = Executor(in_haste(driver), Reads(world), lambda _: None).run(driver.one, SwitchGoal(who, SOURCE))
    assert outcome.code is Code.BLOCKED, outcome.words
    assert "nothing copies from B to A, and billing may have read at B; " in outcome.words
    assert "is undone" in outcome.words
    assert world.open_sides() == {TARGET}
    assert world.clusters[SOURCE].groups["billing"].offsets == before
    assert world.clusters[SOURCE].groups["billing"].denied
    assert not driver.left(SwitchGoal(Who.PRODUCERS, TARGET))


def test_a_group_that_reads_after_the_producers_were_stopped_keeps_them_there() -> None:
    world, driver = moved()
    world.append(SOURCE, "orders", 0)  # a super user's, so that there is something to read
    world.flows[SOURCE].words["orders"].ends = {0: 2}
    world.flow()

    def read() -> None:
        world.start_group(TARGET, "billing")
        world.poll(TARGET, "billing", "orders", 0)
        world.stop_groups(TARGET)

    outcome = Executor(in_haste(driver), Meanwhile(world, Withdraw, read), lambda _: None).run(
        driver.one, GOAL.opposite
    )
    assert outcome.code is Code.BLOCKED, outcome.words
    assert "billing may have read at B; everything is undone" in outcome.words
    assert world.open_sides() == {TARGET}
    assert world.flows[SOURCE].words["orders"].ends == {0: 2}


class Log:
    """A control topic in memory."""

    def __init__(self, *_: object, **__: object) -> None:
        self.entries: list[LogEntry] = []

    def read(self, _: int, offset: int) -> tuple[list[LogEntry], int]:
        return self.entries[offset:], len(self.entries)

    def append(self, _: int, records: list[tuple[bytes, bytes | None]]) -> None:
        self.entries += [LogEntry(len(self.entries) + n, key, value) for n, (key, value) in enumerate(records)]


A, B = (ClusterConfig(alias=alias, bootstrap_servers=(f"{alias}:9092",)) for alias in "AB")
DENIAL = Acl(name="orders", principal="User:shop", host="*", operation=WRITE, permission=DENY)


def test_what_is_denied_where_nothing_flows_back_is_in_the_first_flows_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process finds it, also with a flow back since; the mirror takes it for no denial at the source."""
    monkeypatch.setattr(pairs, "TopicLog", Log)
    forth, key = FlowConfig(source=A, target=B), fence_key(DENIAL.resource, "orders")
    with Pair({SOURCE: forth}) as pair:
        writers = ClusterWriters(pair, None)  # type: ignore[arg-type]
        writers.note_fence(TARGET, DENIAL.resource, "orders", [DENIAL])
        pair.on_acls[TARGET][0].learn_own("User:CN=mirror")
        pair.named = {SOURCE: "", TARGET: ""}
        assert (pair.denials(SOURCE), pair.denials(TARGET)) == ({}, {key: (DENIAL,)})
        assert pair.words[SOURCE].denials() == set()
        assert (pair.own(SOURCE), pair.own(TARGET)) == ("", "User:CN=mirror")
        written: Any = pair.controls[SOURCE]
    with Pair({SOURCE: forth, TARGET: FlowConfig(source=B, target=A)}) as pair:
        log: Any = pair.controls[SOURCE]
        log.entries += written.entries
        writers = ClusterWriters(pair, None)  # type: ignore[arg-type]
        assert pair.denials(TARGET) == {key: (DENIAL,)}
        writers.note_fence(TARGET, DENIAL.resource, "orders", [])
        assert pair.denials(TARGET) == {}
        writers.note_fence(TARGET, DENIAL.resource, "orders", [DENIAL])
        assert pair.words[TARGET].denials() == {DENIAL}
        assert pair.denials(TARGET) == {key: (DENIAL,)}
