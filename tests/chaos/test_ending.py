"""What ledger, checkpoints and log say at the end: each planted false word is caught, and no true one is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from chaos.checker import Anomaly, Findings, compare
from chaos.ending import troubles, united
from chaos.history import PLAIN, record_id
from chaos.ledger import Caused, false_entries
from chaos.mirror import Deployment
from chaos.records import LoggedRecord
from chaos.round import PARTITIONS, _busy
from chaos.translated import false_checkpoints
from kafka import TopicPartition

from sparkmirror.exact.durable.losses import Loss, LossKind
from sparkmirror.exact.mm2.record_formats import Checkpoint


def log(*numbers: int, shift: int = 0) -> list[LoggedRecord]:
    """Records whose offsets are their numbers, and as much more."""
    return [LoggedRecord(number + shift, record_id(PLAIN, 0, number), 0, 0, None, b"", ()) for number in numbers]


# --- partitions as they are -----------------------------------------------------------------------


def test_what_a_last_record_heals_was_lost_all_the_same() -> None:
    truth = log(*range(10))
    as_it_was = compare("notes-0", truth, truth, log(*range(7)))
    closed = log(*range(11))
    both = united(as_it_was, compare("notes-0", closed, closed, log(*range(11))))
    assert both.counts == {Anomaly.LOST: 3}
    assert both.records == 11
    assert "source offset 7: plain-0-7 (when the mirror said that it had caught up)" in both.examples[0]


def test_what_both_looks_find_counts_once() -> None:
    truth, copy = log(*range(10)), [*log(*range(10)), *log(9, shift=1)]
    once = compare("notes-0", truth, truth, copy)
    both = united(once, compare("notes-0", truth, truth, copy))
    assert both.counts == {Anomaly.DUPLICATE: 1}
    assert both.examples == once.examples
    assert united(Findings(), Findings(9)).counts == Counter()


def test_partitions_are_left_alone_one_after_the_other_while_there_still_are_faults() -> None:
    assert [_busy(share / 10) for share in range(11)] == [4, 4, 4, 4, 3, 3, 3, 2, 2, 2, 2]
    assert _busy(1.0) == PARTITIONS // 2


# --- the ledger -----------------------------------------------------------------------------------

NOTHING = Caused(source_cuts=(), target_cuts={}, copy_deleted=False, strangers={}, ours={0: range(100)})
CUT = NOTHING._replace(source_cuts={0}, target_cuts={0: [20, 30]}, copy_deleted=True)
STRANGER = NOTHING._replace(strangers={0: {40, 41}}, ours={0: {*range(100)} - {40, 41}})


def entry(kind: LossKind, first: int = 40, end: int = 42, copy_id: str = "now") -> Loss:
    return Loss(
        kind=kind,
        source_topic="orders",
        target_topic="A.orders",
        partition=0,
        first=first,
        end=end,
        downstream=first,
        target_topic_id=copy_id,
        action="continued",
        words="planted",
    )


def false(entry: Loss, caused: Caused) -> list[str]:
    return false_entries([entry], "now", caused).first


@pytest.mark.parametrize("kind", LossKind)
def test_an_entry_that_no_fault_has_caused_is_false(kind: LossKind) -> None:
    (words,) = false(entry(kind), NOTHING)
    assert f"ledger: orders-0, {kind}, offsets 40 to 42: " in words


@pytest.mark.parametrize(
    "kind", [LossKind.EXPIRED, LossKind.RECREATED, LossKind.SHRUNK, LossKind.FENCED, LossKind.ALTERED]
)
def test_what_no_fault_does_is_false_beside_any(kind: LossKind) -> None:
    assert false(entry(kind), CUT)
    assert false(entry(kind), STRANGER)


@pytest.mark.parametrize("kind", [LossKind.TRUNCATED, LossKind.TARGET_TRUNCATED, LossKind.TARGET_RECREATED])
def test_what_a_fault_has_caused_is_true(kind: LossKind) -> None:
    assert false(entry(kind), CUT) == []


def test_more_than_the_target_lost_is_false() -> None:
    assert false(entry(LossKind.TARGET_TRUNCATED, first=20), CUT) == []
    (words,) = false(entry(LossKind.TARGET_TRUNCATED, first=19), CUT)
    assert "the target has lost only what was from 20 on" in words


def test_a_strangers_records_are_its_own_and_no_others() -> None:
    assert false(entry(LossKind.FOREIGN), STRANGER) == []
    (words,) = false(entry(LossKind.FOREIGN, end=43), STRANGER)
    assert "the record at offset 42 is the mirror's" in words
    assert false(entry(LossKind.FOREIGN, end=43, copy_id="deleted"), STRANGER) == []
    assert false(entry(LossKind.FOREIGN, end=43), STRANGER._replace(target_cuts={0: [5]})) == []
    assert false(entry(LossKind.FOREIGN, copy_id="deleted"), NOTHING) == [], "gone with the copy"


# --- checkpoints ----------------------------------------------------------------------------------

PART = TopicPartition("A.orders", 0)


def checkpoint(upstream: int, downstream: int) -> Checkpoint:
    return Checkpoint(group="g", topic="A.orders", partition=0, upstream=upstream, downstream=downstream)


def test_a_checkpoint_leads_to_the_same_record() -> None:
    truth = {PART: log(0, 1, 2, 5, 6)}  # 3 and 4 are markers
    copies = {PART: [*log(0, 1), *log(2, shift=1), *log(5, 6, shift=-1)]}  # at 2 is somebody else's record
    right = [(0, 0), (1, 1), (2, 2), (2, 3), (3, 4), (5, 4), (6, 5), (7, 6), (7, 9)]

    def judged(pairs: list[tuple[int, int]], *, may_be_earlier: bool = False) -> list[str]:
        checkpoints = [checkpoint(*pair) for pair in pairs]
        return false_checkpoints(checkpoints, truth, copies, may_be_earlier=may_be_earlier).first

    assert judged(right) == judged(right, may_be_earlier=True) == []
    later, earlier = [(1, 2), (5, 5), (0, 6)], [(1, 0), (6, 4), (7, 5)]
    for pair in (*later, *earlier):
        assert len(judged([pair])) == 1, pair
        assert len(judged([pair], may_be_earlier=True)) == (pair in later), pair
    assert "g, A.orders-0 at 4, the source's 6: leads to plain-0-5, not to plain-0-6" in judged([(6, 4)])[0]


# --- the mirror's log -----------------------------------------------------------------------------


def test_a_traceback_is_trouble_and_little_is_told_of_it(tmp_path: Path) -> None:
    mirror = Deployment(tmp_path / "mm2.properties", tmp_path / "mirror.log")
    mirror.log.write_text("all is well\n")
    assert troubles(mirror) == []
    mirror.log.write_text("all is well\n" + "Traceback (most recent call last):\n" * 9 + "ForbiddenEvent: x\n")
    assert len(troubles(mirror)) == 5
    mirror.log.write_text('{"words": "sparkmirror.pump.stage.ForbiddenEvent: acknowledged while parked"}\n')
    assert len(troubles(mirror)) == 1
