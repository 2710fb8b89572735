"""Loss ledgers and consumer groups as DataFrames."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from sparkmirror.api.shown_status import MirrorStatus
from sparkmirror.config import FlowConfig
from sparkmirror.frames.flow_rows import GROUPS, LOSSES, group_rows, loss_rows


def loss_frame(spark: SparkSession, flows: Iterable[FlowConfig]) -> DataFrame:
    """Return all entries of the loss ledgers (`LOSSES`).

    Raises `ClusterUnreachable`.
    """
    return spark.createDataFrame([row for flow in flows for row in loss_rows(flow)], LOSSES)


def group_frame(spark: SparkSession, status: MirrorStatus) -> DataFrame:
    """Return consumer groups by partition (`GROUPS`)."""
    return spark.createDataFrame([row for each in status.values() for row in group_rows(*each)], GROUPS)
