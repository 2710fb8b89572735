"""The Spark session of a mirror: local mode unless `spark.*` settings say otherwise."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from sparkmirror.config import FlowConfig
from sparkmirror.engine.jvm_output import relay
from sparkmirror.errors import ConfigError, SetupError

MASTER = "spark.master"
WARM = "spark.sparkmirror.standby.warm"
"""Spark hands settings of any name on; this one is for us."""
WORKER_PYTHON = "spark.pyspark.python"
ATTEMPTS = 4

_SECRET = re.compile(r"secret|password|token|access\.?key", re.IGNORECASE)
"""Keys of what nobody may read: Spark's own `spark.redaction.regex`."""

_LOG4J = Path(__file__).with_name("log4j2.properties").as_uri()
_DEFAULTS = {
    "spark.app.name": "sparkmirror",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.speculation": "false",
    # A worker that is to end is drained: its executors end with their tasks, and get no more
    "spark.decommission.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.task.maxFailures": str(ATTEMPTS),
}
_LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": (f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={_LOG4J}"),
}


def is_local(settings: Mapping[str, str]) -> bool:
    """Whether the tasks run in this process' own JVM, where the slots are ours to set."""
    return settings.get(MASTER, "local").startswith("local")


def starts_early(settings: Mapping[str, str]) -> bool:
    """Whether a process that stands by starts Spark: on a cluster it takes executors, so it must be asked for."""
    return is_local(settings) or settings.get(WARM, "").strip().lower() == "true"


def keeps_secrets(settings: Mapping[str, str]) -> bool:
    """Whether nobody on the way can read what the driver tells its tasks (Spark's security page)."""
    if is_local(settings):
        return True
    on = {key for key, value in settings.items() if value.strip().lower() == "true"}
    return "spark.authenticate" in on and not on.isdisjoint({"spark.network.crypto.enabled", "spark.ssl.rpc.enabled"})


def guard_secrets(flow: FlowConfig, settings: Mapping[str, str], where: str) -> None:
    """Refuse a flow whose passwords, which travel to the tasks inside their orders, could be read on the way.

    Raises `ConfigError`, with that `where`.
    """
    if flow.has_secrets and not keeps_secrets(settings):
        raise ConfigError(
            f"flow {flow.name} has passwords, which its tasks on a Spark cluster would get in clear: set"
            " spark.authenticate and spark.network.crypto.enabled (or spark.ssl.rpc.enabled) to true",
            origin=where,
        )


def local_slots(settings: Mapping[str, str]) -> int | None:
    """How many tasks a local master given by the user runs at once; None: the user gave none, or a star."""
    inside = settings.get(MASTER, "").partition("[")[2].rstrip("]")
    count = inside.partition(",")[0]
    return int(count) if count.isdigit() else None


def open_session(settings: Mapping[str, str], tasks: int) -> SparkSession:
    """Start Spark. In local mode without a master of the user's there is a slot for each of `tasks`.

    The tasks wait for the network, so there may be more of them than cores. `local[N]` would mean one attempt for
    each task. Raises `SetupError` where Spark does not start.
    """
    chosen = dict(_DEFAULTS)
    if is_local(settings):
        chosen |= _LOCAL_DEFAULTS
        chosen[MASTER] = f"local[{local_slots(settings) or tasks},{ATTEMPTS}]"
        settings = {key: value for key, value in settings.items() if key != MASTER}
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if WORKER_PYTHON in settings:  # outside spark-submit PySpark reads only the environment
        os.environ["PYSPARK_PYTHON"] = settings[WORKER_PYTHON]
    chosen |= settings
    try:
        if SparkSession.getActiveSession() is None:
            _launch(chosen)
        builder = SparkSession.builder
        for key, value in chosen.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except Exception as error:
        raise SetupError(
            f"Spark {pyspark.__version__} can't be started: {in_one_line(error)}; does JAVA_HOME, or else PATH, lead to"
            " a Java that it runs on? Each Spark from 3.5 to 4.3 runs on Java 17"
        ) from error


def in_one_line(error: Exception) -> str:
    """Return what Spark raised: of an error in the JVM what was called, and the exception's first line.

    Never raises: Py4J asks the JVM for an error's words, and the JVM may be gone by then.
    """
    try:
        words = str(error)
    except Exception:
        words = str(getattr(error, "errmsg", ""))
    lines = [line.rstrip(".") for line in words.strip().splitlines()] or [type(error).__name__]
    return lines[0] + lines[1] if len(lines) > 1 and lines[1].startswith(": ") else lines[0]


def _launch(settings: Mapping[str, str]) -> None:
    """Start the JVM, as the builder would, but with an eye on what it prints, and no secret in its command line."""
    shown = SparkConf().setAll([(key, value) for key, value in settings.items() if not _SECRET.search(key)])
    standard_error = relay()
    try:
        gateway = launch_gateway(shown, {"stderr": standard_error})  # type: ignore[no-untyped-call]
    finally:
        os.close(standard_error)
    SparkContext(conf=SparkConf().setAll(list(settings.items())), gateway=gateway)
