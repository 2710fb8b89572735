"""What is said after `topics done` in the midst of writing: each planted false word is caught, and no true one is."""

from __future__ import annotations

import json

import pytest
from chaos.bills import Sides, Told, judged, told_of

NOTED, COPY, SOURCE = {0: 100, 1: 50}, {0: 103, 1: 50}, {0: 140, 1: 50}
"""Three records behind the noted end were copied before the word was heard."""
HEARD = {0: 110, 1: 50}
TRUE = Told(0, "held up", True, {0: 37})


def said(told: Told = TRUE, copy: dict[int, int] = COPY) -> list[str]:
    words = judged("bills", told, Sides(NOTED, copy, SOURCE), HEARD)
    assert words.count == len(words.first)
    return words.first


def test_true_words_are_not_false() -> None:
    assert said() == []
    assert said(TRUE._replace(late={0: 40}), {0: 100, 1: 50}) == []
    assert said(TRUE._replace(state="copying")) == [], "other topics are"
    assert judged("bills", Told(0, "caught up", True, {}), Sides(NOTED, NOTED, NOTED), NOTED).first == []


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (TRUE._replace(late={0: 40}), "bills-0: 40 records are said to be late and not copied, 37 are"),
        (TRUE._replace(late={}), "bills-0: 0 records are said to be late and not copied, 37 are"),
        (TRUE._replace(late={0: 37, 1: 1}), "bills-1: 1 records are said to be late and not copied, 0 are"),
        (TRUE._replace(state="caught up"), "A->B is said to have caught up, next to 37 late records of bills"),
    ],
)
def test_a_wrong_number_or_state_is(told: Told, words: str) -> None:
    (false,) = said(told)
    assert false.endswith(words)


def test_what_is_copied_long_after_the_word_is() -> None:
    (false,) = said(TRUE._replace(late={0: 25}), {0: 115, 1: 50})
    assert "is done at 100, and was copied up to 115: 5 of these records came long after the word" in false


def test_what_a_snapshot_tells() -> None:
    topic = {"topic": "bills", "released": True, "late_in": {"0": 37}}
    flow = {"flow": "A->B", "role": "leader", "state": "held up", "at_ms": 5, "topics": [{"topic": "x"}, topic]}
    assert told_of(json.dumps({"flows": [flow]}), "bills") == Told(5, "held up", True, {0: 37})
    assert told_of(json.dumps({"flows": [flow]}), "others") == Told(5, "held up", False, {})
    assert told_of(json.dumps({"flows": [flow | {"role": "standby"}]}), "bills") is None
    assert told_of('{"flows": []}', "bills") is None
