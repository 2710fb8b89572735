"""Micro-batches of a stream: where one begins and ends, and its ranges.

Spark asks for a stream's begin again for each try of the first micro-batch, also after its end is in the checkpoint.
So that end keeps the begin, where Spark tells it in time (4.2 and newer).
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from sparkmirror.kafka.cluster.first_offsets import Places, parted, with_first
from sparkmirror.kafka.cluster.list_offsets import LATEST
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.source.lost_records import lose, lose_offsets
from sparkmirror.source.range_cuts import bounded, cut
from sparkmirror.source.read_options import ReadOptions
from sparkmirror.source.source_logs import OffsetRange, Offsets, SourceLogs

_PAUSE_S = 0.2
"""Shortest time between two questions without anything new: Spark asks each 10 ms."""


class StreamPlan:
    """A stream's plan in the driver."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._logs = SourceLogs(options)
        self._until: Offsets | None = None
        """Ends beyond which the stream does not go (`Trigger.AvailableNow`)."""
        self._asked_at = 0.0
        self._first: Places | None = None
        """Begin of a new stream, as told to Spark just before it asks for a micro-batch."""

    def first(self) -> Places:
        """Return where a new stream begins. Raises `ConfigError`."""
        self._first = _places(self._logs.placed(self._options.starting, self._logs.partitions()))
        return self._first

    def stop_at_present_ends(self) -> None:
        """Let the stream end at the present ends of the logs."""
        self._until = self._ends()

    def ends(self) -> Places:
        """Return the present ends of the logs."""
        return _places(self._ends())

    def next_end(self, start: Places, most: int | None = None) -> Places:
        """Return the end of the micro-batch from `start` on.

        It has about `most` offsets at most. New partitions begin at their start. A log may have become shorter, or be
        away: `ranges` tells. The end of a new stream's first micro-batch keeps `start`.
        """
        is_new, self._first = start == self._first, None
        before, _ = parted(start)
        begin = _offsets(before)
        if is_new and self._until is not None:  # the latest offsets are above ends that were asked for before
            self._until = self._ends()
        ends = dict(self._until if self._until is not None else self._ends())
        new = [at for at in ends if at not in begin]
        if new:
            begin |= self._logs.earliest(new)
        if most is not None:
            ends = bounded(begin, ends, most)
        made = _places(ends)
        if made == before and self._until is None:
            time.sleep(max(self._asked_at + _PAUSE_S - time.monotonic(), 0))
        self._asked_at = time.monotonic()
        if is_new:
            return with_first(made, _places(begin))
        return start if made == before else made

    def ranges(self, start: Places, end: Places) -> list[OffsetRange]:
        """Return a micro-batch's ranges.

        Raises `RecordsGone` for a log that is away, or shorter than `start`.
        """
        begins, ends = self._bounds(start, end)
        parts = {at: last for at, last in ends.items() if begins.get(at) != last}
        gone = (begins.keys() - ends.keys()) | self._logs.gone(parts)
        for topic, partition in sorted(gone):
            came_to = begins.get((topic, partition), "its start")
            lose(self._options, f"{topic}-{partition} is no more; the stream was at {came_to}")
        earliest = self._logs.earliest(parts.keys() - gone)
        made = []
        for at, last in sorted(parts.items()):
            if at in gone:
                continue
            first, name = begins.get(at, earliest[at]), f"{at[0]}-{at[1]}"
            if last < first:
                lose(self._options, f"{name} ends at {last}, and the stream was at {first}")
                continue
            if first < min(earliest[at], last):
                lose_offsets(self._options, *at, first, min(earliest[at], last))
                first = min(earliest[at], last)
            made.append(self._logs.range_of(at, first, last))
        return cut(made, self._options.fewest_ranges, self._options.most_per_range)

    def _bounds(self, start: Places, end: Places) -> tuple[Offsets, Offsets]:
        """Return a micro-batch's begins and ends.

        The latest offsets are asked for after an end that keeps no begin: that end takes their place.
        """
        places, kept = parted(end)
        ends = _offsets(places)
        if start == end:  # Spark shows a restarted stream its newest end so
            return ends, ends
        if kept:
            return _offsets(kept), ends
        begins = _offsets(parted(start)[0])
        if start != self._first:
            return begins, ends
        return {
            at: min(first, ends[at]) if self._may_be_latest(at) else first for at, first in begins.items() if at in ends
        }, ends

    def _may_be_latest(self, at: TopicPartition) -> bool:
        place = self._options.starting
        in_time = place.time_ms is not None or bool(place.times)
        return place.latest or in_time or place.offsets.get(at) == LATEST

    def close(self) -> None:
        self._logs.close()

    def _ends(self) -> Offsets:
        return self._logs.latest(self._logs.partitions())


def _places(offsets: Mapping[TopicPartition, int]) -> Places:
    """Return offsets as a checkpoint has them, in order: Spark compares texts."""
    made: Places = {}
    for (topic, partition), offset in sorted(offsets.items()):
        made.setdefault(topic, {})[str(partition)] = offset
    return made


def _offsets(places: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {(topic, int(partition)): offset for topic, each in places.items() for partition, offset in each.items()}
