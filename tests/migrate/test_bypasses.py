"""Writes and commits that go past a switch, in the model world and by single observations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from tests.migrate.driver import Driver
from tests.migrate.world import SOURCE, TARGET, World

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.migrate import bypasses
from sparkmirror.migrate.observation import MemberSeen, Observation
from sparkmirror.migrate.switch_plan import SwitchGoal, Who

THERE = SwitchGoal(Who.ALL, TARGET)


def switched(*, renamed: bool = False) -> tuple[World, Driver]:
    """All of a world at the target; what its clients do is what a test has them do."""
    world = World(topics=("orders",), partitions=1, renamed=renamed)
    driver = Driver(world, Random(1), faults=False)
    for _ in range(3):
        world.append(SOURCE, "orders", 0)
        world.poll(SOURCE, "billing", "orders", 0)
    world.flow()
    world.stop_groups(SOURCE)
    assert driver.run(THERE)
    return world, driver


def told(world: World, driver: Driver, goal: SwitchGoal, do: Callable[[], object]) -> list[str]:
    """What is new after something was done."""
    before = world.observe()
    do()
    return bypasses.bypasses(before, world.observe(), driver.one, goal)


@pytest.mark.parametrize("renamed", [False, True])
def test_clients_where_they_belong_are_no_news(renamed: bool) -> None:
    world, driver = switched(renamed=renamed)
    world.start_group(TARGET, "billing")

    def work() -> None:
        for _ in range(5):
            world.append(TARGET, "orders", 0)
            world.poll(TARGET, "billing", "orders", 0)
        world.flow()
        world.sync()

    assert told(world, driver, THERE, work) == []


def test_records_that_are_not_copied_any_more() -> None:
    world, driver = switched(renamed=True)
    words = ["orders-0: 2 offsets came to A that no flow copies"]

    def write() -> None:
        world.append(SOURCE, "orders", 0)
        world.append(SOURCE, "orders", 0)

    assert told(world, driver, THERE, write) == words
    assert told(world, driver, SwitchGoal(Who.PRODUCERS, TARGET), write) == words
    assert told(world, driver, SwitchGoal(Who.CONSUMERS, TARGET), write) == []
    assert told(world, driver, SwitchGoal(Who.PRODUCERS, SOURCE), write) == [], "there they belong"


def named(seen: Observation, *words: str) -> Observation:
    """The same, with entries of others' records in the copy at A."""
    back = seen.flows[TARGET]
    topics = {"orders": replace(back.topics["orders"], foreign=words)}
    return replace(seen, flows={**seen.flows, TARGET: replace(back, topics=topics)})


def test_stragglers_by_the_ledger() -> None:
    world, driver = switched()
    seen = world.observe()
    first, second = "a foreign producer wrote offsets 3 to 3", "a foreign producer wrote offsets 9 to 9"
    assert bypasses.bypasses(named(seen, first), named(seen, first, second), driver.one, THERE) == [f"orders: {second}"]


def test_members_that_came_back_and_their_commits() -> None:
    world, driver = switched()
    seen = world.observe()
    here = seen.clusters[SOURCE]

    def at_a(offset: int, *members: MemberSeen) -> Observation:
        group = replace(here.groups["billing"], members=members, offsets={("orders", 0): offset})
        return replace(seen, clusters={**seen.clusters, SOURCE: replace(here, groups={"billing": group})})

    who = MemberSeen("billing-0", "10.0.3.7")
    assert bypasses.bypasses(at_a(3), at_a(3, who), driver.one, THERE) == [
        "billing has members at A again: billing-0@10.0.3.7"
    ]
    assert bypasses.bypasses(at_a(3, who), at_a(3, who), driver.one, THERE) == []
    assert bypasses.bypasses(at_a(3), at_a(4), driver.one, THERE) == ["billing has committed offset 4 of orders-0 at A"]
    assert bypasses.bypasses(at_a(2), at_a(3), driver.one, THERE) == [], "the mirror has set it for the way back"
    assert bypasses.bypasses(at_a(4), at_a(4), driver.one, THERE) == [], "it is no news"
    assert bypasses.bypasses(at_a(3), at_a(4, who), driver.one, SwitchGoal(Who.PRODUCERS, TARGET)) == []


def test_a_cluster_that_is_away_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bypasses, "LOOK_S", 0.01)
    world, driver = switched(renamed=True)
    count = 0

    def look() -> Observation:
        nonlocal count
        count += 1
        if count in (2, 3):
            raise ClusterUnreachable("cluster A: no broker answers")
        if count == 4:
            world.append(SOURCE, "orders", 0)
        return world.observe()

    news = [words for each in bypasses.watch(look, [driver.one], THERE, 0.5) for _, words in each]
    assert count > 5
    assert news == [
        "can't be watched now: cluster A: no broker answers",
        "orders-0: 1 offset came to A that no flow copies",
    ]
