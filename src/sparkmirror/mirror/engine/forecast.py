"""Forecast: when does the source delete records that are not copied yet?

For each partition that lags, two distances are watched. The first is in time: from now to the moment when
`retention.ms` takes the oldest record that is not copied. The second is in offsets: from the source's log start to that
record.

While a distance shrinks, the rest divided by its speed is the forecast. There is no forecast if the partition
will have copied its present backlog before: lagging by milliseconds is no danger in a topic that keeps records for
minutes.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sparkmirror.kafka.wire.topic_partition import TopicPartition

WARN_MINUTES = 360.0
"""Minutes below which a forecast is a warning and a metric.

The alert RetentionWillWin has the same bound.
"""

WINDOW_S = 600.0
"""Seconds over which speeds are measured.

A log's start moves in jumps, a segment at a time.
"""

STEP_S = 30.0
"""Seconds between the samples that are kept."""

SHORTEST_S = 20.0
"""Shortest time in seconds to measure a speed over: shorter ones give noise."""


class LagSample(NamedTuple):
    """A lagging partition's state at one moment."""

    at_s: float
    """Sample time, in seconds since 1970."""
    upstream: int
    """The oldest uncopied record's source offset."""
    source_end: int
    log_start: int
    """The source's log start."""
    timestamp_ms: int | None
    """The last copied record's timestamp; None: not known.

    The next record is hardly older.
    """
    retention_ms: int | None
    """The source topic's retention; None: it deletes no record by age."""

    @property
    def seconds_left(self) -> float:
        """Seconds until retention takes the oldest record that is not copied."""
        if self.timestamp_ms is None or self.retention_ms is None:
            return math.inf
        return (self.timestamp_ms + self.retention_ms) / 1000 - self.at_s


class Forecast(NamedTuple):
    """Minutes until the source deletes a partition's uncopied records."""

    topic: str
    partition: int
    minutes: float

    @property
    def words(self) -> str:
        return f"the source deletes uncopied records of {self.topic}-{self.partition} in {self.minutes:.0f} min"


class Forecaster:
    """Watch over a flow's partitions that lag."""

    def __init__(self) -> None:
        self._seen: dict[TopicPartition, deque[LagSample]] = defaultdict(deque)

    def note(self, samples: Mapping[TopicPartition, LagSample]) -> None:
        """Sample every partition that lags; all other partitions are forgotten."""
        for partition in self._seen.keys() - samples.keys():
            del self._seen[partition]
        for partition, sample in samples.items():
            seen = self._seen[partition]
            if len(seen) > 1 and sample.at_s - seen[-2].at_s < STEP_S:
                seen.pop()
            seen.append(sample)
            while sample.at_s - seen[0].at_s > WINDOW_S:
                seen.popleft()

    def forecasts(self) -> Iterable[Forecast]:
        """Yield a forecast for each partition that will lose records if nothing changes."""
        for (topic, partition), seen in self._seen.items():
            first, last = seen[0], seen[-1]
            passed = last.at_s - first.at_s
            if passed < SHORTEST_S:
                continue
            seconds = min(
                _until_zero(first.seconds_left, last.seconds_left, passed),
                _until_zero(first.upstream - first.log_start, last.upstream - last.log_start, passed),
            )
            copied = last.upstream - first.upstream
            needed = (last.source_end - last.upstream) * passed / copied if copied > 0 else math.inf
            if seconds < needed:
                yield Forecast(topic, partition, seconds / 60)


def _until_zero(before: float, now: float, passed: float) -> float:
    """Return the seconds until a shrinking distance is used up; infinity: never.

    The distance shrank from `before` to `now` in `passed` seconds.
    """
    if not now < before or math.isinf(before):
        return math.inf
    return max(now, 0.0) * passed / (before - now)
