"""The source's tables as DataFrames on each version of Spark, 3.5 too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sparkmirror.config.spark_guards import keeps_secrets
from sparkmirror.mirror.engine.session import settings_of
from sparkmirror.source.batch_plan import part_rows, planned
from sparkmirror.source.option_values import refused
from sparkmirror.source.read_options import ReadOptions, read_options
from sparkmirror.source.tables import chosen, declared

if TYPE_CHECKING:
    from sparkmirror.source.batch_plan import Part


def read_records(spark: SparkSession, options: Mapping[str, str], columns: Sequence[str] = ()) -> DataFrame:
    """Return what `spark.read.format("sparkmirror")` with these options gives.

    `columns` are those to read, all without; values that aren't wanted are not copied. The logs' ends are those of this
    moment, and the tasks read when Spark evaluates the DataFrame. Raises `ConfigError` and `ClusterUnreachable`.
    """
    read = read_options(options, streaming=False)
    table = table_schema(spark, read)
    for name in columns:
        if name not in table.names:
            raise refused("columns", f"the table {read.table} has no column {name}; it has {', '.join(table.names)}")
    wanted = StructType([table[name] for name in columns]) if columns else table
    if read.has_secrets and not keeps_secrets(settings_of(spark)):
        raise refused(
            "config" if read.flows else "kafka.sasl.jaas.config",
            "has passwords, which tasks on a Spark cluster would get in clear: set spark.authenticate and"
            " spark.network.crypto.enabled (or spark.ssl.rpc.enabled) to true",
        )
    return read_parts(spark, read, planned(read), wanted)


def read_parts(spark: SparkSession, options: ReadOptions, parts: Sequence[Part], wanted: StructType) -> DataFrame:
    """Return the rows of a table's parts, with these columns; a task reads each part."""
    schema = chosen(options, wanted)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from part_rows(options, parts[number], schema)

    return spark.range(0, len(parts), 1, max(len(parts), 1)).mapInArrow(rows, wanted)


def table_schema(spark: SparkSession, options: ReadOptions) -> StructType:
    """Return the columns of the table that options choose."""
    return spark.createDataFrame([], declared(options)).schema
