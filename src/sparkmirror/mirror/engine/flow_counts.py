"""A flow's counters, over all drivers that have worked on it."""

from __future__ import annotations

from sparkmirror.mirror.engine.flow_view import FlowView
from sparkmirror.pump.messages.figures import Totals


class FlowCounts:
    """A flow's counters."""

    def __init__(
        self, records: int = 0, size: int = 0, totals: Totals | None = None, rounds: dict[str, int] | None = None
    ) -> None:
        self.records = records
        self.bytes = size
        self.totals = totals or Totals()
        self.rounds = rounds or {}

    @classmethod
    def of(cls, view: FlowView) -> FlowCounts:
        return cls(*view.counts.total, view.totals, dict(view.rounds))

    def plus(self, other: FlowCounts) -> FlowCounts:
        rounds = {
            why: self.rounds.get(why, 0) + other.rounds.get(why, 0) for why in self.rounds.keys() | other.rounds.keys()
        }
        return FlowCounts(
            self.records + other.records,
            self.bytes + other.bytes,
            self.totals + other.totals,
            dict(sorted(rounds.items())),
        )
