"""A workload's data in the source cluster: made once, copied by both."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.arena import Arena
from bench.producing import Producer
from bench.reading import mean_batch
from bench.workloads import Workload

PROBE_RECORDS = 100_000
SLOWEST_BYTES_PER_S = 10e6
_START_S = 60.0


@dataclass(frozen=True, slots=True)
class Dataset:
    """What lies in the source topic; `wire_bytes` are its record batches as stored."""

    workload: Workload
    topic: str
    partitions: int
    records: int
    wire_bytes: int
    batch_bytes: float
    batch_records: float
    produced_in_s: float

    @property
    def bytes_per_record(self) -> float:
        return self.wire_bytes / self.records


@contextmanager
def dataset(arena: Arena, workload: Workload, gigabytes: float, partitions: int) -> Iterator[Dataset]:
    """Fill a source topic to `gigabytes` of batches (a few per cent more or less); delete it at the end."""
    producer = Producer(arena.directory, workload, arena.source.servers)
    arena.source.create_topic(workload.name, partitions)
    began = time.monotonic()
    producer.start(workload.name, PROBE_RECORDS).wait(_START_S)
    wanted = gigabytes * workload.share * 1e9
    missing = wanted - arena.source.log_bytes(workload.name)
    more = int(missing / arena.source.log_bytes(workload.name) * PROBE_RECORDS)
    if more > 0:
        producer.start(workload.name, more).wait(_START_S + wanted / SLOWEST_BYTES_PER_S)
    produced_in_s = time.monotonic() - began
    ends = arena.source.end_offsets(workload.name)
    batch_bytes, batch_records = mean_batch(arena.source, workload.name)
    try:
        yield Dataset(
            workload=workload,
            topic=workload.name,
            partitions=partitions,
            records=sum(ends.values()),
            wire_bytes=arena.source.log_bytes(workload.name),
            batch_bytes=batch_bytes,
            batch_records=batch_records,
            produced_in_s=produced_in_s,
        )
    finally:
        arena.source.delete_topics([workload.name])
