"""Places of queries' records, next to the queries' plans.

A query's rows have places if the query only selects and filters, and keeps topic, partition and offset. Then a record
here says, for one micro-batch and partition, from which source offsets the batch's records come, and where they are.
Records are JSON: key and value of the compacted topic `plans_topic`. A batch with many runs has several parts.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sparkmirror.exact.durable.claims import Claim, TargetPartition
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.kafka.cluster.leader_epochs import EpochStart
from sparkmirror.kafka.wire.splice import Run

COPIED = "copied"
"""Kind of these records among those of the topic."""
SINK_TOPIC = "mm2-sparkmirror-sink.internal"
"""Topic at the target with what all attempts at a micro-batch agree on."""
MOST_RUNS = 50_000
"""Most runs in a record: brokers take a million bytes."""


def plans_topic(source_alias: str) -> str:
    """Return the name of the topic with queries' plans and places, at the target."""
    return f"mm2-sparkmirror-plans.{source_alias}.internal"


class PlacesKey(NamedTuple):
    """Key of a record with places."""

    query: str
    target: TargetPartition
    batch: int
    part: int

    @classmethod
    def read(cls, key: bytes | None) -> PlacesKey | None:
        """Read a record's key; None for other records of the topic."""
        try:
            query, kind, *rest = json.loads(key or b"[]")
            if kind != COPIED:
                return None
            topic_id, partition, batch, part = rest
            return cls(query, (bytes.fromhex(topic_id), partition), batch, part)
        except (ValueError, TypeError):
            return None

    def to_json(self) -> bytes:
        topic_id, partition = self.target
        return json.dumps([self.query, COPIED, topic_id.hex(), partition, self.batch, self.part]).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlaces:
    """Places of one micro-batch's records in one partition, or of a part."""

    query: str
    target: TargetPartition
    batch: int
    part: int
    source_topic_id: bytes
    sequence: int
    """Number of the query's records in the partition before these."""
    downstream: int
    """The first record's target offset; the others follow without a gap."""
    runs: tuple[Run, ...]
    upstream_end: int
    """Source offset below which all records are copied after these."""
    is_known: bool = True
    """False if the records' places are not known."""
    epochs: tuple[EpochStart, ...] = ()
    """Leader epochs of the source's records, as far as known."""

    @property
    def records(self) -> int:
        return sum(run.length for run in self.runs)

    @property
    def progress(self) -> ReportedProgress:
        """Progress of the copy after these records."""
        return ReportedProgress(self.upstream_end, self.downstream + self.records)

    def follows(self, before: QueryPlaces) -> bool:
        """Tell whether no records are between."""
        return self.sequence == before.sequence + before.records

    def claim(self, producer: tuple[int, int]) -> Claim | None:
        """Return the same as a confirmed claim; None without records."""
        if not self.runs:
            return None
        return Claim(
            target_topic_id=self.target[0],
            partition=self.target[1],
            sequence=self.sequence,
            incarnation=self.batch,
            producer_id=producer[0],
            producer_epoch=producer[1],
            source_topic_id=self.source_topic_id,
            source_leader_epoch=-1,
            downstream=self.downstream,
            runs=self.runs,
            confirmed=True,
        )

    def parts(self) -> Iterator[QueryPlaces]:
        """Yield the places in parts that a record can hold."""
        sequence, downstream = self.sequence, self.downstream
        for part, first in enumerate(range(0, max(len(self.runs), 1), MOST_RUNS)):
            runs = self.runs[first : first + MOST_RUNS]
            is_last = first + MOST_RUNS >= len(self.runs)
            end = self.upstream_end if is_last else runs[-1].upstream + runs[-1].length
            piece = replace(self, part=part, sequence=sequence, downstream=downstream, runs=runs, upstream_end=end)
            yield piece
            sequence, downstream = sequence + piece.records, downstream + piece.records

    def record(self) -> tuple[bytes, bytes]:
        """Return key and value."""
        numbers = np.array(self.runs, np.int64).reshape(-1, 2)
        packed = base64.b64encode(zlib.compress(np.diff(numbers, axis=0, prepend=0).astype("<i8").tobytes())).decode()
        value = [
            self.source_topic_id.hex(),
            self.sequence,
            self.downstream,
            self.upstream_end,
            self.is_known,
            packed,
            self.epochs,
        ]
        return PlacesKey(self.query, self.target, self.batch, self.part).to_json(), json.dumps(value).encode()


def read_places(key: bytes | None, value: bytes | None) -> QueryPlaces | None:
    """Read a record; None for other records of the topic."""
    named = PlacesKey.read(key)
    if named is None or value is None:
        return None
    try:
        source, sequence, downstream, upstream_end, is_known, packed, *more = json.loads(value)
        deltas = np.frombuffer(zlib.decompress(base64.b64decode(packed)), "<i8").reshape(-1, 2)
    except (ValueError, TypeError, zlib.error):
        return None
    runs: Sequence[Sequence[int]] = np.cumsum(deltas, axis=0).tolist()
    return QueryPlaces(
        query=named.query,
        target=named.target,
        batch=named.batch,
        part=named.part,
        source_topic_id=bytes.fromhex(source),
        sequence=sequence,
        downstream=downstream,
        runs=tuple(Run(*run) for run in runs),
        upstream_end=upstream_end,
        is_known=is_known,
        epochs=read_epochs(*more),
    )


def read_epochs(pairs: Iterable[Sequence[int]] = ()) -> tuple[EpochStart, ...]:
    """Return the epochs of a record's field; none for a record without the field."""
    return tuple(EpochStart(int(epoch), int(start)) for epoch, start in pairs)
