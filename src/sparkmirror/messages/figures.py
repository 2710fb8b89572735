"""What a pump measures, as it reports it: plain values that add up over pumps and epochs."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

LATENCY_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
"""Upper bounds of the latency histogram's buckets; one more holds what took longer."""


class _Figures(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LegTotals(_Figures):
    """What went over the connections to one side, since the pump began."""

    bytes: int = 0
    """Of the source's answers, or of batches sent to the target."""
    requests: int = 0
    errors: int = 0
    """Connections that broke, could not be made, or were given up."""
    throttle_ms: int = 0
    """How long brokers asked to be left alone."""
    waited_ms: int = 0
    """From requests to their answers, all together."""

    def __add__(self, other: LegTotals) -> LegTotals:
        return LegTotals(
            bytes=self.bytes + other.bytes,
            requests=self.requests + other.requests,
            errors=self.errors + other.errors,
            throttle_ms=self.throttle_ms + other.throttle_ms,
            waited_ms=self.waited_ms + other.waited_ms,
        )


class Latencies(_Figures):
    """Records by the time from their timestamp to their acknowledgement (`LATENCY_BOUNDS_S`), and the sum of that."""

    counts: tuple[int, ...] = (0,) * (len(LATENCY_BOUNDS_S) + 1)
    sum_ms: int = 0

    def __add__(self, other: Latencies) -> Latencies:
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Latencies(counts=counts, sum_ms=self.sum_ms + other.sum_ms)


class Totals(_Figures):
    """All that only grows."""

    source: LegTotals = LegTotals()
    target: LegTotals = LegTotals()
    latencies: Latencies = Latencies()
    """Of all data but heartbeats."""
    heartbeats: Latencies = Latencies()

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            source=self.source + other.source,
            target=self.target + other.target,
            latencies=self.latencies + other.latencies,
            heartbeats=self.heartbeats + other.heartbeats,
        )


class PartitionFigures(_Figures):
    """What was measured of one partition; each spread is (last, least, most, mean) of about the last minute."""

    source_topic: str
    partition: int
    latency_ms: tuple[float, float, float, float] | None = None
    """From a record's timestamp to its acknowledgement."""
    age_ms: tuple[float, float, float, float] | None = None
    """From a record's timestamp to when it was sent to the target."""
    oldest_ms: int = -1
    """Timestamp of the first record that is not acknowledged, if it was fetched."""
