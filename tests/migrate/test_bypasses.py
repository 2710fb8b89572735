"""Writes and commits that go past a switch, in the model world and by single observations."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from tests.migrate.driver import Driver
from tests.migrate.world import SOURCE, TARGET, World

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.migrate import bypasses
from sparkmirror.migrate.bypasses import Bypasses
from sparkmirror.migrate.observation import MemberSeen, Observation
from sparkmirror.migrate.switch_plan import SwitchGoal, Who

THERE = SwitchGoal(Who.ALL, TARGET)
PLACE: TopicPartition = ("orders", 0)


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


def begun(driver: Driver, first: Observation, goal: SwitchGoal = THERE, *, sets_groups: bool = True) -> Bypasses:
    watched = Bypasses(driver.one, goal, sets_groups=sets_groups)
    assert watched.look(first) == []
    return watched


@pytest.mark.parametrize("renamed", [False, True])
def test_clients_where_they_belong_are_no_news(renamed: bool) -> None:
    """Nor is the mirror, which sets the groups for the way back."""
    world, driver = switched(renamed=renamed)
    watched = begun(driver, world.observe())
    world.start_group(TARGET, "billing")
    for _ in range(5):
        world.append(TARGET, "orders", 0)
        world.poll(TARGET, "billing", "orders", 0)
        world.flow()
        world.sync()
        assert watched.look(world.observe()) == []


@pytest.mark.parametrize("who", list(Who))
def test_records_that_are_not_copied_any_more(who: Who) -> None:
    world, driver = switched(renamed=True)
    watched = begun(driver, world.observe(), SwitchGoal(who, TARGET))
    for count in (1, 2):
        for _ in range(count):
            world.append(SOURCE, "orders", 0)
        came = {1: "1 offset", 2: "2 offsets"}[count]
        told = [] if who is Who.CONSUMERS else [f"orders-0: {came} came to A that no flow copies"]
        assert watched.look(world.observe()) == told
    assert begun(driver, world.observe(), SwitchGoal(Who.CONSUMERS, TARGET)).look(world.observe()) == []
    told = [] if who is Who.CONSUMERS else ["orders-0: 3 offsets came to A that no flow copies"]
    late = Bypasses(driver.one, SwitchGoal(who, TARGET), sets_groups=True)
    assert late.look(world.observe()) == told, "since the published end, whenever the first look is"


def test_records_that_were_accepted_before_the_first_look_are_no_news() -> None:
    world, driver = switched(renamed=True)
    for _ in range(3):
        world.append(SOURCE, "orders", 0)
    seen = world.observe()
    forth = seen.flows[SOURCE]
    end = forth.topics["orders"].ends[0]
    topics = {"orders": replace(forth.topics["orders"], accepted={0: end + 2})}
    seen = replace(seen, flows={**seen.flows, SOURCE: replace(forth, topics=topics)})
    watched = Bypasses(driver.one, THERE, sets_groups=True)
    assert watched.look(seen) == ["orders-0: 1 offset came to A that no flow copies"]
    assert watched.look(seen) == []


def test_a_partition_without_a_leader_for_a_look() -> None:
    world, driver = switched(renamed=True)
    seen = world.observe()
    here = seen.clusters[SOURCE]
    gone = {**here.topics, "orders": replace(here.topics["orders"], ends={}, leaderless=(0,))}
    watched = begun(driver, seen)
    assert watched.look(replace(seen, clusters={**seen.clusters, SOURCE: replace(here, topics=gone)})) == []
    assert watched.look(seen) == []


def named(seen: Observation, *words: str) -> Observation:
    """The same, with entries of others' records in the copy at A."""
    back = seen.flows[TARGET]
    topics = {"orders": replace(back.topics["orders"], foreign=words)}
    return replace(seen, flows={**seen.flows, TARGET: replace(back, topics=topics)})


def test_stragglers_by_the_ledger() -> None:
    world, driver = switched()
    seen = world.observe()
    first, second = "a foreign producer wrote offsets 3 to 3", "a foreign producer wrote offsets 9 to 9"
    watched = begun(driver, named(seen, first))
    assert watched.look(named(seen, first, second)) == [f"orders: {second}"]
    assert watched.look(seen) == [], "the topic is not seen for a moment"
    assert watched.look(named(seen, first, second)) == []


def at_a(seen: Observation, offset: int | None, *members: MemberSeen, back: int | None = 3) -> Observation:
    """The same, with a commit and members of the group at A; `back`: how far the mirror of B->A may set it."""
    here, flow = seen.clusters[SOURCE], seen.flows[TARGET]
    group = replace(
        here.groups["billing"],
        state="Stable" if members else "Empty",
        members=members,
        offsets={} if offset is None else {PLACE: offset},
    )
    return replace(
        seen,
        clusters={**seen.clusters, SOURCE: replace(here, groups={"billing": group})},
        flows={**seen.flows, TARGET: replace(flow, positions={"billing": {PLACE: back}})},
    )


def test_members_that_came_back() -> None:
    world, driver = switched()
    seen, who = world.observe(), MemberSeen("billing-0", "10.0.3.7")
    told = ["billing has members at A: billing-0@10.0.3.7"]
    watched = begun(driver, at_a(seen, 3))
    assert watched.look(at_a(seen, 3, who)) == told
    assert watched.look(at_a(seen, 3)) == watched.look(at_a(seen, 3, who)) == []
    assert Bypasses(driver.one, THERE, sets_groups=True).look(at_a(seen, 3, who)) == told, "also at the first look"
    assert Bypasses(driver.one, SwitchGoal(Who.PRODUCERS, TARGET), sets_groups=True).look(at_a(seen, 3, who)) == []


@pytest.mark.parametrize(
    ("before", "now", "back", "sets_groups", "is_told"),
    [
        (3, 4, 3, True, True),
        (3, 4, 4, True, False),
        (3, 4, None, True, False),
        (3, 4, None, False, True),
        (2, 3, 3, False, True),
        (None, 4, 3, True, True),
        (None, 3, 3, True, False),
        (3, 2, 3, True, True),
        (4, 4, 3, True, False),
    ],
)
def test_commits(before: int | None, now: int, back: int | None, sets_groups: bool, is_told: bool) -> None:
    """The mirror sets a group as far as its place at B, or its copy, has come, and never back."""
    world, driver = switched()
    seen = world.observe()
    watched = begun(driver, at_a(seen, before, back=back), sets_groups=sets_groups)
    told = [*watched.look(at_a(seen, now, back=back)), *watched.look(at_a(seen, now, back=back))]
    assert told == [f"billing has committed offset {now} of orders-0 at A"] * is_told


def test_what_the_mirror_has_set_after_the_other_side_was_looked_at() -> None:
    world, driver = switched()
    seen = world.observe()
    watched = begun(driver, at_a(seen, 3))
    assert watched.look(at_a(seen, 5, back=4)) == []
    assert watched.look(at_a(seen, 5, back=5)) == []


def test_a_cluster_that_is_away_is_told_once_and_is_no_bypass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bypasses, "LOOK_S", 0.01)
    world, driver = switched(renamed=True)
    count, trouble = 0, list[str]()

    def look() -> Observation:
        nonlocal count
        count += 1
        if count in (1, 2, 5):
            raise ClusterUnreachable("cluster A: no broker answers")
        if count == 4:
            world.append(SOURCE, "orders", 0)
        return world.observe()

    watched = [("shop", Bypasses(driver.one, THERE, sets_groups=True))]
    news = list(bypasses.watch(look, watched, 0.5, trouble.append))
    assert count > 6
    assert trouble == ["cluster A: no broker answers"] * 2
    assert news == [("shop", "orders-0: 1 offset came to A that no flow copies")]
