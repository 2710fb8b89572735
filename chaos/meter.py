"""How far the copy is behind, ten times a second, read past the proxies: stalls and recoveries follow from that.

It watches topics without transactions: there the copy's high watermark is the source's when all is copied. Lag and
stalls are those of the first topic; what is said of any of them is compared with these watermarks (`truth.py`).
"""

from __future__ import annotations

import socket
import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple, Self

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from chaos.truth import Truth

_VERSION = 7
_LATEST = -1
_TIMEOUT_S = 1.0
_EVERY_S = 0.1


class Sample(NamedTuple):
    """High watermarks by partition, at a time of the monotonic clock."""

    at: float
    source: tuple[int, ...]
    target: tuple[int, ...]

    @property
    def behind(self) -> int:
        """Records that the source has and the target has not."""
        return sum(max(ours - theirs, 0) for ours, theirs in zip(self.source, self.target, strict=True))


class Stall(NamedTuple):
    """A time without progress."""

    began: float
    """By the monotonic clock."""
    seconds: float


class Watermarks:
    """The highest high watermarks that any broker has reported. A broker that does not answer delays nobody."""

    def __init__(self, ports: Sequence[int], topics: Sequence[str], partitions: int) -> None:
        self.now = {topic: [0] * partitions for topic in topics}
        self._request = ListOffsetsRequest(
            version=_VERSION,
            replica_id=-1,
            isolation_level=0,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
                            partition_index=partition, current_leader_epoch=-1, timestamp=_LATEST
                        )
                        for partition in range(partitions)
                    ],
                )
                for topic in topics
            ],
        )
        self._request.with_header(correlation_id=1, client_id="chaos-meter")
        self._frame: bytes = self._request.encode(framed=True, header=True)
        self._closing = threading.Event()
        self._threads = [threading.Thread(target=self._watch, args=(port,), daemon=True) for port in ports]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def first(self) -> tuple[int, ...]:
        """Those of the first topic."""
        return tuple(next(iter(self.now.values())))

    def lost(self, topic: str, partition: int, end: int) -> None:
        """The log ends there now: acknowledged records were lost."""
        if topic in self.now:
            self.now[topic][partition] = end

    def close(self) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join()

    def _watch(self, port: int) -> None:
        while not self._closing.wait(_EVERY_S):
            try:
                with socket.create_connection(("127.0.0.1", port), _TIMEOUT_S) as connection:
                    answers = connection.makefile("rb")
                    while not self._closing.wait(_EVERY_S):
                        connection.sendall(self._frame)
                        size = int.from_bytes(answers.read(4), "big")
                        self._note(answers.read(size))
            except (OSError, ValueError):
                continue  # it is down, paused, or hung up in the middle of an answer

    def _note(self, frame: bytes) -> None:
        if not frame:
            raise OSError("hung up")
        response = ListOffsetsResponse.decode(memoryview(frame), version=_VERSION, header=True)
        for topic in response.topics:
            ends = self.now[topic.name]
            for part in topic.partitions:
                if not part.error_code:  # else another broker leads it
                    ends[part.partition_index] = max(ends[part.partition_index], part.offset)


class Meter:
    """Takes samples; as a context, until its end."""

    def __init__(self, source: Watermarks, target: Watermarks) -> None:
        self.samples: list[Sample] = []
        self.truth = Truth()
        self._source = source
        self._target = target
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="meter", daemon=True)

    def __enter__(self) -> Self:
        self._source.start()
        self._target.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()
        self._source.close()
        self._target.close()

    def latest(self) -> Sample:
        return Sample(time.monotonic(), self._source.first(), self._target.first())

    def target_lost(self, topic: str, partition: int, end: int) -> None:
        """The target has lost records that it had acknowledged, and ends there now."""
        self._target.lost(topic, partition, end)

    def wait_for_progress(self, timeout_s: float) -> bool:
        """Wait until the target has more than now; False if that takes too long."""
        before, deadline = sum(self._target.first()), time.monotonic() + timeout_s
        while sum(self._target.first()) <= before:
            if time.monotonic() > deadline or self._closing.wait(_EVERY_S):
                return False
        return True

    def _sample(self) -> None:
        while not self._closing.wait(_EVERY_S):
            self.samples.append(self.latest())
            self.truth.note(self.samples[-1].at, self._source.now, self._target.now)


def stalls(samples: Sequence[Sample]) -> list[Stall]:
    """Return each time in which the target was behind and nothing came."""
    found: list[Stall] = []
    since: Sample | None = None
    for sample in samples:
        if since is not None and (sum(sample.target) > sum(since.target) or not sample.behind):
            found.append(Stall(since.at, sample.at - since.at))
            since = None
        if since is None and sample.behind:
            since = sample
    if since is not None:
        found.append(Stall(since.at, samples[-1].at - since.at))
    return found


def recovery(samples: Sequence[Sample], at: float) -> float | None:
    """Return the seconds from `at` until the target had all that the source had at `at`; None if it never had."""
    first = bisect_left(samples, at, key=attrgetter("at"))
    if first == len(samples):
        return None
    goal = samples[first].source
    for sample in samples[first:]:
        if all(there >= wanted for there, wanted in zip(sample.target, goal, strict=True)):
            return max(sample.at - at, 0.0)
    return None
