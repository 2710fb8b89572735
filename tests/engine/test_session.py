"""Spark as a mirror wants it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkmirror.engine.session import DEFAULTS

SPARK_PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_page_has_the_settings_that_sparkmirror_chooses() -> None:
    told = dict(re.findall(r"^\| `(spark[\w.]+)` \| `([^`]+)` \|", SPARK_PAGE.read_text(), re.MULTILINE))
    assert told == DEFAULTS


@pytest.mark.spark
def test_no_task_runs_twice_at_a_time_by_plan(spark: SparkSession) -> None:
    assert spark.conf.get("spark.speculation") == "false", "two pumps for a partition (R7)"
