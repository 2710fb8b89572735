"""What is said of groups: a state each, and a few words on all."""

from __future__ import annotations

from sparkmirror.snapshot.group_standing import GroupState, standing


def test_a_group_is_as_its_worst_partition() -> None:
    assert standing("g", 3).state == GroupState.SYNCED
    ahead = standing("g", 3, ahead=["t-0: at 5", "t-1: at 6"])
    assert (ahead.state, ahead.reason) == (GroupState.CATCHING_UP, "t-0: at 5 (and 1 more)")
    beyond = standing("g", 3, beyond=["t-1: at 9, and the source ends at 7"], ahead=["t-0: at 5"])
    assert (beyond.state, beyond.reason) == (GroupState.BEYOND_END, "t-1: at 9, and the source ends at 7")
    assert standing("g", 3, missing=["t-2: refused"], beyond=["t-1"], ahead=["t-0"]).state == GroupState.NOT_SYNCED
