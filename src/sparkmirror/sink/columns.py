"""Columns of a DataFrame that become records."""

from __future__ import annotations

from pyspark.sql.types import IntegralType, StructType

from sparkmirror.errors import RowsRefused

COLUMNS = ("topic", "partition", "key", "value", "headers", "timestamp")
"""Columns of records, as in Spark's Kafka sink, and the timestamp.

Other columns are left out.
"""


def column_names(schema: StructType, topic: str) -> list[str]:
    """Return the names of the columns that become records; raises `RowsRefused`."""
    if "value" not in schema.names:
        raise RowsRefused("value", f"it is missing; the DataFrame has {', '.join(schema.names)}")
    if not topic and "topic" not in schema.names:
        raise RowsRefused("topic", "it is missing: give the sink a topic, or the rows a column")
    if "partition" in schema.names and not isinstance(schema["partition"].dataType, IntegralType):
        kind = schema["partition"].dataType.simpleString()
        raise RowsRefused("partition", f"its type is {kind}; cast it to int")
    return [name for name in COLUMNS if name in schema.names and not (topic and name == "topic")]
