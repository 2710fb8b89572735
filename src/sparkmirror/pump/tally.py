"""Count acknowledged records, delays, and traffic over connections."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable

from sparkmirror.clock import wall_ms
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.policy.replication import HEARTBEATS
from sparkmirror.pump.batch import Batch
from sparkmirror.pump.messages.figures import LATENCY_BOUNDS_S, Latencies, PartitionFigures, Totals, TrafficTotals

SAMPLE_S = 30.0
"""A sample's length, as in Kafka's sensors (`metrics.sample.window.ms`).

A spread is over the present sample and the sample before.
"""

_SAMPLES = 4096
_BOUNDS_MS = tuple(bound * 1000 for bound in LATENCY_BOUNDS_S)


class TrafficMeter:
    """Traffic over the connections to the source or the target, as in `TrafficTotals`."""

    def __init__(self) -> None:
        self.bytes = 0
        self.requests = 0
        self.connections = 0
        """Number of open connections."""
        self.errors = 0
        self.throttle_ms = 0
        self.waited_s = 0.0
        self.answers = 0
        self._taken = 0.0, 0

    def take_mean_wait_ms(self) -> float | None:
        """Return the mean milliseconds from request to answer since the last call.

        None if no answer has come since.
        """
        waited_s, answers = self.waited_s - self._taken[0], self.answers - self._taken[1]
        self._taken = self.waited_s, self.answers
        return round(waited_s / answers * 1000, 3) if answers else None

    def answered(self, size: int, waited_s: float) -> None:
        """Count an answered request, with the bytes moved and the time waited."""
        self.bytes += size
        self.waited_s += waited_s
        self.answers += 1

    @property
    def totals(self) -> TrafficTotals:
        return TrafficTotals(
            bytes=self.bytes,
            requests=self.requests,
            errors=self.errors,
            throttle_ms=self.throttle_ms,
            waited_ms=int(self.waited_s * 1000),
        )


class _Sample:
    __slots__ = ("count", "least", "most", "since_s", "sum")

    def __init__(self, since_s: float, least: float, most: float) -> None:
        self.since_s = since_s
        self.least = least
        self.most = most
        self.sum = 0.0
        self.count = 0


class FigureWindow:
    """A figure's least, most, mean and last over the last half to whole minute."""

    __slots__ = ("_before", "_last", "_now")

    def __init__(self) -> None:
        self._before: _Sample | None = None
        self._now: _Sample | None = None
        self._last = 0.0

    def note(self, now_s: float, least: float, most: float, count: int) -> None:
        """Note `count` observations from `least` to `most`; the newest is `least`."""
        sample = self._now
        if sample is None or now_s - sample.since_s >= SAMPLE_S:
            self._roll(now_s)
            sample = self._now = _Sample(now_s, least, most)
        elif least < sample.least:
            sample.least = least
        if most > sample.most:
            sample.most = most
        sample.sum += (least + most) / 2 * count
        sample.count += count
        self._last = least

    def read(self, now_s: float) -> tuple[float, float, float, float] | None:
        """Return last, least, most and mean; None without observations."""
        self._roll(now_s)
        samples = [sample for sample in (self._before, self._now) if sample is not None]
        if not samples:
            return None
        mean = sum(sample.sum for sample in samples) / sum(sample.count for sample in samples)
        return self._last, min(each.least for each in samples), max(each.most for each in samples), round(mean, 3)

    def _roll(self, now_s: float) -> None:
        if self._now is not None and now_s - self._now.since_s >= SAMPLE_S:
            self._before, self._now = self._now, None
        if self._before is not None and now_s - self._before.since_s >= 2 * SAMPLE_S:
            self._before = None


class _Latencies:
    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS_MS) + 1)
        self._sum_ms = 0

    def note(self, latency_ms: int, records: int) -> None:
        self._counts[bisect_left(_BOUNDS_MS, latency_ms)] += records
        if latency_ms > 0:
            self._sum_ms += latency_ms * records

    @property
    def totals(self) -> Latencies:
        return Latencies(counts=tuple(self._counts), sum_ms=self._sum_ms)


class Tally:
    """One flow's counters in one pump.

    Records, bytes and totals count since the start; `take_latency_ms` takes single batches' latencies.
    """

    def __init__(self, clock_ms: Callable[[], int] = wall_ms) -> None:
        """Begin; `clock_ms` is the clock for the records' timestamps."""
        self._clock_ms = clock_ms
        self.records = 0
        self.bytes = 0
        self.source = TrafficMeter()
        self.target = TrafficMeter()
        self._latencies: list[int] = []
        self._data, self._heartbeats = _Latencies(), _Latencies()
        self._spreads: defaultdict[TopicPartition, tuple[FigureWindow, FigureWindow]] = defaultdict(
            lambda: (FigureWindow(), FigureWindow())
        )

    def acknowledged(self, source: TopicPartition, batch: Batch, now: float) -> None:
        """Count a batch of a source partition, just acknowledged.

        `now` is by `batch.sent_at`'s clock.
        """
        self.records += batch.count
        self.bytes += len(batch.view)
        if batch.max_timestamp < 0:
            return
        least = self._clock_ms() - batch.max_timestamp
        most = max(least + batch.max_timestamp - batch.base_timestamp, least) if batch.base_timestamp >= 0 else least
        if len(self._latencies) < _SAMPLES:
            self._latencies.append(least)
        (self._heartbeats if source[0] == HEARTBEATS else self._data).note(least, batch.count)
        latency, age = self._spreads[source]
        latency.note(now, least, most, batch.count)
        in_flight_ms = (now - batch.sent_at) * 1000
        age.note(now, least - in_flight_ms, most - in_flight_ms, batch.count)

    @property
    def totals(self) -> Totals:
        return Totals(
            source=self.source.totals,
            target=self.target.totals,
            latencies=self._data.totals,
            heartbeats=self._heartbeats.totals,
        )

    def figures(self, source: TopicPartition, oldest_ms: int | None, now: float) -> PartitionFigures:
        latency, age = self._spreads.get(source, (None, None))
        return PartitionFigures(
            source_topic=source[0],
            partition=source[1],
            latency_ms=latency.read(now) if latency is not None else None,
            age_ms=age.read(now) if age is not None else None,
            oldest_ms=-1 if oldest_ms is None else oldest_ms,
        )

    def take_latency_ms(self) -> tuple[float, float] | None:
        """Return p50 and p99 for the milliseconds from timestamp to acknowledgement.

        Each batch is one sample, with the newest record's timestamp. None without samples since the last call.
        """
        samples, self._latencies = sorted(self._latencies), []
        if not samples:
            return None
        return float(samples[len(samples) // 2]), float(samples[min(len(samples) - 1, len(samples) * 99 // 100)])
