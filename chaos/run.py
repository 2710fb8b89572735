"""A whole run: the checker's proof, then the rounds, one after the other on the same clusters."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from kafka.errors import KafkaError
from lab.spark_cluster import standalone_cluster

from chaos.arena import Arena
from chaos.checker import Anomaly
from chaos.planting import prove_checker
from chaos.planting_cuts import prove_cuts
from chaos.records import Isolation
from chaos.round import RoundPlan, RoundResult, Say, Spark, run_round
from chaos.scoreboard import Scoreboard
from sparkmirror.errors import SparkMirrorError

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".cache" / "chaos"
MODES: tuple[tuple[Spark, Isolation, bool], ...] = (
    ("local", "read_uncommitted", True),
    ("local", "read_committed", False),
    ("standalone", "read_uncommitted", False),
    ("standalone", "read_committed", True),
)
"""What the rounds go through, in turns; in restless ones (True) plans move partitions again and again."""
CORES_OF_A_MIRROR = "2"
"""Half of what the Spark cluster has: a rival gets the other half."""
_AFTER_FAULTS_S = 60.0


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for."""

    seed: int
    rounds: tuple[int, ...]
    faults_a_round: int
    minutes: float
    transactions: bool
    kinds: frozenset[str]
    plant: tuple[Anomaly | None, ...]
    brokers: int
    out: Path
    keep: bool


class Run:
    """As a context: both clusters run, and all is ended and deleted after it. Raises SetupError."""

    def __init__(self, options: Options, arguments: str, say: Say) -> None:
        self._options = options
        self._arguments = arguments
        self._say = say
        self._began = time.monotonic()
        self._cleanup = ExitStack()

    def __enter__(self) -> Self:
        PLACE.mkdir(parents=True, exist_ok=True)
        with ExitStack() as started:
            if self._options.keep:
                self._place = Path(tempfile.mkdtemp(dir=PLACE))
            else:
                self._place = Path(started.enter_context(tempfile.TemporaryDirectory(dir=PLACE)))
            self._say(f"starting two clusters in {self._place}")
            arena = Arena(self._place, self._options.brokers, keep_logs=self._options.keep)
            self._arena = started.enter_context(arena)
            self._cleanup = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def run(self) -> Scoreboard:
        """Prove the checker, and run the rounds. One that can't be run to its end is the last."""
        options = self._options
        self._say("planting anomalies")
        proofs = [*prove_checker(self._arena, options.plant), *prove_cuts(self._arena, options.plant)]
        board = Scoreboard(self._arguments, options.brokers, proofs)
        for index, number in enumerate(options.rounds):
            left_s = options.minutes * 60 - self._elapsed_s()
            plan = self._plan(number, max(left_s / (len(options.rounds) - index) - _AFTER_FAULTS_S, 1.0))
            try:
                board.rounds.append(self._round(plan))
            except (SparkMirrorError, KafkaError) as error:  # what the others found is worth telling
                board.failures.append(f"round {number} could not be run to its end: {error}")
                break
        board.minutes = self._elapsed_s() / 60
        return board

    @cached_property
    def _spark_cluster(self) -> Mapping[str, str]:
        directory = self._place / "spark"
        directory.mkdir()
        settings = self._cleanup.enter_context(standalone_cluster(directory))
        return {**settings, "spark.cores.max": CORES_OF_A_MIRROR}

    def _plan(self, number: int, timeout_s: float) -> RoundPlan:
        spark, isolation, restless = MODES[(number - 1) % len(MODES)]
        return RoundPlan(
            number=number,
            seed=self._options.seed + number - 1,
            spark=spark,
            isolation=isolation if self._options.transactions else "read_uncommitted",
            faults=self._options.faults_a_round,
            timeout_s=timeout_s,
            kinds=self._options.kinds,
            transactions=self._options.transactions,
            restless=restless,
        )

    def _round(self, plan: RoundPlan) -> RoundResult:
        name = f"round {plan.number} (seed {plan.seed}, {plan.spark}, {plan.isolation})"
        if plan.spark == "standalone":
            self._say(f"{name}: on a Spark cluster")
        spark = self._spark_cluster if plan.spark == "standalone" else {}
        return run_round(self._arena, plan, spark, lambda line: self._say(f"{name}: {line}"))

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._began
