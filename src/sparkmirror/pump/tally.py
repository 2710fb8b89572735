"""Counting what was acknowledged, and how late."""

from __future__ import annotations

from sparkmirror.pump.clock import wall_ms

_SAMPLES = 4096


class Tally:
    """Records and bytes since the start; latencies since they were last taken."""

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self._latencies: list[int] = []

    def count(self, records: int, size: int, max_timestamp_ms: int) -> None:
        """A batch was acknowledged now."""
        self.records += records
        self.bytes += size
        if len(self._latencies) < _SAMPLES and max_timestamp_ms >= 0:
            self._latencies.append(wall_ms() - max_timestamp_ms)

    def take_latency_ms(self) -> tuple[float, float] | None:
        """p50 and p99 in milliseconds from newest record's timestamp to acknowledgement, a batch one sample."""
        samples, self._latencies = sorted(self._latencies), []
        if not samples:
            return None
        return float(samples[len(samples) // 2]), float(samples[min(len(samples) - 1, len(samples) * 99 // 100)])
