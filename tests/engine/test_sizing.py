"""The sizing formula: its figures are the bench's newest, it promises no more than was measured, and it is monotone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.mirror.engine.sizing import (
    ANOTHER_CODEC,
    FAR_MB,
    MEASURED,
    PROCESS_CORES,
    TLS,
    USED_SHARE,
    Batches,
    FarSide,
    Load,
    Measured,
    cluster_machines,
    executors,
    local_machines,
    sized,
)
from sparkmirror.pump.window import SHORT_S

RESULTS = Path(__file__).parents[2] / "docs" / "results.md"


def newest() -> str:
    """The results of the newest run, and of the newest with long lines."""
    return RESULTS.read_text().partition("## Against MirrorMaker 2")[2].partition("\n## The fast machine")[0]


def rows(columns: int) -> Iterator[list[str]]:
    """The rows of the tables that have so many columns; sparkmirror's figure, right of a slash."""
    for line in newest().splitlines():
        cells = [cell.strip().rpartition(" / ")[2] for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == columns:
            yield [cell.strip("`").replace(",", "") for cell in cells]


THROUGHPUT = {row[0]: row for row in rows(9)}
PACED = {row[0]: row for row in rows(7)}
FAR = [row for row in rows(8) if not row[2]]
"""Of lines whose bandwidth is not limited: side, round trip, line, tasks, MB/s, times, CPU s/GB, MB."""

ALONE = [row for row in FAR if row[1] != "0" and row[3] == "1"]
"""Of these those with a distance and one task: more tasks slow each other on two cores."""


def test_the_tables_are_read() -> None:
    assert (len(THROUGHPUT), len(PACED), len(FAR)) == (8, 4, 16)
    assert "commit 9ff50dc4" in newest()


@pytest.mark.parametrize("measured", [*MEASURED.values(), TLS, ANOTHER_CODEC], ids=lambda each: each.workload)
def test_the_figures_are_the_newest(measured: Measured) -> None:
    row = THROUGHPUT[measured.workload]
    assert (measured.mb_per_s, measured.cpu_s_per_gb) == (float(row[2]), float(row[3]))


def test_a_process_with_few_records_is_the_newest() -> None:
    assert round(float(PACED["latency"][5]) / 100, 2) == PROCESS_CORES


@pytest.mark.parametrize("row", ALONE, ids=lambda row: "-".join(row[:4]))
def test_no_more_is_promised_over_a_distance_than_was_measured(row: list[str]) -> None:
    side, round_trip = FarSide(row[0].removeprefix("far-")), float(row[1])
    sizing = sized(Load(mb_per_s=1, partitions=1, round_trip_ms=round_trip, far=side))
    assert sizing.reach <= float(row[4])
    near = next(float(each[6]) for each in FAR if each[0] == row[0] and each[1] == "0" and each[3] == "1")
    ((_, extra),) = sizing.extras
    assert near + extra >= float(row[6])


def test_no_measured_peak_is_above_the_memory() -> None:
    peaks = [(1, row[8]) for row in THROUGHPUT.values()] + [(1, row[6]) for row in PACED.values()]
    for tasks, peak in [*peaks, *((int(row[3]), row[7]) for row in FAR)]:
        partitions = (tasks - 1) * 2_000 + 1
        assert sized(Load(mb_per_s=1, partitions=partitions)).memory_mb >= float(peak), (tasks, peak)


def test_a_line_is_long_when_the_pump_says_so() -> None:
    near, far = (
        sized(Load(mb_per_s=1, partitions=1, far=FarSide.TARGET, round_trip_ms=1000 * SHORT_S - less))
        for less in (0.1, 0)
    )
    assert not near.extras
    assert far.extras


# --- properties ---------------------------------------------------------------------------------------

LOADS = st.builds(
    Load,
    mb_per_s=st.floats(0.001, 100_000),
    partitions=st.integers(1, 1_000_000),
    history_gb=st.floats(0, 1e6),
    within_hours=st.floats(0.01, 1e4),
    batches=st.sampled_from(Batches),
    tls=st.booleans(),
    another_codec=st.booleans(),
    round_trip_ms=st.floats(0, 60_000),
    far=st.sampled_from(FarSide),
)
MORE = st.floats(0, 1e5)


@given(LOADS, MORE, MORE, MORE, st.integers(0, 1_000_000))
def test_more_needs_no_less(load: Load, rate: float, history: float, distance: float, partitions: int) -> None:
    least = sized(load)
    for greater in (
        replace(load, mb_per_s=load.mb_per_s + rate),
        replace(load, history_gb=load.history_gb + history),
        replace(load, round_trip_ms=load.round_trip_ms + distance),
        replace(load, partitions=load.partitions + partitions),
        replace(load, tls=True),
        replace(load, another_codec=True),
    ):
        most = sized(greater)
        assert most.tasks >= least.tasks
        assert most.cpu >= least.cpu
        assert most.memory_mb >= least.memory_mb
        assert executors(most, 2).count >= executors(least, 2).count


@given(LOADS, st.integers(1, 16))
def test_there_are_never_fewer_tasks_than_needed(load: Load, cores: int) -> None:
    sizing = sized(load)
    assert sizing.tasks * sizing.task_mb_per_s >= sizing.rate * (1 - 1e-9)
    assert sizing.tasks * 2_000 >= load.partitions
    assert sizing.tasks >= 1
    assert sizing.tasks * USED_SHARE >= sizing.cores * (1 - 1e-9)
    chosen = executors(sizing, cores)
    assert chosen.count * chosen.cores >= sizing.tasks > (chosen.count - 1) * chosen.cores
    assert chosen.overhead_mib >= 220 * chosen.cores


@given(LOADS)
def test_no_task_is_more_than_needed(load: Load) -> None:
    sizing = sized(load)
    fewer = sizing.tasks - 1
    assert not fewer or fewer * sizing.task_mb_per_s < sizing.rate * (1 + 1e-9) or fewer * 2_000 < load.partitions


@given(LOADS, st.integers(1, 16))
def test_machines_hold_what_they_are_for(load: Load, cores: int) -> None:
    sizing = sized(load)
    chosen = executors(sizing, cores)
    local = local_machines(sizing)
    assert local is None or (local.vcpus >= sizing.cpu and local.gb * 1000 >= sizing.memory_mb)
    assert local is not None or sizing.cpu > 8 or sizing.memory_mb > 60_000
    workers = [each for each in cluster_machines(chosen) if "workers" in each.name]
    assert [each.count for each in workers] == [chosen.count]
    assert all(each.vcpus >= chosen.cores for each in workers)


@pytest.mark.parametrize("far", FarSide)
def test_without_distance_both_sides_are_alike(far: FarSide) -> None:
    assert sized(Load(mb_per_s=100, partitions=10, far=far)).reach == MEASURED[Batches.WHOLE].mb_per_s
    assert FAR_MB[FarSide.SOURCE] > FAR_MB[FarSide.TARGET]


def test_an_example_by_hand() -> None:
    """155 MB/s over TLS: 0.155 GB/s, 5.81 CPU seconds each."""
    sizing = sized(Load(mb_per_s=155, partitions=12, tls=True))
    assert math.isclose(sizing.cores, 0.90055)
    assert sizing.tasks == 2
    assert sizing.memory_mb == 850
    machines = local_machines(sizing)
    assert machines is not None
    assert re.fullmatch(r"144\.16", f"{machines.dollars_a_month:.2f}")
