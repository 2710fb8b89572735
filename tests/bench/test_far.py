"""Clusters that are far apart: which lines are played, the table, and one real round over a line."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from bench.accounting import find_accounting
from bench.arena import Arena
from bench.contenders import CONTENDERS, Route, SparkMirror, Tuning
from bench.contents import Verdict
from bench.contest import Contest, Plan
from bench.copying import CopyResult
from bench.far import NARROW, ROUND_TRIPS_MS, distances, markdown
from bench.report import Chapter, Entry
from bench.workloads import WORKLOADS
from lab.distance import Distance

THEIRS, OURS = "MirrorMaker 2", "sparkmirror"


def result(mb_per_s: float, verdict: Verdict = Verdict("every byte of 3 batches")) -> CopyResult:  # noqa: B008
    figures = {field.name: 0.5 for field in fields(CopyResult)}
    return CopyResult(**{**figures, "mb_per_s": mb_per_s, "verdict": verdict})  # type: ignore[arg-type]


def chapter(line: Distance | None, tasks: int, theirs: list[CopyResult], ours: list[CopyResult]) -> Chapter:
    entries = {name: Entry(Tuning(tasks), {}, rounds=[*results]) for name, results in ((THEIRS, theirs), (OURS, ours))}
    return Chapter(WORKLOADS["far-source"], None, entries, line=line)


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_lines_that_are_played() -> None:
    assert distances((), ()) == [*map(Distance, ROUND_TRIPS_MS), NARROW]
    assert distances((40.0, 100.0), ()) == [Distance(40), Distance(100)]
    assert distances((), (50.0,)) == [NARROW]
    assert distances((40.0,), (0.0, 10.0)) == [Distance(40), Distance(40, bytes_per_s=10e6)]


def test_the_table_compares_with_the_same_tasks_without_distance() -> None:
    chapters = [
        chapter(Distance(), 1, [result(100.0)], [result(400.0)]),
        chapter(Distance(), 4, [result(200.0)], [result(500.0)]),
        chapter(Distance(100), 4, [result(20.0), result(60.0), result(50.0)], [result(250.0)]),
        chapter(NARROW, 4, [], [result(49.0)]),
        chapter(None, 4, [result(1.0)], [result(1.0)]),
    ]
    head, _, *rows = markdown(chapters).splitlines()
    assert len(rows) == 4
    assert {len(cells(row)) for row in rows} == {len(cells(head))}
    assert cells(rows[0])[:7] == ["`far-source`", "0", "", "1", "100.0 / 400.0", "4.0", ""]
    assert cells(rows[2])[:7] == ["`far-source`", "100", "", "4", "50.0 / 250.0", "5.0", "25% / 50%"]
    assert cells(rows[3])[:7] == ["`far-source`", "100", "50", "4", "failed / 49.0", "", "- / 10%"]
    assert cells(rows[3])[-1] == "- / equal"


def test_the_table_says_whose_copy_is_wrong_or_was_not_looked_at() -> None:
    wrong, unseen = Verdict("every byte", "offset 7 differs"), Verdict("nothing, as it was broken off")
    (row,) = markdown(
        [chapter(Distance(40), 1, [result(1.0, unseen)], [result(1.0), result(1.0, wrong)])]
    ).splitlines()[2:]
    assert cells(row)[-1] == "broken off / DIFFERENT"
    assert markdown([chapter(None, 1, [], [])]) == ""


@pytest.mark.full
@pytest.mark.broker
@pytest.mark.spark
def test_a_round_over_a_line(tmp_path: Path) -> None:
    said: list[str] = []
    plan = Plan(
        contenders=[contender for contender in CONTENDERS if isinstance(contender, SparkMirror)],
        gigabytes=0.4,
        rounds=1,
        partitions=4,
        latency_s=None,
        sweep=False,
        verify=False,
        distances=[Distance(60)],
        far_tasks=[1],
    )
    with Arena(tmp_path, find_accounting(), 0.4, 0.0, has_lines=True) as arena:
        route = Route.through(arena, WORKLOADS["far-target"], "topic", "1")
        assert (route.source_servers, route.target_servers) == (arena.source.servers, arena.target.far_servers)
        (done,) = Contest(arena, plan, said.append).run(WORKLOADS["far-source"])
        assert done.data is not None
        assert arena.source.line.traffic().passed > done.data.wire_bytes
        assert arena.target.line.traffic().passed == 0
        assert arena.source.line.distance == done.line == Distance(60)
    (copied,) = done.entries[OURS].rounds
    assert isinstance(copied, CopyResult)
    assert done.good, said
    assert copied.verdict.compared.startswith("every byte")
    assert copied.lines_cpu_s_per_gb > 0
