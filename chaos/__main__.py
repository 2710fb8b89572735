"""`python -m chaos`: the options, and the course of a run."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from chaos.arena import Arena
from chaos.checker import Anomaly
from chaos.faults import LANES
from chaos.planting import PLANTERS, Proof, prove_checker
from chaos.records import Isolation
from chaos.round import RoundPlan, RoundResult, Say, Spark, run_round
from chaos.scoreboard import Scoreboard
from sparkmirror.demo.java import java_home
from sparkmirror.demo.spark_cluster import standalone_cluster
from sparkmirror.errors import SparkMirrorError

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".cache" / "chaos"
MODES: tuple[tuple[Spark, Isolation], ...] = (
    ("local", "read_uncommitted"),
    ("local", "read_committed"),
    ("standalone", "read_uncommitted"),
    ("standalone", "read_committed"),
)
"""What the rounds go through, in turns."""
CORES_OF_A_MIRROR = "2"
_AFTER_FAULTS_S = 60.0
_LINE_S = 15.0


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for."""

    seed: int
    minutes: float
    rounds: tuple[int, ...]
    faults_a_round: int
    transactions: bool
    kinds: frozenset[str]
    plant: tuple[Anomaly | None, ...]
    brokers: int
    out: Path
    keep: bool


def main() -> int:
    """Run what is asked for. 0: nothing found by a proven checker; 1: not so; 3: this machine lacks something."""
    options = _options()
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console(stderr=True, soft_wrap=True)
    began = time.monotonic()
    try:
        with _narrator(console, began) as say, ExitStack() as stack:
            proofs, rounds = _run(options, began, say, stack)
    except SparkMirrorError as error:
        console.print(f"chaos: {error}", style="red", highlight=False, markup=False)
        return error.exit_code
    arguments = " ".join(sys.argv[1:])
    board = Scoreboard(arguments, options.brokers, (time.monotonic() - began) / 60, proofs, rounds)
    board.write(options.out)
    console.print(board.markdown(), highlight=False, markup=False)
    console.print(f"written to {options.out}", highlight=False)
    return 0 if board.good else 1


def _run(options: Options, began: float, say: Say, stack: ExitStack) -> tuple[list[Proof], list[RoundResult]]:
    PLACE.mkdir(parents=True, exist_ok=True)
    if options.keep:
        place = Path(tempfile.mkdtemp(dir=PLACE))
    else:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=PLACE)))
    say(f"starting two clusters in {place}")
    arena = stack.enter_context(Arena(place, options.brokers, keep_logs=options.keep))
    say("planting anomalies")
    proofs = prove_checker(arena, options.plant)
    rounds = []
    deadline = began + options.minutes * 60
    for index, number in enumerate(options.rounds):
        share_s = (deadline - time.monotonic()) / (len(options.rounds) - index)
        plan = _plan(options, number, max(share_s - _AFTER_FAULTS_S, 1.0))
        rounds.append(_round(arena, plan, say))
    return proofs, rounds


def _plan(options: Options, number: int, timeout_s: float) -> RoundPlan:
    spark, isolation = MODES[(number - 1) % len(MODES)]
    return RoundPlan(
        number=number,
        seed=options.seed + number - 1,
        spark=spark,
        isolation=isolation if options.transactions else "read_uncommitted",
        faults=options.faults_a_round,
        timeout_s=timeout_s,
        kinds=options.kinds,
        transactions=options.transactions,
    )


def _round(arena: Arena, plan: RoundPlan, say: Say) -> RoundResult:
    def say_more(line: str) -> None:
        say(f"round {plan.number} (seed {plan.seed}, {plan.spark}, {plan.isolation}): {line}")

    if plan.spark == "local":
        return run_round(arena, plan, {}, say_more)
    place = arena.directory / f"spark{plan.number}"
    place.mkdir()
    say_more("a Spark cluster starts")
    with standalone_cluster(place) as settings:
        return run_round(arena, plan, {**settings, "spark.cores.max": CORES_OF_A_MIRROR}, say_more)


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
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the scoreboard goes (docs)")
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
