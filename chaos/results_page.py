"""The chaos section of docs/results.md, drawn from a run's JSON.

`python -m chaos.results_page` draws the section again from docs/chaos.json.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from chaos.checker import OF_THE_MIRROR, Anomaly

PAGE, JSON = "results.md", "chaos.json"
HEADING = "## Chaos"
DOCS = Path(__file__).resolve().parent.parent / "docs"
_RECOVERY = "recovery p50 / max, s"
_FAULT = ["fault", "times", _RECOVERY]
_ROUND = [
    *("round", "seed", "Spark", "isolation", "plans", "faults", "records", *OF_THE_MIRROR, Anomaly.UNSEEN),
    *("worst stall, s", _RECOVERY, "drained, s", "mirror starts"),
]
_SECTION = re.compile(rf"^{HEADING}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)

Board = Mapping[str, Any]
"""A run's JSON, as `Scoreboard.as_json` makes it."""


def with_section(page: str, section: str) -> str:
    """Return a page with its chaos section replaced; at its end if it has none."""
    if not _SECTION.search(page):
        return f"{page.rstrip()}\n\n{section}".lstrip()
    return _SECTION.sub(lambda _: section + "\n", page).rstrip() + "\n"


def section(board: Board) -> str:
    """Return the section of a run."""
    lines = [
        HEADING,
        "",
        *_wrapped(f"**{board['summary']}.**"),
        "",
        f"{board['date']}; {board['brokers']} brokers a side, Kafka {board['kafka']}, PySpark {board['pyspark']}, "
        f"Python {board['python']}, {board['cores']} cores for all of it;",
        f"{board['minutes']:.0f} minutes; at commit {board['commit']}. "
        "[Words and method](../chaos/README.md). To repeat it:",
        f'`make chaos ARGS="{board["arguments"]}"`. The same seed draws the same faults, victims and loads.',
        "",
        *_table(_ROUND, [_row(one) for one in board["rounds"]]),
        "",
        *_table(_FAULT, [*_fault_rows(board), ["**all**", f"**{_times(board)}**", _spread(_recoveries(board))]]),
        "",
        *(line for remark in _remarks(board) for line in _wrapped(remark)),
    ]
    return "\n".join(lines) + "\n"


def _row(one: Board) -> list[str]:
    return [
        *(str(one["number"]), str(one["seed"]), one["spark"], one["isolation"]),
        *("restless" if one["restless"] else "steady", str(len(one["faults"])), f"{one['records']:,}"),
        *(str(one["anomalies"][anomaly]) for anomaly in (*OF_THE_MIRROR, Anomaly.UNSEEN)),
        f"{one['worst_stall_s']:.1f}",
        _spread([fault["recovered_in_s"] for fault in one["faults"]]),
        "never" if one["drained_s"] is None else f"{one['drained_s']:.1f}",
        str(one["mirror_starts"]),
    ]


def _fault_rows(board: Board) -> Iterator[list[str]]:
    for kind, times in sorted(board["faults"].items()):
        yield [kind, str(times), _spread(_recoveries(board, kind))]


def _times(board: Board) -> int:
    return int(sum(board["faults"].values()))


def _recoveries(board: Board, kind: str | None = None) -> list[float | None]:
    return [
        fault["recovered_in_s"] for one in board["rounds"] for fault in one["faults"] if kind in (None, fault["kind"])
    ]


def _remarks(board: Board) -> Iterator[str]:
    rounds = board["rounds"]
    yield from (f"- {failure}" for failure in board["failures"])
    scrapes, updates, judged = (
        sum(one["seen"].get(what, 0) for one in rounds) for what in ("scrapes", "updates", "judged")
    )
    if rounds:
        yield f"- Meanwhile metrics were scraped {scrapes:,} times, and the page sent {updates:,} events."
    if judged:
        yield f"- {judged:,} times it was said that all had been copied, and the high watermarks were looked at."
    if unguarded := sum(one["faults_with_expired_producer_state"] for one in rounds):
        yield (
            f"- Expired producer state: {unguarded} of the {_times(board)} faults came while the target had forgotten "
            "who wrote the old records."
        )
    if disowned := sum(one["disowned_by_the_source"] for one in rounds):
        kept = sum(one["copied_and_taken_back"] for one in rounds)
        yield (
            f"- The source took back {disowned:,} records that it had acknowledged. {kept:,} records in the copy "
            "are what it took back after they were copied: exactly those that the loss ledger names."
        )
    for one in rounds:
        yield from _remarks_of(one)


def _remarks_of(one: Board) -> Iterator[str]:
    name, seen = f"Round {one['number']}", one["seen"]
    if copied := [topic.partition(": ")[0] for topic in one["copied_anew"]]:
        yield f"- {name}, copied again after a lost segments topic: {', '.join(copied)}."
    if one["moves"]:
        yield f"- {name}: plans moved partitions within a running round {one['moves']} times."
    yield from (f"- {name}: {what}." for what in one.get("wrong", ()))
    told = (*seen["falls"], *seen["unreadable"], *seen.get("false", {}).get("first", ()))
    yield from (f"- {name}, told wrong: {words}." for words in told)
    yield from (f"- {name}, not done: {what}." for what in one["not_done"])
    yield from (f"- {name}: {example}" for example in one["examples"])


def _wrapped(text: str) -> list[str]:
    indent = "  " if text.startswith("- ") else ""
    return textwrap.wrap(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *rows)]


def _spread(recoveries: Sequence[float | None]) -> str:
    times = [time for time in recoveries if time is not None]
    never = f", {len(recoveries) - len(times)} never" if len(times) < len(recoveries) else ""
    return f"{median(times):.1f} / {max(times):.1f}{never}" if times else never.lstrip(", ")


def write(directory: Path, board: Board) -> None:
    """Write a run's JSON, and its section into the directory's page of results."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / JSON).write_text(json.dumps(board, indent=1) + "\n", "utf-8")
    page = directory / PAGE
    page.write_text(with_section(page.read_text("utf-8") if page.exists() else "", section(board)), "utf-8")


if __name__ == "__main__":
    write(DOCS, json.loads((DOCS / JSON).read_text("utf-8")))
