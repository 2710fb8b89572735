"""Order of two opposite flows' turns with a topic, by both flows' words (M1).

Each flow's words are in its control topic: which turn it has begun last, and where that turn ends. Turns are numbered
through both flows, so that the newest turn decides, whatever older words there are.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from sparkmirror.pump.messages.control import ControlState, DoneTopic, TurnStart

_NEVER, _BEGINS = 0, 1
"""Number of the newest turn without a word: of the second flow, and of the first."""


class TurnSide(StrEnum):
    """A flow's place in a migration: the value of `sparkmirror.turn`."""

    FIRST = "first"
    """Flow that the migration begins with."""
    SECOND = "second"

    @property
    def opposite(self) -> TurnSide:
        return TurnSide.SECOND if self is TurnSide.FIRST else TurnSide.FIRST


class FlowWords(NamedTuple):
    """One flow's newest words on a topic."""

    begun: TurnStart | None = None
    done: DoneTopic | None = None
    """End of the turn that was begun last; None: it has no end yet."""

    def number(self, side: TurnSide) -> int:
        """Return the number of the flow's newest turn."""
        if self.begun is not None:
            return self.begun.number
        return _BEGINS if side is TurnSide.FIRST else _NEVER


class TurnPhase(StrEnum):
    """Phase of the newest turn."""

    COPYING = "copying"
    DRAINING = "draining"
    """The turn's end is published, and not reached in each partition."""
    DRAINED = "drained"
    """All is copied up to its end; the opposite flow's turn may begin."""


class WhoseTurn(NamedTuple):
    """The newest turn in a topic."""

    side: TurnSide
    """The flow whose turn it is, or was if all is copied."""
    number: int
    phase: TurnPhase

    def copies(self, side: TurnSide) -> bool:
        """True if a flow may copy records of the topic now."""
        return self.side is side and self.phase is not TurnPhase.DRAINED


def whose_turn(first: FlowWords, second: FlowWords) -> WhoseTurn:
    """Return the newest turn by both flows' words; without any the first flow's."""
    side = TurnSide.SECOND if second.number(TurnSide.SECOND) > first.number(TurnSide.FIRST) else TurnSide.FIRST
    words = second if side is TurnSide.SECOND else first
    phase = TurnPhase.COPYING
    if words.done is not None:
        phase = TurnPhase.DRAINED if words.done.released else TurnPhase.DRAINING
    return WhoseTurn(side, words.number(side), phase)


def words_in(state: ControlState, topic: str) -> FlowWords:
    """Return a flow's words on its source topic in its control topic."""
    return FlowWords(state.turns.get(topic), state.done.get(topic))
