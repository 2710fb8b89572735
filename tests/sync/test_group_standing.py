"""What is said of groups: a state each, and a few words on all."""

from __future__ import annotations

from sparkmirror.sync.group_standing import GroupState, counted, standing


def test_a_group_is_as_its_worst_partition() -> None:
    assert standing("g", 3).state == GroupState.SYNCED
    ahead = standing("g", 3, ahead=["t-0: at 5", "t-1: at 6"])
    assert (ahead.state, ahead.reason) == (GroupState.CATCHING_UP, "t-0: at 5 (and 1 more)")
    beyond = standing("g", 3, beyond=["t-1: at 9, and the source ends at 7"], ahead=["t-0: at 5"])
    assert (beyond.state, beyond.reason) == (GroupState.BEYOND_END, "t-1: at 9, and the source ends at 7")
    assert standing("g", 3, missing=["t-2: refused"], beyond=["t-1"], ahead=["t-0"]).state == GroupState.NOT_SYNCED


def test_all_in_a_few_words() -> None:
    groups = [
        standing("c", 1, missing=["t-0: no such partition"]),
        standing("b", 1, missing=["t-1: it has members"]),
        standing("a", 1),
        standing("d", 1, ahead=["t-0: at 5"]),
        standing("e", 1, beyond=["t-0: at 9"]),
        *(standing(f"x{number}", 1) for number in range(1200)),
    ]
    assert counted(groups) == (
        "1,201 synced",
        "1 catching up",
        "1 beyond the end",
        "2 can't be synced, first: b: t-1: it has members",
    )
    assert counted([]) == ()
