"""The nemesis: a schedule drawn from a seed, and its execution.

There are three lanes, source, target and mirror. In each, one fault follows the other; a broker that was killed is
back and in sync before the next one is hurt, so that a side loses no more than one broker at a time, but where a
majority is paused, or a leader elected uncleanly, on purpose. The lanes run side by side, so faults of different
lanes overlap, but for the few kinds that have to be alone.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass

from chaos.arena import NoVictim
from chaos.faults import ALONE, SLOW_TO_SHOW, make_fault
from chaos.world import World

_TICK_S = 0.5


@dataclass(frozen=True, slots=True)
class Pace:
    """How long the rests before faults are, and how long faults hold, in seconds: least and most."""

    rest_s: tuple[float, float] = (0.5, 4.0)
    hold_s: tuple[float, float] = (1.0, 8.0)


@dataclass(frozen=True, slots=True)
class Planned:
    """A fault to come; `seed` picks its victim."""

    kind: str
    rest_s: float
    hold_s: float
    seed: int


@dataclass(frozen=True, slots=True)
class Happened:
    """A fault that was: times of the monotonic clock. It has ended when the broker serves again, the mirror was told to
    continue, the connection is whole; what only kills the mirror's processes ends at once."""

    kind: str
    victim: str
    began: float
    ended: float


def draw(seed: int, lanes: Mapping[str, Sequence[str]], faults: int, pace: Pace) -> dict[str, list[Planned]]:
    """Return the schedule of each lane; all kinds come equally often, give or take one, in an order drawn at random."""
    chance = random.Random(f"nemesis {seed}")
    lane_of = {kind: lane for lane, kinds in lanes.items() for kind in kinds}
    drawn: dict[str, list[Planned]] = {lane: [] for lane in lanes}
    for kind, _ in zip(_decks(chance, sorted(lane_of)), range(faults), strict=False):
        rest_s, hold_s = chance.uniform(*pace.rest_s), chance.uniform(*pace.hold_s)
        planned = Planned(kind, rest_s, hold_s + SLOW_TO_SHOW.get(kind, 0.0), chance.randrange(1 << 32))
        drawn[lane_of[kind]].append(planned)
    return drawn


def _decks(chance: random.Random, kinds: Sequence[str]) -> Iterator[str]:
    while kinds:
        yield from chance.sample(kinds, len(kinds))


class Nemesis:
    """Carries a schedule out."""

    def __init__(self, world: World, schedule: Mapping[str, Sequence[Planned]]) -> None:
        self.happened: list[Happened] = []
        self.skipped: list[str] = []
        """What could not be done, and why."""
        self.current: dict[str, str] = {}
        """What is broken now, by lane."""
        self._world = world
        self._schedule = schedule
        self._stop = threading.Event()
        self._lanes = {lane: threading.Lock() for lane in sorted(schedule)}
        """Held while something is broken there; always taken in this order."""

    def run(self, timeout_s: float, on_tick: Callable[[], None]) -> None:
        """Let all of it happen, or what fits into the time; `on_tick` is called now and then meanwhile.

        Raises what stopped a lane: SetupError where a broker did not come back.
        """
        deadline = time.monotonic() + timeout_s
        with ThreadPoolExecutor(len(self._schedule)) as pool:
            lanes = [pool.submit(self._run_lane, lane) for lane in self._schedule]
            try:
                while wait(lanes, _TICK_S).not_done:
                    on_tick()
                    if time.monotonic() > deadline:
                        self._stop.set()
            finally:
                self._stop.set()
        for lane in lanes:
            lane.result()

    def _run_lane(self, lane: str) -> None:
        try:
            for planned in self._schedule[lane]:
                if self._stop.wait(planned.rest_s):
                    return
                with ExitStack() as held:
                    for name, quiet in self._lanes.items():
                        if name == lane or planned.kind in ALONE:
                            held.enter_context(quiet)
                    if self._stop.is_set():
                        return
                    self._hurt(lane, planned)
        except BaseException:
            self._stop.set()
            raise

    def _hurt(self, lane: str, planned: Planned) -> None:
        fault = make_fault(planned.kind, self._world, random.Random(planned.seed))
        began = time.monotonic()
        try:
            fault.begin()
        except NoVictim as why:
            self.skipped.append(f"{planned.kind}: {why}")
            return
        self.current[lane] = f"{planned.kind} ({fault.victim})"
        try:
            if fault.lasts:
                self._stop.wait(planned.hold_s)
        finally:
            if fault.lasts:
                fault.end()
        self.happened.append(Happened(planned.kind, fault.victim, began, time.monotonic()))
        del self.current[lane]
        fault.settle()
