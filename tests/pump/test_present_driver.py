"""A pump works for its driver: whom it hears, and when it ends by itself or leaves the flow to another process."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator

import pytest
from played_run import LEADERS, PlayedRun

from sparkmirror.kafka.cluster.topic_log import LogEntry
from sparkmirror.pump.messages.control import SILENCE_S, ControlState
from sparkmirror.pump.messages.moves import TaskWords

Make = Callable[..., PlayedRun]
RANK = 5
"""Of the pump's driver, whose incarnation is `i`."""


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Make:
    def made(rank: int = RANK) -> PlayedRun:
        run = PlayedRun(monkeypatch, leader_rank=rank)
        request.addfinalizer(run.close)
        return run

    return made


def said(key: str, value: object, offset: int) -> LogEntry:
    return LogEntry(offset, key.encode(), json.dumps(value).encode())


def tick(incarnation: str, offset: int, phase: str = "running") -> LogEntry:
    return said("epoch", {"incarnation": incarnation, "number": 1, "phase": phase}, offset)


def hear(run: PlayedRun, state: ControlState, entry: LogEntry) -> None:
    """As the control channel does."""
    run.run._hear(state, state.apply([entry]))  # noqa: SLF001 - its control channel is not there


@pytest.fixture
def offsets() -> Iterator[int]:
    return itertools.count(RANK + 1)


OTHERS = {
    "nobody": None,
    "another driver": lambda offset: tick("another", offset),
    "a task": lambda offset: said("task:0", TaskWords(incarnation="i", epoch=1, task=0).model_dump(), offset),
    "an operator": lambda offset: said("throttle", {"bytes_per_second": 1 + offset}, offset),
}


@pytest.mark.parametrize("who", OTHERS)
def test_a_pump_ends_when_its_own_driver_is_silent_whoever_else_speaks(
    make: Make, offsets: Iterator[int], who: str
) -> None:
    """A driver without a lease, tasks and operators write to the same topic."""
    run, state, speak = make(), ControlState(), OTHERS[who]
    hear(run, state, tick("i", next(offsets)))
    began = run.loop.now
    for second in range(1, int(SILENCE_S) + 2):
        run.loop.now = began + second
        if speak is not None:
            hear(run, state, speak(next(offsets)))
        run.run.check()
        run.run.tell_end()
        assert bool(run.reports and run.reports[-1].ended) == (second > SILENCE_S)
    assert run.reports[-1].ended_because == f"no word from the driver for {SILENCE_S:.0f} s"


def test_a_pump_works_as_long_as_its_driver_repeats_its_word(make: Make, offsets: Iterator[int]) -> None:
    run, state = make(), ControlState()
    began = run.loop.now
    for second in range(0, 60, 2):
        run.loop.now = began + second
        hear(run, state, tick("i", next(offsets)))
        run.run.check()
        run.run.tell_end()
    assert not any(report.ended for report in run.reports)


@pytest.mark.parametrize(
    ("rank", "leads", "ends"), [(5, 6, True), (5, 5, False), (5, 3, False), (-1, 6, False), (0, 1, True)]
)
def test_a_pump_ends_when_another_process_leads_its_flow(make: Make, rank: int, leads: int, ends: bool) -> None:
    """What it has in flight may come after the other's pumps have begun, and no driver of its own tells it to end."""
    run, state = make(rank), ControlState()
    run.turn_until(lambda: run.sent == set(LEADERS))
    hear(run, state, said("leader", {"incarnation": "i" if leads <= rank else "another"}, leads))
    run.acknowledge(1, {})
    run.acknowledge(2, {})
    for _ in range(10):
        run.turn()
    assert (run.sent == set()) is ends, "nothing more is sent"
    run.turn_until(lambda: run.pump.ended is ends)
    run.run.tell_end()
    why = "another process leads this flow now" if ends else ""
    assert run.reports[-1].ended_because == why
    assert run.close().in_doubt is ends, "who leads now must not take this end for its predecessors'"


@pytest.mark.parametrize(
    ("phase", "number", "ends"), [("running", 1, False), ("ending", 1, True), ("running", 2, True)]
)
def test_a_pump_ends_as_its_driver_says(make: Make, phase: str, number: int, ends: bool) -> None:
    run, state = make(), ControlState()
    hear(run, state, said("epoch", {"incarnation": "i", "number": number, "phase": phase}, 7))
    assert run.pump.ended is ends
    assert not run.close().in_doubt


@pytest.mark.parametrize("busy", [False, True])
def test_what_is_in_flight_when_the_process_is_stopped_is_in_doubt(make: Make, busy: bool) -> None:
    """The machine may have stood still with the process: its kernel would send the rest of a batch when it wakes.

    A process that was only busy has its answers to read; its batches are on their way.
    """
    run = make()
    run.turn_until(lambda: run.sent == set(LEADERS))
    run.acknowledge(1, {})
    before = list(run.readings)
    for call in run.loop.on_suspended:
        call(busy)
    assert [bool(run.copy_of(number).in_flight) for number in LEADERS] == [busy] * len(LEADERS)
    run.turn_until(lambda: len(run.readings) == (len(before) if busy else 2 * len(before)))
    if busy:
        run.turn_until(lambda: run.records()[:2] == [10, 10])
    else:
        assert run.records() == [0, 0, 0], "an answer that came meanwhile is not believed"
