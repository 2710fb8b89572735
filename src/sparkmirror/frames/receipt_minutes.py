"""What pumps report, as minutes of partitions: counts that only grow in each pump, turned into what each minute added.

A pump tells how much it has copied of a partition since it began. Whatever comes twice, late or in another order
is therefore counted once: what counts of a minute is the most that a pump said in it, less the most of the minutes
before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pydantic import BaseModel

from sparkmirror.messages.orders import FlowReport

MINUTE_MS = 60_000
FORGOTTEN_MS = 2 * 86_400_000
"""A pump that said nothing of a partition for so long is gone: an epoch takes a day at most (design section 8)."""

SILENT_MS = 3_600_000
"""A pump that said nothing at all for so long is gone: a living one reports every second."""


class MinuteReading(NamedTuple):
    """What one report says of one partition; None where it is not known."""

    at_ms: int
    """By the pump's clock."""
    pump: str
    whole: bool
    """All that this pump said since it began was read, so whatever it counts was copied since."""
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
    """What was copied of a partition in one minute, and how it stood at the end."""

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
    """Which pumps were heard since they began. `heard`: pumps, and when each was heard last, in milliseconds."""

    def __init__(self, heard: dict[str, int] | None = None) -> None:
        self.heard = dict(heard or {})
        self._others: set[str] = set()

    def is_whole(self, report: FlowReport) -> bool:
        """Take the next report of a pump; a first one that counts anything already shows that others are missing."""
        pump = pump_of(report)
        if pump not in self.heard and (report.records or pump in self._others):
            self._others.add(pump)
            return False
        self.heard[pump] = max(report.at_ms, self.heard.get(pump, report.at_ms))
        return True

    def forget(self) -> None:
        """Leave out pumps that are gone."""
        newest = max(self.heard.values(), default=0)
        self.heard = {pump: at_ms for pump, at_ms in self.heard.items() if newest - at_ms < SILENT_MS}


def pump_of(report: FlowReport) -> str:
    """A name that no two pumps share."""
    return f"{report.incarnation}/{report.pump}"


def readings(reports: Iterable[FlowReport], beginnings: Beginnings) -> Iterator[MinuteReading]:
    """What reports say of partitions, in their order."""
    for report in reports:
        whole, pump = beginnings.is_whole(report), pump_of(report)
        figures = {(one.source_topic, one.partition): one.latency_ms for one in report.figures}
        for one in report.receipts:
            spread = figures.get((one.source_topic, one.partition))
            known = one.upstream >= 0 and one.source_end >= 0
            yield MinuteReading(
                at_ms=report.at_ms,
                pump=pump,
                whole=whole,
                topic=one.source_topic,
                target_topic=one.target_topic,
                partition=one.partition,
                records=one.records,
                bytes=one.bytes,
                lag=max(one.source_end - one.upstream, 0) if known else None,
                upstream=one.upstream if one.upstream >= 0 else None,
                downstream=one.downstream if one.downstream >= 0 else None,
                latency_ms=spread[3] if spread else None,
                latency_max_ms=spread[2] if spread else None,
            )


class _Counted(BaseModel):
    """The least and the most that a pump said in a minute."""

    whole: bool
    least_records: int
    least_bytes: int
    records: int
    bytes: int


class _Open(BaseModel):
    pumps: dict[str, _Counted] = {}
    newest: MinuteReading | None = None


class _Past(BaseModel):
    """The most that a pump said in all closed minutes, and the last of these."""

    minute_ms: int
    records: int
    bytes: int


class PartitionMinutes(BaseModel):
    """One partition's minutes on their way; as JSON it is what a stream remembers."""

    past: dict[str, _Past] = {}
    open: dict[int, _Open] = {}
    closed_to_ms: int = 0

    def add(self, reading: MinuteReading) -> None:
        """Take a reading; what comes after its minute was closed counts in the first one that is open."""
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
        """The minutes that have ended before then, in order (None: all), to which nothing is added any more."""
        ended = sorted(minute for minute in self.open if before_ms is None or minute + MINUTE_MS <= before_ms)
        closed = [self._close(minute_ms, self.open.pop(minute_ms)) for minute_ms in ended]
        if before_ms is not None:
            self.closed_to_ms = max(self.closed_to_ms, before_ms // MINUTE_MS * MINUTE_MS)
        return closed

    @property
    def next_end_ms(self) -> int | None:
        """When the first open minute ends; None: there is none."""
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
        assert newest is not None  # noqa: S101 - it was opened by a reading
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
    """The newest is the greatest; a pump may say two things in one millisecond."""
    return reading.at_ms, reading.upstream if reading.upstream is not None else -1, reading.records, reading.pump


def minutes(entries: Iterable[MinuteReading]) -> Iterator[Minute]:
    """All minutes of all partitions, by topic and partition."""
    partitions: dict[tuple[str, int], PartitionMinutes] = {}
    for reading in entries:
        partitions.setdefault((reading.topic, reading.partition), PartitionMinutes()).add(reading)
    for _, partition in sorted(partitions.items()):
        yield from partition.close()
