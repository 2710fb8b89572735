"""A flow's states."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

ELSEWHERE = "another process works on it"
"""Reason where a process stands by as it should."""


class FlowState(StrEnum):
    """A flow's state: the first true state, in this order."""

    WRONG_CLUSTER = "wrong cluster"
    """The source's or the target's name leads to another cluster: nothing is copied."""
    STANDING_BY = "standing by"
    """Standby: another process works on the flow."""
    JOINING = "joining"
    """Joining: this process waits for the flow's lease, or for a cluster."""
    ENDING = "ending"
    DONE = "done"
    """Complete copy, with `--once`."""
    INCOMPLETE = "incomplete"
    """Incomplete copy, with `--once`."""
    UNREACHABLE = "unreachable"
    """No broker answers at the source, or at the target."""
    TRANSLATING = "translating"
    """The flow copies nothing and translates groups."""
    STARTING = "starting"
    """Pumps have not reported yet."""
    FINDING_OUT = "finding out"
    """A partition's position, or its end, is not known."""
    COPYING = "copying"
    HELD_UP = "held up"
    """All has caught up except parked partitions and refused topics.

    Partitions that a transaction holds back count as parked ones. Late records (`topics done`) hold a flow up whatever
    else it copies.
    """
    NOTHING = "nothing to copy"
    """No source topic but heartbeats matches."""
    WAITS = "waits for its turn"
    """Each topic is live in the opposite direction (`sparkmirror.turn`)."""
    CAUGHT_UP = "caught up"


class SaidState(NamedTuple):
    """A flow's state, and the reason where the state needs one."""

    state: FlowState
    reason: str = ""

    @property
    def words(self) -> str:
        return f"{self.state}: {self.reason}" if self.reason else self.state
