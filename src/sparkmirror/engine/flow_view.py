"""The newest that the driver knows about a flow: what its pumps reported and what the source has."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.engine.assignment import PartitionKey
from sparkmirror.engine.forecast import Forecast
from sparkmirror.messages.figures import PartitionFigures, Totals
from sparkmirror.messages.orders import FlowReport, Receipt
from sparkmirror.wire.topic_partition import TopicPartition


@dataclass(slots=True)
class PartitionView:
    """The newest that is known about one partition."""

    receipt: Receipt | None = None
    bytes_per_s: float = 0.0
    records_per_s: float = 0.0
    seen_at: float = 0.0
    """When the pump reported it, in seconds since 1970."""
    pump: str = ""
    figures: PartitionFigures | None = None
    past_records: int = 0
    past_bytes: int = 0
    """Of pumps before this one."""

    def take(self, receipt: Receipt, pump: str, at_s: float) -> None:
        """The newest word of a pump on it."""
        if self.receipt is not None and self.pump not in ("", pump):
            self.past_records += self.receipt.records
            self.past_bytes += self.receipt.bytes
        self.receipt, self.pump, self.seen_at = receipt, pump, at_s

    def end_with(self, receipt: Receipt) -> None:
        """The last word of the pump that worked on it, which may not have reported."""
        self.receipt, self.pump = receipt, self.pump or "one that has ended"

    def forget(self) -> None:
        """Somebody else may have gone on from there since: only the counts stay."""
        if self.receipt is not None:
            self.past_records += self.receipt.records
            self.past_bytes += self.receipt.bytes
        self.receipt, self.figures, self.pump = None, None, ""
        self.bytes_per_s = self.records_per_s = 0.0


class EndedEpoch(NamedTuple):
    """What an epoch that has ended has copied."""

    epoch: int
    records: int
    bytes: int


@dataclass(slots=True)
class FlowView:
    """The newest that is known about a flow; counts since this process began."""

    pumps: dict[str, FlowReport] = field(default_factory=dict)
    source_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """High watermarks at the source, read by the driver: pumps don't see those that they don't fetch."""
    source_starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where the source's logs begin, of partitions that lag."""
    ends_read_at: float = float("-inf")
    """By `time.monotonic`."""
    ends_trouble: str = ""
    """Why the ends could not be read, the last time that was tried."""
    admin_connections: tuple[int, int] = (0, 0)
    """Open connections of the driver's duties to source and target."""
    partitions: dict[PartitionKey, PartitionView] = field(default_factory=dict)
    forecast: Forecast | None = None
    """The partition whose records the source deletes first before they are copied, if there is one."""
    gone: tuple[str, ...] = ()
    """Source topics that were copied and are not there any more; their copies stay."""

    past_records: int = 0
    past_bytes: int = 0
    """Of pumps of epochs before the newest."""

    past_totals: Totals = field(default_factory=Totals)
    """Of the same."""

    epochs: Counter[str] = field(default_factory=Counter)
    """How many epochs have ended, by why."""

    settled: EndedEpoch | None = None
    """The newest epoch that has ended, until reports of a later one come: receipts know more than the last reports."""

    @property
    def records(self) -> int:
        reported = sum(report.records for report in self._unsettled)
        return self.past_records + reported + (self.settled.records if self.settled else 0)

    @property
    def bytes(self) -> int:
        reported = sum(report.bytes for report in self._unsettled)
        return self.past_bytes + reported + (self.settled.bytes if self.settled else 0)

    @property
    def totals(self) -> Totals:
        """All that only grows, of all pumps so far."""
        return sum((report.totals for report in list(self.pumps.values())), self.past_totals)

    @property
    def _unsettled(self) -> list[FlowReport]:
        settled = self.settled.epoch if self.settled else -1
        return [report for report in list(self.pumps.values()) if report.epoch != settled]

    @property
    def copied(self) -> dict[TopicPartition, int]:
        """The upstream offset of the last record copied, by source topic and partition, as far as it is known."""
        views = list(self.partitions.items())
        return {
            (key.topic, key.partition): view.receipt.upstream - 1
            for key, view in views
            if view.receipt is not None and view.receipt.upstream > 0
        }

    def settle(self, epoch: int, receipts: Iterable[Receipt]) -> None:
        """An epoch has ended, with these receipts."""
        if self.settled is not None:
            self._close()
        all_of_them = list(receipts)
        self.settled = EndedEpoch(epoch, sum(one.records for one in all_of_them), sum(one.bytes for one in all_of_them))

    def take_look(self, ends: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int]) -> None:
        """The source's logs were looked at just now."""
        self.source_ends, self.source_starts = ends, starts
        self.ends_read_at, self.ends_trouble = time.monotonic(), ""

    def _close(self) -> None:
        if self.settled is not None:
            self.past_records += self.settled.records
            self.past_bytes += self.settled.bytes
            for one in self.pumps.values():
                if one.epoch == self.settled.epoch:
                    self.past_totals += one.totals
            self.pumps = {pump: one for pump, one in self.pumps.items() if one.epoch != self.settled.epoch}
            self.settled = None

    def note(self, report: FlowReport) -> None:
        """Keep a pump's newest report; those of earlier epochs are summed up."""
        if any(other.epoch > report.epoch for other in list(self.pumps.values())):
            return  # of a pump that was cancelled and lived on
        for pump, old in list(self.pumps.items()):
            if old.epoch < report.epoch:
                if self.settled is None or old.epoch != self.settled.epoch:
                    self.past_records += old.records
                    self.past_bytes += old.bytes
                self.past_totals += old.totals
                del self.pumps[pump]
        if self.settled is not None and self.settled.epoch < report.epoch:
            self._close()
        self.pumps[report.pump] = report
