"""Newest facts that the driver knows about a flow.

The facts come from the pumps' reports and from the source.
"""

from __future__ import annotations

import threading
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

ENDS_S = 30.0
"""Age in seconds from which the source's ends tell nothing any more."""

SHORTEST_S = 0.5
"""Shortest time in seconds to measure a rate over: shorter ones give noise."""

_counting = threading.RLock()
"""Lock of all counts.

A scrape between two steps of a change would see records twice, and the next scrape a counter that falls.
"""


@dataclass(slots=True, kw_only=True)
class PartitionView:
    """Newest facts about a partition."""

    receipt: Receipt | None = None
    bytes_per_s: float = 0.0
    records_per_s: float = 0.0
    seen_at: float = 0.0
    """Time of the pump's report, in seconds since 1970."""
    pump: str = ""
    turn: tuple[int, int] = (0, 0)
    """Round, and number of the move in it, by which the newest pump has the partition."""
    figures: PartitionFigures | None = None
    past_records: int = 0
    past_bytes: int = 0
    """Bytes of earlier pumps; `past_records` has their records."""
    before: tuple[str, int, int] = ("", 0, 0)
    """Pump before the newest, with its records and bytes as they were counted."""

    def is_late(self, receipt: Receipt, pump: str, turn: tuple[int, int]) -> bool:
        """True if a later pump has reported already.

        The tasks' reports have no common order.
        """
        return self.pump not in ("", pump) and (receipt.released or turn < self.turn)

    def take(self, receipt: Receipt, pump: str, at_s: float, turn: tuple[int, int]) -> None:
        """Take a pump's newest receipt of the partition.

        A count that fell was begun anew: by a task's next attempt, or when the partition came back to the task.
        """
        with _counting:
            last = self.receipt
            if last is not None and (self.pump not in ("", pump) or receipt.records < last.records):
                self.before = self.pump, last.records, last.bytes
                self._add_to_past(last)
            self.receipt, self.pump, self.seen_at, self.turn = receipt, pump, at_s, turn

    def _add_to_past(self, receipt: Receipt) -> None:
        self.past_records += receipt.records
        self.past_bytes += receipt.bytes

    def counted(self) -> tuple[Receipt | None, int, int]:
        """Return the newest receipt, and the records and bytes of all pumps up to it."""
        with _counting:
            records, size = (self.receipt.records, self.receipt.bytes) if self.receipt is not None else (0, 0)
            return self.receipt, self.past_records + records, self.past_bytes + size

    def correct_past(self, last: Receipt, pump: str) -> None:
        """Take a late receipt of the pump before the newest."""
        if self.before[0] == pump:
            self.past_records += last.records - self.before[1]
            self.past_bytes += last.bytes - self.before[2]
            self.before = pump, last.records, last.bytes

    def end_with(self, receipt: Receipt) -> None:
        """Take the final receipt of the partition's pump, which may never have reported.

        A task that has released the partition may know less than later tasks have reported.
        """
        if receipt.released and self.receipt is not None and receipt.upstream < self.receipt.upstream:
            return
        with _counting:
            if self.receipt is not None and receipt.records < self.receipt.records:  # as in `take`
                self._add_to_past(self.receipt)
            self.receipt, self.pump = receipt, self.pump or "one that has ended"

    def forget(self) -> None:
        """Forget all but the counts: another mirror may have copied on since."""
        with _counting:
            if self.receipt is not None:
                self._add_to_past(self.receipt)
            self.receipt, self.figures, self.pump, self.turn = None, None, "", (0, 0)
        self.bytes_per_s = self.records_per_s = 0.0


class EndedRound(NamedTuple):
    """Counts of a round that has ended."""

    number: int
    records: int
    bytes: int


@dataclass(slots=True, kw_only=True)
class FlowView:
    """Newest facts about a flow; counts since this process began."""

    pumps: dict[str, FlowReport] = field(default_factory=dict)
    source_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """High watermarks at the source, read by the driver.

    Pumps don't see the watermarks of partitions that they don't fetch.
    """
    source_starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Starts of the source's logs, for partitions that lag."""
    ends_read_at: float = float("-inf")
    """Time of the last reading, by `time.monotonic`."""
    ends_trouble: str = ""
    """Reason why the last reading of the ends failed; empty after a success."""
    admin_connections: tuple[int, int] = (0, 0)
    """Open connections of the driver's duties to source and target."""
    partitions: dict[PartitionKey, PartitionView] = field(default_factory=dict)
    forecast: Forecast | None = None
    """The partition that loses records to retention first, if any.

    The source would delete records before the copy.
    """
    gone: tuple[str, ...] = ()
    """Source topics that were copied and no longer exist; their copies stay."""

    past_records: int = 0
    past_bytes: int = 0
    """Bytes of the pumps of rounds before the newest; `past_records` likewise."""

    past_totals: Totals = field(default_factory=Totals)
    """Totals of the pumps of rounds before the newest."""

    rounds: Counter[str] = field(default_factory=Counter)
    """Number of ended rounds, by reason."""

    changes: int = 0
    """Number of reports, and of ended rounds, that told anything new of partitions."""

    ended: EndedRound | None = None
    """Newest ended round, until reports of a later round come.

    Receipts know more than the pumps' last reports.
    """

    @property
    def records(self) -> int:
        with _counting:
            running = sum(report.records for report in self._reports_not_summed)
            return self.past_records + running + self._of_ended.records

    @property
    def bytes(self) -> int:
        with _counting:
            running = sum(report.bytes for report in self._reports_not_summed)
            return self.past_bytes + running + self._of_ended.bytes

    @property
    def totals(self) -> Totals:
        """Sum of all counters, over all pumps so far."""
        with _counting:
            return sum((report.totals for report in self.pumps.values()), self.past_totals)

    @property
    def _reports_not_summed(self) -> list[FlowReport]:
        ended = self.ended.number if self.ended else None
        return [report for report in list(self.pumps.values()) if report.epoch != ended]

    @property
    def _of_ended(self) -> EndedRound:
        """Counts of the newest ended round, by its receipts or by its pumps' reports.

        A task that was tried again has receipts of its last attempt only.
        """
        if self.ended is None:
            return EndedRound(0, 0, 0)
        number, records, size = self.ended
        reports = [report for report in list(self.pumps.values()) if report.epoch == number]
        return EndedRound(
            number,
            max(records, sum(report.records for report in reports)),
            max(size, sum(report.bytes for report in reports)),
        )

    @property
    def copied(self) -> dict[TopicPartition, int]:
        """Source partition to the upstream offset of its last copied record, if known."""
        views = list(self.partitions.items())
        return {
            (key.topic, key.partition): view.receipt.upstream - 1
            for key, view in views
            if view.receipt is not None and view.receipt.upstream > 0
        }

    @property
    def receipts(self) -> list[Receipt]:
        """The newest receipt of each partition."""
        return [view.receipt for view in list(self.partitions.values()) if view.receipt is not None]

    def take_report(self, flow: str, report: FlowReport) -> None:
        """Take a pump's receipts and figures, with the rates since its report before."""
        now = report.at_ms / 1000
        for receipt in report.receipts:
            key = PartitionKey(flow, receipt.source_topic, receipt.partition)
            view = self.partitions.setdefault(key, PartitionView())
            turn = report.epoch, receipt.move
            if view.is_late(receipt, report.pump, turn):
                view.correct_past(receipt, report.pump)
                continue
            if view.receipt is not None and view.pump == report.pump and now - view.seen_at >= SHORTEST_S:
                view.bytes_per_s = (receipt.bytes - view.receipt.bytes) / (now - view.seen_at)
                view.records_per_s = (receipt.records - view.receipt.records) / (now - view.seen_at)
            view.take(receipt, report.pump, now, turn)
        for figures in report.figures:
            known = self.partitions.get(PartitionKey(flow, figures.source_topic, figures.partition))
            if known is not None:
                known.figures = figures
        self.changes += bool(report.receipts or report.figures)

    def has_arrived(self, key: PartitionKey, round_number: int, move: int) -> bool:
        """True if a pump that has a partition by this move of a round has reported.

        A later move counts, too.
        """
        view = self.partitions.get(key)
        return view is not None and view.turn[0] == round_number and view.turn[1] >= move

    def end_round(self, round_number: int, receipts: Iterable[Receipt]) -> None:
        """Take note of an ended round and its receipts."""
        final = list(receipts)
        with _counting:
            if self.ended is not None:
                self._close()
            self.ended = EndedRound(
                round_number, sum(receipt.records for receipt in final), sum(receipt.bytes for receipt in final)
            )
        self.changes += 1

    def known_ends(self, now_s: float) -> Mapping[TopicPartition, int]:
        """Return the source's ends, or none if too old, at a monotonic `now_s`."""
        return self.source_ends if now_s - self.ends_read_at < ENDS_S else {}

    def silence(self, alias: str, now_s: float) -> str:
        """Return why the ends of the source `alias` are unknown; empty if known."""
        silent_s = now_s - self.ends_read_at
        if silent_s < ENDS_S:
            return ""
        if silent_s == float("inf"):  # they were never read
            return self.ends_trouble
        words = f"cluster {alias} has not told the ends of its logs for {silent_s:,.0f} s"
        return f"{words}: {self.ends_trouble}" if self.ends_trouble else words

    def take_ends(self, ends: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int]) -> None:
        """Take the newest ends and starts of the source's logs.

        Equal ones change nothing: the mappings stay the same objects.
        """
        if ends != self.source_ends or starts != self.source_starts:
            self.source_ends, self.source_starts = ends, starts
        self.ends_read_at, self.ends_trouble = time.monotonic(), ""

    def _close(self) -> None:
        if self.ended is not None:
            counted = self._of_ended
            self.past_records += counted.records
            self.past_bytes += counted.bytes
            for report in self.pumps.values():
                if report.epoch == self.ended.number:
                    self.past_totals += report.totals
            self.pumps = {pump: report for pump, report in self.pumps.items() if report.epoch != self.ended.number}
            self.ended = None

    def note(self, report: FlowReport) -> None:
        """Keep a pump's newest report; reports of earlier rounds are summed up."""
        with _counting:
            self._note(report)

    def _note(self, report: FlowReport) -> None:
        if any(other.epoch > report.epoch for other in list(self.pumps.values())):
            return  # from a pump that was cancelled and lived on
        if self.ended is not None and self.ended.number < report.epoch:
            self._close()
        for pump, old in list(self.pumps.items()):
            if old.epoch < report.epoch:
                self.past_records += old.records
                self.past_bytes += old.bytes
                self.past_totals += old.totals
                del self.pumps[pump]
        self.pumps[report.pump] = report
