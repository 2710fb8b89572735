"""How cost grows: sizes, what is reckoned from them, the picture, and one real size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench.accounting import find_accounting
from bench.arena import Arena
from bench.growth import Grown, Growth, markdown, measure_growth
from bench.growth_on_paper import made_up_state, on_paper, reckoned
from bench.growth_plot import COLUMNS, plot
from bench.sizes import PAPER_SIZES, REAL_SIZES, Size

from sparkmirror.metrics.collector import MirrorCollector


def grown(size: Size) -> Grown:
    """Costs that grow evenly: 0.1 s, 10 µ of a core and 50 kB for each partition, 200 MB for each task."""
    return Grown(
        size=size,
        copied_s=10 + size.partitions * 0.1,
        cores=0.02 + size.partitions * 1e-5,
        brokers_cores=0.1,
        peak_memory_bytes=500_000_000 + size.tasks * 200_000_000 + size.partitions * 50_000,
        processes=4,
        planned_s=0.01,
        scrape_bytes=1_000,
        scrape_s=0.01,
    )


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10", Size(partitions=10)),
        ("1000/4", Size(partitions=1_000, tasks=4)),
        ("1000/2/2", Size(partitions=1_000, tasks=2, workers=2)),
    ],
)
def test_a_size_is_written_shortly(text: str, size: Size) -> None:
    assert Size.parse(text) == size


@pytest.mark.parametrize("text", ["", "0", "10/0", "many", "10/1/1/1", "10/1/-1"])
def test_no_size(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - argparse words it
        Size.parse(text)


def test_equal_partitions_follow_each_other() -> None:
    """A size with others throws the topics away."""
    partitions = [size.partitions for size in REAL_SIZES]
    assert len({*partitions}) == 1 + sum(one != other for one, other in pairwise(partitions))


def test_a_made_up_state_has_each_partition_in_its_scrape() -> None:
    state = made_up_state(Size(partitions=1_201, flows=2))
    assert [sum(len(topic.partitions) for topic in flow.topics) for flow in state.flows] == [601, 600]
    lags = [line for line in MirrorCollector(lambda: state).text().splitlines() if b"partition_lag_records{" in line]
    assert len(lags) == len({*lags}) == 1_201


def test_a_hundred_thousand_partitions_are_reckoned_from_what_was_measured() -> None:
    real = list(map(grown, REAL_SIZES))
    paper = [on_paper(size) for size in PAPER_SIZES[:1]]
    rows = dict(reckoned(real, paper))
    assert rows["cores for the bytes"] == "14"
    assert rows["cores for the partitions, idle"] == "1.0"
    assert rows["tasks"] == "50"
    assert rows["memory of all processes, GB"] == "16", "0.5 and 50 times 0.2, and 50 kB for each partition"
    assert rows["start to all copied, with one record in each partition, s"] == "10,010"
    assert reckoned(real[:1], paper) == []


def test_the_tables_tell_what_could_not_be_measured() -> None:
    size = Size(partitions=10_000)
    text = markdown(Growth(real=[grown(Size(partitions=10))], failures=[(size, "sparkmirror ended")]))
    assert "| 10 | 1 | 1 | local | 11.0 |" in text
    assert "| 10,000 | 1 | 1 | local | sparkmirror ended |" in text
    assert "on paper" not in text
    tables = [table.splitlines() for table in text.split("\n\n")]
    assert all(len({row.count("|") for row in table}) == 1 for table in tables)


def test_the_picture_has_a_dot_for_each_size_and_figure() -> None:
    width, dots = drawn(REAL_SIZES)
    by_partitions, by_tasks, by_workers = 4, 4, 3
    assert len(dots) == len(COLUMNS) * (by_partitions + by_tasks + by_workers)
    assert all(0 < x < width for x in dots)
    assert drawn([])[1] == []


def drawn(sizes: Sequence[Size]) -> tuple[float, list[float]]:
    """The picture's width, and where its dots are from left to right."""
    picture = ElementTree.fromstring(plot([asdict(grown(size)) for size in sizes]))  # noqa: S314 - our own
    dots = picture.findall(".//{http://www.w3.org/2000/svg}circle")
    return float(picture.attrib["width"]), [float(dot.attrib["cx"]) for dot in dots]


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.full
@pytest.mark.alone
def test_a_real_size(tmp_path: Path) -> None:
    sizes = [Size(partitions=23, tasks=2), Size(partitions=23, tasks=2, workers=2)]
    with Arena(tmp_path, find_accounting(), 0.01, 5.0) as arena:
        growth = measure_growth(arena, sizes, print)
    assert growth.failures == []
    assert [one.size for one in growth.real] == sizes
    for one in growth.real:
        assert 0 < one.copied_s < 120
        assert 0 < one.cores < 2
        assert one.peak_memory_bytes > 200_000_000
        assert one.scrape_bytes > 5_000
    assert growth.real[1].processes > growth.real[0].processes
