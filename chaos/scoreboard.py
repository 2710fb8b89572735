"""The scoreboard: what was broken, what was found, how long it took. `results_page` draws it for people."""

from __future__ import annotations

import platform
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import psutil
from pyspark import __version__ as spark_version

from chaos.checker import OF_THE_MIRROR, Anomaly
from chaos.planting import Proof
from chaos.results_page import section, write
from chaos.round import RoundResult
from sparkmirror.demo.jars import BROKER_VERSION

_LONG_STALL_S = 3.0


@dataclass(slots=True)
class Scoreboard:
    """All that a run has to say."""

    arguments: str
    brokers: int
    proofs: Sequence[Proof]
    rounds: list[RoundResult] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Rounds that could not be run to their end, and why."""
    minutes: float = 0.0

    @property
    def good(self) -> bool:
        """Whether the checker is proven, and found nothing, and every round ended with everything copied."""
        complete = bool(self.rounds) and not self.failures
        return complete and all(p.caught for p in self.proofs) and all(r.good for r in self.rounds)

    def count(self, anomaly: Anomaly) -> int:
        return sum(result.findings.counts[anomaly] for result in self.rounds)

    def faults(self) -> Counter[str]:
        return Counter(fault.kind for result in self.rounds for fault in result.happened)

    def write(self, directory: Path) -> None:
        """Write the run's JSON, and its section of the page of results."""
        write(directory, self.as_json())

    def summary(self) -> str:
        """Return it in one line."""
        found = ", ".join(f"{self.count(anomaly)} {anomaly}" for anomaly in OF_THE_MIRROR)
        records = sum(result.findings.records for result in self.rounds)
        false = sum(result.false.count + result.seen.false.count for result in self.rounds)
        found += f", {false} false words, {sum(len(result.silences) for result in self.rounds)} silences"
        return f"{found} of {records:,} records over {self.faults().total()} faults; {self.proven()}"

    def proven(self) -> str:
        planted = [proof for proof in self.proofs if proof.planted]
        faithful = all(proof.caught for proof in self.proofs if not proof.planted)
        return (
            f"checker proven: {sum(proof.caught for proof in planted)} of {len(planted)} planted anomalies caught, "
            f"{'nothing' if faithful else 'SOMETHING'} found in faithful copies"
        )

    def markdown(self) -> str:
        """Return the section of docs/results.md."""
        return section(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            "summary": self.summary(),
            "good": self.good,
            "arguments": self.arguments,
            "date": str(date.today()),
            "minutes": round(self.minutes, 1),
            "commit": _commit(),
            "brokers": self.brokers,
            "cores": psutil.cpu_count(),
            "kafka": BROKER_VERSION,
            "pyspark": spark_version,
            "python": platform.python_version(),
            "planted": {proof.name: dict(proof.findings.counts) for proof in self.proofs},
            "faults": dict(sorted(self.faults().items())),
            "failures": self.failures,
            "rounds": [_round_json(result) for result in self.rounds],
        }


def _commit() -> str:
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    ).stdout.strip()


def _round_json(result: RoundResult) -> dict[str, Any]:
    plan = result.plan
    first = result.happened[0].began if result.happened else 0.0
    return {
        "number": plan.number,
        "seed": plan.seed,
        "spark": plan.spark,
        "isolation": plan.isolation,
        "transactions": plan.transactions,
        "restless": plan.restless,
        "moves": result.moves,
        "records": result.findings.records,
        "anomalies": {anomaly: result.findings.counts[anomaly] for anomaly in Anomaly},
        "examples": result.findings.examples,
        "faults": [
            {
                "kind": fault.kind,
                "victim": fault.victim,
                "began_s": round(fault.began - first, 1),
                "ended_s": round(fault.ended - first, 1),
                "recovered_in_s": None if recovery is None else round(recovery, 1),
            }
            for fault, recovery in zip(result.happened, result.recoveries, strict=True)
        ],
        "not_done": result.skipped,
        "disowned_by_the_source": result.findings.disowned,
        "copied_and_taken_back": result.findings.taken_back,
        "copied_anew": result.copied_anew,
        "silences": result.silences,
        "false_words": result.false.count + result.seen.false.count,
        "wrong": result.wrong,
        "seen": asdict(result.seen),
        "worst_stall_s": round(result.worst_stall_s, 1),
        "stalls": [
            {"began_s": round(stall.began - first, 1), "seconds": round(stall.seconds, 1)}
            for stall in result.stalls
            if stall.seconds >= _LONG_STALL_S
        ],
        "drained_s": None if result.drained_s is None else round(result.drained_s, 1),
        "mirror_starts": result.mirror_starts,
        "mirror_exits": {str(code): times for code, times in result.mirror_exits.items()},
        "orphans": result.orphans,
        "faults_with_expired_producer_state": result.unguarded,
        "log_end": result.log_end,
    }
