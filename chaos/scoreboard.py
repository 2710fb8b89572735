"""The scoreboard: what was broken, what was found, how long it took. For people in Markdown, for programs in JSON."""

from __future__ import annotations

import json
import platform
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from pyspark import __version__ as spark_version

from chaos.checker import OF_THE_MIRROR, Anomaly
from chaos.planting import Proof
from chaos.round import RoundResult
from sparkmirror.demo.jars import BROKER_VERSION

_RECOVERY = "recovery p50 / max, s"
_FAULT = ["fault", "times", _RECOVERY]
_ROUND = [
    *("round", "seed", "Spark", "isolation", "plans", "faults", "records", *OF_THE_MIRROR, Anomaly.UNSEEN),
    *("worst stall, s", _RECOVERY, "drained, s", "mirror starts"),
]
_LONG_STALL_S = 3.0
MARKDOWN, JSON = "scoreboard.md", "scoreboard.json"


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
        """Write both files."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / MARKDOWN).write_text(self.markdown())
        (directory / JSON).write_text(json.dumps(self.as_json(), indent=1) + "\n")

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
        """Return the page."""
        faults = self.faults()
        return "\n".join(
            [
                "# Scoreboard",
                "",
                f"**{self.summary()}.**",
                "",
                f"{date.today()}; {self.brokers} brokers a side, Kafka {BROKER_VERSION}, PySpark {spark_version}, "
                f"Python {platform.python_version()}, {psutil.cpu_count()} cores for all of it; "
                f"{self.minutes:.0f} minutes; at commit {_commit()}. Words and method: [chaos.md](chaos.md).",
                "",
                f'To repeat it: `make chaos ARGS="{self.arguments}"`. The same seed draws the same faults, victims and '
                "loads in the same order.",
                "",
                *_table(_ROUND, [_row(result) for result in self.rounds]),
                "",
                *_table(
                    _FAULT,
                    [
                        *(
                            [kind, str(times), _spread(self._recoveries(kind))]
                            for kind, times in sorted(faults.items())
                        ),
                        ["**all**", f"**{faults.total()}**", _spread(self._recoveries())],
                    ],
                ),
                "",
                *self._remarks(),
            ]
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {
            "summary": self.summary(),
            "good": self.good,
            "arguments": self.arguments,
            "date": str(date.today()),
            "minutes": round(self.minutes, 1),
            "kafka": BROKER_VERSION,
            "pyspark": spark_version,
            "planted": {proof.name: dict(proof.findings.counts) for proof in self.proofs},
            "faults": dict(sorted(self.faults().items())),
            "failures": self.failures,
            "rounds": [_round_json(result) for result in self.rounds],
        }

    def _recoveries(self, kind: str | None = None) -> list[float | None]:
        return [
            recovery
            for result in self.rounds
            for fault, recovery in zip(result.happened, result.recoveries, strict=True)
            if kind in (None, fault.kind)
        ]

    def _remarks(self) -> list[str]:
        lines = [f"- {failure}" for failure in self.failures]
        if self.rounds:
            scrapes, updates, judged = (
                sum(getattr(r.seen, what) for r in self.rounds) for what in ("scrapes", "updates", "judged")
            )
            lines.append(f"- Meanwhile metrics were scraped {scrapes:,} times, and the page sent {updates:,} events.")
            lines.append(
                f"- {judged:,} times it was said that something had been copied to its end, and the high watermarks "
                "were looked at."
            )
        if unguarded := sum(result.unguarded for result in self.rounds):
            lines.append(
                f"- Expired producer state: {unguarded} of the {self.faults().total()} faults came while the target "
                "had forgotten who wrote the old records."
            )
        if disowned := sum(result.findings.disowned for result in self.rounds):
            kept = sum(result.findings.taken_back for result in self.rounds)
            lines.append(
                f"- The source took back {disowned:,} records that it had acknowledged. {kept:,} records in the copy "
                "are what it took back after they were copied: exactly those that the loss ledger names."
            )
        for result in self.rounds:
            name = f"Round {result.plan.number}"
            lines += [f"- {name}, copied anew after a lost segments topic: {topic}." for topic in result.copied_anew]
            if result.moves:
                lines.append(f"- {name}: plans moved partitions within a running round {result.moves} times.")
            lines += [f"- {name}: {what}." for what in result.wrong]
            seen = (*result.seen.falls, *result.seen.unreadable, *result.seen.false.first)
            lines += [f"- {name}, told wrong: {words}." for words in seen]
            lines += [f"- {name}, not done: {what}." for what in result.skipped]
            lines += [f"- {name}: {example}" for example in result.findings.examples]
        return lines


def _row(result: RoundResult) -> list[str]:
    plan, findings = result.plan, result.findings
    return [
        *(str(plan.number), str(plan.seed), plan.spark, plan.isolation, "restless" if plan.restless else "steady"),
        *(str(len(result.happened)), f"{findings.records:,}"),
        *(str(findings.counts[anomaly]) for anomaly in (*OF_THE_MIRROR, Anomaly.UNSEEN)),
        f"{result.worst_stall_s:.1f}",
        _spread(result.recoveries),
        "never" if result.drained_s is None else f"{result.drained_s:.1f}",
        str(result.mirror_starts),
    ]


def _commit() -> str:
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    ).stdout.strip()


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _spread(recoveries: Sequence[float | None]) -> str:
    times = [time for time in recoveries if time is not None]
    never = f", {len(recoveries) - len(times)} never" if len(times) < len(recoveries) else ""
    return f"{median(times):.1f} / {max(times):.1f}{never}" if times else never.lstrip(", ")


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
