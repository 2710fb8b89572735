"""Columns of the tables that can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from sparkmirror.source import read_options
from sparkmirror.source.option_values import refused
from sparkmirror.source.read_options import ReadOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

RECORDS = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
HEADERS = "headers array<struct<key:string,value:binary>>"
BATCHES = (
    "topic string, partition int, base_offset long, last_offset long, records int, bytes int, codec string, "
    "timestampType int, base_timestamp timestamp, max_timestamp timestamp, producer_id long, producer_epoch int, "
    "base_sequence int, transactional boolean, format int"
)
"""A row for each batch that begins at the offsets asked for; nothing is unpacked.

What old formats lack is null.
"""
_TYPES = {
    "binary": pa.binary(),
    "string": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def declared(options: ReadOptions) -> str:
    """Return the schema of a table, in SQL's words."""
    if options.table == read_options.RECORDS:
        return f"{RECORDS}, {HEADERS}" if options.include_headers else RECORDS
    if options.table == read_options.BATCHES:
        return BATCHES
    from sparkmirror.frames.flow_rows import GROUPS, LOSSES
    from sparkmirror.frames.offset_runs import OFFSET_RUNS
    from sparkmirror.frames.receipts import RECEIPTS

    return {
        "groups": GROUPS,
        "losses": LOSSES,
        "offset_map": f"flow string, {OFFSET_RUNS}",
        "receipts": f"flow string, {RECEIPTS}",
    }[options.table]


def arrow_schema(columns: str) -> pa.Schema:
    """Return the same schema as Arrow has it."""
    fields = [each.strip().split(" ", 1) for each in columns.replace(f", {HEADERS}", "").split(",")]
    made = [pa.field(name, _TYPES[kind]) for name, kind in fields]
    if HEADERS in columns:
        element = pa.struct([("key", pa.string()), ("value", pa.binary())])
        made.append(pa.field("headers", pa.list_(pa.field("element", element))))
    return pa.schema(made)


def chosen(options: ReadOptions, schema: StructType) -> pa.Schema:
    """Return the columns that Spark's schema has, as Arrow has them.

    A user's schema chooses columns. Raises `ConfigError` for a column that the table lacks, or has with another type.
    """
    columns = declared(options)
    if options.table == read_options.RECORDS and not options.include_headers:
        columns = f"{columns}, {HEADERS}"
    table = arrow_schema(columns)
    kinds = dict(each.strip().split(" ", 1) for each in columns.replace(f", {HEADERS}", "").split(","))
    kinds["headers"] = HEADERS.split(" ", 1)[1]
    made = []
    for given in schema.fields:
        if given.name not in table.names:
            raise refused("schema", f"the table {options.table} has no column {given.name}; it has {columns}")
        wanted = {"long": "bigint"}.get(kinds[given.name], kinds[given.name])
        if given.dataType.simpleString() != wanted:
            raise refused(
                "schema",
                f"the column {given.name} is {kinds[given.name]}, not {given.dataType.simpleString()}: cast it after"
                " reading",
            )
        made.append(table.field(given.name).with_nullable(given.nullable))
    if not made:
        raise refused("schema", "it has no column")
    return pa.schema(made)
