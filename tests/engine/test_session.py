"""Spark as a mirror wants it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkmirror.config import ClusterConfig, FlowConfig, MirrorConfig
from sparkmirror.engine.mirror import Mirror
from sparkmirror.engine.session import DEFAULTS
from sparkmirror.errors import ConfigError

SPARK_PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_page_has_the_settings_that_sparkmirror_chooses() -> None:
    told = dict(re.findall(r"^\| `(spark[\w.]+)` \| `([^`]+)` \|", SPARK_PAGE.read_text(), re.MULTILINE))
    assert told == DEFAULTS


@pytest.mark.parametrize("value", ["true", " TRUE "])
def test_a_file_can_not_let_a_task_run_twice_at_a_time(value: str) -> None:
    """Before anything is asked of the clusters, which are not there."""
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "ab")
    flow = FlowConfig(source=source, target=target)
    mirror = Mirror(MirrorConfig(path="mm2.properties", flows=(flow,), spark={"spark.speculation": value}))
    with pytest.raises(
        ConfigError, match=r"^mm2\.properties: spark\.speculation = true would give partitions two pumps"
    ):
        mirror.run()


@pytest.mark.spark
def test_no_task_runs_twice_at_a_time_by_plan(spark: SparkSession) -> None:
    assert spark.conf.get("spark.speculation") == "false", "two pumps for a partition (R7)"
