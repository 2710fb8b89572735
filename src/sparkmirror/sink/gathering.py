"""Rows with their Kafka partition, each partition's rows in one Spark task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, lit, when
from pyspark.sql.pandas.functions import pandas_udf

from sparkmirror.arrow.row_columns import Longs, RowColumns
from sparkmirror.errors import ClusterTrouble, ClusterUnreachable, RowsRefused
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.sink.agreement import SinkAgreement
from sparkmirror.sink.columns import column_names
from sparkmirror.sink.order import AppendOrder

SOURCE_OFFSET = "offset"
"""Column by which rows of a transformed topic keep their order."""
_ROLE = "sparkmirror-sink"
_KEYLESS = -1
_counts: dict[tuple[object, ...], int] = {}
"""Agreed partition counts, for the life of a process."""


def record_columns(frame: DataFrame, topic: str, more: tuple[str, ...] = ()) -> DataFrame:
    """Return the columns that become records, and present ones of `more`.

    Raises `RowsRefused`.
    """
    return frame.select(*column_names(frame.schema, topic), *(name for name in more if name in frame.columns))


def gathered(frame: DataFrame, order: AppendOrder, tasks: int) -> DataFrame:
    """Return the rows with their partition, each partition in a single task.

    Kafka's default partitioner spreads rows with a key; rows without one are spread by their content, since each
    attempt must find the same place for them. Rows with their offset at the source are sorted by it.
    """
    topic: Column = lit(order.topic) if order.topic else col("topic")
    key: Column = col("key") if "key" in frame.columns else lit(None)
    spread = _spread(order)(
        topic.cast("string"),
        key.cast("binary"),
        when(key.isNull(), col("value").cast("binary")),
    )
    given = "partition" in frame.columns
    partition = coalesce(col("partition").cast("bigint"), spread.cast("bigint")) if given else spread
    by = ["partition"] if order.topic else ["topic", "partition"]
    rows = frame.withColumn("partition", partition).repartition(tasks, *by)
    return rows.sortWithinPartitions(*by, SOURCE_OFFSET) if SOURCE_OFFSET in rows.columns else rows


def _spread(order: AppendOrder) -> Callable[..., Column]:
    def partitions(batches: Iterator[tuple[pd.Series, pd.Series, pd.Series]]) -> Iterator[pd.Series]:
        for topics, keys, values in batches:
            columns = RowColumns.of(
                pa.RecordBatch.from_arrays(
                    [pa.array(keys, pa.binary()), pa.array(values, pa.binary())], names=["key", "value"]
                ),
                0,
            )
            yield pd.Series(places(order, topics.to_numpy(object, na_value=None), columns).astype(np.int32))

    made: Callable[..., Column] = pandas_udf(partitions, "int")  # type: ignore[call-overload] # its stubs lack ours
    return made


def places(order: AppendOrder, topics: npt.NDArray[np.object_], columns: RowColumns) -> Longs:
    """Return the partition of each row by its key; without one, by its content.

    `columns` are only key and value, so that headers don't count. Raises `RowsRefused` and `ClusterUnreachable`.
    """
    if not all(topics):
        raise RowsRefused("topic", "a row has none, and the sink has no topic of its own")
    spread = np.empty(len(topics), np.int64)
    for topic in sorted(set(topics)):
        mine = topics == topic
        count = partition_count(order, topic)
        chosen = columns.partitions(count, _KEYLESS)
        chosen = np.where(chosen == _KEYLESS, columns.digests(False) % count, chosen)
        spread[mine] = chosen[mine]
    return spread


def tell_topics(order: AppendOrder, topics: Iterable[str | None]) -> None:
    """Have the agreement name topics before rows go there.

    So each audit looks there. An order with a topic of its own needs none. Raises `ClusterUnreachable` and
    `RowsRefused`.
    """
    if not order.topic:
        for topic in filter(None, topics):
            partition_count(order, topic)


def partition_count(order: AppendOrder, topic: str) -> int:
    """Return the agreed partition count, by which keys are spread.

    Raises `ClusterUnreachable` and `RowsRefused`.
    """
    scope = order.cluster.bootstrap_servers, order.batch.query, order.batch.generation, topic
    if scope not in _counts:
        client = ClusterClient(order.cluster, _ROLE)
        try:
            described = client.metadata([topic])[topic]
            if described.error or not described.partitions:
                raise RowsRefused("topic", f"cluster {order.cluster.alias} has no topic {topic}: create it first")
            agreement = SinkAgreement(client, order.batch.query, order.batch.generation)
            _counts[scope] = agreement.partitions(topic, len(described.partitions))
        except ClusterTrouble as error:
            raise ClusterUnreachable(f"cluster {order.cluster.alias}: {error}") from error
        finally:
            client.close()
    return _counts[scope]
