"""What is copied: sizes, contents, codec, and what makes it hard. A workload is data; nothing here runs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.payloads import noise, order, reading

PAYLOADS = 10_000
"""Different values in a workload; the producer draws from them at random."""


class Batching(NamedTuple):
    """The source producer's `batch.size` and `linger.ms`."""

    batch_bytes: int
    linger_ms: int


FULL = Batching(65_536, 20)
AT_ONCE = Batching(65_536, 0)
KAFKAS_OWN = Batching(65_536, 5)
"""The linger that Kafka's producer has by default."""
ONE_RECORD = Batching(1, 0)
"""Each record is larger than a batch should be, so it gets one of its own."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of data, and how it comes."""

    name: str
    what: str
    codec: str
    line: Callable[[random.Random, int], bytes]
    share: float = 1.0
    """Its part of the gigabytes asked for, for those that take long."""
    batching: Batching = FULL
    is_compacted: bool = False
    """The source topic is compacted, and has been: its offsets have gaps."""
    commit_every_ms: int = 0
    """The source producer's transactions last so long; 0: it has none."""
    read_committed: bool = False
    """Both mirrors are to leave out what was aborted; and some of it was."""
    target_codec: str = ""
    """What both are to write; empty: the source's."""
    transforms: Mapping[str, str] = field(default_factory=dict)
    """Connect's transforms that both are to run; none of them drops or changes a record."""
    is_touched: bool = False
    """Whether the transforms look at the topic's records."""
    has_tls: bool = False
    far_side: str = ""
    """The cluster, `source` or `target`, that the mirror reaches over a line of some length; empty: none."""
    records_per_s: int = 0
    """For latency only: the producer's pace. 0: as fast as it can, before the mirror starts."""
    seconds: float = 0.0
    """For latency only: how long it is measured."""
    seams: int = 0
    """For latency only: topics that appear meanwhile, so that both have to plan again."""
    idle_partitions: int = 0
    """For latency only: mirrored, too, and nothing is written to them after the start."""

    @property
    def is_paced(self) -> bool:
        return self.records_per_s > 0

    @property
    def has_gaps(self) -> bool:
        """Whether offsets are missing at the source, so that those of a copy are others."""
        return self.is_compacted or self.commit_every_ms > 0

    @property
    def is_remade(self) -> bool:
        """Whether a mirror has to make new batches even if it would rather forward the source's."""
        return self.has_gaps or bool(self.target_codec) or self.is_touched or self.batching == ONE_RECORD

    @property
    def copied_codec(self) -> str:
        """The codec that the copy is to have."""
        return self.target_codec or self.codec

    def lines(self) -> list[bytes]:
        """`PAYLOADS` values, the same ones in every run."""
        source = random.Random(self.name)
        return [self.line(source, number) for number in range(PAYLOADS)]


def _dropping(predicate: str, option: str, value: str) -> Mapping[str, str]:
    """Return the keys of a Filter that drops what a predicate holds for."""
    package = "org.apache.kafka.connect.transforms"
    return {
        "transforms": "drop",
        "transforms.drop.type": f"{package}.Filter",
        "transforms.drop.predicate": "dropped",
        "predicates": "dropped",
        "predicates.dropped.type": f"{package}.predicates.{predicate}",
        f"predicates.dropped.{option}": value,
    }


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("json-lz4", "1 kB JSON, lz4", "lz4", order),
        Workload("random-1k", "1 kB that can't be compressed, no codec", "none", noise),
        Workload("small-lz4", "100 B JSON, lz4", "lz4", reading, share=0.25),
        Workload("tiny", "100 B JSON, one record a batch, no codec", "none", reading, share=0.05, batching=ONE_RECORD),
        Workload("compacted", "1 kB JSON with keys, lz4, compacted", "lz4", order, share=0.25, is_compacted=True),
        Workload(
            "transactional",
            "1 kB JSON, lz4, transactions of 100 ms and some that are aborted, read_committed",
            "lz4",
            order,
            share=0.25,
            commit_every_ms=100,
            read_committed=True,
        ),
        Workload("zstd", "1 kB JSON, lz4 to zstd", "lz4", order, share=0.25, target_codec="zstd"),
        Workload(
            "filtered",
            "1 kB JSON, lz4, and a Filter by a header that no record has",
            "lz4",
            order,
            share=0.25,
            transforms=_dropping("HasHeaderKey", "name", "test"),
            is_touched=True,
        ),
        Workload(
            "untouched",
            "1 kB JSON, lz4, and a Filter of other topics",
            "lz4",
            order,
            transforms=_dropping("TopicNameMatches", "pattern", ".*no-such-topic"),
        ),
        Workload("json-lz4-tls", "1 kB JSON, lz4, TLS on both sides", "lz4", order, has_tls=True),
        Workload(
            "far-source",
            "1 kB that can't be compressed, no codec, from far away",
            "none",
            noise,
            share=0.125,
            far_side="source",
        ),
        Workload(
            "far-target",
            "1 kB that can't be compressed, no codec, to far away",
            "none",
            noise,
            share=0.125,
            far_side="target",
        ),
        Workload(
            "latency",
            "500 records/s of 1 kB JSON, no codec, linger 0, one seam",
            "none",
            order,
            batching=AT_ONCE,
            records_per_s=500,
            seconds=45.0,
            seams=1,
        ),
        Workload(
            "latency-50mb",
            "50 MB/s of 1 kB JSON, no codec, linger 5 ms, one seam",
            "none",
            order,
            batching=KAFKAS_OWN,
            records_per_s=50_000,
            seconds=90.0,
            seams=1,
        ),
        Workload(
            "latency-transactional",
            "500 records/s of 1 kB JSON, no codec, linger 0, transactions of 100 ms, read_uncommitted",
            "none",
            order,
            batching=AT_ONCE,
            commit_every_ms=100,
            records_per_s=500,
            seconds=45.0,
        ),
        Workload(
            "idle-2000",
            "500 records/s of 1 kB JSON to 8 partitions, and 1,992 with nothing new",
            "none",
            order,
            batching=AT_ONCE,
            records_per_s=500,
            seconds=60.0,
            idle_partitions=1_992,
        ),
    )
}
