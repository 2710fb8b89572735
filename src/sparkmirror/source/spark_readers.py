"""Readers of Spark's Python data sources (Spark 4.0 and newer)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from sparkmirror.kafka.cluster.first_offsets import Places
from sparkmirror.source.batch_plan import part_rows, planned
from sparkmirror.source.option_values import OptionValues, refused
from sparkmirror.source.read_options import ReadOptions, read_options
from sparkmirror.source.stream_plan import StreamPlan
from sparkmirror.source.tables import chosen

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before Spark 4.2
    _BOUNDED = False
else:
    _BOUNDED = "limit" in inspect.signature(DataSourceStreamReader.latestOffset).parameters


class RowsPart(InputPartition):
    """A part of a query, for one task."""

    def __init__(self, part: Any) -> None:
        super().__init__(part)


class RowsReader(DataSourceReader):
    """Reader of a batch query."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        self._options, self._schema = options, schema

    def partitions(self) -> list[InputPartition]:
        return [RowsPart(part) for part in planned(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # what Spark makes of no partitions
            return iter(())
        return part_rows(self._options, partition.value, self._schema)


class _StreamingRows(DataSourceStreamReader):
    """Reader of a stream; its connections stay in the driver."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        self._options, self._schema = options, schema
        self._plan: StreamPlan | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_schema": self._schema, "_plan": None}

    @property
    def plan(self) -> StreamPlan:
        if self._plan is None:
            self._plan = StreamPlan(self._options)
        return self._plan

    def initialOffset(self) -> Places:  # noqa: N802 - Spark's name
        return self.plan.first()

    def partitions(self, start: Places, end: Places) -> list[InputPartition]:
        return [RowsPart(part) for part in self.plan.ranges(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return part_rows(self._options, partition.value, self._schema)

    def commit(self, end: Places) -> None:
        pass

    def stop(self) -> None:
        if self._plan is not None:
            self._plan.close()


if _BOUNDED:

    class StreamingRows(_StreamingRows, SupportsTriggerAvailableNow):
        """Reader of a stream whose micro-batches can be bounded."""

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
            most = self._options.most_per_trigger
            return ReadAllAvailable() if most is None else ReadMaxRows(most)

        def latestOffset(self, start: Places, limit: ReadLimit) -> Places:  # noqa: N802 - Spark's name
            return self.plan.next_end(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

        def reportLatestOffset(self) -> Places:  # noqa: N802 - Spark's name
            return self.plan.ends()

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
            self.plan.stop_at_present_ends()

else:

    class StreamingRows(_StreamingRows):  # type: ignore[no-redef]
        """Reader of a stream on Spark 4.0 and 4.1, whose micro-batches have no bound."""

        def latestOffset(self) -> Places:  # type: ignore[override]  # noqa: N802 - Spark's name
            self._known = self.plan.next_end(getattr(self, "_known", {}))
            return self._known


def rows_reader(options: Mapping[str, str], schema: StructType) -> RowsReader:
    """Return the reader of a batch query. Raises `ConfigError`."""
    read = _without_secrets(options, read_options(options, streaming=False))
    return RowsReader(read, chosen(read, schema))


def streaming_rows(options: Mapping[str, str], schema: StructType) -> StreamingRows:
    """Return the reader of a stream. Raises `ConfigError`."""
    read = _without_secrets(options, read_options(options, streaming=True))
    if read.most_per_trigger is not None and not _BOUNDED:
        raise refused(
            "maxOffsetsPerTrigger",
            "needs Spark 4.2: before it, Spark doesn't let a Python source bound a micro-batch; take it out, and bound"
            " the work of a task by maxRecordsPerPartition",
        )
    return StreamingRows(read, chosen(read, schema))


def _without_secrets(options: Mapping[str, str], read: ReadOptions) -> ReadOptions:
    """Return the options; raises `ConfigError` if passwords would travel with them."""
    if read.has_secrets:
        raise refused(
            "config" if OptionValues(options).has("config") else "kafka.*",
            "has passwords, and a format can't see whether this Spark hands them to its tasks in clear: write"
            " ${name:path:key} with kafka.config.providers, or read a batch by sparkmirror.source.frames.read_records",
        )
    return read
