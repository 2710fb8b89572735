"""Is the copy right? What is compared, and the verdict.

A mirror that forwards batches must store the very same bytes: every batch is compared. MirrorMaker 2 makes
batches of its own, so its copy is compared record by record: the number of records in each partition, and
timestamp, key, value, headers and order in ranges spread over each partition, the first and the last
records among them. Ranges, because decoding every record would take longer than the copy.

Where the source's batches can't be forwarded, and where its offsets have gaps, both copies are compared by a digest of
all records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.arena import Arena
from bench.reading import read_range
from bench.records import Contents, TopicReader
from sparkmirror.demo.proof import compare_topics

RANGES = 5
RANGE_RECORDS = 4_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """`difference` is the first one, empty if there is none; `compared` says what was looked at."""

    compared: str
    difference: str = ""


def compare_batches(arena: Arena, source_topic: str, target_topic: str) -> Verdict:
    """Every batch, byte for byte."""
    proofs = compare_topics(arena.source.servers, arena.target.servers, {source_topic: target_topic})
    compared = f"every byte of {sum(proof.batches for proof in proofs)} batches"
    for proof in proofs:
        if proof.difference is not None:
            place = f"{target_topic}-{proof.partition} at {proof.difference.offset}"
            return Verdict(compared, f"{place}: {proof.difference.what}")
    return Verdict(compared)


def compare_records(arena: Arena, source_topic: str, target_topic: str) -> Verdict:
    """Counts everywhere, all of each record in ranges of every partition."""
    ends = arena.source.end_offsets(source_topic)
    copied = arena.target.end_offsets(target_topic)
    seen = 0
    for partition, end in ends.items():
        if copied.get(partition) != end:
            return Verdict("log ends", f"{target_topic}-{partition}: {copied.get(partition)} records instead of {end}")
        for start, stop in _ranges(end):
            ours = read_range(arena.source, source_topic, partition, start, stop)
            theirs = read_range(arena.target, target_topic, partition, start, stop)
            if len(ours) != stop - start or ours != theirs:
                return Verdict("records", f"{target_topic}-{partition}: records {start} to {stop - 1} differ")
            seen += len(ours)
    return Verdict(f"log ends of {len(ends)} partitions, and {seen} of {sum(ends.values())} records in full")


def compare_contents(wanted: Mapping[int, Contents], source: TopicReader, target: TopicReader, codec: str) -> Verdict:
    """All records of all partitions against what the source holds, and that each batch has the `codec`."""
    found = target.contents()
    compared = f"a digest of {sum(part.records for part in wanted.values())} records in {len(wanted)} partitions"
    for partition, part in wanted.items():
        copy, where = found.get(partition), f"{target.topic}-{partition}"
        if copy is None:
            return Verdict(compared, f"{where}: not there")
        if (copy.records, copy.digest) != (part.records, part.digest):
            equal = source.first_difference(target, partition)
            return Verdict(compared, f"{where}: {copy.records} of {part.records} records, {equal} equal at first")
        if copy.records and copy.codecs != (codec,):
            return Verdict(compared, f"{where}: batches are {', '.join(copy.codecs)} and not {codec}")
    return Verdict(compared)


def _ranges(end: int) -> list[tuple[int, int]]:
    if end <= RANGES * RANGE_RECORDS:
        return [(0, end)] if end else []
    step = (end - RANGE_RECORDS) / (RANGES - 1)
    return [(int(step * index), int(step * index) + RANGE_RECORDS) for index in range(RANGES)]
