"""The compiled walk over records next to the walk in Python: CPU time for each record, in turns, without a cluster.

And what loading it takes, in processes of their own: with an empty cache of numba's, and with a full one.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from crc32c import crc32c

from bench.payloads import order, reading
from bench.tuning import Say
from bench.workloads import PAYLOADS
from sparkmirror.errors import SetupError
from sparkmirror.kafka.wire.batches import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
)
from sparkmirror.kafka.wire.codecs import LZ4, NONE, ZSTD, Codec, compress
from sparkmirror.kafka.wire.joining import joined_lone_records
from sparkmirror.kafka.wire.records import Records
from sparkmirror.kafka.wire.splice import splice
from sparkmirror.kafka.wire.varints import written, zigzag
from sparkmirror.kafka.wire.walk_loading import WALK

SURVIVING = 0.43
"""Of a compacted topic's records, as in the workload `compacted`."""
_NOW = 1_760_000_000_000
_TURN_S = 0.1
_TURNS = 7
_TINY = 4096
_LOAD = """
import json, resource, time
from sparkmirror.pump import pump
from sparkmirror.kafka.wire.walk_loading import WALK
def memory():
    with open("/proc/self/smaps_rollup") as file:
        sizes = dict(line.split()[:2] for line in list(file)[1:])
    return int(sizes["Rss:"]) / 1e3, (int(sizes["Private_Clean:"]) + int(sizes["Private_Dirty:"])) / 1e3
before, cpu = memory(), time.process_time()
WALK.load()
cpu, after = time.process_time() - cpu, memory()
print(json.dumps([cpu, after[0] - before[0], after[1] - before[1]]))
"""


@dataclass(slots=True)
class Part:
    """One piece of work: CPU nanoseconds for each record, a figure for each turn."""

    what: str
    python: list[float] = field(default_factory=list)
    compiled: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Load:
    """What loading took: CPU seconds, and MB that the process grew by; `private_mb` are its own alone."""

    cpu_s: float
    memory_mb: float
    private_mb: float


def measure_walking(say: Say) -> tuple[list[Part], Load, Load]:
    """Measure each part in turns, and both kinds of loading. Raises `SetupError` without numba."""
    if find_spec("numba") is None:
        raise SetupError("numba is not installed: pip install 'sparkmirror[fast]'")
    say("loading the compiled walk, with an empty cache and with a full one")
    with tempfile.TemporaryDirectory() as cache:
        fresh, again = _loaded(cache), _loaded(cache)
    WALK.load()
    parts = []
    for what, work, records in _works():
        say(what)
        part = Part(what)
        for _ in range(_TURNS):
            for ready, figures in ((False, part.python), (True, part.compiled)):
                WALK.ready = ready
                figures.append(_ns(work) / records)
        parts.append(part)
    return parts, fresh, again


def _works() -> list[tuple[str, Callable[[], object], int]]:
    large, small = _lines(order), _lines(reading)
    gaps, whole = _batch(large, 63, LZ4, SURVIVING), _batch(large, 63, LZ4)
    stamped = _batch(small, 1000, LZ4, attributes=TIMESTAMP_TYPE_BIT)
    many = _batch(small, 1000, NONE)
    tiny = memoryview(b"".join(bytes(_batch([line], 1, NONE, base=at)[1]) for at, line in enumerate(small[:1500])))
    return [
        ("compacted: splice, 1 kB, lz4, with both codecs", _spliced(gaps, LZ4), gaps[0].records),
        ("compacted: the same without codecs", _spliced(_batch(large, 63, NONE, SURVIVING), NONE), gaps[0].records),
        ("LogAppendTime: splice, 100 B, lz4, with both codecs", _spliced(stamped, LZ4), 1000),
        ("tiny: join, 100 B, one record a batch", lambda: joined_lone_records(tiny, 0, _TINY), 1500),
        ("verify: read, 1 kB, lz4, with the codec", lambda: Records().add(*whole), 63),
        ("verify: read, 100 B, no codec", lambda: Records().add(*many), 1000),
        ("zstd: 1 kB from lz4, no walk", _spliced(whole, ZSTD), 63),
    ]


def _spliced(batch: tuple[BatchHeader, memoryview], codec: int) -> Callable[[], object]:
    return lambda: splice([batch], from_offset=0, codec=Codec(codec))


def _lines(line: Callable[[random.Random, int], bytes]) -> list[bytes]:
    source = random.Random(0)
    return [line(source, number) for number in range(PAYLOADS)]


def _batch(
    lines: Sequence[bytes], offsets: int, codec: int, share: float = 1.0, *, attributes: int = 0, base: int = 0
) -> tuple[BatchHeader, memoryview]:
    """Make a batch over so many offsets, of which a share has records."""
    source = random.Random(1)
    kept = [delta for delta in range(offsets) if source.random() < share]
    section = compress(Codec(codec), b"".join(_record(delta, source.choice(lines)) for delta in kept))
    header = BatchHeader(
        base_offset=base,
        length=HEADER_SIZE - LENGTH_OVERHEAD + len(section),
        leader_epoch=0,
        magic=MAGIC,
        crc=0,
        attributes=codec | attributes,
        last_offset_delta=offsets - 1,
        base_timestamp=_NOW,
        max_timestamp=_NOW + offsets,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records=len(kept),
    )
    data = bytearray(HEADER.pack(*header) + section)
    data[ATTRIBUTES_AT - 4 : ATTRIBUTES_AT] = crc32c(data[ATTRIBUTES_AT:]).to_bytes(4, "big")
    return header, memoryview(data)


def _record(delta: int, value: bytes) -> bytes:
    """Write a record with the key that `compacted` has."""
    key = b"order-%d" % delta
    body = written(zigzag(len(key))) + key + written(zigzag(len(value))) + value + b"\0"
    data = b"\0" + written(zigzag(delta // 4)) + written(zigzag(delta)) + body
    return written(zigzag(len(data))) + data


def _ns(work: Callable[[], object]) -> float:
    """CPU time of one call, from as many as fill a turn."""
    calls = 0
    began = time.process_time()
    while (spent := time.process_time() - began) < _TURN_S:
        work()
        calls += 1
    return spent / calls * 1e9


def _loaded(cache: str) -> Load:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", _LOAD], capture_output=True, text=True, check=True, env=environment)
    return Load(*json.loads(done.stdout))


def table(parts: Sequence[Part], fresh: Load, again: Load) -> str:
    """Both tables, in Markdown; of all turns the best, as others on the machine only take time."""
    rows = ["| | Python, ns a record | compiled | times |", "|---|---|---|---|"]
    for part in parts:
        python, compiled = min(part.python), min(part.compiled)
        rows.append(f"| {part.what} | {python:,.0f} | {compiled:,.0f} | {python / compiled:.1f} |")
    rows += ["", "| loading | CPU s | memory, MB | of it the process' own |", "|---|---|---|---|"]
    for what, load in (("compiled again", fresh), ("from the cache", again)):
        rows.append(f"| {what} | {load.cpu_s:.2f} | {load.memory_mb:.0f} | {load.private_mb:.0f} |")
    return "\n".join(rows) + "\n"
