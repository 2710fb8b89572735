"""A workload's data in the source cluster: made once, copied by both."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from bench import compaction
from bench.arena import Arena
from bench.producing import Producer, ProducingFailed, write_keyed
from bench.reading import mean_batch
from bench.records import Contents, TopicReader
from bench.transactions import Aborter
from bench.workloads import Workload

PROBE_RECORDS = 100_000
SLOWEST_BYTES_PER_S = 5e6
SLOWEST_RECORDS_PER_S = 2_000.0
_START_S = 60.0


@dataclass(frozen=True, slots=True)
class Dataset:
    """What lies in the source topic; `wire_bytes` are its record batches as stored."""

    workload: Workload
    topic: str
    partitions: int
    records: int
    """Those that a mirror has to copy: not what was aborted or compacted away."""
    offsets: int
    """From the log's start to its end, over all partitions; more than `records` if there are gaps."""
    wire_bytes: int
    batch_bytes: float
    batch_records: float
    produced_in_s: float
    contents: Mapping[int, Contents] | None
    """What a copy must hold, for a workload whose batches are made again; None: compare with the source."""

    @property
    def bytes_per_record(self) -> float:
        return self.wire_bytes / self.records


@contextmanager
def dataset(arena: Arena, workload: Workload, gigabytes: float, partitions: int) -> Iterator[Dataset]:
    """Fill a source topic to `gigabytes` of batches (a few per cent more or less); delete it at the end."""
    wanted = gigabytes * workload.share * 1e9
    began = time.monotonic()
    if workload.is_compacted:
        _fill_compacted(arena, workload, partitions, wanted)
    else:
        _fill(arena, workload, partitions, wanted)
    try:
        yield _describe(arena, workload, partitions, time.monotonic() - began)
    finally:
        arena.source.delete_topics([workload.name])


def _fill(arena: Arena, workload: Workload, partitions: int, wanted: float) -> None:
    source, topic = arena.source, workload.name
    source.create_topic(topic, partitions)
    producer = Producer(arena.directory, workload, source.servers)
    with Aborter(workload, source.servers, topic, partitions) if workload.read_committed else nullcontext():
        producer.start(topic, PROBE_RECORDS).wait(_START_S + PROBE_RECORDS / SLOWEST_RECORDS_PER_S)
        missing = wanted - source.log_bytes(topic)
        more = int(missing / source.log_bytes(topic) * PROBE_RECORDS)
        if more > 0:
            longest_s = max(missing / SLOWEST_BYTES_PER_S, more / SLOWEST_RECORDS_PER_S)
            producer.start(topic, more).wait(_START_S + longest_s)


def _fill_compacted(arena: Arena, workload: Workload, partitions: int, wanted: float) -> None:
    source, topic = arena.source, workload.name
    source.create_topic(topic, partitions, compaction.FRESH)
    lines = compaction.keyed_lines(workload, source, topic, wanted)
    write_keyed(arena.directory, workload, source.servers, topic, lines, _START_S)
    compaction.compact(source, topic)


def _describe(arena: Arena, workload: Workload, partitions: int, produced_in_s: float) -> Dataset:
    source, topic = arena.source, workload.name
    offsets = sum(source.end_offsets(topic).values())
    contents = None
    records = offsets
    if workload.is_remade:
        contents = TopicReader(source.servers, topic, workload.read_committed).contents()
        records = sum(part.records for part in contents.values())
        if workload.has_gaps and any(part.records == part.offsets for part in contents.values()):
            raise ProducingFailed(f"{topic}: a partition has no gaps, though it should")
    batch_bytes, batch_records = mean_batch(source, topic)
    return Dataset(
        workload=workload,
        topic=topic,
        partitions=partitions,
        records=records,
        offsets=offsets,
        wire_bytes=source.log_bytes(topic),
        batch_bytes=batch_bytes,
        batch_records=batch_records,
        produced_in_s=produced_in_s,
        contents=contents,
    )
