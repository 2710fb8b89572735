"""A run's results: a table of rounds, and pauses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaos.switches.plan import Plan
from chaos.switches.round import Result

_COLUMNS = (
    "round",
    "what",
    "records",
    "reads",
    "kills",
    "stragglers copied / named",
    "tool",
    "producers' pause",
    "groups' pause",
    "wrong",
)


@dataclass(slots=True)
class Board:
    """All rounds of a run."""

    seed: int
    version: str
    results: list[Result] = field(default_factory=list)
    skipped: list[Plan] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """True if there was a round, all were run, and nothing was wrong."""
        return bool(self.results) and not self.skipped and not any(result.wrong for result in self.results)

    def markdown(self) -> str:
        """Return the table, and the pauses of all rounds together."""
        rows = [_COLUMNS, tuple("---" for _ in _COLUMNS), *map(_cells, self.results)]
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        records, reads = (sum(getattr(each, what) for each in self.results) for what in ("records", "reads"))
        wrong = sum(bool(each.wrong) for each in self.results)
        lines += [
            "",
            f"Seed {self.seed}, source Kafka {self.version}: {len(self.results)} rounds, {records:,} records,"
            f" {reads:,} read by groups; something was wrong in {wrong} rounds, {len(self.skipped)} were left out.",
            *(f"- {what}: {shown}" for what, shown in self._pauses()),
        ]
        for result in self.results:
            lines += [f"- round {result.plan.number}: {line}" for line in result.wrong]
        return "\n".join(lines)

    def write(self, directory: Path) -> None:
        """Write `switches.json`."""
        directory.mkdir(parents=True, exist_ok=True)
        told = {
            "seed": self.seed,
            "source": self.version,
            "rounds": [
                {
                    "round": each.plan.number,
                    "what": each.plan.words,
                    "records": each.records,
                    "reads": each.reads,
                    "kills": each.kills,
                    "copied": each.copied,
                    "named": each.named,
                    "tool_s": each.own_s,
                    "producers_s": [pause.seconds for pause in each.pauses if not pause.is_group],
                    "groups_s": [pause.seconds for pause in each.pauses if pause.is_group],
                    "wrong": each.wrong,
                    "said": each.said,
                }
                for each in self.results
            ],
        }
        (directory / "switches.json").write_text(json.dumps(told, indent=1) + "\n")

    def _pauses(self) -> Iterable[tuple[str, str]]:
        plain = [each for each in self.results if not each.kills and not each.wrong]
        yield "the tool's own time", _percentiles([s for each in plain for s in each.own_s])
        for is_group, what in ((False, "producers' pause"), (True, "groups' pause")):
            found = [pause.seconds for each in plain for pause in each.pauses if pause.is_group is is_group]
            yield what, _percentiles(found)


def _percentiles(seconds: Sequence[float]) -> str:
    if not seconds:
        return "-"
    ordered = sorted(seconds)
    p50, p99 = (ordered[min(int(len(ordered) * share), len(ordered) - 1)] for share in (0.5, 0.99))
    return f"p50 {p50:.2f} s, p99 {p99:.2f} s, max {ordered[-1]:.2f} s ({len(ordered)})"


def _cells(result: Result) -> tuple[str, ...]:
    def longest(seconds: Iterable[float]) -> str:
        return f"{max(seconds, default=0.0):.2f} s"

    return (
        str(result.plan.number),
        result.plan.words,
        f"{result.records:,}",
        f"{result.reads:,}",
        str(result.kills),
        f"{result.copied} / {result.named}",
        longest(result.own_s),
        longest(pause.seconds for pause in result.pauses if not pause.is_group),
        longest(pause.seconds for pause in result.pauses if pause.is_group),
        str(len(result.wrong)) if result.wrong else "-",
    )
