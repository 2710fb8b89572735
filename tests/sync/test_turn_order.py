"""Whose turn it is, by two flows' words: one flow at most copies a topic, and the newest turn decides."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.mirror.sync.turn_order import FlowWords, TurnPhase, TurnSide, whose_turn
from sparkmirror.pump.messages.control import Border, DoneTopic, TurnStart

WORDS = st.builds(
    FlowWords,
    begun=st.none() | st.builds(TurnStart, number=st.integers(1, 9)),
    done=st.none()
    | st.builds(
        DoneTopic,
        ends=st.dictionaries(st.integers(0, 2), st.integers(0, 9), min_size=1),
        reached=st.dictionaries(st.integers(0, 2), st.integers(0, 9)),
    ),
)


@given(WORDS, WORDS)
def test_one_flow_at_most_copies(first: FlowWords, second: FlowWords) -> None:
    turn = whose_turn(first, second)
    assert [turn.copies(side) for side in TurnSide].count(True) == (turn.phase is not TurnPhase.DRAINED)
    assert not turn.copies(turn.side.opposite)


@dataclass
class Topic:
    """A topic with one partition that two flows take turns with, as its operator knows it."""

    words: dict[TurnSide, FlowWords] = field(default_factory=lambda: dict.fromkeys(TurnSide, FlowWords()))
    live: TurnSide = TurnSide.FIRST
    number: int = 1
    ended: bool = False
    drained: bool = False

    def do(self, step: str) -> None:
        own = self.words[self.live]
        if step == "publish" and not self.ended:
            self.words[self.live], self.ended = own._replace(done=DoneTopic(ends={0: self.number})), True
        elif step == "take back" and self.ended:
            self.words[self.live], self.ended, self.drained = own._replace(done=None), False, False
        elif step == "drain" and self.ended:
            self.words[self.live] = own._replace(done=DoneTopic(ends={0: self.number}, reached={0: 1}))
            self.drained = True
        elif step == "turn" and self.ended:
            self.live, self.number = self.live.opposite, self.number + 1
            begun = TurnStart(number=self.number, starts={0: Border(1, self.number, 0)})
            self.words[self.live], self.ended, self.drained = FlowWords(begun, None), False, False


@given(st.lists(st.sampled_from(["publish", "take back", "drain", "turn"]), max_size=40))
def test_whatever_was_said_before_the_newest_turn_decides(steps: list[str]) -> None:
    topic = Topic()
    for step in steps:
        topic.do(step)
        turn = whose_turn(topic.words[TurnSide.FIRST], topic.words[TurnSide.SECOND])
        phase = TurnPhase.DRAINED if topic.drained else TurnPhase.DRAINING if topic.ended else TurnPhase.COPYING
        assert turn == (topic.live, topic.number, phase)
        assert turn.copies(topic.live) is not topic.drained
        assert not turn.copies(topic.live.opposite)


def test_without_a_word_the_migration_begins_with_the_first_flow() -> None:
    assert whose_turn(FlowWords(), FlowWords()) == (TurnSide.FIRST, 1, TurnPhase.COPYING)


def test_an_end_that_was_taken_back_gives_no_turn_back() -> None:
    """The opposite flow's turn has begun: an operator who says `topics undo` late does not have both copy."""
    begun = FlowWords(TurnStart(number=2, starts={0: Border(5, 5, 5)}))
    assert whose_turn(FlowWords(), begun) == (TurnSide.SECOND, 2, TurnPhase.COPYING)
