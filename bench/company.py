"""What lies or appears next to a paced topic: partitions that are idle, and new topics in the midst of it."""

from __future__ import annotations

import threading
import time
from typing import Any

from kafka import KafkaProducer

from bench.arena import Side
from bench.contenders import REFRESH_S

IDLE_TOPICS = 12
IDLE_RECORDS = 10
"""In each idle partition: there is something to copy at the start, and never again."""
SETTLING_S = 5.0
"""After a new topic was found at the latest: how long records still count as near the seam."""


def create_idle(side: Side, topic: str, partitions: int, records: int = IDLE_RECORDS) -> list[str]:
    """Create topics next to `topic` with so many partitions in all, `records` in each; return their names."""
    names = [f"{topic}-idle-{number}" for number in range(min(IDLE_TOPICS, partitions))]
    counts = {name: len(range(index, partitions, IDLE_TOPICS)) for index, name in enumerate(names)}
    for name, count in counts.items():
        side.create_topic(name, count)
    producer: Any = KafkaProducer(bootstrap_servers=side.servers)
    try:
        for number in range(records):
            for name, count in counts.items():
                for partition in range(count):
                    producer.send(name, value=b"%s %d" % (name.encode(), number), partition=partition)
        producer.flush()
    finally:
        producer.close()
    return names


class Seams:
    """Creates topics that the mirrors are to take on, at given moments.

    MirrorMaker 2 starts its tasks again; sparkmirror's pumps take the new partitions in while they run.
    """

    def __init__(self, side: Side, topic: str, count: int) -> None:
        self.topics = [f"{topic}-seam-{number}" for number in range(count)]
        self._side = side
        self._windows: list[tuple[float, float]] = []
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, delay_s: float, seconds: float) -> None:
        """Spread them evenly over the `seconds` that begin in `delay_s`. In a thread: the measurer is not to wait."""
        at_s = [delay_s + seconds * (number + 1) / (len(self.topics) + 1) for number in range(len(self.topics))]
        now_s, began = time.time(), time.monotonic()
        self._windows = [((now_s + at) * 1e3, (now_s + at + REFRESH_S + SETTLING_S) * 1e3) for at in at_s]
        self._thread = threading.Thread(
            target=self._run, args=([began + at for at in at_s],), name="seams", daemon=True
        )
        self._thread.start()

    def is_near(self, timestamp_ms: float) -> bool:
        """Whether a record of that time may have met a seam."""
        return any(start <= timestamp_ms <= end for start, end in self._windows)

    def close(self) -> None:
        """Create no more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, moments: list[float]) -> None:
        for name, moment in zip(self.topics, moments, strict=True):
            if self._ended.wait(max(moment - time.monotonic(), 0)):
                return
            self._side.create_topic(name, 1)
