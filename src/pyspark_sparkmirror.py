"""The data source `sparkmirror`, as Spark finds it for reading and writing.

From 4.0 on, Spark imports each module named `pyspark_*` and registers the `DefaultSource` in it. If one such import
fails, Spark registers no data source of anybody. So this module imports nothing that may be missing, and little: what
reads or writes is imported when somebody does. Spark 3.5 has no such sources; `sparkmirror.source.frames` and `sm.Sink`
serve it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

with suppress(ImportError):
    from pyspark.sql.datasource import DataSource

    class DefaultSource(DataSource):
        """The data source `sparkmirror`."""

        @classmethod
        def name(cls) -> str:
            return "sparkmirror"

        def schema(self) -> str:
            from sparkmirror.source.read_options import read_options
            from sparkmirror.source.tables import declared

            return declared(read_options(self._given(), streaming=None))

        def reader(self, schema: StructType) -> DataSourceReader:
            from sparkmirror.source.spark_readers import rows_reader

            return rows_reader(self._given(), schema)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
            from sparkmirror.source.spark_readers import streaming_rows

            return streaming_rows(self._given(), schema)

        def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
            from sparkmirror.source.spark_writers import job_writer

            return job_writer(self._given(), schema, overwrite=overwrite)

        def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
            from sparkmirror.source.spark_writers import query_writer

            return query_writer(self._given(), schema, overwrite=overwrite)

        def _given(self) -> dict[str, str]:
            return dict(self.options.items())
