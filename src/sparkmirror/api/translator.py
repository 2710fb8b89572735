"""Exact translation of offsets: one, many, or a DataFrame's columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType, TracebackType
from typing import Self

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StringType, StructField, StructType

from sparkmirror.api.configured import File, Properties, Route, configured, only
from sparkmirror.config import FlowConfig
from sparkmirror.config.model import REVEAL
from sparkmirror.config.spark_guards import guard_secrets
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.engine.session import settings_of
from sparkmirror.mirror.sync.application_translator import Stored, Translation
from sparkmirror.mirror.sync.turn_translator import translator_of

ADDED = StructType(
    [
        StructField("translated_topic", StringType()),
        StructField("translated_offset", LongType()),
        StructField("reason", StringType()),
    ]
)
"""Columns added by `translate_frame`; `reason` explains a null."""


class Translator:
    """Translator between a flow's two clusters, with maps kept for later questions.

    `config` is a file, or a mapping with MirrorMaker 2's keys; `flow` names one of several flows. Only the target is
    asked. For one thread; a context manager.
    """

    def __init__(
        self,
        config: File | Properties,
        *,
        flow: str | None = None,
        properties: Properties = MappingProxyType({}),
    ) -> None:
        """Read the configuration. Raises `ConfigError`."""
        self._flow = only(configured(config, Route(), properties), flow)
        self._translator = translator_of(self._flow)

    def translate(self, topic: str, partition: int, offset: int, *, reverse: bool = False) -> Translation:
        """Translate a consumer's next offset; raises `ClusterUnreachable`."""
        return self._translator.translate(topic, partition, offset, reverse=reverse)

    def translate_each(self, stored: Sequence[tuple[str, int, int]], *, reverse: bool = False) -> list[Translation]:
        """Translate tuples of topic, partition and offset, in the order given.

        Raises `ClusterUnreachable`.
        """
        return self._translator.translate_each([Stored(*each) for each in stored], reverse=reverse)

    def translate_frame(
        self,
        frame: DataFrame,
        *,
        topic: str = "topic",
        partition: str = "partition",
        offset: str = "offset",
        reverse: bool = False,
    ) -> DataFrame:
        """Return the DataFrame with three columns more (`ADDED`).

        Spark's executors ask the target when Spark evaluates the DataFrame. A row with a null stays without a
        translation. Raises `ConfigError`.
        """
        missing = [name for name in (topic, partition, offset) if name not in frame.columns]
        if missing:
            raise ConfigError(f"the DataFrame has the columns {', '.join(frame.columns)}", origin=missing[0])
        if taken := [name for name in ADDED.names if name in frame.columns]:
            raise ConfigError("the DataFrame has this column already: rename it", origin=taken[0])
        guard_secrets(self._flow, settings_of(frame.sparkSession), f"flow {self._flow.name}")
        order = self._flow.model_dump_json(context=REVEAL)
        columns = topic, partition, offset

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return _translated(order, batches, columns, reverse=reverse)

        schema = StructType([*frame.schema.fields, *ADDED.fields])
        return frame.repartition(topic, partition).mapInArrow(read, schema)

    def close(self) -> None:
        """Close the connections, and free the maps."""
        self._translator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _translated(
    order: str, batches: Iterator[pa.RecordBatch], columns: Sequence[str], *, reverse: bool
) -> Iterator[pa.RecordBatch]:
    with translator_of(FlowConfig.model_validate_json(order)) as translator:
        for batch in batches:
            rows = list(zip(*(batch.column(name).to_pylist() for name in columns), strict=True))
            asked = list(dict.fromkeys(row for row in rows if None not in row))
            answers = translator.translate_each([Stored(*row) for row in asked], reverse=reverse)
            known = dict(zip(asked, answers, strict=True))
            results = [known.get(row, _NOT_ASKED) for row in rows]
            yield pa.RecordBatch.from_arrays(
                [
                    *batch.columns,
                    pa.array([each.topic for each in results], pa.string()),
                    pa.array([each.offset for each in results], pa.int64()),
                    pa.array([each.reason for each in results], pa.string()),
                ],
                names=[*batch.schema.names, "translated_topic", "translated_offset", "reason"],
            )


_NOT_ASKED = Translation("", -1, None, "topic, partition or offset is null")
