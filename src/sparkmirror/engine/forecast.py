"""The forecast: when will the source delete what is not copied yet?

Two distances are watched for each partition that lags: in time, from now to the moment when retention.ms takes the
oldest record that is not copied; and in offsets, from the start of the source's log to that record. While a distance
shrinks, what is left of it divided by its speed is the forecast, unless the partition has copied what is there now
before: a lag of milliseconds in a topic with minutes of retention is no danger.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sparkmirror.wire.topic_partition import TopicPartition

WARN_MINUTES = 360.0
"""A forecast below this is a warning, and a metric: as the alert RetentionWillWin has it."""

WINDOW_S = 600.0
"""Speeds are over this time: a log's start moves in jumps, a segment at a time."""

STEP_S = 30.0
"""How far the moments lie apart that are kept of it."""

SHORTEST_S = 20.0
"""Speeds over less are noise."""


class LagSample(NamedTuple):
    """How one partition that lags stands at one moment."""

    at_s: float
    """In seconds since 1970."""
    upstream: int
    """Of the oldest record that is not copied."""
    source_end: int
    log_start: int
    """Of the source's log."""
    timestamp_ms: int
    """Of the last record that was copied, which the next one is hardly older than; -1: not known."""
    retention_ms: int
    """Of the source topic; -1: it deletes nothing by age."""

    @property
    def seconds_left(self) -> float:
        """Until the oldest record that is not copied is as old as the source lets it become."""
        if self.timestamp_ms < 0 or self.retention_ms < 0:
            return math.inf
        return (self.timestamp_ms + self.retention_ms) / 1000 - self.at_s


class Forecast(NamedTuple):
    """The source deletes what is not copied yet of one partition in so many minutes."""

    topic: str
    partition: int
    minutes: float

    @property
    def words(self) -> str:
        return f"the source deletes what is not copied yet of {self.topic}-{self.partition} in {self.minutes:.0f} min"


class Forecaster:
    """Watches one flow's partitions that lag."""

    def __init__(self) -> None:
        self._seen: dict[TopicPartition, deque[LagSample]] = defaultdict(deque)

    def note(self, standings: Mapping[TopicPartition, LagSample]) -> None:
        """How all partitions that lag stand now; those that don't are forgotten."""
        for where in self._seen.keys() - standings.keys():
            del self._seen[where]
        for where, standing in standings.items():
            seen = self._seen[where]
            if len(seen) > 1 and standing.at_s - seen[-2].at_s < STEP_S:
                seen.pop()
            seen.append(standing)
            while standing.at_s - seen[0].at_s > WINDOW_S:
                seen.popleft()

    def forecasts(self) -> Iterable[Forecast]:
        """Of each partition that will lose records if nothing changes."""
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
    """When a distance that shrank from `before` to `now` in `passed` seconds is used up; infinity: never."""
    if not now < before or math.isinf(before):
        return math.inf
    return max(now, 0.0) * passed / (before - now)
