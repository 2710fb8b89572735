"""A turn begins by the words as they are, not as a process saw them before it stood still."""

from __future__ import annotations

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.mirror.sync import turns
from sparkmirror.mirror.sync.turn_order import FlowWords, whose_turn
from sparkmirror.mirror.sync.turns import NotTurned, TopicTurn, _refuse_changed
from sparkmirror.pump.messages.control import Border, DoneTopic, TurnStart

A, B = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
BACK = FlowConfig(source=B, target=A, turn="second")
ENDS = {0: 7}


def told(theirs: DoneTopic | None, own: TurnStart | None = None) -> TopicTurn:
    mine, opposite = FlowWords(own, None), FlowWords(None, theirs)
    return TopicTurn(mine, opposite, whose_turn(opposite, mine))


@pytest.mark.parametrize(
    ("now", "refused"),
    [
        (told(DoneTopic(ends=ENDS)), False),
        (told(DoneTopic(ends=ENDS, reached={0: 7})), False),  # the mirror writes down its progress
        (told(None), True),  # the ends were taken back
        (told(DoneTopic(ends={0: 9})), True),
        (told(DoneTopic(ends=ENDS), TurnStart(number=2, starts={0: Border(7, 7, 7)})), True),
    ],
)
def test_words_that_another_run_has_changed(monkeypatch: pytest.MonkeyPatch, now: TopicTurn, refused: bool) -> None:
    monkeypatch.setattr(turns, "read_turns", lambda *_: {"orders": now})
    before = {"orders": told(DoneTopic(ends=ENDS))}
    if not refused:
        _refuse_changed(BACK, ["orders"], before)
        return
    with pytest.raises(NotTurned, match="another run has changed the turn of orders"):
        _refuse_changed(BACK, ["orders"], before)
