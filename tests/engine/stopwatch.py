"""Writes records to each partition of a topic, and notes what each one waits until a consumer of its copy has it.

A process of its own, so that neither the mirror's driver nor the tests take its time. It ends when its input ends, and
then prints the number of records, and for each one its partition, when it was written, and what it waited.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

INTERVAL_S = 0.01
"""Between two records of a partition."""


class Wait(NamedTuple):
    """What one record waited."""

    partition: int
    at: float
    """Seconds since 1970 of the writing."""
    ms: float


class Stopwatch:
    """The process, as a test sees it: `finish` returns what all records waited."""

    def __init__(self, source: str, target: str, topic: str, partitions: int) -> None:
        given = [source, target, topic, str(partitions)]
        self._process = subprocess.Popen(
            [sys.executable, __file__, *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def finish(self) -> tuple[int, list[Wait]]:
        """Return the number of records written, and the waits of those that have come."""
        out, _ = self._process.communicate(timeout=60)
        written, waits = json.loads(out)
        return written, [Wait(*wait) for wait in waits]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def percentiles(waits: Iterable[Wait]) -> str:
    """Words on the median, the 99th percentile and the largest wait."""
    listed = sorted(wait.ms for wait in waits)
    if not listed:
        return "no records"
    points = " ".join(f"p{share}={listed[min(len(listed) * share // 100, len(listed) - 1)]:.0f}" for share in (50, 99))
    return f"{len(listed)} records, {points} p100={listed[-1]:.0f} ms"


def _write(source: str, topic: str, partitions: int, ended: threading.Event, written: list[int]) -> None:
    producer: Any = KafkaProducer(bootstrap_servers=source)
    due = time.time()
    while not ended.is_set():
        for partition in range(partitions):
            producer.send(topic, repr(time.time()).encode(), partition=partition)
            written[0] += 1
        due += INTERVAL_S
        time.sleep(max(due - time.time(), 0.001))
    producer.close()


def _main(given: Sequence[str]) -> None:
    source, target, topic, partitions = *given[:3], int(given[3])
    ended, written = threading.Event(), [0]
    consumer: Any = KafkaConsumer(
        bootstrap_servers=target, auto_offset_reset="earliest", fetch_max_wait_ms=100, enable_auto_commit=False
    )
    consumer.assign([TopicPartition(f"A.{topic}", partition) for partition in range(partitions)])
    writer = threading.Thread(target=_write, args=(source, topic, partitions, ended, written))
    writer.start()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    waits: list[Wait] = []
    until = float("inf")
    while time.time() < until:
        for part, records in consumer.poll(timeout_ms=20).items():
            now = time.time()
            times = [float(record.value) for record in records]
            waits += [Wait(part.partition, at, (now - at) * 1000) for at in times]
        if ended.is_set() and until == float("inf"):
            writer.join()
            until = time.time() + 3
    consumer.close()
    print(json.dumps([written[0], waits]))


if __name__ == "__main__":
    _main(sys.argv[1:])
