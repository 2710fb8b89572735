"""What the mirror says is compared with high watermarks: each planted false word is caught, and no true one is."""

from __future__ import annotations

import json
import time

import pytest
from chaos.truth import NOTICED_S, REPORTED_S, STILL_S, Truth
from chaos.words import FalseWords, Judge, Word, of_metrics, of_snapshot, position_of, state_of

ALL = frozenset({("orders", 0), ("orders", 1)})


class Course:
    """The high watermarks of two partitions, each second, and a judge who hears words meanwhile."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.truth = Truth()
        self.judge = Judge(self.truth)

    def goes_on(self, seconds: float, source: tuple[int, int], target: tuple[int, int], says: Word) -> None:
        for _ in range(int(seconds)):
            self.now += 1
            self.truth.note(self.now, {"orders": source}, {"A.orders": target})
            self.judge.hear(says._replace(at=self.now))

    @property
    def false(self) -> list[str]:
        return [words.partition(" ")[2] for words in self.judge.false.first]


CAUGHT_UP, NO_LAG, NOTHING = Word(0, "snapshot", "caught up"), Word(0, "metrics", "", ALL), Word(0, "snapshot")
LONG_S = int(REPORTED_S + STILL_S) + 5


@pytest.mark.parametrize("word", [CAUGHT_UP, NO_LAG])
def test_a_word_about_records_that_are_not_there_is_false(word: Word) -> None:
    course = Course()
    course.goes_on(LONG_S, (40, 7), (40, 7), word)
    course.goes_on(LONG_S, (50, 7), (40, 7), word)
    (false,) = course.false
    assert false.endswith("but orders-0 had 40 of 50")
    assert course.judge.false.count == 1, "what is said again each second is one"


def test_a_word_that_was_false_is_counted_again_when_it_is_said_again_later() -> None:
    course = Course()
    course.goes_on(LONG_S, (50, 7), (40, 7), CAUGHT_UP)
    course.goes_on(LONG_S, (50, 7), (40, 7), NOTHING)
    course.goes_on(LONG_S, (50, 7), (40, 7), CAUGHT_UP)
    assert course.judge.false.count == 2


def test_a_true_word_is_not() -> None:
    course = Course()
    for end in range(0, 3_000, 10):  # all the time something is on its way
        course.goes_on(1, (end + 10, 7), (end, 7), CAUGHT_UP)
        course.goes_on(1, (end + 10, 7), (end + 10, 7), NO_LAG)
    assert course.false == []
    assert course.judge.judged > 500


def test_who_says_nothing_may_lack_everything() -> None:
    course = Course()
    course.goes_on(200, (50, 7), (0, 0), NOTHING)
    course.goes_on(200, (50, 7), (0, 7), Word(0, "metrics", "", frozenset({("orders", 1)})))
    assert course.false == []


def test_a_word_of_one_partition_is_about_that_one() -> None:
    course = Course()
    course.goes_on(LONG_S, (50, 7), (0, 7), Word(0, "metrics", "", frozenset({("orders", 0), ("orders", 1)})))
    (false,) = course.false
    assert "orders-0" in false


def test_what_the_source_has_got_just_now_may_not_be_known() -> None:
    course = Course()
    course.goes_on(100, (40, 7), (40, 7), CAUGHT_UP)
    course.goes_on(REPORTED_S - 2, (50, 7), (40, 7), CAUGHT_UP)
    course.goes_on(100, (50, 7), (50, 7), CAUGHT_UP)
    assert course.false == []


def test_what_is_there_a_moment_later_was_said_right() -> None:
    course = Course()
    course.goes_on(100, (50, 7), (40, 7), NOTHING)
    course.goes_on(STILL_S - 2, (50, 7), (40, 7), CAUGHT_UP)
    course.goes_on(100, (50, 7), (50, 7), CAUGHT_UP)
    assert course.false == []


def test_what_the_target_lost_may_be_noticed_in_a_minute_and_not_later() -> None:
    course = Course()
    course.goes_on(100, (50, 7), (50, 7), CAUGHT_UP)
    course.goes_on(NOTICED_S - 2, (50, 7), (30, 7), CAUGHT_UP)
    assert course.false == []
    course.goes_on(20, (50, 7), (30, 7), CAUGHT_UP)
    (false,) = course.false
    assert "had 30 of 50" in false


def snapshot(state: str, lag: int | None, *lags: int | None, role: str = "leader") -> str:
    partitions = [
        {"partition": number, "state": "running", "position": 5 * number, **({} if lag is None else {"lag": lag})}
        for number, lag in enumerate(lags)
    ]
    flow = {
        "flow": "A->B",
        "state": state,
        "role": role,
        "at_ms": int(time.time() * 1000) - 3_000,
        "topics": [{"topic": "orders", "target_topic": "A.orders", "partitions": partitions}],
    }
    return json.dumps({"flows": [{"flow": "C->B"}, flow | ({} if lag is None else {"lag": lag})]})


def test_what_a_snapshot_says() -> None:
    word = of_snapshot(snapshot("caught up", 3, 0, 3, None))
    assert word is not None
    assert word.whole == "caught up"
    assert set(word.whole_parts) == {("orders", 0)}
    assert 2.5 < time.monotonic() - word.at < 100
    said = [of_snapshot(snapshot(state, lag)) for state, lag in (("copying", 0), ("copying", 3), ("starting", None))]
    assert [word and word.whole for word in said] == ["lag 0", "", ""]
    assert of_snapshot(snapshot("standing by", 0, 0, role="standby")) is None
    assert of_snapshot('{"flows": []}') is None
    assert state_of(snapshot("held up", 0))[0] == "held up"
    assert state_of('{"flows": []}') == ("", 0)
    assert [position_of(snapshot("copying", 0, 0, 0), "orders", number) for number in range(3)] == [0, 5, -1]
    assert position_of('{"flows": []}', "orders", 0) == -1


def test_what_metrics_say() -> None:
    def state(name: str, value: float) -> tuple[str, frozenset[tuple[str, str]], float]:
        return "sparkmirror_flow_state", frozenset({("flow", "A->B"), ("state", name)}), value

    def lag(flow: str, partition: int, value: float) -> tuple[str, frozenset[tuple[str, str]], float]:
        labels = {"flow": flow, "topic": "orders", "partition": str(partition)}
        return "sparkmirror_partition_lag_records", frozenset(labels.items()), value

    whole = "sparkmirror_lag_records", frozenset({("flow", "A->B")}), 0.0
    word = of_metrics(5.0, [state("copying", 0), state("caught up", 1), lag("A->B", 1, 0), lag("A->B", 0, 2)])
    assert word == Word(5.0, "metrics", "caught up", frozenset({("orders", 1)}))
    assert of_metrics(5.0, [state("caught up", 0), lag("C->B", 1, 0)]) == Word(5.0, "metrics")
    assert of_metrics(5.0, [whole]).whole == "lag 0"


def test_few_are_told_and_all_are_counted() -> None:
    one, other = FalseWords(), FalseWords()
    for number in range(8):
        one.add(f"a{number}")
        other.add(f"b{number}")
    one.merge(other)
    assert one.count == 16
    assert len(one.first) == 10
