"""A mirror that runs has ten seconds to copy what was at the source; one that does not run is not waited for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from sparkmirror.config import load_mm2_properties
from sparkmirror.frames import Options, Verification, mirror_watch
from sparkmirror.frames.ranges import LogPlan, PartitionPlan
from sparkmirror.frames.report import PartitionResult
from sparkmirror.frames.survey import FlowSurvey
from sparkmirror.frames.verify import _VerifyRun

verify_module = importlib.import_module("sparkmirror.frames.verify")

FILE = """\
clusters = A, B, C
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
C.bootstrap.servers = c:1
A->B.enabled = true
C->B.enabled = true
topics = t
"""
NEVER = 1e9


class World:
    """Two flows' mirrors, in a time of their own: when they report, and when they have copied what was due."""

    def __init__(self, compared_s: float = 0.0) -> None:
        self.now = 0.0
        self.compared_s = compared_s
        self.reports: dict[str, Callable[[float], int]] = {}
        """The end of a source's receipts topic by time; no topic: the mirror never ran."""
        self.copied_at = {"A->B": 0.0, "C->B": 0.0}

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def ends_now(self, _: object, partitions: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
        ends = {f"mm2-sparkmirror-receipts.{source}.internal": end for source, end in self.reports.items()}
        return {(topic, at): ends[topic](self.now) for topic, at in partitions if topic in ends}

    def plan(self, flow: str) -> PartitionPlan:
        due = (5, 9) if self.now < self.copied_at[flow] else (0, 0)
        sides = [LogPlan(topic=topic, topic_id="", start=0, end=9) for topic in ("t", f"{flow[0]}.t")]
        return PartitionPlan(
            flow=flow,
            partition=0,
            source=sides[0],
            target=sides[1],
            isolation="read_uncommitted",
            timestamps=True,
            bytes_per_offset=1.0,
            ranges=(),
            due=due,
        )


Verified = Callable[[World], tuple[float, bool]]


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Verified:
    """How long a verification in this world waits when all is compared, and whether something is due then."""
    file = tmp_path / "mm2.properties"
    file.write_text(FILE)
    config = load_mm2_properties(str(file))
    session = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1))

    def run(world: World) -> tuple[float, bool]:
        def plan(survey: FlowSurvey, _: int) -> list[PartitionPlan]:
            return [world.plan(survey._flow.name)]  # noqa: SLF001 - the flow that is asked for

        def judge(_: object, plans: list[PartitionPlan], *__: object) -> Verification:
            results = [
                PartitionResult(flow=one.flow, topic="t", target_topic=one.target.topic, partition=0) for one in plans
            ]
            return Verification(tuple(results), (), 0, 0)

        compares = iter([world.compared_s, 0.0])
        clock = SimpleNamespace(monotonic=lambda: world.now, sleep=world.sleep, time=lambda: world.now)
        monkeypatch.setattr(verify_module, "time", clock)
        monkeypatch.setattr(mirror_watch, "now_s", lambda: world.now)
        monkeypatch.setattr(mirror_watch, "ends_now", world.ends_now)
        monkeypatch.setattr(FlowSurvey, "plan", plan)
        monkeypatch.setattr(verify_module, "settings_of", lambda spark: {})
        monkeypatch.setattr(verify_module, "parked", lambda flow: {})
        monkeypatch.setattr(_VerifyRun, "_compare", lambda *_: world.sleep(next(compares)))
        monkeypatch.setattr(_VerifyRun, "_judge", judge)
        monkeypatch.setattr(_VerifyRun, "_counted", lambda _, rest: [one.due[1] - one.due[0] for one in rest])
        verification = cast("Verification", verify_module.run_verification(session, config, Options()))
        return world.now - world.compared_s, bool(verification.behind)

    return run


@pytest.mark.parametrize("copied_at", [3.0, 9.0])
def test_a_mirror_that_runs_is_waited_for_though_it_gets_no_further_yet(verified: Verified, copied_at: float) -> None:
    """A new round begins, or a partition is quiet first."""
    world = World()
    world.reports["A"] = lambda now: int(now)
    world.copied_at["A->B"] = copied_at
    waited, behind = verified(world)
    assert not behind
    assert copied_at <= waited <= copied_at + 1


def test_it_has_ten_seconds(verified: Verified) -> None:
    world = World()
    world.reports["A"] = lambda now: int(now)
    world.copied_at["A->B"] = NEVER
    waited, behind = verified(world)
    assert behind
    assert 10 <= waited <= 11


def test_rounds_may_change_meanwhile(verified: Verified) -> None:
    """For three seconds nobody reports."""
    world = World()
    world.reports["A"] = lambda now: int(now if now < 2 else max(now - 3, 2))
    world.copied_at["A->B"] = 7.0
    assert verified(world) == (7.0, False)


@pytest.mark.parametrize(("compared_s", "waits"), [(0.0, 5.0), (20.0, 0.0)])
def test_a_mirror_that_does_not_run_is_not_waited_for(verified: Verified, compared_s: float, waits: float) -> None:
    """Once it is known: a comparison takes longer than a mirror is silent."""
    world = World(compared_s)
    world.reports["A"] = lambda _: 77
    world.copied_at["A->B"] = NEVER
    assert verified(world) == (waits, True)


def test_a_mirror_that_never_ran_is_not_waited_for(verified: Verified) -> None:
    world = World()
    world.copied_at["A->B"] = NEVER
    assert verified(world) == (0.0, True)


def test_only_a_mirror_that_owes_something_is_waited_for(verified: Verified) -> None:
    """The other one reports on, and has copied all."""
    world = World()
    world.reports["A"] = lambda _: 77
    world.reports["C"] = lambda now: int(now)
    world.copied_at = {"A->B": NEVER, "C->B": 2.0}
    assert verified(world) == (5.0, True)
