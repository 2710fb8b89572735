"""The control topic as pumps read it: the newest word counts, and nonsense is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparkmirror.cluster.topic_log import LogEntry
from sparkmirror.messages.control import ControlState, Leader, Round
from sparkmirror.messages.orders import RouteOrder


def said(key: str, value: Any, offset: int = 0) -> LogEntry:
    return LogEntry(offset, key.encode(), json.dumps(value).encode())


def round_word(incarnation: str, number: int, phase: str = "running") -> LogEntry:
    return said("epoch", {"incarnation": incarnation, "number": number, "phase": phase})


GOOD = [
    said("leader", {"incarnation": "a", "host": "h", "pid": 1}, 5),
    round_word("a", 3),
    said("pause", {"topics": ["orders", "pay.*"]}),
    said("throttle", {"bytes_per_second": 1000}),
]


def told() -> ControlState:
    state = ControlState()
    assert state.apply(GOOD)
    return state


def everything(state: ControlState) -> tuple[object, ...]:
    return state.leader, state.rounds, state.last_round, state.paused, state.bytes_per_second


# --- what is said -------------------------------------------------------------------------------------


def test_nothing_said_is_nothing_to_do() -> None:
    state = ControlState()
    assert not state.apply([])
    assert everything(state) == (None, {}, None, (), None)
    assert not state.unclean
    assert not state.is_paused("orders")


def test_the_rank_of_a_leader_is_its_offset() -> None:
    state = told()
    assert state.leader == Leader(incarnation="a", host="h", pid=1, rank=5)
    assert state.apply([said("leader", {"incarnation": "b", "rank": 99}, 7)])
    assert state.leader == Leader(incarnation="b", rank=7)


def test_what_is_added_is_for_one_round_of_one_driver() -> None:
    route = {"source_topic": "orders", "target_topic": "a.orders", "partition": 2}
    added = {"incarnation": "a", "epoch": 3, "routes": {"1": [route]}, "shares": {"0": 0.75, "1": 0.25}}
    state = told()
    assert state.added_to("a", 3) is None
    assert state.apply([said("routes", added)])
    found = state.added_to("a", 3)
    assert found is not None
    assert found.routes == {1: (RouteOrder(**route),)}  # type: ignore[arg-type]
    assert found.shares == {0: 0.75, 1: 0.25}
    assert state.added_to("a", 4) is None
    assert state.added_to("b", 3) is None
    assert not state.apply([said("routes", {**added, "shares": None})]), "nonsense is left out"
    assert state.added_to("a", 3) == found


def test_pumps_may_be_alive_until_the_leader_says_that_they_have_ended() -> None:
    state = told()
    assert state.unclean
    state.apply([round_word("a", 3, "ending")])
    assert state.unclean
    state.apply([round_word("a", 3, "ended")])
    assert not state.unclean


def test_the_end_of_a_predecessor_that_was_frozen_is_not_the_leaders() -> None:
    state = told()
    state.apply([said("leader", {"incarnation": "b"}, 9), round_word("b", 1), round_word("a", 3, "ended")])
    assert state.unclean
    state.apply([round_word("b", 1, "ended")])
    assert not state.unclean


def test_the_pumps_of_a_predecessor_may_be_alive_where_the_leader_has_had_none_yet() -> None:
    state = told()
    state.apply([said("leader", {"incarnation": "b"}, 9)])
    assert state.unclean


def test_each_incarnation_has_its_newest_round() -> None:
    state = told()
    state.apply([round_word("b", 1), round_word("a", 4, "ending")])
    assert state.rounds == {
        "a": Round(incarnation="a", number=4, phase="ending"),
        "b": Round(incarnation="b", number=1, phase="running"),
    }
    assert state.last_round == state.rounds["a"]


def test_a_tick_alone_changes_nothing() -> None:
    state = told()
    assert not state.apply([round_word("a", 3), round_word("a", 3)])
    assert state.apply([round_word("a", 3, "ending")])
    assert state.apply([round_word("a", 3, "ending"), round_word("b", 3)])


def test_paused_topics_match_in_full() -> None:
    state = told()
    assert [topic for topic in ("orders", "payments", "orders2", "my-pay", "pay") if state.is_paused(topic)] == [
        "orders",
        "payments",
        "pay",
    ]
    assert state.apply([said("pause", {"topics": []})])
    assert not state.is_paused("orders")


def test_a_tombstone_takes_a_pause_or_a_throttle_away() -> None:
    state = told()
    assert state.apply([LogEntry(9, b"pause", None), LogEntry(10, b"throttle", None)])
    assert (state.paused, state.bytes_per_second) == ((), None)
    assert state.leader
    assert state.last_round


@pytest.mark.parametrize("rate", [None, 1, 0.5, 10**12])
def test_the_throttle_is_as_said(rate: float | None) -> None:
    state = told()
    assert state.apply([said("throttle", {"bytes_per_second": rate})])
    assert state.bytes_per_second == rate


# --- what makes no sense ------------------------------------------------------------------------------

NONSENSE = {
    "no key": LogEntry(9, None, b"{}"),
    "not UTF-8": LogEntry(9, b"\xff", b"{}"),
    "not JSON": LogEntry(9, b"pause", b"{"),
    "value not UTF-8": LogEntry(9, b"pause", b"\xff\xfe\xff"),
    "a list": said("pause", ["orders"]),
    "a number": said("throttle", 5),
    "another key": said("weather", {"sunny": True}),
    "no leader": LogEntry(9, b"leader", None),
    "leader without a name": said("leader", {"host": "h"}),
    "leader in a list": said("leader", ["a"]),
    "leader of a wrong type": said("leader", {"incarnation": "b", "pid": "many"}),
    "no epoch": LogEntry(9, b"epoch", None),
    "epoch without a number": said("epoch", {"incarnation": "a", "phase": "running"}),
    "epoch of another phase": said("epoch", {"incarnation": "a", "number": 4, "phase": "dreaming"}),
    "not a regex": said("pause", {"topics": ["fine", "("]}),
    "topics of a wrong type": said("pause", {"topics": [1]}),
    "no list of topics": said("pause", {"topics": 7}),
}


@pytest.mark.parametrize("entry", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_left_out(entry: LogEntry) -> None:
    state = told()
    before = everything(state)
    assert not state.apply([entry])
    assert everything(state) == before
    assert state.apply([entry, round_word("z", 1)])
    assert state.last_round == Round(incarnation="z", number=1, phase="running")


def test_one_topic_instead_of_a_list_is_not_taken_letter_by_letter() -> None:
    state = told()
    assert not state.apply([said("pause", {"topics": "a.c"})])
    assert state.is_paused("orders")
    assert not state.is_paused("a")


@pytest.mark.parametrize("rate", ["fast", "10", [], {}, True, 0, -1, float("nan"), float("-inf")], ids=repr)
def test_a_throttle_that_is_no_rate_is_left_out(rate: object) -> None:
    """A pump divides by it."""
    state = told()
    assert not state.apply([said("throttle", {"bytes_per_second": rate})])
    assert state.bytes_per_second == 1000
