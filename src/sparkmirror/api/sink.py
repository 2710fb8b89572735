"""The exactly-once sink for a query's batches, and for a DataFrame alone."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

from sparkmirror.api.configured import File, Properties, Route, configured, only
from sparkmirror.api.html import table
from sparkmirror.client.settings import CONSUMER, cluster_config
from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.wire.batches import CODECS
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.sink.agreement import MicroBatch
from sparkmirror.sink.order import AppendedRange
from sparkmirror.sink.writing import BatchWriter

WRITTEN = (
    "query string, batch long, topic string, partition int, records long, first_offset long, last_offset long, "
    "earlier long"
)
_MOST_BATCHES = 1_000
_PREFIX = "kafka."
_HEADS = ("query", "batch", "topic", "partition", "records", "first_offset", "last_offset", "earlier")


class Sink:
    """Append a streaming query's rows to Kafka, each once, whatever dies.

        stream.writeStream.foreachBatch(sm.Sink("b:9092", topic="orders")).option("checkpointLocation", "ck").start()

    `target` are bootstrap servers, or a client's settings by Kafka's names, with or without `kafka.`; `config` with
    `flow` is a file whose flow's target is meant. Rows are as for Spark's Kafka sink: `value`, and if wanted `key`,
    `headers`, `topic`, `partition`; a `timestamp` is kept, too. Other columns are left out.

    `is_gathered`: each Kafka partition's rows are in one Spark task already, as in a copy of a topic with its
    `partition`; else a shuffle gathers them. The principal needs WRITE, READ and DESCRIBE on the topics, and the topic
    `mm2-sparkmirror-sink.internal`.
    """

    def __init__(
        self,
        target: str | Mapping[str, object] = "",
        topic: str = "",
        *,
        config: File | Properties | None = None,
        flow: str | None = None,
        properties: Properties = MappingProxyType({}),
        compression: str = "lz4",
        is_gathered: bool = False,
    ) -> None:
        """Read the settings. Raises `ConfigError`; no cluster is asked."""
        cluster = _cluster(target, config, flow, properties)
        if compression not in CODECS:
            raise ConfigError(f"choose one of {', '.join(CODECS)}", origin="Sink", key="compression")
        codec = Codec(CODECS.index(compression))
        self._writer = BatchWriter(cluster, topic, codec, is_gathered=is_gathered)
        self._written: dict[MicroBatch, list[AppendedRange]] = {}

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Append a micro-batch, for `foreachBatch`.

        Raises `RowsRefused`, `RowsChanged`, `ClusterUnreachable` and others. Spark then ends the query, and runs the
        batch again at the query's next start.
        """
        query = frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        if not query:
            raise ConfigError("this is no streaming query's batch: for a DataFrame alone take sm.append", origin="Sink")
        self.append(frame, query, batch_id)

    def append(self, frame: DataFrame, query: str, number: int) -> None:
        """Append rows as batch `number` of `query`.

        The rows of a query's number come once, however often this is called.
        """
        batch = MicroBatch(query, number)
        self._written[batch] = self._writer.write(frame, batch)
        while len(self._written) > _MOST_BATCHES:
            del self._written[next(iter(self._written))]

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """Places of the last thousand batches' records, with the columns of `WRITTEN`."""
        return [
            (*batch, *(getattr(each, name) for name in _HEADS[2:]))
            for batch, ranges in self._written.items()
            for each in ranges
        ]

    def written(self, spark: SparkSession) -> DataFrame:
        """Return the places of the last thousand batches' records (`WRITTEN`)."""
        return spark.createDataFrame(self.rows, WRITTEN)

    def _repr_html_(self) -> str:
        return table("written", _HEADS, self.rows)


def append(
    frame: DataFrame,
    target: str | Mapping[str, object] = "",
    topic: str = "",
    *,
    config: File | Properties | None = None,
    flow: str | None = None,
    properties: Properties = MappingProxyType({}),
    compression: str = "lz4",
    is_gathered: bool = False,
    app_id: str = "",
    version: int = 0,
) -> DataFrame:
    """Append a DataFrame's rows to Kafka, each once, and return where they are.

    Attempts of this job's tasks are told apart from other jobs'. A job that may run again as a whole names itself by
    `app_id` and counts in `version`, as Delta's `txnAppId` and `txnVersion`: of one name and version, the rows come
    once. Other arguments and errors are as for `Sink`.
    """
    sink = Sink(
        target,
        topic,
        config=config,
        flow=flow,
        properties=properties,
        compression=compression,
        is_gathered=is_gathered,
    )
    sink.append(frame, app_id or uuid.uuid4().hex, version)
    return sink.written(frame.sparkSession)


def written(sink: Sink, spark: SparkSession | None = None) -> DataFrame:
    """Return the places of a sink's records, over the last thousand batches."""
    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise ConfigError("there is no active Spark session: give one", origin="written", key="spark")
    return sink.written(session)


def _cluster(
    target: str | Mapping[str, object], config: File | Properties | None, flow: str | None, properties: Properties
) -> ClusterConfig:
    if bool(target) == (config is not None):
        raise ConfigError("give the target's servers or settings, or a file", origin="Sink")
    if config is not None:
        return only(configured(config, Route(), properties), flow).target
    if flow is not None:
        raise ConfigError("a flow is of a file: give config, too", origin="Sink", key="flow")
    settings: Mapping[str, object] = {"bootstrap.servers": target} if isinstance(target, str) else target
    named = {key.removeprefix(_PREFIX): str(value) for key, value in {**settings, **properties}.items()}
    cluster = cluster_config(named, CONSUMER)
    return cluster.model_copy(update={"alias": cluster.bootstrap_servers[0]})
