"""Newest facts that the driver knows about a flow.

The facts come from the pumps' reports and from the source.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.cluster_watch import Away, ClusterWatch, KnownBrokers
from sparkmirror.mirror.engine.copied_counts import CopiedCounts, counting
from sparkmirror.mirror.engine.forecast import Forecast
from sparkmirror.mirror.engine.transaction_watch import HeldBack
from sparkmirror.pump.messages.figures import PartitionFigures, Totals
from sparkmirror.pump.messages.orders import FlowEnd, FlowReport, Receipt

ENDS_S = 15.0
"""Age in seconds from which the source's ends tell nothing any more.

They are read every five seconds, and two readings may come late. A source that does not answer at all is noticed
before (`mirror/engine/cluster_watch.py`).
"""

SHORTEST_S = 0.5
"""Shortest time in seconds to measure a rate over: shorter ones give noise."""


_NOTHING: Mapping[TopicPartition, int] = MappingProxyType({})


class SourceEnd(NamedTuple):
    """A partition's log end at the source; None: not known."""

    end: int | None
    readable: int | None
    """End of the readable records, while an open transaction holds the rest back.

    None: all records are readable.
    """


@dataclass(slots=True, kw_only=True)
class PartitionView:
    """Newest facts about a partition."""

    receipt: Receipt | None = None
    bytes_per_s: float = 0.0
    records_per_s: float = 0.0
    seen_at: float = 0.0
    """Time of reading the pump's newest report, in seconds since 1970."""
    told_at: float = 0.0
    """The same report's time by the pump host's clock."""
    pump: str = ""
    turn: tuple[int, int] = (0, 0)
    """Round and move number by which the newest pump has the partition."""
    figures: PartitionFigures | None = None
    counts: CopiedCounts = field(default_factory=CopiedCounts)

    def is_late(self, receipt: Receipt, pump: str, turn: tuple[int, int]) -> bool:
        """True if a later pump has reported already.

        The tasks' reports have no common order.
        """
        return self.pump not in ("", pump) and (receipt.released or turn < self.turn)

    def take(self, receipt: Receipt, pump: str, told_at: float, turn: tuple[int, int]) -> None:
        """Take a pump's newest receipt for the partition.

        The rates are those since the pump's receipt before, by the pump's clock.
        """
        seconds = told_at - self.told_at
        records, size = self.counts.take(turn[0], pump, receipt.records, receipt.bytes)
        if self.receipt is not None and self.pump == pump and seconds >= SHORTEST_S:
            self.records_per_s, self.bytes_per_s = records / seconds, size / seconds
        self.receipt, self.pump, self.turn = receipt, pump, turn
        self.seen_at, self.told_at = time.time(), told_at

    def copied_by_query(self, receipt: Receipt, records: int, size: int) -> None:
        """Take a query's receipt, and the records and bytes since the receipt before."""
        self.counts.add(records, size)
        self.receipt, self.seen_at = receipt, time.time()

    def end_with(self, receipt: Receipt) -> None:
        """Take the final receipt from the partition's pump, which may never have reported.

        A task that has released the partition may know less than later tasks have reported.
        """
        if receipt.released and self.receipt is not None and receipt.upstream < self.receipt.upstream:
            return
        self.receipt, self.pump = receipt, self.pump or "one that has ended"

    def forget(self) -> None:
        """Forget all but the counts: another mirror may have copied on since."""
        self.receipt, self.figures, self.pump, self.turn = None, None, "", (0, 0)
        self.bytes_per_s = self.records_per_s = 0.0


@dataclass(slots=True, kw_only=True)
class FlowView:
    """Newest facts about a flow; counts since this process began."""

    pumps: dict[str, FlowReport] = field(default_factory=dict)
    heard_at: dict[str, float] = field(default_factory=dict)
    """Time of reading each pump's newest report, in seconds since 1970."""
    watches: tuple[ClusterWatch, ClusterWatch] | None = None
    """Watches over source and target; None: nobody watches."""
    source_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """High watermarks at the source, read by the driver.

    Pumps see no watermarks for partitions that they don't fetch.
    """
    late: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Late offsets in done partitions that have copies of the opposite flow as well."""
    source_starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Source log starts, for partitions that lag."""
    source_stable: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Lagging partitions' last stable offsets, where below the end.

    Records from there on wait for a transaction's end. Empty at read_uncommitted.
    """
    held_back: Mapping[TopicPartition, HeldBack] = field(default_factory=dict)
    """Transactions open for long, by partition."""
    ends_read_at: float = float("-inf")
    """Time of the last reading, by `time.monotonic`."""
    ends_trouble: str = ""
    """Reason why the ends could not be read last time; empty after a success."""
    admin_connections: tuple[int, int] = (0, 0)
    """Open connections from the driver's duties to source and target."""
    partitions: dict[PartitionKey, PartitionView] = field(default_factory=dict)
    forecast: Forecast | None = None
    """The partition that loses records to retention first, if any.

    The source would delete records before the copy.
    """
    gone: tuple[str, ...] = ()
    """Source topics that were copied and no longer exist; their copies stay."""

    counts: CopiedCounts = field(default_factory=CopiedCounts)
    """Records and bytes from all pumps and queries so far."""

    past_totals: Totals = field(default_factory=Totals)
    """Pumps' totals for the rounds before the last two."""

    _former: dict[str, FlowReport] = field(default_factory=dict)
    """Newest reports of the round before the newest."""

    rounds: Counter[str] = field(default_factory=Counter)
    """Number of ended rounds, by reason."""

    changes: int = 0
    """Number of reports and ended rounds with news on partitions."""

    @property
    def away(self) -> tuple[Away | None, Away | None]:
        """Silence of source and target; None: it answers."""
        return (self.watches[0].away, self.watches[1].away) if self.watches is not None else (None, None)

    @property
    def brokers(self) -> tuple[KnownBrokers | None, KnownBrokers | None]:
        """Brokers of source and target; None: not known."""
        return (self.watches[0].brokers, self.watches[1].brokers) if self.watches is not None else (None, None)

    @property
    def totals(self) -> Totals:
        """Sum of all counters, over all pumps so far."""
        with counting:
            reports = [*self._former.values(), *self.pumps.values()]
            return sum((report.totals for report in reports), self.past_totals)

    @property
    def live(self) -> list[FlowReport]:
        """Newest reports of the pumps at work, by task.

        Of a task that Spark has started again only the pump that was heard last counts: the earlier one is dead.
        """
        newest: dict[int, FlowReport] = {}
        for report in sorted(list(self.pumps.values()), key=lambda report: self.heard_at[report.pump]):
            newest[report.task] = report
        return [newest[task] for task in sorted(newest) if not newest[task].ended]

    @property
    def copied(self) -> dict[TopicPartition, int]:
        """Source partition to its last copied record's upstream offset, if known."""
        views = list(self.partitions.items())
        return {
            (key.topic, key.partition): view.receipt.upstream - 1
            for key, view in views
            if view.receipt is not None and view.receipt.upstream > 0
        }

    @property
    def receipts(self) -> list[Receipt]:
        return [view.receipt for view in list(self.partitions.values()) if view.receipt is not None]

    def take_counts(self, report: FlowReport) -> None:
        """Take only a late report's counts.

        Newer facts, or its round's final receipts, are known.
        """
        for receipt in report.receipts:
            view = self._of(receipt)
            view.counts.take(report.epoch, report.pump, receipt.records, receipt.bytes)
        self.changes += bool(report.receipts)

    def _of(self, receipt: Receipt) -> PartitionView:
        key = PartitionKey(receipt.flow, receipt.source_topic, receipt.partition)
        return self.partitions.setdefault(key, PartitionView())

    def take_report(self, flow: str, report: FlowReport) -> None:
        """Take a pump's receipts and figures."""
        for receipt in report.receipts:
            view = self._of(receipt)
            turn = report.epoch, receipt.move
            if view.is_late(receipt, report.pump, turn):
                view.counts.take(report.epoch, report.pump, receipt.records, receipt.bytes)
            else:
                view.take(receipt, report.pump, report.at_ms / 1000, turn)
        for figures in report.figures:
            known = self.partitions.get(PartitionKey(flow, figures.source_topic, figures.partition))
            if known is not None:
                known.figures = figures
        self.changes += bool(report.receipts or report.figures)

    def has_arrived(self, key: PartitionKey, round_number: int, move: int) -> bool:
        """True if a pump that has a partition by this move in a round has reported.

        A later move counts, too.
        """
        view = self.partitions.get(key)
        return view is not None and view.turn[0] == round_number and view.turn[1] >= move

    def end_round(self, round_number: int, ends: Iterable[FlowEnd]) -> None:
        """Count all that a round's ended pumps have copied.

        Their last reports may be missing.
        """
        for end in ends:
            for receipt in end.receipts:
                self._of(receipt).counts.take(round_number, end.pump, receipt.records, receipt.bytes)
            records = sum(receipt.records for receipt in end.receipts)
            self.counts.take(round_number, end.pump, records, sum(receipt.bytes for receipt in end.receipts))
        self.changes += 1

    def known_ends(self, now_s: float) -> Mapping[TopicPartition, int]:
        """Return the source's ends at a monotonic `now_s`.

        None if they are too old, or the source is away: what came since is not known.
        """
        return self.source_ends if now_s - self.ends_read_at < ENDS_S and self.away[0] is None else {}

    def end_of(self, key: PartitionKey, ends: Mapping[TopicPartition, int]) -> SourceEnd:
        """Return a partition's end: the newer reading, by driver or pump.

        `ends` are `known_ends`.
        """
        at = key[1:]
        end, readable = ends.get(at), self.source_stable.get(at)
        view = self.partitions.get(key)
        told = view.receipt.source_end if view is not None and view.receipt is not None else -1
        if view is None or told < 0:
            return SourceEnd(end, readable)
        if end is None:
            fresh = time.time() - view.seen_at < ENDS_S and self.away[0] is None
            return SourceEnd(told if fresh else None, None)
        return SourceEnd(max(end, told), None if readable is None else max(readable, told))

    def silence(self, alias: str, now_s: float) -> str:
        """Return why the ends of the source `alias` are unknown; empty if known."""
        silent_s = now_s - self.ends_read_at
        if silent_s < ENDS_S:
            return ""
        if silent_s == float("inf"):  # they were never read
            return self.ends_trouble
        words = f"cluster {alias} has not told the ends of its logs for {silent_s:,.0f} s"
        return f"{words}: {self.ends_trouble}" if self.ends_trouble else words

    def take_ends(
        self,
        ends: Mapping[TopicPartition, int],
        starts: Mapping[TopicPartition, int],
        stable: Mapping[TopicPartition, int] = _NOTHING,
    ) -> None:
        """Take the newest ends, starts and last stable offsets of the source's logs.

        Equal ones change nothing: the mappings stay the same objects.
        """
        if (ends, starts, stable) != (self.source_ends, self.source_starts, self.source_stable):
            self.source_ends, self.source_starts, self.source_stable = ends, starts, stable
        self.ends_read_at, self.ends_trouble = time.monotonic(), ""

    def note(self, report: FlowReport) -> bool:
        """Keep a pump's newest report, and sum up those from earlier rounds.

        Cancelled pumps live on for seconds, and a report may be written twice. Return False if a newer one from the
        pump is known. Its CPU time tells that: clocks may be set back.
        """
        self.counts.take(report.epoch, report.pump, report.records, report.bytes)
        with counting:
            newest = max((other.epoch for other in self.pumps.values()), default=report.epoch)
            if report.epoch > newest:
                self.past_totals += sum((other.totals for other in self._former.values()), Totals())
                self._former, self.pumps = self.pumps, {}
                self.heard_at = {pump: at for pump, at in self.heard_at.items() if pump in self._former}
            pumps = self.pumps if report.epoch >= newest else self._former
            known = pumps.get(report.pump)
            if known is not None and known.cpu_s > report.cpu_s:
                return False
            if report.epoch >= newest - 1:
                self.heard_at[report.pump] = time.time()
                pumps[report.pump] = report
            return True
