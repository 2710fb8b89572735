"""What is said of a cut-over now: ready only if each group would continue at the exact record."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.support.snapshot_samples import NOW_MS, flow, group, level_group, partition, topic

from sparkmirror.look.page.cut_over import CheckMark, CutOverVerdict, cut_over, if_moved
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.snapshot import Flow, FlowState, Group, GroupPartition, LossCount, PartitionState, Role


def places(*changes: dict[str, Any]) -> tuple[GroupPartition, ...]:
    """Partitions in which a group would continue at the exact record, but for these changes."""
    exact = level_group().partitions[0]
    return tuple(dataclasses.replace(exact, partition=number, **each) for number, each in enumerate(changes))


def skipping(name: str, *counts: int | None) -> Group:
    """A group that would skip so many records in each of its partitions."""
    return level_group(name, partitions=places(*({"skipped": count} for count in counts)))


def test_ready_if_all_groups_continue_at_the_exact_record() -> None:
    ready = cut_over(flow(groups=(level_group(), level_group("b"))), NOW_MS)
    assert ready.verdict is CutOverVerdict.READY
    assert ready.words.startswith("Ready: everything is copied. 2 groups would continue at the exact record. ")
    assert "stop them, then look again" in ready.words
    none = cut_over(flow(groups=()), NOW_MS)
    assert none.verdict is CutOverVerdict.READY
    assert "No consumer group is translated." in none.words


@pytest.mark.parametrize(
    ("groups", "reasons"),
    [
        pytest.param([group(), level_group("b")], ["shop would read 5 records again"], id="one reads again"),
        pytest.param(
            [group(), group("b"), level_group("c")],
            ["2 groups would read 10 records again (b 5 and shop 5)"],
            id="two read again",
        ),
        pytest.param(
            [skipping("reporting", 14_018, 4_990, 0), level_group("b")],
            ["reporting would skip 19,008 records"],
            id="one skips",
        ),
        pytest.param(
            [skipping("reporting", 14_018, None)],
            ["reporting would skip 14,018 records"],
            id="one skips, and of another partition nothing is known",
        ),
        pytest.param(
            [skipping(name, count) for name, count in (("a", 1), ("b", 20_000), ("c", 3), ("d", 3), ("e", 3))],
            ["5 groups would skip 20,010 records (b 20,000, c 3, d 3 and 2 more)"],
            id="many skip",
        ),
        pytest.param(
            [level_group("a", partitions=places({"skipped": 3}, {"reread": 7}))],
            ["a would skip 3 records", "a would read 7 records again"],
            id="one skips and reads again",
        ),
        pytest.param(
            [level_group("a", state=GroupState.BEYOND_END, partitions=())],
            ["a is beyond the end of the source's log"],
            id="beyond the end",
        ),
        pytest.param(
            [
                level_group(name, partitions=places({"skipped": None, "reread": None, "beyond_end": True}))
                for name in "abcd"
            ],
            ["a, b, c and 1 more are beyond the end of the source's log"],
            id="beyond the end, and not translated since",
        ),
    ],
)
def test_not_yet_says_which_groups_and_how_many_records(groups: list[Group], reasons: list[str]) -> None:
    board = cut_over(flow(groups=tuple(groups)), NOW_MS)
    assert board.verdict is CutOverVerdict.NOT_YET
    assert list(board.reasons) == reasons
    assert board.words == f"Not yet: {reasons[0]}."


def test_what_is_not_copied_comes_first() -> None:
    behind = flow(lag=3, eta_s=2.0, groups=(level_group(), group("b", state=GroupState.CATCHING_UP)))
    assert cut_over(behind, NOW_MS).reasons == (
        "3 records are not copied (about 2 s more)",
        "b would read 5 records again",
        "1 group has read what isn't copied yet",
    )
    parked = partition(3, state=PartitionState.PARKED, lag=2)
    moves = partition(lag=1, records_per_s=1.0)
    stuck = cut_over(flow(lag=3, eta_s=2.0, topics=(topic("orders", parked, moves),)), NOW_MS)
    assert stuck.reasons[0] == "3 records are not copied (about 2 s more for what can be copied)"
    again = partition(3, state=PartitionState.WAITING, lag=2)
    tried = cut_over(flow(lag=3, eta_s=2.0, topics=(topic("orders", again, moves),)), NOW_MS)
    assert tried.reasons[0] == "3 records are not copied", "while a parked partition is tried again, that is not known"


def test_the_check_list_has_each_condition_with_its_figure() -> None:
    ready = cut_over(flow(groups=(level_group(), level_group("b"))), NOW_MS + 400)
    assert {condition.mark for condition in ready.conditions[:-1]} == {CheckMark.OK}
    assert ready.conditions[-1].mark is CheckMark.YOURS, "whether the writers have stopped"
    assert ready.conditions[-1].words not in ready.words, "told once"
    figures = {condition.name: condition.words for condition in ready.conditions}
    assert figures["All records are copied"] == "0 records are left"
    assert figures["Every group can move"] == "2 groups"
    assert figures["These figures are of now"] == "0.4 s old"
    late = flow(lag=3, unknown=2, groups=(level_group(), level_group("b", partitions=())))
    board = cut_over(late, NOW_MS)
    assert [(each.mark, each.words) for each in board.conditions if each.name == "All records are copied"] == [
        (CheckMark.NOT, "3 records are not copied"),
        (CheckMark.UNKNOWN, "the lag of 2 partitions isn't known"),
    ]
    assert [each.mark for each in board.conditions if each.name.startswith("Each group")] == [CheckMark.UNKNOWN]
    assert board.verdict is CutOverVerdict.NOT_YET
    known = LossCount(kind="expired", entries=2, offsets=7, newest_ms=NOW_MS, words="gone", acknowledged=True)
    board = cut_over(flow(losses=(known,), groups=(level_group(),)), NOW_MS)
    assert ("No record is lost", CheckMark.OK, "2 losses, all acknowledged") in [
        (each.name, each.mark, each.words) for each in board.conditions
    ]


def test_a_group_that_cant_move_is_no_group_that_would_skip() -> None:
    used = dataclasses.replace(skipping("b", 5), state=GroupState.NOT_SYNCED, reason="it has members at B (Stable)")
    assert cut_over(flow(groups=(used,)), NOW_MS).reasons == ("1 group can't move",)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (
            flow(groups=(level_group(partitions=()),)),
            "Not known: what 1 group would skip or read again isn't known.",
        ),
        (
            flow(groups=(level_group(partitions=places({"skipped": None}, {})),)),
            "Not known: what 1 group would skip or read again isn't known.",
        ),
        (flow(role=Role.STANDBY, leader=""), "Not known: another process works on this flow; ask there."),
        (
            flow(role=Role.STANDBY, state=FlowState.STANDING_BY, reason="a MirrorMaker 2 still runs in group A-mm2"),
            "Not known: this process does not work on the flow, and whether another one does isn't known here.",
        ),
        (
            flow(role=Role.JOINING, state=FlowState.JOINING, leader=""),
            "Not known: this process does not work on the flow, and whether another one does isn't known here.",
        ),
        (flow(topics=(), groups=()), "Not known: no topic that is copied is known."),
    ],
)
def test_not_known(now: Flow, words: str) -> None:
    board = cut_over(now, NOW_MS)
    assert (board.verdict, board.words) == (CutOverVerdict.UNKNOWN, words)


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (group(), "reads 5 records again"),
        (level_group(), "continues at the exact record"),
        (skipping("a", 4_990, 0), "skips 4,990 records"),
        (skipping("a", 4_990, None), "skips 4,990 records"),
        (level_group(partitions=places({"skipped": 1}, {"reread": 7})), "skips 1 record, reads 7 records again"),
        (level_group(partitions=places({"reread": None})), "not known"),
        (level_group(partitions=places({"skipped": None})), "not known"),
        (level_group(partitions=()), "not known"),
        (level_group(state=GroupState.NOT_SYNCED, reason="no right."), "can't move: no right"),
        (
            group(state=GroupState.CATCHING_UP),
            "reads 5 records again, must wait: it has read what isn't copied yet",
        ),
        (
            level_group(state=GroupState.BEYOND_END),
            "must be set right first: it is beyond the source's end",
        ),
    ],
)
def test_groups_that_move(moved: Group, words: str) -> None:
    assert if_moved(moved) == words
