"""Spark as a mirror wants it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession


@pytest.mark.spark
def test_no_task_runs_twice_at_a_time_by_plan(spark: SparkSession) -> None:
    assert spark.conf.get("spark.speculation") == "false", "two pumps for a partition (R7)"
