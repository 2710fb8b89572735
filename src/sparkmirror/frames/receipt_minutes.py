"""Pumps' reports as partitions' minutes: the records that each minute added.

A pump reports how many of a partition's records it has copied since it began. So repeated, late or reordered reports
count once: a minute's figure is a pump's largest count in the minute, minus its largest count in earlier minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pydantic import BaseModel

from sparkmirror.pump.messages.orders import FlowReport

MINUTE_MS = 60_000
FORGOTTEN_MS = 2 * 86_400_000
"""Silence about a partition after which a pump counts as gone there.

A pump lives at most as long as a round, which takes a day at most.
"""

SILENT_MS = 3_600_000
"""Silence about all partitions after which a pump counts as gone.

A living pump reports every second.
"""


class MinuteReading(NamedTuple):
    """One report's figures on one partition; `None` if unknown."""

    at_ms: int
    """Time by the pump's clock."""
    pump: str
    whole: bool
    """True if all the pump's reports since its begin were read.

    Then all counted records were copied since.
    """
    topic: str
    target_topic: str
    partition: int
    records: int
    bytes: int
    lag: int | None
    upstream: int | None
    downstream: int | None
    latency_ms: float | None
    latency_max_ms: float | None


class Minute(NamedTuple):
    """One partition's records copied in one minute, and its state at the end."""

    minute_ms: int
    topic: str
    target_topic: str
    partition: int
    records: int
    bytes: int
    lag: int | None
    upstream: int | None
    downstream: int | None
    latency_ms: float | None
    latency_max_ms: float | None


class Beginnings:
    """Pumps heard from their beginning on.

    `heard` has the pumps, with the last report's time in milliseconds.
    """

    def __init__(self, heard: dict[str, int] | None = None) -> None:
        self.heard = dict(heard or {})
        self._others: set[str] = set()

    def is_whole(self, report: FlowReport) -> bool:
        """Take a pump's next report; return True if its reports are complete.

        A first report that counts records already shows that earlier reports are missing.
        """
        pump = pump_of(report)
        if pump not in self.heard and (report.records or pump in self._others):
            self._others.add(pump)
            return False
        self.heard[pump] = max(report.at_ms, self.heard.get(pump, report.at_ms))
        return True

    def forget(self) -> None:
        newest = max(self.heard.values(), default=0)
        self.heard = {pump: at_ms for pump, at_ms in self.heard.items() if newest - at_ms < SILENT_MS}


def pump_of(report: FlowReport) -> str:
    """Return a name for the report's pump that is unique among all pumps."""
    return f"{report.incarnation}/{report.pump}"


def readings(reports: Iterable[FlowReport], beginnings: Beginnings) -> Iterator[MinuteReading]:
    """Yield the reports' figures on partitions, in order."""
    for report in reports:
        whole, pump = beginnings.is_whole(report), pump_of(report)
        figures = {(figure.source_topic, figure.partition): figure.latency_ms for figure in report.figures}
        for receipt in report.receipts:
            spread = figures.get((receipt.source_topic, receipt.partition))
            known = receipt.upstream >= 0 and receipt.source_end >= 0
            yield MinuteReading(
                at_ms=report.at_ms,
                pump=pump,
                whole=whole,
                topic=receipt.source_topic,
                target_topic=receipt.target_topic,
                partition=receipt.partition,
                records=receipt.records,
                bytes=receipt.bytes,
                lag=max(receipt.source_end - receipt.upstream, 0) if known else None,
                upstream=receipt.upstream if receipt.upstream >= 0 else None,
                downstream=receipt.downstream if receipt.downstream >= 0 else None,
                latency_ms=spread[3] if spread else None,
                latency_max_ms=spread[2] if spread else None,
            )


class _Counted(BaseModel):
    """A pump's least and largest counts in a minute."""

    whole: bool
    least_records: int
    least_bytes: int
    records: int
    bytes: int


class _Open(BaseModel):
    pumps: dict[str, _Counted] = {}
    newest: MinuteReading | None = None


class _Past(BaseModel):
    """A pump's largest counts in all closed minutes, and the last such minute."""

    minute_ms: int
    records: int
    bytes: int


class PartitionMinutes(BaseModel):
    """One partition's open minutes; their JSON is a stream's state."""

    past: dict[str, _Past] = {}
    open: dict[int, _Open] = {}
    closed_to_ms: int = 0

    def add(self, reading: MinuteReading) -> None:
        """Add a reading.

        A reading from a closed minute counts in the first open minute.
        """
        minute_ms = max(reading.at_ms // MINUTE_MS * MINUTE_MS, self.closed_to_ms)
        minute = self.open.setdefault(minute_ms, _Open())
        counted = minute.pumps.get(reading.pump)
        if counted is None:
            minute.pumps[reading.pump] = _Counted(
                whole=reading.whole,
                least_records=reading.records,
                least_bytes=reading.bytes,
                records=reading.records,
                bytes=reading.bytes,
            )
        else:
            counted.whole = counted.whole or reading.whole
            counted.least_records = min(counted.least_records, reading.records)
            counted.least_bytes = min(counted.least_bytes, reading.bytes)
            counted.records = max(counted.records, reading.records)
            counted.bytes = max(counted.bytes, reading.bytes)
        if minute.newest is None or _rank(reading) > _rank(minute.newest):
            minute.newest = reading

    def close(self, before_ms: int | None = None) -> list[Minute]:
        """Close minutes that ended before `before_ms`, and return them in order.

        `None` closes all minutes. A closed minute never changes again.
        """
        ended = sorted(minute for minute in self.open if before_ms is None or minute + MINUTE_MS <= before_ms)
        closed = [self._close(minute_ms, self.open.pop(minute_ms)) for minute_ms in ended]
        if before_ms is not None:
            self.closed_to_ms = max(self.closed_to_ms, before_ms // MINUTE_MS * MINUTE_MS)
        return closed

    @property
    def next_end_ms(self) -> int | None:
        """Time when the first open minute ends; `None` if no minute is open."""
        return min(self.open) + MINUTE_MS if self.open else None

    def _close(self, minute_ms: int, minute: _Open) -> Minute:
        records = size = 0
        for pump, counted in minute.pumps.items():
            past = self.past.get(pump)
            if past is None:
                least = (0, 0) if counted.whole else (counted.least_records, counted.least_bytes)
                past = _Past(minute_ms=minute_ms, records=least[0], bytes=least[1])
            records += max(counted.records - past.records, 0)
            size += max(counted.bytes - past.bytes, 0)
            self.past[pump] = _Past(
                minute_ms=minute_ms,
                records=max(counted.records, past.records),
                bytes=max(counted.bytes, past.bytes),
            )
        self.past = {pump: past for pump, past in self.past.items() if minute_ms - past.minute_ms < FORGOTTEN_MS}
        self.closed_to_ms = max(self.closed_to_ms, minute_ms + MINUTE_MS)
        newest = minute.newest
        assert newest is not None  # noqa: S101 - a reading has opened the minute
        return Minute(
            minute_ms,
            newest.topic,
            newest.target_topic,
            newest.partition,
            records,
            size,
            newest.lag,
            newest.upstream,
            newest.downstream,
            newest.latency_ms,
            newest.latency_max_ms,
        )


def _rank(reading: MinuteReading) -> tuple[int, int, int, str]:
    """Sort key for readings; the newest is the greatest.

    A pump may report twice in one millisecond.
    """
    return reading.at_ms, reading.upstream if reading.upstream is not None else -1, reading.records, reading.pump


def minutes(entries: Iterable[MinuteReading]) -> Iterator[Minute]:
    """Yield all partitions' minutes, by topic and partition."""
    partitions: dict[tuple[str, int], PartitionMinutes] = {}
    for reading in entries:
        partitions.setdefault((reading.topic, reading.partition), PartitionMinutes()).add(reading)
    for _, partition in sorted(partitions.items()):
        yield from partition.close()
