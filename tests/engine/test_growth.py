"""Partitions that appear while a round runs: dealt to running tasks by load, or planned again."""

from __future__ import annotations

from sparkmirror.mirror.engine.assignment import PartitionKey, PartitionLoad
from sparkmirror.mirror.engine.growth import grow, grown, shares


def key(number: int, flow: str = "a->b", topic: str = "t") -> PartitionKey:
    return PartitionKey(flow, topic, number)


def load(key: PartitionKey, rate: float = 0.0) -> PartitionLoad:
    return PartitionLoad(flow=key.flow, topic=key.topic, partition=key.partition, leader=1, bytes_per_s=rate)


ASSIGNMENT = ((key(0), key(1)), (key(2), key(0, "c->d")), (key(1, "c->d"),))


def loads(*more: PartitionLoad) -> list[PartitionLoad]:
    busy = [load(key, 1e6 if key == ("a->b", "t", 2) else 0.0) for keys in ASSIGNMENT for key in keys]
    return [*busy, *more]


def test_new_partitions_go_to_the_lightest_task_that_serves_the_flow() -> None:
    added = [key(0, topic="u"), key(1, topic="u")]
    assert grow(ASSIGNMENT, "a->b", loads(*map(load, added))) == {0: added}


def test_each_new_partition_weighs_on_the_next() -> None:
    heavy, light = load(key(0, topic="u"), 2e6), load(key(1, topic="u"))
    assert grow(ASSIGNMENT, "a->b", loads(heavy, light)) == {0: [heavy.key], 1: [light.key]}


def test_new_partitions_of_other_flows_are_not_this_flows() -> None:
    assert grow(ASSIGNMENT, "a->b", loads(load(key(7, "c->d")))) == {}


def test_a_flow_that_more_than_doubles_is_planned_again() -> None:
    added = [load(key(number, topic="u")) for number in range(4)]
    assert grow(ASSIGNMENT, "a->b", loads(*added[:3])) is not None
    assert grow(ASSIGNMENT, "a->b", loads(*added)) is None


def test_a_flow_that_no_task_serves_is_planned_again() -> None:
    assert grow(ASSIGNMENT, "e->f", loads(load(key(0, "e->f")))) is None


def test_the_assignment_grows_in_order_and_shares_go_by_partitions() -> None:
    after = grown(ASSIGNMENT, {1: [key(0, topic="u")], 0: [key(0, topic="s")]})
    assert after == (
        (key(0, topic="s"), key(0), key(1)),
        (key(2), key(0, topic="u"), key(0, "c->d")),
        (key(1, "c->d"),),
    )
    assert shares(after, "a->b") == {0: 3 / 5, 1: 2 / 5}
    assert shares(after, "c->d") == {1: 1 / 2, 2: 1 / 2}
