"""The schedule is the seed's, and fair; what is measured follows from samples."""

from __future__ import annotations

import time
from collections import Counter
from typing import cast

import pytest
from chaos.faults import ALONE, LANES, SLOW_TO_SHOW
from chaos.meter import Sample, Stall, recovery, stalls
from chaos.nemesis import Nemesis, Pace, draw
from chaos.world import World
from hypothesis import given
from hypothesis import strategies as st

from chaos import nemesis

PACE = Pace(rest_s=(1.0, 2.0), hold_s=(3.0, 4.0))


@given(st.integers(), st.integers(0, 120))
def test_a_seed_draws_the_same_schedule_and_every_kind_as_often(seed: int, faults: int) -> None:
    schedule = draw(seed, LANES, faults, PACE)
    assert schedule == draw(seed, LANES, faults, PACE)
    assert list(schedule) == list(LANES)
    times = Counter({kind: 0 for kinds in LANES.values() for kind in kinds})
    for lane, planned in schedule.items():
        for one in planned:
            assert one.kind in LANES[lane]
            assert 1.0 <= one.rest_s <= 2.0
            assert 3.0 <= one.hold_s - SLOW_TO_SHOW.get(one.kind, 0.0) <= 4.0
            times[one.kind] += 1
    assert times.total() == faults
    assert max(times.values()) - min(times.values()) <= 1


def test_other_seeds_draw_other_schedules_and_a_shorter_one_is_a_beginning() -> None:
    assert draw(1, LANES, 40, PACE) != draw(2, LANES, 40, PACE)
    longer, shorter = draw(1, LANES, 60, PACE), draw(1, LANES, 40, PACE)
    assert all(longer[lane][: len(planned)] == planned for lane, planned in shorter.items())


class Slow:
    """A fault that holds and settles for a moment, and notes when it was there."""

    victim = "nobody"
    lasts = True
    times: list[tuple[str, float, float]]

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def begin(self) -> None:
        self.began = time.monotonic()

    def end(self) -> None:
        pass

    def settle(self) -> None:
        time.sleep(0.01)
        self.times.append((self.kind, self.began, time.monotonic()))


def test_what_has_to_be_alone_is_alone_and_the_rest_goes_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = min(ALONE)
    lanes = {"source": ("source kill",), "target": ("target kill",), "mirror": (alone, "driver kill")}
    schedule = draw(4, lanes, 60, Pace(rest_s=(0.0, 0.005), hold_s=(0.005, 0.02)))
    monkeypatch.setattr(nemesis, "make_fault", lambda kind, *_: Slow(kind))
    monkeypatch.setattr(Slow, "times", [], raising=False)
    carried_out = Nemesis(cast(World, None), schedule)
    carried_out.run(60, lambda: None)
    assert len(carried_out.happened) == len(Slow.times) == 60

    def overlap(one: tuple[str, float, float], other: tuple[str, float, float]) -> bool:
        return one is not other and one[1] < other[2] and other[1] < one[2]

    together = {(one[0], other[0]) for one in Slow.times for other in Slow.times if overlap(one, other)}
    assert ("source kill", "target kill") in together
    assert not [pair for pair in together if alone in pair]


def samples(*moments: tuple[float, int, int]) -> list[Sample]:
    """Samples of one partition: time, end of the source, end of the target."""
    return [Sample(at, (source,), (target,)) for at, source, target in moments]


def test_a_stall_is_a_time_in_which_something_waits_and_nothing_comes() -> None:
    assert stalls([]) == []
    assert stalls(samples((0, 5, 5), (9, 5, 5))) == [], "nothing to copy"
    assert stalls(samples((0, 5, 5), (1, 8, 5), (4, 9, 5), (6, 9, 7), (7, 9, 9))) == [Stall(1, 5), Stall(6, 1)]
    assert stalls(samples((0, 9, 5), (3, 9, 5))) == [Stall(0, 3)], "to the end"


def test_recovered_is_when_all_is_there_that_was_owed() -> None:
    course = samples((0, 5, 5), (1, 8, 5), (2, 9, 7), (3, 12, 8), (4, 12, 12))
    assert recovery(course, 0.0) == 0.0
    assert recovery(course, 0.5) == 2.5, "8 were owed at 1"
    assert recovery(course, 2.5) == 1.5
    assert recovery(course[:3], 1.5) is None
    assert recovery(course, 9.0) is None


def test_recovered_means_every_partition() -> None:
    course = [Sample(0, (5, 5), (5, 0)), Sample(1, (9, 5), (9, 4)), Sample(2, (9, 5), (9, 5))]
    assert recovery(course, 0.0) == 2.0
