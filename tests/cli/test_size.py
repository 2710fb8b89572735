"""`sparkmirror size`: its arithmetic, its errors, and the page whose examples and tables it computes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.in_process import sparkmirror

from sparkmirror.mirror.engine.sizing import (
    ANOTHER_CODEC,
    FAR_MB,
    FAR_SOURCE_CPU_S_PER_GB_MS,
    FAR_TARGET_CPU_S_PER_GB,
    MEASURED,
    PROCESS_CORES,
    PROCESS_MB,
    TASK_MB,
    TASK_PARTITIONS,
    TLS,
    USED_SHARE,
    Batches,
    Load,
    executors,
    sized,
)

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "planning.md"
EXAMPLE = re.compile(r"^```\n\$ sparkmirror (size .*)\n((?:.*\n)*?)^```$", re.MULTILINE)


def test_the_pages_examples_are_what_it_prints() -> None:
    examples = EXAMPLE.findall(PAGE.read_text())
    assert len(examples) == 2
    for command, shown in examples:
        assert shown == sparkmirror(*command.split()).stdout, command


def costs() -> Iterator[str]:
    """The table of costs, as the page has it."""
    whole = MEASURED[Batches.WHOLE]
    yield "| what is copied | option | adds to the cost, CPU s/GB | cost | near, MB/s | one task carries, MB/s |"
    yield "|---|---|---|---|---|---|"
    for words, option, measured in (
        ("batches as producers make them", "", whole),
        ("records of 100 B", "`--batches small`", MEASURED[Batches.SMALL]),
        ("transactions, `read_committed`", "`--batches transactional`", MEASURED[Batches.TRANSACTIONAL]),
        ("batches of one record each, merged", "`--batches single`", MEASURED[Batches.SINGLE]),
        ("compacted, every batch with gaps", "`--batches compacted`", MEASURED[Batches.COMPACTED]),
        ("TLS on both sides", "`--tls`", TLS),
        ("recompressed (`compression.type`)", "`--another-codec`", ANOTHER_CODEC),
    ):
        added, cost, near = measured.cpu_s_per_gb - whole.cpu_s_per_gb, measured.cpu_s_per_gb, measured.mb_per_s
        carries = min(near, whole.mb_per_s, USED_SHARE * 1000 / cost)
        adds = f"{added:.2f}" if added else ""
        yield f"| {words} | {option} | {adds} | {cost:.2f} | {near} | {carries:.0f} |"
    yield f"| a far source | `--round-trip` | {FAR_SOURCE_CPU_S_PER_GB_MS} for each ms | | | |"
    yield f"| a far target, RTT of 10 ms or more | `--round-trip`, `--far target` | {FAR_TARGET_CPU_S_PER_GB} | | | |"


def rates() -> Iterator[str]:
    """The table of rates, as the page has it."""
    columns = [(50, 100), (250, 10), (250, 1_000), (1_000, 10_000)]
    yield "| over TLS | " + " | ".join(f"{rate:,} MB/s, {count:,} partitions" for rate, count in columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for words, batches, another_codec in (
        ("batches as producers make them", Batches.WHOLE, False),
        ("batches of one record each", Batches.SINGLE, False),
        ("recompressed at the target", Batches.WHOLE, True),
        ("compacted, every batch with gaps", Batches.COMPACTED, False),
    ):
        cells = []
        for rate, count in columns:
            load = Load(mb_per_s=rate, partitions=count, tls=True, batches=batches, another_codec=another_codec)
            sizing = sized(load)
            too_few = "" if sizing.partitions_suffice else ": too few partitions"
            cells.append(f"{executors(sizing, 1).count}{too_few}")
        yield f"| {words} | " + " | ".join(cells) + " |"


def test_the_pages_formula_has_the_numbers() -> None:
    formula = PAGE.read_text().partition("## The formula")[2].partition("```\n")[2].partition("```")[0]
    numbers = set(re.findall(r"\d[\d.,]*\d|\d", formula))
    assert numbers >= {f"{MEASURED[Batches.WHOLE].cpu_s_per_gb:.2f}", *(f"{way:g}" for way in FAR_MB.values())}
    assert numbers >= {str(USED_SHARE), str(PROCESS_CORES), str(PROCESS_MB), str(TASK_MB), f"{TASK_PARTITIONS:,}"}


@pytest.mark.parametrize("table", [costs, rates])
def test_the_pages_tables_are_computed(table: Callable[[], Iterator[str]]) -> None:
    text = "\n".join(table())
    assert text in PAGE.read_text(), f"{PAGE.name} should have:\n{text}"


def test_no_other_page_repeats_a_figure() -> None:
    """Of memory, cost or reach: they say what a machine of some size is good for, and lead here."""
    told = re.compile(r"220 MB|360 MB|410 MB|\d MB/s a (?:core|task)|CPU s(?:econds)? a? ?GB instead of")
    names = ("deploy/aws.md", "deploy/kubernetes.md", "spark.md", "faq.md")
    assert [name for name in names if told.search((DOCS / name).read_text())] == []
    assert [name for name in names if PAGE.name not in (DOCS / name).read_text()] == []


def test_records_are_a_rate() -> None:
    by_bytes = sparkmirror("size", "--rate", "32M", "-o", "json")
    by_records = sparkmirror("size", "--records", "50K", "--record-size", "640", "-o", "json")
    assert json.loads(by_bytes.stdout) == json.loads(by_records.stdout)
    assert json.loads(by_bytes.stdout)["rate_mb_s"] == 32.0


def test_too_few_partitions_are_told() -> None:
    told = sparkmirror("size", "--rate", "1G", "--partitions", "8", "--batches", "compacted")
    assert told.returncode == 1
    assert "19 tasks are needed, but no partition is split: 8 partitions keep 8 tasks busy, which move" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give the rate either by --rate or by --records and --record-size"),
        (("--rate", "1M", "--records", "3", "--record-size", "3"), "give the rate either by --rate"),
        (("--records", "3"), "--records and --record-size belong together"),
        (("--rate", "fast"), "--rate: fast: write a number above 0 such as 500K, 20M or 6T"),
        (("--rate", "0"), "--rate: 0: write a number above 0"),
        (("--rate", "1M", "--history", "-3"), "--history: -3: write a number above 0"),
        (("--rate", "1M", "--partitions", "0"), "--partitions"),
        (("--rate", "1M", "--round-trip", "-1"), "--round-trip"),
        (("--rate", "1M", "--far", "moon"), "--far"),
    ],
)
def test_a_wrong_command_line_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    told = sparkmirror("size", *arguments)
    assert told.returncode == 2
    assert said in told.stderr
    assert "Traceback" not in told.stderr
