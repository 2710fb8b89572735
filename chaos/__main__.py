"""`python -m chaos`: the options, and the course of a run."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from chaos.faults import LANES
from chaos.planting import PLANTERS
from chaos.round import Say
from chaos.run import MODES, PLACE, ROOT, Options, Run
from sparkmirror.demo.java import java_home
from sparkmirror.errors import SparkMirrorError

_LINE_S = 15.0


def main() -> int:
    """Run what is asked for. 0: nothing found by a proven checker; 1: not so; 3: this machine lacks something."""
    options = _options()
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console(stderr=True, soft_wrap=True)
    began = time.monotonic()
    try:
        with _narrator(console, began) as say, Run(options, shlex.join(sys.argv[1:]), say) as run:
            board = run.run()
    except SparkMirrorError as error:
        console.print(f"chaos: {error}", style="red", highlight=False, markup=False)
        return error.exit_code
    board.write(options.out)
    console.print(board.markdown(), highlight=False, markup=False)
    console.print(f"written to {options.out}", highlight=False)
    return 0 if board.good else 1


@contextmanager
def _narrator(console: Console, began: float) -> Iterator[Say]:
    """One line that changes, on a terminal; elsewhere a line now and then, and whenever something else begins."""
    with console.status("") as status:
        said, said_at = "", 0.0

        def say(line: str) -> None:
            nonlocal said, said_at
            timed = f"{(time.monotonic() - began) / 60:5.1f} min  {line}"
            status.update(escape(timed))
            what, now = line.partition("fault ")[0], time.monotonic()
            if not console.is_terminal and (what != said or now - said_at > _LINE_S):
                said, said_at = what, now
                console.print(timed, highlight=False, markup=False)

        yield say


def _options() -> Options:
    kinds = [kind for lane in LANES.values() for kind in lane]
    planted = {str(anomaly): anomaly for anomaly in PLANTERS if anomaly}
    parser = argparse.ArgumentParser(
        prog="python -m chaos", description="Break real clusters and a mirror between them under load, and check."
    )
    parser.add_argument("--seed", type=int, default=1, help="faults, victims and load are drawn from it (1)")
    parser.add_argument("--faults", type=int, default=40, help="in all rounds together (40)")
    parser.add_argument("--minutes", type=float, default=20.0, help="after about that long no more faults begin (20)")
    parser.add_argument("--rounds", type=int, default=len(MODES), help="how many; each has a mode of its own (4)")
    parser.add_argument("--round", type=int, help="only this one of them, to repeat it")
    parser.add_argument("--kind", action="append", choices=kinds, help="only these faults, can be repeated (all)")
    parser.add_argument(
        "--transactions", action=argparse.BooleanOptionalAction, default=True, help="transactional producers too (yes)"
    )
    parser.add_argument(
        "--plant", action="append", choices=planted, help="only these, to prove the checker, can be repeated (all)"
    )
    parser.add_argument("--brokers", type=int, default=3, help="a side (3)")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "docs", help="where chaos.json and results.md are written (docs)"
    )
    parser.add_argument("--keep", action="store_true", help=f"keep logs and histories in {PLACE.relative_to(ROOT)}")
    given = parser.parse_args()
    return Options(
        seed=given.seed,
        minutes=given.minutes,
        rounds=(given.round,) if given.round else tuple(range(1, given.rounds + 1)),
        faults_a_round=-(-given.faults // given.rounds),
        transactions=given.transactions,
        kinds=frozenset(given.kind or kinds),
        plant=(None, *(planted[name] for name in given.plant)) if given.plant else tuple(PLANTERS),
        brokers=given.brokers,
        out=given.out,
        keep=given.keep,
    )


if __name__ == "__main__":
    sys.exit(main())
