"""The checker finds each anomaly where it was planted, and only there."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from chaos.arena import Arena
from chaos.checker import Anomaly, Findings, compare
from chaos.history import HistoryWriter, read_history, record_id, transaction_of
from chaos.planting import PLANTERS, prove_checker
from chaos.records import LoggedRecord
from hypothesis import given
from hypothesis import strategies as st


def log(*names: str) -> list[LoggedRecord]:
    return [
        LoggedRecord(offset, name, 1000 + len(name), 0, None, name.encode(), (("id", name.encode()),))
        for offset, name in enumerate(names)
    ]


def found(findings: Findings) -> dict[Anomaly, int]:
    return {anomaly: count for anomaly, count in findings.counts.items() if count}


def compared(truth: str, copy: str, aborted: str = "") -> dict[Anomaly, int]:
    """Compare logs whose records have one letter as their name."""
    return found(compare("t-0", log(*truth), log(*truth, *aborted), log(*copy)))


@pytest.mark.parametrize(
    ("truth", "copy", "expected"),
    [
        ("abcdef", "abcdef", {}),
        ("", "", {}),
        ("abcdef", "abdef", {Anomaly.LOST: 1}),
        ("abcdef", "", {Anomaly.LOST: 6}),
        ("abcdef", "abcabcdef", {Anomaly.DUPLICATE: 3}),
        ("abcdef", "abdcef", {Anomaly.REORDERED: 1}),
        ("abcdef", "bcdefa", {Anomaly.REORDERED: 1}),
        ("abcdef", "abxcdef", {Anomaly.ABORTED_READ: 1}),
        ("abcdef", "abycdef", {Anomaly.PHANTOM: 1}),
        (
            "abcdef",
            "ayxccb",
            {Anomaly.LOST: 3, Anomaly.DUPLICATE: 1, Anomaly.REORDERED: 1}
            | {Anomaly.ABORTED_READ: 1, Anomaly.PHANTOM: 1},
        ),
        ("abacda", "abacda", {}),  # the source has a record three times, and so must the target
        ("abacda", "abacd", {Anomaly.LOST: 1}),
        ("abacda", "abacdaa", {Anomaly.DUPLICATE: 1}),
    ],
)
def test_words_for_what_was_found(truth: str, copy: str, expected: dict[Anomaly, int]) -> None:
    assert compared(truth, copy, aborted="x") == expected


@pytest.mark.parametrize(
    "change",
    [{"key": b"k"}, {"value": None}, {"headers": (("id", b"c"), ("h", b""))}, {"timestamp": 7}, {"timestamp_type": 1}],
)
def test_any_changed_field_is_a_change(change: dict[str, object]) -> None:
    truth, copy = log(*"abcdef"), log(*"abcdef")
    copy[2] = copy[2]._replace(**change)  # type: ignore[arg-type]
    findings = compare("t-0", truth, truth, copy)
    assert found(findings) == {Anomaly.CHANGED: 1}
    assert next(iter(change)) in findings.examples[0]


def test_other_offsets_are_no_change() -> None:
    truth = log(*"abcdef")
    copy = [record._replace(offset=record.offset + 10) for record in truth]
    assert not found(compare("t-0", truth, truth, copy))


@given(st.lists(st.integers(0, 30), max_size=40), st.randoms(use_true_random=False))
def test_lost_and_duplicate_are_what_counting_says(numbers: list[int], chance: random.Random) -> None:
    """Though the source itself may hold a record more than once."""
    truth = log(*(f"n{number}" for number in numbers))
    copy = [record for record in truth for _ in range(chance.choice((0, 1, 1, 1, 2)))]
    wanted, there = Counter(record.id for record in truth), Counter(record.id for record in copy)
    result = found(compare("t-0", truth, truth, copy))
    assert result.get(Anomaly.LOST, 0) == (wanted - there).total()
    assert result.get(Anomaly.DUPLICATE, 0) == (there - wanted).total()
    assert set(result) <= {Anomaly.LOST, Anomaly.DUPLICATE, Anomaly.REORDERED}
    if wanted.total() == len(wanted):  # else the one that is lost and the one that is there twice can change places
        assert Anomaly.REORDERED not in result


def test_the_history_is_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "history"
    assert read_history(path).sent == set()
    writer = HistoryWriter(path)
    names = [record_id("plain", 3, 1041), record_id("txn1", 3, 77, 12, "abort")]
    for name in names:
        writer.sent(name)
    writer.ended("txn1-12", "aborted")
    with path.open("a") as file:
        file.write("sent plain-3-10")  # the process was killed here
    history = read_history(path)
    assert history.sent == set(names)
    assert history.ended == {"txn1-12": "aborted"}
    assert [transaction_of(name) for name in names] == [None, "txn1-12"]


@pytest.mark.broker
def test_every_planted_anomaly_is_caught_in_real_logs(arena: Arena) -> None:
    proofs = prove_checker(arena)
    assert [proof.planted for proof in proofs] == list(PLANTERS)
    assert set(PLANTERS) == {None, *Anomaly}
    assert [(proof.planted, proof.findings.examples) for proof in proofs if not proof.caught] == []
    assert all(proof.findings.records == 45 for proof in proofs)  # of 40 plain, 5 committed and 5 aborted ones
