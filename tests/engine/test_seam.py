"""Partitions that go from task to task under load: what each record waits, and what kills in between leave."""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from pyspark.sql import SparkSession
from stopwatch import Stopwatch, Wait, percentiles
from tests.support import mirror_process as mp
from tests.support.loaded_flow import PARTITIONS, LoadedFlow, assert_copied
from tests.support.mirror_thread import run_mirror

from sparkmirror.mirror.engine import round_runner
from sparkmirror.mirror.engine.assignment import Assignment
from sparkmirror.mirror.engine.change_watch import ChangeWatch
from sparkmirror.mirror.engine.driver_control import DriverControl
from sparkmirror.mirror.engine.end_reason import EndReason
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.mirror.engine.planner import Planner
from sparkmirror.pump.messages.moves import RouteMoves

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

PERIOD_S = 4.0
"""Between changes; by default plans are made each five minutes."""

KILLS = 4
SEAMS = 8
"""Number of changes that are measured."""


def exchanging(planner: Planner, drivers: Sequence[Any]) -> Assignment:
    """A plan in which every partition goes to the other task: the places of two tasks, and halves of the partitions."""
    keys = sorted(load.key for driver in drivers for load in driver.orders.loads())
    halves = tuple(keys[::2]), tuple(keys[1::2])
    if not planner.assignment:
        return halves
    first, last = halves
    mixed = tuple(sorted((first[0], *last[1:]))), tuple(sorted((last[0], *first[1:])))
    return halves if set(planner.assignment) == set(mixed) else mixed


class Seam(NamedTuple):
    """One change."""

    at: float
    """Seconds since 1970."""
    moved: frozenset[int]
    """Partitions that go to another task."""

    def is_around(self, wait: Wait) -> bool:
        """True for records that were written from shortly before it until it is over for sure."""
        return self.at - 0.3 <= wait.at <= self.at + 2.5


class Seams:
    """When partitions were moved, or rounds ended for that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, within_rounds: bool) -> None:
        self.begun: list[Seam] = []
        monkeypatch.setattr(round_runner, "REPLAN_S", PERIOD_S)
        monkeypatch.setattr(Planner, "plan", exchanging)
        begin = ChangeWatch.begin

        def noted(watch: ChangeWatch, reason: EndReason) -> EndReason | None:
            if watch.is_under_way or not self._are_all_copied(watch):
                return None
            change = watch._planner.change(watch._round, watch._ready)  # noqa: SLF001 - a test's look inside
            moved = frozenset(key.partition for key in change.moved) if change is not None else frozenset()
            self.begun.append(Seam(time.time(), moved))
            return begin(watch, reason) if within_rounds else reason

        monkeypatch.setattr(ChangeWatch, "begin", noted)

    @staticmethod
    def _are_all_copied(watch: ChangeWatch) -> bool:
        (driver,) = watch._ready  # noqa: SLF001 - a test's look inside
        states = [view.receipt.state for view in driver.view.partitions.values() if view.receipt is not None]
        return states.count("running") == PARTITIONS and len(driver.reports.started_tasks(watch._round)) == 2  # noqa: SLF001


def wait_for_copies(flow: LoadedFlow) -> None:
    mp.wait_for(
        lambda: (
            mp.end_offsets(flow.target.bootstrap_servers, f"A.{flow.topic}", PARTITIONS)
            == mp.end_offsets(flow.source.bootstrap_servers, flow.topic, PARTITIONS)
        ),
        90,
        "everything is copied",
    )


@pytest.mark.parametrize("within_rounds", [True, False], ids=["moves", "rounds"])
def test_what_a_record_waits_at_a_change(
    flow: LoadedFlow, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, within_rounds: bool
) -> None:
    """Half of the partitions change their task at each seam; the figures are printed (`-rP`)."""
    seams = Seams(monkeypatch, within_rounds=within_rounds)
    mp.create_topic(flow.target.bootstrap_servers, f"A.{flow.topic}", PARTITIONS)
    with contextlib.ExitStack() as stack:
        mirror = stack.enter_context(run_mirror(flow.properties, spark))
        stopwatch = Stopwatch(flow.source.bootstrap_servers, flow.target.bootstrap_servers, flow.topic, PARTITIONS)
        stack.callback(stopwatch.kill)
        mp.wait_for(lambda: len(seams.begun) >= 1, 90, "a first change")
        mp.wait_for(lambda: len(seams.begun) >= SEAMS + 1, 30 * SEAMS, "the changes")
        time.sleep(3)
        rounds = mirror.rounds
        written, waits = stopwatch.finish()
    measured = seams.begun[:SEAMS]
    calm = [wait for wait in waits if not any(seam.is_around(wait) for seam in seams.begun)]
    between = [wait for wait in calm if measured[0].at < wait.at < measured[-1].at]
    print(f"{'moves' if within_rounds else 'rounds'}: {len(measured)} seams, {rounds} rounds")
    print(f"between seams: {percentiles(between)}")
    for words, stays in (("moved", False), ("stayed", True)):
        told = [
            [wait for wait in waits if seam.is_around(wait) and (wait.partition not in seam.moved) is stays]
            for seam in measured
        ]
        worst = [
            max(each, key=lambda wait: wait.ms, default=Wait(0, seam.at, 0))
            for each, seam in zip(told, measured, strict=True)
        ]
        largest = ", ".join(
            f"{wait.ms:.0f} ({wait.at - seam.at:+.2f} s)" for wait, seam in zip(worst, measured, strict=True)
        )
        print(f"{words}: {percentiles(wait for each in told for wait in each)}; largest of each seam: {largest}")
    assert (rounds == 1) is within_rounds
    assert len(waits) == written


@pytest.mark.parametrize("seed", range(2))
def test_kills_at_the_seam(
    flow: LoadedFlow, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seed: int, tmp_path: Path
) -> None:
    """A task is killed while it releases or takes partitions; Spark tries it again, and the moves continue."""
    moments = random.Random(seed)
    killed: list[float] = []
    move = DriverControl.move

    def kill_soon(control: DriverControl, moves: RouteMoves) -> None:
        move(control, moves)
        pumps = [one for one in mp.workers_of(psutil.Process().children(recursive=True)) if one.num_threads() > 4]
        if len(killed) < KILLS and pumps:
            time.sleep(moments.random())
            with contextlib.suppress(psutil.NoSuchProcess):
                moments.choice(pumps).send_signal(signal.SIGKILL)
                killed.append(time.time())

    seams = Seams(monkeypatch, within_rounds=True)
    monkeypatch.setattr(DriverControl, "move", kill_soon)
    with run_mirror(flow.properties, spark) as mirror:
        with flow.load():
            mp.wait_for(lambda: len(killed) >= KILLS, 150, "all kills")
            before = len(seams.begun)
            mp.wait_for(lambda: len(seams.begun) > before + 1, 90, "a change after the kills")
        wait_for_copies(flow)
        assert isinstance(mirror, Mirror)
    assert_copied(flow.source, flow.target, {flow.topic: f"A.{flow.topic}"})
