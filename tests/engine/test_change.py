"""Another plan for running tasks: which places the wanted tasks take, and which partitions move for that."""

from __future__ import annotations

import random

from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.change import TaskChange, aligned, moved
from sparkmirror.pump.messages.moves import NO_TASK


def keys(*numbers: int, flow: str = "a->b") -> tuple[PartitionKey, ...]:
    return tuple(PartitionKey(flow, "t", number) for number in numbers)


SERVED = [{"a->b"}, {"a->b"}]


def test_wanted_tasks_take_the_places_with_which_they_share_most() -> None:
    wanted = keys(3, 4, 5), keys(0, 1, 2)
    assert aligned(wanted, (keys(0, 1, 2, 3), keys(4, 5)), SERVED) == (keys(0, 1, 2), keys(3, 4, 5))


def test_more_tasks_come_last_and_fewer_leave_a_place_empty() -> None:
    assert aligned((keys(0), keys(1), keys(2)), (keys(0, 1), keys(2)), SERVED) == (keys(0), keys(2), keys(1))
    assert aligned((keys(0, 1, 2),), (keys(0, 1), keys(2)), SERVED) == (keys(0, 1, 2), ())
    assert aligned((keys(0, 1), keys(2)), (keys(0, 1, 2), ()), SERVED) == (keys(0, 1), keys(2))


def test_a_running_task_serves_the_flows_of_its_order_only() -> None:
    other = keys(0, flow="c->d")
    assert aligned((keys(0), (*keys(1), *other)), (keys(0), keys(1)), SERVED) is None
    assert aligned((keys(0), keys(1), other), (keys(0), keys(1)), SERVED) == (keys(0), keys(1), other)
    assert aligned((keys(0), other), (keys(0), ()), SERVED) == (keys(0), (), other)


def test_what_moves() -> None:
    running, wanted = (keys(0, 1), keys(2, 3)), (keys(0), keys(1, 2, 4))
    assert moved(running, wanted) == {
        keys(1)[0]: TaskChange(0, 1),
        keys(3)[0]: TaskChange(1, NO_TASK),
        keys(4)[0]: TaskChange(NO_TASK, 1),
    }


def test_any_plan_is_reached_by_its_moves() -> None:
    choices = random.Random(7)

    def deal(partitions: int, tasks: int) -> tuple[tuple[PartitionKey, ...], ...]:
        dealt: list[list[PartitionKey]] = [[] for _ in range(tasks)]
        for key in keys(*range(partitions)):
            choices.choice(dealt).append(key)
        return tuple(tuple(part) for part in dealt if part)

    for _ in range(300):
        running, wanted = deal(choices.randrange(1, 9), 3), deal(choices.randrange(1, 9), 4)
        placed = aligned(wanted, running, [{"a->b"}] * len(running))
        assert placed is not None
        assert sorted(part for part in placed if part) == sorted(wanted)
        owners = {key: task for task, part in enumerate(running) for key in part}
        for key, move in moved(running, placed).items():
            assert owners.get(key, NO_TASK) == move.before
            owners[key] = move.task
        assert {key: task for key, task in owners.items() if task != NO_TASK} == {
            key: task for task, part in enumerate(placed) for key in part
        }
