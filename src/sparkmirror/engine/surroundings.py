"""What is looked up now and then for the snapshot: who else works, when certificates end, how the JVM is."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import NamedTuple

from pyspark.sql import SparkSession

from sparkmirror.cluster.certificates import first_end_ms
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.groups import Groups
from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event

LOOK_S = 30.0
"""How often."""

log = logging.getLogger(__name__)


class JvmFigures(NamedTuple):
    """Figures of the JVM of Spark's driver."""

    version: str = ""
    """Of Spark."""
    memory_bytes: int = 0
    threads: int = 0
    gc_s: float = 0.0


class Surroundings:
    """For one process; `start` it, and `close` it. What can't be found out stays as it was."""

    def __init__(
        self, flows: Callable[[], Sequence[FlowConfig]], spark: Callable[[], SparkSession | None], *, lease: bool
    ) -> None:
        """`lease`: whether the flows have leases, so that others may stand by."""
        self._flows = flows
        self._spark = spark
        self._lease = lease
        self._closing = threading.Event()
        self._certificates_at = 0.0
        self.processes: dict[str, int] = {}
        """How many processes work on a flow or stand by, by the flow's name."""
        self.certificates: dict[str, tuple[int | None, int | None]] = {}
        """When the first certificate of either side ends, by the flow's name."""
        self.jvm = JvmFigures()
        self._thread = threading.Thread(target=self._run, name="surroundings", daemon=True)

    def start(self) -> None:
        """Begin to look, in the background."""
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._closing.set()

    def _run(self) -> None:
        while not self._closing.wait(1.0 if not self.jvm.version else LOOK_S):
            for flow in self._flows():
                try:
                    self._look(flow)
                except (ConnectionError, SparkMirrorError) as error:
                    log.debug("flow %s: who else works on it is not known: %s", flow.name, error)
                except Exception:  # this thread must not end
                    log.exception("flow %s: looking around", flow.name, extra=Event.LOOKING_AROUND_FAILED.extra)
            if time.monotonic() >= self._certificates_at:
                self._certificates_at = time.monotonic() + LOOK_S
                self.certificates = {
                    flow.name: (first_end_ms(flow.source), first_end_ms(flow.target)) for flow in self._flows()
                }
            spark = self._spark()
            if spark is not None:
                try:
                    self.jvm = _jvm(spark)
                except Exception as error:  # Py4J raises what it likes where the JVM has ended
                    log.debug("the JVM does not answer: %r", error)

    def _look(self, flow: FlowConfig) -> None:
        if not self._lease:
            return
        with closing(ClusterClient(flow.target, f"{flow.name}|sparkmirror-surroundings")) as client:
            members = Groups(client).members(f"{flow.source.alias}-mm2")
        if members is not None:
            self.processes[flow.name] = members


def _jvm(spark: SparkSession) -> JvmFigures:
    management = spark.sparkContext._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr] # noqa: SLF001
    heap = management.getMemoryMXBean()
    used = heap.getHeapMemoryUsage().getUsed() + heap.getNonHeapMemoryUsage().getUsed()
    gc_ms = sum(max(one.getCollectionTime(), 0) for one in management.getGarbageCollectorMXBeans())
    return JvmFigures(spark.version, used, management.getThreadMXBean().getThreadCount(), gc_ms / 1000)
