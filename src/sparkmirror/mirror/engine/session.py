"""Start Spark: a mirror's context, or a session for DataFrames.

Spark runs in local mode unless `spark.*` settings say otherwise.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.clientserver import ClientServer
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from sparkmirror.config.spark_guards import (
    DRIVER_MEMORY,
    JAVA_OPTIONS,
    KILL_DELAY,
    KILLED_AFTER,
    MASTER,
    SPECULATION,
    is_local,
)
from sparkmirror.errors import SetupError
from sparkmirror.mirror.engine.jvm_output import relay

_TASK_CPUS = "spark.task.cpus"
_BIND_ADDRESS = "spark.driver.bindAddress"
_PAGE_ADDRESS = "SPARK_LOCAL_IP"
"""Variable with the address of Spark's page, for which Spark has no setting."""
_AUTH_VARIABLE = "_SPARK_AUTH_SECRET"
"""Variable with `spark.authenticate.secret`.

Spark's masters, workers and executors take the secret from there; its drivers don't.
"""
WARM = "spark.sparkmirror.standby.warm"
"""sparkmirror's own setting: Spark hands settings of any name on."""
WORKER_PYTHON = "spark.pyspark.python"
ATTEMPTS = 4

_SECRET = re.compile(r"secret|password|token|access\.?key", re.IGNORECASE)
"""Keys with secret values: the pattern of Spark's own `spark.redaction.regex`."""

_LITTLE_MEMORY = re.compile(r"memory \d+ must be at least \d+", re.IGNORECASE)
"""Words of Spark's `UnifiedMemoryManager`."""

log = logging.getLogger(__name__)

_LOG4J = Path(__file__).with_name("log4j2.properties").as_uri()
DEFAULTS = {
    "spark.app.name": "sparkmirror",
    "spark.ui.enabled": "false",
    "spark.ui.killEnabled": "false",
    "spark.ui.showConsoleProgress": "false",
    SPECULATION: "false",
    # A worker that is to end is drained: its executors end with their tasks, and get no more.
    "spark.decommission.enabled": "true",
    DRIVER_MEMORY: "512m",
    "spark.task.maxFailures": str(ATTEMPTS),
    KILL_DELAY: KILLED_AFTER,
}
"""Settings that sparkmirror chooses; `docs/spark.md` has them, with the reasons."""
_LOCAL_JAVA = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    # Java would begin with a 64th of the machine's memory, and keep what Spark's start needed.
    "-Xms32m",
    "-XX:MinHeapFreeRatio=15",
    "-XX:MaxHeapFreeRatio=25",
    "-XX:-UsePerfData",  # it wakes the JVM twenty times a second
    f"-Dlog4j2.configurationFile={_LOG4J}",
)
_LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    _BIND_ADDRESS: "127.0.0.1",
    # Other users of the machine reach the ports, too. Spark makes the secret, for each context.
    "spark.authenticate": "true",
    JAVA_OPTIONS: " ".join(_LOCAL_JAVA),
}
_ARENAS = "MALLOC_ARENA_MAX"
"""glibc's setting for a process's heaps.

By default each JVM thread and task thread may keep freed memory for itself.
"""


def starts_early(settings: Mapping[str, str]) -> bool:
    """True if a process that stands by starts Spark.

    On a cluster Spark takes executors, so the operator must ask for that (`WARM`).
    """
    return is_local(settings) or settings.get(WARM, "").strip().lower() == "true"


def local_slots(settings: Mapping[str, str]) -> int | None:
    """Return how many tasks the user's local master runs at once.

    None if the user gave no such master, or a star.
    """
    threads = _local_threads(settings)
    return None if threads is None else threads // _threads_of_a_task(settings)


def _local_threads(settings: Mapping[str, str]) -> int | None:
    inside = settings.get(MASTER, "").partition("[")[2].rstrip("]")
    count = inside.partition(",")[0]
    return int(count) if count.isdigit() else None


def _threads_of_a_task(settings: Mapping[str, str]) -> int:
    count = settings.get(_TASK_CPUS, "").strip()
    return int(count) if count.isdigit() and int(count) else 1


def start_spark(settings: Mapping[str, str], tasks: int) -> SparkContext:
    """Start Spark without a session: Spark SQL would double the JVM's memory.

    In local mode, if the user gave no master, there are as many slots as `tasks`. The tasks wait for the network, so
    there may be more tasks than cores. `local[N]` would mean one attempt for each task. Raises `SetupError` if Spark
    does not start, or if this process has one already: it has settings of its own, and somebody else stops it.
    """
    if _has_spark():
        raise SetupError(
            "this process has a Spark already, with settings of its own: give its session to Mirror(config, spark=...),"
            " or stop it before"
        )
    chosen = _chosen(settings, tasks)
    with _start_refused():
        return _launch(chosen)


def open_session(settings: Mapping[str, str], tasks: int) -> SparkSession:
    """Return a session from this process's Spark.

    A process without Spark starts it as `start_spark` does.
    """
    chosen = _chosen(settings, tasks)
    with _start_refused():
        if not _has_spark():
            _launch(chosen)
        builder = SparkSession.builder
        for key, value in chosen.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


def settings_of(session: SparkSession) -> dict[str, str]:
    """Return the `spark.*` settings from a session's Spark.

    A local master has its slot count, and no `spark.task.cpus`, which may make them less than its threads. Raises
    `SetupError` for a Spark Connect session, whose tasks are out of reach.
    """
    try:
        context = session.sparkContext
        settings = dict(context.getConf().getAll())
        if settings.get(MASTER, "").partition("[")[0] == "local":
            settings[MASTER] = f"local[{slots_of(context)}]"
            settings.pop(_TASK_CPUS, None)
        return settings
    except Exception as error:
        raise SetupError(
            f"sparkmirror needs a session with a SparkContext, and this is none: {in_one_line(error)}; Spark Connect"
            " has no such sessions"
        ) from error


def slots_of(context: SparkContext) -> int:
    """Return the slots on all executors that take tasks.

    Executors that are being decommissioned don't count. Spark uses the same number before a stage whose tasks must all
    run at once. Raises whatever Py4J raises.
    """
    scala = context._jsc.sc()  # noqa: SLF001 - PySpark has no public call
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def demand_pinned_threads() -> None:
    """Raise `SetupError` if this process' Spark could not cancel a round.

    Without pinned threads the round's tag and its job may be on two JVM threads. A Spark that is started after another
    one ended has that one's connection to the JVM.
    """
    gateway = SparkContext._gateway  # noqa: SLF001 - PySpark has no public call
    if gateway is not None and not isinstance(gateway, ClientServer):
        raise SetupError(
            "a round of this process' Spark could not be cancelled: start the process without PYSPARK_PIN_THREAD=false"
        )


def _has_spark() -> bool:
    return SparkContext._active_spark_context is not None  # noqa: SLF001 - PySpark has no public call


def _chosen(settings: Mapping[str, str], tasks: int) -> dict[str, str]:
    """Return all settings to start with; set what only the environment can say."""
    chosen = dict(DEFAULTS)
    if is_local(settings):
        chosen |= _LOCAL_DEFAULTS
        threads = _local_threads(settings) or tasks * _threads_of_a_task(settings)
        chosen[MASTER] = f"local[{threads},{ATTEMPTS}]"
        settings = {key: value for key, value in settings.items() if key != MASTER}
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault(_ARENAS, "2")
        os.environ.setdefault(_PAGE_ADDRESS, settings.get(_BIND_ADDRESS, chosen[_BIND_ADDRESS]))
    elif secret := os.environ.get(_AUTH_VARIABLE):
        chosen["spark.authenticate.secret"] = secret
    os.environ["PYSPARK_PIN_THREAD"] = "true"  # as `demand_pinned_threads` demands
    if WORKER_PYTHON in settings:  # outside spark-submit PySpark reads only the environment
        os.environ["PYSPARK_PYTHON"] = settings[WORKER_PYTHON]
    return chosen | dict(settings)


@contextmanager
def _start_refused() -> Iterator[None]:
    """Raise `SetupError` for whatever keeps Spark from starting."""
    try:
        yield
    except Exception as error:
        reason = in_one_line(error)
        hint = (
            "does JAVA_HOME, or else PATH, lead to a Java that it runs on? Each Spark from 3.5 to 4.3 runs on Java 17"
        )
        if _LITTLE_MEMORY.search(reason):
            default = DEFAULTS[DRIVER_MEMORY]
            hint = f"raise {DRIVER_MEMORY}, which is {default} by default, or the executor's if that is meant"
        raise SetupError(f"Spark {pyspark.__version__} can't be started: {reason}; {hint}") from error


def _expect_the_jvms_end(context: SparkContext) -> None:
    """Have PySpark print no traceback when the JVM ends before this process.

    A signal to the process group ends both. The JVM keeps a connection to PySpark's accumulator server, though a mirror
    has no accumulators. Py4J logs each call that gets no answer, with the root logger; one may be under way in its own
    thread, which tells the JVM of objects that Python has dropped. Other callers get the error.
    """
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: log.debug("Spark's JVM has closed a connection")
    logging.getLogger().addFilter(_is_no_call_without_answer)


def _is_no_call_without_answer(record: logging.LogRecord) -> bool:
    return record.msg != "Exception while sending command."


def in_one_line(error: Exception) -> str:
    """Return Spark's error in a single line.

    For an error in the JVM the line has the call and the exception's first line. Never raises: Py4J asks the JVM for an
    error's words, and the JVM may have ended by then.
    """
    try:
        words = str(error)
    except Exception:
        words = str(getattr(error, "errmsg", ""))
    lines = [line.rstrip(".") for line in words.strip().splitlines()] or [type(error).__name__]
    return lines[0] + lines[1] if len(lines) > 1 and lines[1].startswith(": ") else lines[0]


def _launch(settings: Mapping[str, str]) -> SparkContext:
    """Start Spark like the builder, with the JVM's output relayed to the log.

    An earlier Spark's JVM serves again. No secret gets into the JVM's command line.
    """
    conf = SparkConf().setAll(list(settings.items()))
    gateway = SparkContext._gateway or _launch_jvm(settings)  # noqa: SLF001 - PySpark has no public call
    context = SparkContext(conf=conf, gateway=gateway)
    _expect_the_jvms_end(context)
    return context


def _launch_jvm(settings: Mapping[str, str]) -> Any:
    shown = SparkConf().setAll([(key, value) for key, value in settings.items() if not _SECRET.search(key)])
    standard_error = relay()
    try:
        return launch_gateway(shown, {"stderr": standard_error})  # type: ignore[no-untyped-call]
    finally:
        os.close(standard_error)
