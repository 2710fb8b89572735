"""Receipts as a DataFrame: each partition's copied records in each minute.

The figures come from the pumps' reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import timestamp_millis

from sparkmirror.config import FlowConfig
from sparkmirror.config.model import REVEAL
from sparkmirror.config.spark_guards import guard_secrets
from sparkmirror.errors import ClusterUnreachable, SetupError
from sparkmirror.frames.receipt_minutes import Beginnings, Minute, MinuteReading, PartitionMinutes, minutes, readings
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.engine.session import settings_of
from sparkmirror.pump.messages.orders import FlowReport
from sparkmirror.pump.messages.receipts import read_reports, receipts_topic

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.streaming.state import GroupState

RECEIPTS = (
    "minute timestamp, topic string, target_topic string, partition int, records long, bytes long, lag long,"
    " upstream long, downstream long, latency_ms double, latency_max_ms double"
)
LATE = "2 minutes"
"""Time for which a stream waits for a minute's late reports.

A pump without connection to the target keeps a hundred reports, one a second.
"""

ROWS = 10_000
"""A batch's rows."""

_READINGS = (
    "heard timestamp, at_ms long, pump string, whole boolean, topic string, target_topic string, partition int,"
    " records long, bytes long, lag long, upstream long, downstream long, latency_ms double, latency_max_ms double"
)
_ROLE = "sparkmirror-receipts"
_READS = 64
"""Reads of a megabyte each in one micro-batch."""

_WAIT_MS = 500
_NO_TOPIC = ""
"""The topic in a row that tells only the time.

Minutes also end while no record is copied.
"""


def receipts(spark: SparkSession, flow: FlowConfig, *, streaming: bool = False) -> DataFrame:
    """Return each partition's copied records in each minute with changes.

    Columns are in `RECEIPTS`. `records` and `bytes` (batches as they were sent) were acknowledged in the minute. `lag`,
    `upstream` and `downstream` (the next offsets) are from the end of the minute. `latency_ms` and `latency_max_ms` are
    the mean and maximum time from a record's timestamp to its acknowledgement, over about a minute. Unknown figures are
    null.

    Spark reads the flow's receipts topic at its target, which holds an hour. A batch reads when Spark evaluates the
    DataFrame. A stream (`streaming`) reads from the topic's start and then as it grows; with a checkpoint for the
    query, exactly once. Streams need Spark 4.

    Raises `ConfigError`, `SetupError`, and, at evaluation, `ClusterUnreachable`.
    """
    guard_secrets(flow, settings_of(spark), f"flow {flow.name}")
    order = flow.model_dump_json(context=REVEAL)
    if streaming:
        return _stream(spark, flow.name, order)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from receipt_batches(FlowConfig.model_validate_json(order))

    return spark.range(0, 1, 1, 1).mapInArrow(read, RECEIPTS)


def receipt_batches(flow: FlowConfig) -> Iterator[pa.RecordBatch]:
    """Yield the flow's receipts (`RECEIPTS`), as the target has them now.

    Raises `ClusterUnreachable`.
    """
    yield from _arrow(minutes(readings(_all_reports(flow), Beginnings())))


def _all_reports(flow: FlowConfig) -> Iterator[FlowReport]:
    with closing(ClusterClient(flow.target, f"{flow.name}|{_ROLE}")) as client:
        log = TopicLog(client, receipts_topic(flow.source.alias))
        offset, more = 0, True
        while more:
            try:
                entries, offset, more = log.read_some(0, offset)
            except ConnectionError as error:
                raise ClusterUnreachable(f"flow {flow.name}: {error}; has the mirror run before?") from error
            yield from read_reports(entries)


def _arrow(entries: Iterator[Minute]) -> Iterator[pa.RecordBatch]:
    types = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "double": pa.float64()}
    columns = [column.split(" ") for column in RECEIPTS.split(", ")]
    schema = pa.schema([(name, types.get(kind, pa.timestamp("us", "UTC"))) for name, kind in columns])
    rows: list[Minute] = []

    def batch() -> pa.RecordBatch:
        values = [[_time(row.minute_ms) for row in rows], *([row[n] for row in rows] for n in range(1, len(columns)))]
        return pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(values, schema.types, strict=True)], schema=schema
        )

    for row in entries:
        rows.append(row)
        if len(rows) == ROWS:
            yield batch()
            rows = []
    if rows:
        yield batch()


def _time(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


# --- streaming --------------------------------------------------------------------------------------


def _stream(spark: SparkSession, name: str, order: str) -> DataFrame:
    source = _source(f"sparkmirror receipts of {name}", order)
    spark.dataSource.register(source)
    return (
        spark.readStream.format(source.name())
        .load()
        .withWatermark("heard", LATE)
        .groupBy("topic", "partition")
        .applyInPandasWithState(
            _take,
            RECEIPTS.replace("minute timestamp", "minute_ms long"),
            "minutes string",
            "append",
            "EventTimeTimeout",
        )
        .select(timestamp_millis("minute_ms").alias("minute"), *Minute._fields[1:])
    )


def _take(key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Take a partition's readings, and yield the minutes that are complete."""
    if key[0] == _NO_TOPIC:
        return
    known = PartitionMinutes.model_validate_json(state.get[0]) if state.exists else PartitionMinutes()
    for frame in frames:
        for row in frame[list(MinuteReading._fields)].astype(object).itertuples(index=False, name=None):
            known.add(_reading(row))
    ended = known.close(state.getCurrentWatermarkMs())
    state.update((known.model_dump_json(),))
    if known.next_end_ms is not None:
        state.setTimeoutTimestamp(known.next_end_ms)
    if ended:
        yield pd.DataFrame(ended, columns=list(Minute._fields), dtype=object)


def _reading(row: tuple[Any, ...]) -> MinuteReading:
    """Return a row's reading; next to nulls, pandas has made integers floats."""
    values: list[Any] = [None if pd.isna(value) else value for value in row]
    reading = MinuteReading(*values)
    lag, upstream, downstream = (
        None if value is None else int(value) for value in (reading.lag, reading.upstream, reading.downstream)
    )
    return reading._replace(lag=lag, upstream=upstream, downstream=downstream)


def _source(name: str, order: str) -> type[DataSource]:
    """Return a data source for a flow's readings.

    The settings travel inside the class, not in options that Spark shows.
    """
    try:
        from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
    except ImportError as error:
        raise SetupError(
            "a stream of receipts needs Spark 4: this is an older one, which reads batches only"
        ) from error

    class Reader(SimpleDataSourceStreamReader):
        def initialOffset(self) -> dict[str, object]:  # noqa: N802 - Spark's name
            return {"offset": 0, "pumps": {}, "newest_ms": 0}

        def read(self, start: dict[str, object]) -> tuple[Iterator[tuple[object, ...]], dict[str, object]]:
            rows, end = _read_on(order, start, None)
            return iter(rows), end

        def readBetweenOffsets(  # noqa: N802 - Spark's name
            self, start: dict[str, object], end: dict[str, object]
        ) -> Iterator[tuple[object, ...]]:
            return iter(_read_on(order, start, int(str(end["offset"])))[0])

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return _READINGS

        def simpleStreamReader(self, schema: object) -> Reader:  # noqa: N802 - Spark's name
            return Reader()

    return Source


def _read_on(
    order: str, start: dict[str, object], end: int | None
) -> tuple[list[tuple[object, ...]], dict[str, object]]:
    """Return the readings from `start` on, and the place to continue.

    The readings end at `end`, or, without `end`, with the last available reading or a full micro-batch.
    """
    flow = FlowConfig.model_validate_json(order)
    offset, heard = int(str(start["offset"])), start["pumps"]
    beginnings = Beginnings(heard if isinstance(heard, dict) else None)
    rows: list[tuple[object, ...]] = []
    newest_ms = int(str(start["newest_ms"]))
    with closing(ClusterClient(flow.target, f"{flow.name}|{_ROLE}")) as client:
        log = TopicLog(client, receipts_topic(flow.source.alias))
        more, reads = True, 0
        while more and (reads < _READS or end is not None) and (end is None or offset < end):
            entries, offset, more = log.read_some(0, offset, wait_ms=0 if reads or end is not None else _WAIT_MS)
            reads += 1
            for report in read_reports(entry for entry in entries if end is None or entry.offset < end):
                newest_ms = max(newest_ms, report.at_ms)  # never before an earlier row: Spark drops late rows
                rows += [(_time(newest_ms), *reading) for reading in readings([report], beginnings)]
    if newest_ms > int(str(start["newest_ms"])):
        rows.append((_time(newest_ms), 0, "", False, _NO_TOPIC, "", -1, 0, 0, None, None, None, None, None))
    beginnings.forget()
    return rows, {"offset": offset, "pumps": beginnings.heard, "newest_ms": newest_ms}
