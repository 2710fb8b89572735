"""Reasons to end a round, for metrics and log."""

from __future__ import annotations

from enum import StrEnum


class EndReason(StrEnum):
    """Reason why a round ended.

    The value is the label `reason` of `sparkmirror_epochs_total`.
    """

    PLANNED = "planned"
    STOPPED = "stopped"
    FLOWS = "flows"
    SETTINGS = "settings"
    PUMP = "pump"
    SLOTS = "slots"
    TOPICS = "topics"
    LOAD = "load"
    FAILED = "failed"

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    EndReason.PLANNED: "all requested work is done, or the epoch is a day old",
    EndReason.STOPPED: "the mirror was asked to stop",
    EndReason.FLOWS: "other flows can be worked on now",
    EndReason.SETTINGS: "the configuration has changed",
    EndReason.PUMP: "a pump has ended by itself",
    EndReason.SLOTS: "Spark has more or fewer slots for tasks now",
    EndReason.TOPICS: "topics or partitions have changed more than running tasks can take in",
    EndReason.LOAD: "another division of the partitions is better by now",
    EndReason.FAILED: "the Spark job has failed",
}
