"""A source topic with keys that the cleaner has been over: what a mirror meets on a compacted topic.

A key is written twice on average, within some ten thousand records, and then never again, as an order goes
through its states. One value in twenty is null: a tombstone. So two in five records survive, everywhere in the
log, and gaps of every length lie between them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from bench.arena import Side
from bench.producing import NULL_MARKER, ProducingFailed
from bench.workloads import Workload

FRESH = {"segment.bytes": str(4 << 20)}
"""While it is filled: the newest segment is never cleaned, so it must be a small part."""

WRITES_PER_KEY = 2
WINDOW_KEYS = 10_000
TOMBSTONES = 0.05
SURVIVING = 0.43
"""Of the bytes written: with two writes at random, (1 - 1/e^2) / 2 of the records are the newest of their key."""

_CHUNK_RECORDS = 10_000
_TIMEOUT_S = 300.0


def keyed_lines(workload: Workload, side: Side, topic: str, wanted_bytes: float) -> Iterator[bytes]:
    """Chunks of `key<tab>value` lines, until the topic is so large that `wanted_bytes` will survive."""
    values = workload.lines()
    source = random.Random(workload.name)
    written = 0
    while side.log_bytes(topic) < wanted_bytes / SURVIVING:
        yield b"".join(_line(source, values, written + number) for number in range(_CHUNK_RECORDS))
        written += _CHUNK_RECORDS


def compact(side: Side, topic: str) -> None:
    """Have the broker compact `topic`; return when it is done, and will do no more.

    What was set for that is taken back, all but `cleanup.policy`. Raises ProducingFailed if it takes too long.
    """
    side.configure(topic, {"cleanup.policy": "compact", "segment.bytes": None, "min.cleanable.dirty.ratio": "0"})
    deadline = time.monotonic() + _TIMEOUT_S
    while not side.is_compacted(topic):
        if time.monotonic() > deadline:
            raise ProducingFailed(f"the cleaner has not been over {topic} after {_TIMEOUT_S:.0f} s")
        time.sleep(0.5)
    side.configure(topic, {"min.cleanable.dirty.ratio": None})


def _line(source: random.Random, values: list[bytes], number: int) -> bytes:
    key = number // WRITES_PER_KEY + source.randrange(WINDOW_KEYS)
    value = NULL_MARKER if source.random() < TOMBSTONES else source.choice(values)
    return b"order-%d\t%b\n" % (key, value)
