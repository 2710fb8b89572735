"""Writers of Spark's Python data sources: a face of the exactly-once sink.

They are for Spark 4.0 and newer. A writer can't ask Spark to gather rows. Rows of one Kafka partition in two tasks stop
the batch before Spark commits it: brokers let in one of the tasks, and the driver sees the partition in two results.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType
from pyspark.taskcontext import TaskContext

from sparkmirror.errors import ConfigError
from sparkmirror.source.option_values import refused
from sparkmirror.source.write_options import WriteOptions, write_options

if TYPE_CHECKING:
    from sparkmirror.sink.order import AppendedRange, AppendOrder

_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""Local properties that Spark gives the tasks of a streaming query."""


class TaskResult(WriterCommitMessage):
    """A task's message to the driver."""

    def __init__(self, order: AppendOrder, ranges: Sequence[AppendedRange]) -> None:
        self.order, self.ranges = order, ranges


class JobWriter(DataSourceArrowWriter):
    """Writer of a DataFrame, made once for the job."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._name = options.application or uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if not self._options.application and _property(_QUERY):
            raise refused(
                "txnAppId",
                "is missing inside foreachBatch, where a batch may run again: give it and txnVersion, or use"
                " foreachBatch(sm.Sink(...))",
            )
        return _append(self._options, self._name, self._options.version, iterator, in_turn=False)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _audit(messages)


class QueryWriter(DataSourceStreamWriter, DataSourceArrowWriter):
    """Writer of a streaming query, made again for each micro-batch.

    Spark 4.0 has no class for streams by Arrow; there, too, this pair of classes gets Arrow batches.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        query, number = _property(_QUERY), _property(_BATCH)
        if not query or not number:
            raise ConfigError(
                "this Spark doesn't tell tasks their micro-batch: use foreachBatch(sm.Sink(...))", origin="sparkmirror"
            )
        return _append(self._options, query, int(number), iterator, in_turn=True)

    def commit(  # type: ignore[override]
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        _audit(messages)

    def abort(  # type: ignore[override]
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        """Leave what is there: the next attempt finds it."""


def job_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> JobWriter:
    """Return the writer of a DataFrame. Raises `ConfigError` and `RowsRefused`."""
    return JobWriter(_checked(options, schema, overwrite))


def query_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> QueryWriter:
    """Return the writer of a streaming query. Raises `ConfigError` and `RowsRefused`."""
    read = _checked(options, schema, overwrite)
    if read.application:
        raise refused("txnAppId", "is for batch writes: a streaming query is known by its checkpoint")
    return QueryWriter(read)


def _checked(options: Mapping[str, str], schema: StructType, overwrite: bool) -> WriteOptions:
    from sparkmirror.sink.columns import column_names

    if overwrite:
        raise refused("mode", "topics can only be appended to: write append")
    read = write_options(options)
    column_names(schema, read.topic)
    return read


def _append(
    options: WriteOptions, query: str, number: int, rows: Iterator[pa.RecordBatch], *, in_turn: bool
) -> TaskResult:
    from sparkmirror.sink.agreement import MicroBatch
    from sparkmirror.sink.task_writing import TaskWriter

    writer = TaskWriter(options.cluster, options.topic, options.codec, in_turn)
    return TaskResult(*writer.append(MicroBatch(query, number), rows))


def _audit(messages: Sequence[WriterCommitMessage | None]) -> None:
    from sparkmirror.sink.task_writing import audit_tasks

    results = [each for each in messages if isinstance(each, TaskResult)]
    if results:
        audit_tasks(results[0].order, [each for result in results for each in result.ranges])


def _property(name: str) -> str:
    context = TaskContext.get()
    return (context.getLocalProperty(name) if context is not None else None) or ""
