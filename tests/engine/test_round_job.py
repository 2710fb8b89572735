"""A round is one job of its own: it is cancelled with its tasks, and no other one is."""

from __future__ import annotations

from pathlib import Path

import pytest
from cancelled_round import cancel_one
from pyspark.sql import SparkSession


@pytest.mark.spark
def test_cancelling_ends_one_rounds_tasks(spark: SparkSession, tmp_path: Path) -> None:
    outcome = cancel_one(spark.sparkContext, tmp_path)
    assert outcome.ended_s is not None, "the job continues"
    assert outcome.ended_s < 5
    assert outcome.worker_gone_s is not None, "its task continues"
    assert outcome.failure
    assert outcome.other_goes_on
