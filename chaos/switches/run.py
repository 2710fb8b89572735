"""A run: clusters, the load's JVM, and a mirror for all rounds with equal names."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from chaos.mirror import STEADY, MirrorProcess
from chaos.switches.arena import Arena, write_mirror_file
from chaos.switches.board import Board
from chaos.switches.jvm import LoadJvm
from chaos.switches.plan import Names, Plan
from chaos.switches.round import NotSeen, Result, Round, Say
from chaos.switches.tool import Hooks
from sparkmirror.errors import SetupError, SparkMirrorError

_START_S = 300.0
_DIRECTIONS = 2


def run(plans: Sequence[Plan], directory: Path, version: str, minutes: float, board: Board, say: Say) -> None:
    """Run rounds; those with equal names in a row share clusters and a mirror. After `minutes` no more begin.

    Raises `SparkMirrorError`s where the machine lacks something.
    """
    deadline = time.monotonic() + minutes * 60
    for names, block in groupby(plans, key=lambda plan: plan.names):
        place = directory / names
        place.mkdir()
        say(f"starting Kafka {version} and a target")
        with Arena(place, version) as arena, LoadJvm(place, arena.clients()) as jvm:
            file = write_mirror_file(place / "mm2.properties", arena, names, syncs_groups=names is Names.KEPT)
            mirror = MirrorProcess(STEADY, file, place / "mirror.log")
            try:
                _wait_until_ready(mirror, place / "mirror.log", say)
                for plan in block:
                    if time.monotonic() > deadline:
                        board.skipped.append(plan)
                        continue
                    say(f"round {plan.number}: {plan.words}")
                    board.results.append(_round(arena, jvm, file, plan, say))
            finally:
                mirror.stop()


def _wait_until_ready(mirror: MirrorProcess, log: Path, say: Say) -> None:
    """Wait until the mirror works in both directions."""
    say("waiting for the mirror")
    deadline = time.monotonic() + _START_S
    while len(_at_work(log)) < _DIRECTIONS:
        if not mirror.running or time.monotonic() > deadline:
            raise SetupError(f"the mirror does not work: {log}")
        time.sleep(0.5)


def _at_work(log: Path) -> set[str]:
    said = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{") and line.endswith("}")]
    return {line["flow"] for line in said if line["state"] != "starting"}


def _round(arena: Arena, jvm: LoadJvm, file: Path, plan: Plan, say: Say) -> Result:
    with Hooks() as hooks:
        one = Round(arena, jvm, file, plan, hooks, lambda line: say(f"round {plan.number}: {line}"))
        try:
            result = one.run()
        except (NotSeen, SparkMirrorError) as error:
            result = one.failed(str(error))
    for line in result.wrong:
        say(f"round {plan.number}: WRONG: {line}")
    return result
