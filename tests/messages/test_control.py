"""The control topic as pumps read it: the newest word counts, and nonsense is left out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.position.decision import Position
from sparkmirror.exact.position.route import PartitionReading
from sparkmirror.kafka.cluster.topic_log import LogEntry
from sparkmirror.pump.messages.control import ControlState, Leader, Round, TryNow
from sparkmirror.pump.messages.moves import MOST_MOVES, Place, Release, RouteMove, RouteMoves, TaskWords
from sparkmirror.pump.messages.orders import AddedRoutes, RouteOrder


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


END_OF_A = {"incarnation": "a", "number": 3, "phase": "ended"}


def told() -> ControlState:
    state = ControlState()
    assert state.apply(GOOD)
    return state


def everything(state: ControlState) -> tuple[object, ...]:
    return state.leader, state.rounds, state.last_round, state.paused, state.bytes_per_second, state.try_now


# --- what is said -------------------------------------------------------------------------------------


def test_nothing_said_is_nothing_to_do() -> None:
    state = ControlState()
    assert not state.apply([])
    assert everything(state) == (None, {}, None, {}, None, None)
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
    assert state.apply([said("routes", {**added, "incarnation": "b"})])
    assert state.added_to("a", 3) == found, "another driver woke up late"


def test_a_late_repeat_of_added_routes_hides_no_newer_ones() -> None:
    """A broker may append what it was sent after the writer has given it up, and has said more."""
    state, routes = told(), [RouteOrder(source_topic="t", target_topic="a.t", partition=each) for each in range(3)]
    first = AddedRoutes(incarnation="a", epoch=3, routes={0: (routes[0],)}, shares={0: 1.0})
    second = AddedRoutes(incarnation="a", epoch=3, routes={0: (routes[0],), 1: (routes[1],)}, shares={0: 0.5, 1: 0.5})
    assert state.apply([said("routes", second.model_dump())])
    assert not state.apply([said("routes", first.model_dump())])
    assert (state.added_to("a", 3), state.share_of(0, "a", 3)) == (second, 0.5)
    later = AddedRoutes(incarnation="a", epoch=4, routes={0: (routes[2],)}, shares={})
    assert state.apply([said("routes", later.model_dump())])
    assert not state.apply([said("routes", second.model_dump())])
    assert state.added_to("a", 4) == later


def moved(number: int, *, epoch: int = 3, incarnation: str = "a") -> RouteMoves:
    route = RouteOrder(source_topic="orders", target_topic="a.orders", partition=2, appended=3)
    move = RouteMove(number=number, route=route, before=0, task=1)
    return RouteMoves(incarnation=incarnation, epoch=epoch, moves=(move,), shares={0: 0.25, 1: 0.75})


def released(number: int, *, attempt: int = 0, epoch: int = 3, partition: int = 2, ready: int = 0) -> TaskWords:
    word = Release(number=number, source_topic="orders", partition=partition)
    return TaskWords(incarnation="a", epoch=epoch, task=0, attempt=attempt, ready=ready, releases=(word,))


def test_moves_and_words_are_for_one_round_of_one_driver() -> None:
    moves = moved(1)
    (move,) = moves.moves
    progress = ReportedProgress(90, 80, 80, bytes(range(16)).hex())
    word = Release.of(move, progress, unclean=False)
    words = TaskWords(incarnation="a", epoch=3, task=0, ready=1, releases=(word,))
    state = told()
    assert state.moves_in("a", 3) is None
    assert state.share_of(1, "a", 3) is None
    assert state.apply([said("moves", moves.model_dump()), said("task:0", words.model_dump())])
    assert state.moves_in("a", 3) == moves
    assert state.words_of(0, "a", 3) == words
    for task, incarnation, epoch in ((1, "a", 3), (0, "a", 4), (0, "b", 3)):
        nothing = state.words_of(task, incarnation, epoch)
        assert (nothing.releases, nothing.ready, nothing.attempt) == ((), 0, 0)
    assert state.moves_in("a", 4) is state.moves_in("b", 3) is None
    assert not state.apply([said("moves", {"moves": 1}), said("task:0", {"task": 0})]), "nonsense is left out"
    assert state.moves_in("a", 3) == moves
    carried = word.carried(move.route)
    assert (carried.appended, carried.passed, carried.target_topic_id) == (80, (90, 80), bytes(range(16)).hex())
    unknown = Release.of(move, ReportedProgress(), unclean=True)
    assert unknown.carried(move.route) == move.route, "nothing known is no progress"


def test_a_partition_without_a_noted_end_is_not_copied() -> None:
    """The source got it after its topic's writers had moved."""
    state = told()
    assert state.end_of("orders", 0) is None
    assert state.apply([said("done:orders", {"ends": {"0": 7}})])
    assert [state.end_of("orders", partition) for partition in range(2)] == [7, 0]
    assert state.apply([said("done:orders", {})])
    assert state.end_of("orders", 1) is None


def settled() -> PartitionReading:
    """Where a copy is at rest."""
    position = Position(
        sequence=2**40,
        upstream=2**41,
        downstream=2**42,
        claim_due=False,
        leader_epoch=7,
        source_topic_id=bytes(range(1, 17)),
        newest_timestamp_ms=1_700_000_000_000,
        end=2**42,
    )
    return PartitionReading(
        position=position,
        resume_at=position.upstream,
        source_topic_id=bytes(range(1, 17)),
        source_leader=3,
        source_leader_epoch=8,
        source_start=1,
        source_end=2**41 + 5,
        target_topic_id=bytes(range(16)),
        target_leader=4,
        read_at=100.0,
        compacted=True,
    )


def test_a_place_is_read_as_it_was_at_the_former_task() -> None:
    """Only its age differs, since clocks do."""
    (move,) = moved(1).moves
    for heard_at, age_s in ((101.5, 1.5), (99.0, 0.0)):
        word = Release.of(move, ReportedProgress(), unclean=False, place=Place.of(settled(), heard_at))
        words = TaskWords(incarnation="a", epoch=3, task=0, releases=(word,))
        state = told()
        state.apply([said("task:0", words.model_dump())])
        (heard,) = state.words_of(0, "a", 3).releases
        assert heard.place is not None
        assert heard.place.reading(50.0) == replace(settled(), read_at=50.0 - age_s)
    assert Release.of(move, ReportedProgress(), unclean=True, place=Place.of(settled(), 0.0)).place is None


def test_all_that_a_task_says_fits_in_a_record() -> None:
    """A topic takes 1,048,588 bytes at once by default."""
    route = RouteOrder(source_topic="o" * 100, target_topic="a." + "o" * 100, partition=9_999)
    move = RouteMove(number=100, route=route, before=0, task=1)
    progress = ReportedProgress(2**41, 2**42, 2**42, bytes(range(16)).hex())
    last = Release.of(move, progress, unclean=False, place=Place.of(settled(), 101.23456789))
    before = last.model_copy(update={"place": None})
    words = TaskWords(incarnation="a" * 32, epoch=999, task=0, releases=(last, before) * MOST_MOVES)
    assert len(json.dumps(words.model_dump())) < 1_048_588


def test_a_driver_that_wakes_up_takes_no_move_away() -> None:
    """Nor does a move that comes late: a task that is tried again would copy what it had released."""
    state = told()
    state.apply([said("moves", moved(2).model_dump())])
    assert not state.apply([said("moves", moved(1).model_dump()), said("moves", moved(9, epoch=2).model_dump())])
    state.apply([said("moves", moved(7, incarnation="woken").model_dump())])
    assert state.moves_in("a", 3) == moved(2)
    assert state.apply([said("moves", moved(1, epoch=4).model_dump())])
    assert state.moves_in("a", 4) == moved(1, epoch=4)


def test_a_tasks_words_count_in_whatever_order_they_come() -> None:
    state = told()
    state.apply([said("task:0", released(2).model_dump()), said("task:0", released(1, ready=5).model_dump())])
    assert state.words_of(0, "a", 3) == released(2, ready=5)
    state.apply([said("task:0", released(1, partition=7).model_dump())])
    assert {word.source: word.number for word in state.words_of(0, "a", 3).releases} == {
        ("orders", 2): 2,
        ("orders", 7): 1,
    }
    begun = TaskWords(incarnation="a", epoch=3, task=0, attempt=1)
    state.apply([said("task:0", begun.model_dump()), said("task:0", released(8).model_dump())])
    words = state.words_of(0, "a", 3)
    assert (words.attempt, words.ready) == (1, 5)
    assert 8 not in {word.number for word in words.releases}, "an attempt that was killed says no more"
    assert len(words.releases) == 2, "what it had said counts"
    state.apply([said("task:0", released(1, epoch=4).model_dump())])
    assert state.words_of(0, "a", 4) == released(1, epoch=4)


def test_the_newest_record_has_a_tasks_share() -> None:
    state = told()
    added = {"incarnation": "a", "epoch": 3, "routes": {}, "shares": {"0": 0.5, "1": 0.5}}
    moves = RouteMoves(incarnation="a", epoch=3, moves=(), shares={0: 0.25, 1: 0.75})
    state.apply([said("routes", added)])
    assert state.share_of(0, "a", 3) == 0.5
    state.apply([said("moves", moves.model_dump())])
    assert state.share_of(0, "a", 3) == 0.25
    assert state.share_of(7, "a", 3) is state.share_of(0, "a", 4) is None
    state.apply([said("moves", {**moves.model_dump(), "incarnation": "woken"})])
    assert state.share_of(0, "a", 3) == 0.25, "another driver's shares are its own tasks'"
    state.apply([said("routes", added)])
    assert state.share_of(0, "a", 3) == 0.5


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


def test_pumps_of_a_leader_may_be_alive_where_compaction_has_left_only_anothers_late_word() -> None:
    """All round records have one key, and the other was frozen since before the leader came."""
    state = told()
    state.apply([said("leader", {"incarnation": "b"}, 9), said("epoch", END_OF_A, 20)])
    assert state.unclean
    in_time = told()
    in_time.apply([said("epoch", END_OF_A, 8), said("leader", {"incarnation": "b"}, 9)])
    assert not in_time.unclean, "the leader has begun no round yet"


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
    assert state.apply([said("pause", {"topics": ["[a-z&&[^o]]+"]})])
    assert [topic for topic in ("bills", "orders") if state.is_paused(topic)] == ["bills"], "as Java reads it"
    assert state.apply([said("pause", {"topics": ["(?P<of>orders).*", "bills"]})])
    assert [topic for topic in ("bills", "orders", "pay") if state.is_paused(topic)] == ["bills", "orders"]
    assert state.apply([said("pause", {"topics": []})])
    assert not state.is_paused("orders")


def test_a_tombstone_takes_a_pause_or_a_throttle_away() -> None:
    state = told()
    assert state.apply([LogEntry(9, b"pause", None), LogEntry(10, b"throttle", None)])
    assert (state.paused, state.bytes_per_second) == ({}, None)
    assert state.leader
    assert state.last_round


@pytest.mark.parametrize("rate", [None, 1, 0.5, 10**12])
def test_the_throttle_is_as_said(rate: float | None) -> None:
    state = told()
    assert state.apply([said("throttle", {"bytes_per_second": rate})])
    assert state.bytes_per_second == rate


@pytest.mark.parametrize(
    ("names", "about"),
    [
        ([], {("orders", 0), ("orders", 1), ("stock", 3)}),
        (["orders"], {("orders", 0), ("orders", 1)}),
        (["orders:1", "stock"], {("orders", 1), ("stock", 3)}),
    ],
)
def test_what_is_to_be_tried_again(names: list[str], about: set[tuple[str, int]]) -> None:
    state = told()
    assert state.apply([said("retry", {"names": names}, 70)])
    wanted = state.try_now
    assert wanted == TryNow(names=names, rank=70)
    assert {at for at in (("orders", 0), ("orders", 1), ("stock", 3)) if wanted.is_about(*at)} == about
    assert state.apply([said("retry", {"names": names}, 71)])
    assert state.try_now != wanted, "each word counts once"


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
    "no retry": LogEntry(9, b"retry", None),
    "a name that is no list": said("retry", {"names": "orders"}),
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
