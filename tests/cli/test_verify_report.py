"""What `verify` prints of a verification: notes by topic, and a verdict that says of how much it is said."""

from __future__ import annotations

import json

import pytest

from sparkmirror.cli.verify import _print_json, _print_tables
from sparkmirror.frames import PartitionResult, Verification

BY_CONTENT = "it was not copied by sparkmirror: compared by content alone, as one range"
ANOTHERS = "another mirror's"


def of(topic: str, partition: int, *notes: str, **figures: object) -> PartitionResult:
    named = {"flow": "A->B", "topic": topic, "target_topic": f"A.{topic}", "partition": partition}
    return PartitionResult.model_validate({**named, "records": 100, "notes": notes, **figures})


def told(capsys: pytest.CaptureFixture[str], *partitions: PartitionResult) -> list[str]:
    _print_tables(Verification(partitions, (), len(partitions), len(partitions)))
    table = ("topic", *(f"{each.topic}  " for each in partitions), " ")  # its header takes several lines
    return [line for line in capsys.readouterr().out.splitlines() if not line.startswith(table)]


def test_one_line_for_a_topic_whose_partitions_have_the_same_note(capsys: pytest.CaptureFixture[str]) -> None:
    many = [of("orders", number, BY_CONTENT) for number in range(1_000)]
    assert told(capsys, *many, of("stock", 3, BY_CONTENT, "it is parked")) == [
        f"orders (1,000 partitions): {BY_CONTENT}",
        f"stock-3: {BY_CONTENT}",
        "stock-3: it is parked",
        "equal: 100,100 records are the same on both sides",
    ]


def test_the_verdict_has_the_number_of_what_was_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    moved = "written by the topic's writers, which have moved"
    partitions = [
        of("orders", 0, not_compared={ANOTHERS: 10_000}),
        of("orders", 1, not_compared={ANOTHERS: 2_934}),
        of("stock", 0, not_compared={moved: 50}),
    ]
    assert told(capsys, *partitions) == [
        f"orders: 12,934 target offsets are not compared: {ANOTHERS}",
        f"stock: 50 target offsets are not compared: {moved}",
        "equal: 300 records are the same on both sides; 12,984 target offsets were not compared: 12,934 another"
        f" mirror's, 50 {moved}",
    ]
    _print_json(Verification(tuple(partitions), (), 3, 3))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[-1]["not_compared"] == {ANOTHERS: 12_934, moved: 50}
    assert lines[0]["partition"]["not_compared"] == {ANOTHERS: 10_000}
