"""Stages of a partition's copy, and the events that lead from stage to stage.

    SEEKING ──STARTED──> RUNNING ──DOUBTED, WITHHELD──> DRAINING ──DRAINED──> SEEKING
       │                    │  └──REACHED──> DONE ──REOPENED──> SEEKING
       └─────SET_ASIDE──────┴───────────────────────────────┴──> PARKED ──STARTED──> RUNNING

`TRANSITIONS` is the whole diagram. Any doubt has one answer: drop the queue, drain the batches in flight, read the
position, send ONE batch alone until the batch is acknowledged, continue (invariant 5, R3). So only a RUNNING
partition may send, and a partition with batches in flight can't be SEEKING. An event that a stage does not have raises
`ForbiddenEvent`: the pump ends, and nothing is sent from an unforeseen state.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from sparkmirror.errors import HandledError


class Stage(Enum):
    """Stage of a partition's copy."""

    SEEKING = "the position must be read"
    RUNNING = "the partition is copied"
    DRAINING = "batches in flight come back before the position is read"
    PARKED = "the partition can't be copied now"
    DONE = "all records up to the goal are copied"

    __hash__ = object.__hash__  # each member exists once, and Enum's own hash is a call of Python code


class StageEvent(Enum):
    """Event in a partition's copy."""

    ASKED = "a reading of the position begins"
    STARTED = "the copy continues from a position that was read"
    CONFIRMED = "a reading agrees with the copy under way"
    WITHHELD = "the position can't be told now, or the quiet rule holds the records back"
    FED = "a fetch answer came"
    SENT = "a batch is sent"
    ANSWERED = "the oldest batch in flight is answered"
    DOUBTED = "the position is in doubt"
    DRAINED = "no batch is in flight any more"
    SET_ASIDE = "the partition is parked"
    REACHED = "all records up to the goal are acknowledged"
    REOPENED = "the goal has moved, or the position is in doubt"

    __hash__ = object.__hash__


class ForbiddenEvent(HandledError, RuntimeError):
    """Error for an event that a stage does not allow: a mistake in this program.

    Spark tries the task again, and the partition's position is read again.
    """

    def __init__(self, stage: Stage, event: StageEvent) -> None:
        super().__init__(f"a partition that is {stage.name} ({stage.value}) can't have {event.name} ({event.value})")
        self.stage = stage
        self.event = event


class StageRow(dict[StageEvent, Stage]):
    """Next stage by event, for one stage; any other event raises `ForbiddenEvent`."""

    def __init__(self, stage: Stage, events: Mapping[StageEvent, Stage]) -> None:
        super().__init__(events)
        self._stage = stage

    def __missing__(self, event: StageEvent) -> Stage:
        raise ForbiddenEvent(self._stage, event)


_TABLE: Mapping[Stage, Mapping[StageEvent, Stage]] = {
    Stage.SEEKING: {
        StageEvent.ASKED: Stage.SEEKING,
        StageEvent.STARTED: Stage.RUNNING,
        StageEvent.WITHHELD: Stage.SEEKING,
        StageEvent.DOUBTED: Stage.SEEKING,
        StageEvent.SET_ASIDE: Stage.PARKED,
    },
    Stage.RUNNING: {
        StageEvent.ASKED: Stage.RUNNING,
        StageEvent.STARTED: Stage.RUNNING,
        StageEvent.CONFIRMED: Stage.RUNNING,
        StageEvent.WITHHELD: Stage.DRAINING,
        StageEvent.FED: Stage.RUNNING,
        StageEvent.SENT: Stage.RUNNING,
        StageEvent.ANSWERED: Stage.RUNNING,
        StageEvent.DOUBTED: Stage.DRAINING,
        StageEvent.SET_ASIDE: Stage.PARKED,
        StageEvent.REACHED: Stage.DONE,
    },
    Stage.DRAINING: {
        StageEvent.ANSWERED: Stage.DRAINING,
        StageEvent.DOUBTED: Stage.DRAINING,
        StageEvent.DRAINED: Stage.SEEKING,
        StageEvent.SET_ASIDE: Stage.PARKED,
    },
    Stage.PARKED: {
        StageEvent.ASKED: Stage.PARKED,
        StageEvent.STARTED: Stage.RUNNING,
        StageEvent.WITHHELD: Stage.SEEKING,
        StageEvent.ANSWERED: Stage.PARKED,
        StageEvent.SET_ASIDE: Stage.PARKED,
    },
    Stage.DONE: {
        StageEvent.REOPENED: Stage.SEEKING,
    },
}

TRANSITIONS: Mapping[Stage, StageRow] = {stage: StageRow(stage, events) for stage, events in _TABLE.items()}
"""Next stage by stage and event."""
