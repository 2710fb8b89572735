"""Attempts of one task at once: each has its own order of rows, some die, and equal rows are among them."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from sparkmirror.sink.appender import TaskAppender
from sparkmirror.sink.order import AppendedRange, AppendOrder

PARTITIONS = 2
_SIZES = (1, 1, 2, 3, 5, 8, 40)
"""Rows of an Arrow batch."""
_SAME = 3
"""Rows that are equal to one another."""


class Died(Exception):
    """The attempt ends at once, with whatever is under way."""


@dataclass
class Told:
    """What attempts came to."""

    ended: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    ranges: list[list[AppendedRange]] = field(default_factory=list)
    """Of each attempt that reached its end."""


def value(number: int) -> bytes:
    return b"value-%d" % (number // _SAME)


def expected(rows_written: int) -> Counter[bytes]:
    return Counter(map(value, range(rows_written)))


def rows(numbers: list[int], at_us: int | None) -> pa.RecordBatch:
    """Rows that are a function of their number, whoever makes them."""
    columns = {
        "key": pa.array([b"key-%d" % (n // _SAME) if n % 7 else None for n in map(_first, numbers)], pa.binary()),
        "value": pa.array(list(map(value, numbers)), pa.binary()),
        "headers": pa.array(
            [[{"key": "n", "value": value(n)}] if _first(n) % 2 else None for n in numbers],
            pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        ),
        "partition": pa.array([_first(n) % PARTITIONS for n in numbers], pa.int32()),
    }
    if at_us is not None:
        columns["timestamp"] = pa.array([at_us + _first(n) * 1000 for n in numbers], pa.timestamp("us", "UTC"))
    return pa.RecordBatch.from_pydict(columns)


def _first(number: int) -> int:
    return number - number % _SAME


def run_attempts(
    order: AppendOrder,
    numbers: range,
    *,
    at_once: int,
    seed: int,
    dies: float,
    at_us: int | None = None,
) -> Told:
    """Run attempts at the same time until one has reached its end, however many rounds that takes."""
    told, lock, chance = Told(), threading.Lock(), random.Random(seed)
    while not told.ranges and not told.errors:
        threads = [
            threading.Thread(
                target=_attempt, args=(order, numbers, random.Random(chance.random()), dies, at_us, told, lock)
            )
            for _ in range(at_once)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return told


def _attempt(
    order: AppendOrder,
    numbers: range,
    chance: random.Random,
    dies: float,
    at_us: int | None,
    told: Told,
    lock: threading.Lock,
) -> None:
    mine = list(numbers)
    chance.shuffle(mine)

    def fault(place: str) -> None:
        if chance.random() < 0.3:
            time.sleep(chance.random() * 0.01)
        if chance.random() < dies:
            raise Died(place)

    time.sleep(chance.random() * 0.05)
    appender = TaskAppender(order, fault, window_bytes=1)
    at = 0
    try:
        while at < len(mine):
            size = chance.choice(_SIZES)
            appender.take(rows(mine[at : at + size], at_us))
            at += size
        ranges = appender.finish()
        with lock:
            told.ended["reached its end"] += 1
            told.ranges.append(ranges)
    except Died as death:
        told.ended[f"died: {death}"] += 1
    except Exception as error:
        with lock:
            told.errors.append(f"{type(error).__name__}: {error}")
