"""`python -m chaos.switches`: the options, and the course of a run."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

from chaos.mirror import STEADY, MirrorProcess
from chaos.run import PLACE
from chaos.switches.arena import Arena, write_mirror_file
from chaos.switches.board import Board
from chaos.switches.jvm import LoadJvm
from chaos.switches.plan import Names, Plan, draw
from chaos.switches.round import NotSeen, Result, Round, Say
from chaos.switches.tool import Hooks
from sparkmirror.demo.java import java_home
from sparkmirror.errors import SetupError, SparkMirrorError

_START_S = 300.0
_DIRECTIONS = 2


def main() -> int:
    """Run what is asked for. 0: nothing was wrong; 1: something was; 3: this machine lacks something."""
    options = _options()
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{(time.monotonic() - began) / 60:5.1f} min  {line}", file=sys.stderr, flush=True)

    plans = draw(options.seed, options.switches, tuple(options.names or Names))
    if options.round:
        plans = [plan for plan in plans if plan.number in options.round]
    PLACE.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(dir=PLACE, prefix="switches-"))
    say(f"files are in {directory}")
    board = Board(options.seed, options.source)
    try:
        _run(plans, directory, options.source, options.minutes, board, say)
    except SparkMirrorError as error:
        say(f"chaos: {error}")
        return error.exit_code
    print(board.markdown())
    board.write(options.out or directory)
    return 0 if board.good else 1


def _run(plans: Sequence[Plan], directory: Path, version: str, minutes: float, board: Board, say: Say) -> None:
    deadline = time.monotonic() + minutes * 60
    with ExitStack() as stack:
        say(f"starting Kafka {version} and a target")
        arena = stack.enter_context(Arena(directory, version))
        jvm = stack.enter_context(LoadJvm(directory, arena.clients()))
        for names, block in groupby(plans, key=lambda plan: plan.names):
            file = write_mirror_file(directory / f"{names}.properties", arena, names, syncs_groups=names is Names.KEPT)
            mirror = MirrorProcess(STEADY, file, directory / f"{names}.log")
            try:
                _wait_until_ready(mirror, directory / f"{names}.log", say)
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


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m chaos.switches", description="Migrate between real clusters under load, and check each record."
    )
    parser.add_argument("--seed", type=int, default=1, help="rounds are drawn from it (1)")
    parser.add_argument("--switches", type=int, default=30, help="rounds (30): plain, with a kill, with a way back")
    parser.add_argument("--round", type=int, action="append", help="only this one of them, can be repeated")
    parser.add_argument("--names", type=Names, action="append", choices=list(Names), help="only these names (all)")
    parser.add_argument("--source", default="4.3.1", help="the source's Kafka version: 2.8.2, 3.6.2 or 4.3.1 (4.3.1)")
    parser.add_argument("--minutes", type=float, default=90.0, help="after that long no more rounds begin (90)")
    parser.add_argument("--out", type=Path, help="where switches.json is written (the run's directory)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
