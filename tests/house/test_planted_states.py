"""The list of planted states: enough of them, each with its tests, which are there."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from tests.planted_state import ASKED_FOR, BROWSER, PlantedState, Unchanged
from tests.planted_states import STATES
from tests.remedies import REMEDIES
from tests.support.told import AT_ONCE, TOLD

from sparkmirror.look.doctor.diagnosis import RULES

ROOT = Path(__file__).parents[2]
OF_OUR_OWN = 35


@cache
def defined(path: str) -> frozenset[str]:
    """The functions of a file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def missing(test: str) -> bool:
    path, _, name = test.partition("::")
    return not (ROOT / path).exists() or name not in defined(path)


def test_there_are_enough() -> None:
    assert sorted(state.number for state in STATES if state.number) == list(range(1, ASKED_FOR + 1))
    assert sum(not state.number for state in STATES) >= OF_OUR_OWN
    assert len({state.name for state in STATES}) == len(STATES)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_its_tests_are_there(state: PlantedState) -> None:
    assert [test for test in state.tests if missing(test)] == []
    assert state.arises or state.scene, "it is nowhere"
    for held in (state.words, state.exit_code, state.alert, state.page):
        assert held.why if isinstance(held, Unchanged) else held
    if state.scene:
        assert bool(TOLD[state.scene].alerts) is not isinstance(state.alert, Unchanged)
        assert isinstance(state.page, tuple)
        assert (BROWSER in state.page) is (state.scene in AT_ONCE)


def test_what_is_not_there_would_be_seen() -> None:
    assert missing("tests/house/test_planted_states.py::test_of_nothing")
    assert missing("tests/house/test_nothing.py::test_there_are_enough")
    assert not missing("tests/house/test_planted_states.py::test_there_are_enough")


def test_each_rules_remedy_is_followed_or_it_is_said_why_not() -> None:
    assert REMEDIES.keys() == {rule.name for rule in RULES}
    for rule, held in REMEDIES.items():
        if isinstance(held, Unchanged):
            assert held.why, rule
        else:
            assert [test for test in held if missing(test)] == [], rule
