"""Source offsets of a task's rows, as runs for each target partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparkmirror.kafka.wire.splice import Run
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.sink.gathering import SOURCE_OFFSET


def read_runs(packed: bytes) -> tuple[Run, ...]:
    """Return the runs that `SourceOffsets.runs` has packed."""
    return tuple(Run(*pair) for pair in np.frombuffer(packed, "<i8").reshape(-1, 2).tolist())


def packed(runs: Iterable[Run]) -> bytes:
    """Return runs as `SourceOffsets.runs` packs them."""
    return np.array(list(runs), "<i8").tobytes()


class SourceOffsets:
    """Source offsets of the rows that a task takes."""

    def __init__(self) -> None:
        self._seen: dict[TopicPartition, list[npt.NDArray[np.int64]]] = defaultdict(list)

    def without(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Note the rows' offsets; return the rows without that column."""
        if SOURCE_OFFSET not in batch.schema.names:
            return batch
        offsets = batch.column(SOURCE_OFFSET).to_numpy(zero_copy_only=False)
        topics = np.array(batch.column("topic").to_pylist(), object)
        partitions = batch.column("partition").to_numpy(zero_copy_only=False)
        for topic in set(topics.tolist()):
            for partition in np.unique(partitions[topics == topic]).tolist():
                mine = (topics == topic) & (partitions == partition)
                self._seen[topic, int(partition)].append(offsets[mine].astype(np.int64))
        return batch.drop_columns([SOURCE_OFFSET])

    def runs(self, at: TopicPartition) -> bytes:
        """Return the runs of a partition's rows, as pairs of first offset and length.

        Empty if the offsets don't grow from row to row.
        """
        if at not in self._seen:
            return b""
        offsets = np.concatenate(self._seen[at])
        steps = np.diff(offsets)
        if (steps <= 0).any():
            return b""
        starts = np.concatenate(([0], np.flatnonzero(steps != 1) + 1))
        lengths = np.diff(np.concatenate((starts, [len(offsets)])))
        return np.stack((offsets[starts], lengths), axis=1).astype("<i8").tobytes()
