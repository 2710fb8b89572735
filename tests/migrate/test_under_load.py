"""Whole migrations under load, by the seeded rounds of `chaos/switches`."""

from __future__ import annotations

from pathlib import Path

import pytest
from chaos.switches.board import Board
from chaos.switches.plan import Kill, Names, Plan, Window, draw
from chaos.switches.run import run

from sparkmirror.demo.jars import BROKER_VERSION

pytestmark = [pytest.mark.broker, pytest.mark.full]

SEED = 7


def _run(plans: list[Plan], directory: Path, version: str) -> Board:
    board = Board(SEED, version)
    run(plans, directory, version, 60.0, board, print)
    assert board.good, board.markdown()
    return board


def test_there_and_back_with_the_tool_killed(tmp_path: Path) -> None:
    """Everything moves at once and returns, the tool dies between steps, and a straggler is named."""
    plan = Plan(
        number=1,
        names=Names.AMAZON,
        type="all-at-once",
        halts=False,
        kill=Kill("after", "publish", 0.0),
        strays=frozenset({Window.FIRST}),
        turns=2,
    )
    (result,) = _run([plan], tmp_path, BROKER_VERSION).results
    assert result.kills == 1
    assert result.named == 1
    assert result.records > 0


@pytest.mark.full
@pytest.mark.parametrize("version", ["2.8.2", "3.6.2", BROKER_VERSION])
def test_rounds(tmp_path: Path, version: str) -> None:
    """Rounds of each kind, with each of the names."""
    _run(draw(SEED, 9), tmp_path, version)
