"""The Spark session of a notebook or job."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from sparkmirror.config import MirrorConfig
from sparkmirror.mirror.engine.session import open_session


def session_for(config: MirrorConfig, spark: SparkSession | None) -> SparkSession:
    """Return the given session, else the active one, else a new one.

    A new session follows the file's `spark.*` settings. Local Spark then has a slot for each task of the flows, and for
    queries as many more as the machine has cores. Raises `SetupError`.
    """
    if spark is None:
        spark = SparkSession.getActiveSession()
    if spark is not None:
        return spark
    return open_session(config.spark, tasks=sum(flow.tasks_max for flow in config.flows) + (os.cpu_count() or 1))
