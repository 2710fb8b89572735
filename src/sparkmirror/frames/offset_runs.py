"""Exact offset map as a DataFrame: a row for each run of records.

In a run, the offsets grow by one on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sparkmirror.config import FlowConfig
from sparkmirror.config.model import REVEAL
from sparkmirror.config.spark_guards import guard_secrets
from sparkmirror.exact.maps.map_keeper import MapKeeper
from sparkmirror.exact.maps.offset_map import CopiedRun
from sparkmirror.exact.maps.partition_map import PartitionMap
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.mirror.engine.session import settings_of
from sparkmirror.mirror.sync.topic_rules import topic_rules

OFFSET_RUNS = "topic string, target_topic string, partition int, upstream long, downstream long, records long"
CopiedPartition = tuple[str, str, int]
"""Topic at the source, topic at the target, and partition."""

ROWS = 10_000
"""A batch's rows."""
_CONNECT_S = 15.0
_ROLE = "sparkmirror-offsets"


def offset_runs(spark: SparkSession, flow: FlowConfig) -> DataFrame:
    """Return the runs for every partition that the flow copies.

    Spark reads the runs from the target when it evaluates the DataFrame.

    To translate a partition's offset `u`, take the last run with `upstream <= u`. If `u < upstream + records`, the
    result is `downstream + u - upstream`, else the downstream offset where the next run begins.

    Raises `ConfigError` and `ClusterUnreachable`.
    """
    guard_secrets(flow, settings_of(spark), f"flow {flow.name}")
    wanted = copied_partitions(flow)
    order = flow.model_dump_json(context=REVEAL)
    columns = "topic string, target_topic string, partition int"
    slots = max(min(spark.sparkContext.defaultParallelism, len(wanted)), 1)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [(row["topic"], row["target_topic"], row["partition"]) for row in batch.to_pylist()]
            yield from run_batches(FlowConfig.model_validate_json(order), rows)

    return spark.createDataFrame(wanted, columns).repartition(slots).mapInArrow(read, OFFSET_RUNS)


def copied_partitions(flow: FlowConfig) -> list[CopiedPartition]:
    """Return the partitions that the flow copies, as the source has them now.

    Raises `ClusterUnreachable`.
    """
    rules = topic_rules(flow)
    timeout_s = min(flow.admin_timeout_ms / 1000, _CONNECT_S)
    with ClusterAdmin.connect(flow.source, _ROLE, timeout_s) as source:
        return [
            (name, rules.remote_name(name), partition.partition)
            for name, topic in sorted(source.topics().items())
            if rules.wanted(name)
            for partition in topic.partitions
        ]


def run_batches(flow: FlowConfig, wanted: Sequence[CopiedPartition]) -> Iterator[pa.RecordBatch]:
    """Yield the runs of these partitions (`OFFSET_RUNS`), as the target has them."""
    client = ClusterClient(flow.target, f"{flow.name}|{_ROLE}")
    maps = MapKeeper(client, flow.source.alias)
    try:
        source_topics = {(target_topic, partition): topic for topic, target_topic, partition in wanted}
        for (target_topic, partition), partition_map in maps.refresh(dict.fromkeys(source_topics)).items():
            if isinstance(partition_map, PartitionMap):
                source_topic = source_topics[target_topic, partition]
                for runs in _chunks(partition_map.offsets.runs()):
                    yield pa.RecordBatch.from_pydict(
                        {
                            "topic": [source_topic] * len(runs),
                            "target_topic": [target_topic] * len(runs),
                            "partition": pa.array([partition] * len(runs), pa.int32()),
                            "upstream": [run.upstream for run in runs],
                            "downstream": [run.downstream for run in runs],
                            "records": [run.records for run in runs],
                        }
                    )
    finally:
        maps.close()
        client.close()


def _chunks(runs: Iterator[CopiedRun]) -> Iterator[list[CopiedRun]]:
    chunk: list[CopiedRun] = []
    for run in runs:
        chunk.append(run)
        if len(chunk) == ROWS:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
