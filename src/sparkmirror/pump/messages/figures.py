"""Figures measured by a pump, as plain values that add up over pumps and rounds."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

LATENCY_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
"""Upper bounds of the latency histogram's buckets; a last bucket has no bound."""


class _Figures(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TrafficTotals(_Figures):
    """Traffic over the connections to the source or the target since the pump began."""

    bytes: int = 0
    """Bytes in the source's answers, or in batches sent to the target."""
    requests: int = 0
    errors: int = 0
    """Number of connections broken, given up, or impossible to make."""
    throttle_ms: int = 0
    """Time for which brokers asked to be left alone."""
    waited_ms: int = 0
    """Sum of the times from a request to the answer."""

    def __add__(self, other: TrafficTotals) -> TrafficTotals:
        return TrafficTotals(
            bytes=self.bytes + other.bytes,
            requests=self.requests + other.requests,
            errors=self.errors + other.errors,
            throttle_ms=self.throttle_ms + other.throttle_ms,
            waited_ms=self.waited_ms + other.waited_ms,
        )


class Latencies(_Figures):
    """Records by latency, the time from timestamp to acknowledgement.

    All records in a batch count with the batch's newest timestamp.
    """

    counts: tuple[int, ...] = (0,) * (len(LATENCY_BOUNDS_S) + 1)
    """Number of records in each bucket (`LATENCY_BOUNDS_S`)."""
    sum_ms: int = 0
    """Sum of all records' latencies."""

    def __add__(self, other: Latencies) -> Latencies:
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Latencies(counts=counts, sum_ms=self.sum_ms + other.sum_ms)


class Totals(_Figures):
    """Counts that never fall while a pump lives."""

    source: TrafficTotals = TrafficTotals()
    target: TrafficTotals = TrafficTotals()
    latencies: Latencies = Latencies()
    """All records' latencies, except heartbeats."""
    heartbeats: Latencies = Latencies()

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            source=self.source + other.source,
            target=self.target + other.target,
            latencies=self.latencies + other.latencies,
            heartbeats=self.heartbeats + other.heartbeats,
        )


class LineFigures(_Figures):
    """Line between a pump and one broker: what was measured, and what the pump chose."""

    side: Literal["source", "target"]
    broker: int
    backfill: bool = False
    """True for connections with partitions far behind; always False at the target."""
    round_trip_ms: float
    """Shortest time from a request to the beginning of its answer, lately."""
    bytes_per_s: int
    window_bytes: int
    """Most bytes in flight to or from the broker."""
    connections: int
    batch_bytes: int = 0
    """Size up to which small batches are joined; 0: they go as they are."""
    why: str
    """Reason for the window's size, for people."""


class PartitionFigures(_Figures):
    """One partition's figures.

    A spread is (last, least, most, mean) over about the last minute.
    """

    source_topic: str
    partition: int
    latency_ms: tuple[float, float, float, float] | None = None
    """Spread of the time from a record's timestamp to the acknowledgement."""
    age_ms: tuple[float, float, float, float] | None = None
    """Spread of the time from a record's timestamp to the sending to the target."""
    oldest_ms: int = -1
    """Timestamp of the first fetched record without acknowledgement; -1: none."""
