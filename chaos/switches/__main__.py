"""`python -m chaos.switches`: the options, and the course of a run."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from chaos.run import PLACE
from chaos.switches.board import Board
from chaos.switches.plan import Names, draw
from chaos.switches.run import run
from sparkmirror.demo.java import java_home
from sparkmirror.errors import SparkMirrorError


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
        run(plans, directory, options.source, options.minutes, board, say)
    except SparkMirrorError as error:
        say(f"chaos: {error}")
        return error.exit_code
    print(board.markdown())
    board.write(options.out or directory)
    return 0 if board.good else 1


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
