"""Facts that are looked up now and then for the snapshot.

The facts are processes at work on the same flows, the end of certificates, and the JVM's figures.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import NamedTuple

from pyspark import SparkContext

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.certificates import first_end_ms
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups
from sparkmirror.snapshot.status_topic import INTERVAL_S, Status, read_status

LOOK_S = 30.0
"""Seconds between two looks."""

FIRST_REST_S = 1.0
"""Seconds between the first two looks.

Each further rest is twice as long, up to `LOOK_S`.
"""

OLD_STATUS_S = 3 * INTERVAL_S
"""Age in seconds from which a published status says nothing about the present."""

SPARK_S = 1.0
"""Seconds between two looks whether Spark is up."""

log = logging.getLogger(__name__)


class JvmFigures(NamedTuple):
    """Figures of the Spark driver's JVM."""

    version: str = ""
    """Spark's version."""
    memory_bytes: int = 0
    threads: int = 0
    gc_s: float = 0.0


class Surroundings:
    """Observe one process's surroundings: `start`, then `close`.

    A fact that can't be read keeps its last value.
    """

    def __init__(
        self,
        flows: Callable[[], Sequence[FlowConfig]],
        stands_by: Callable[[str], bool],
        spark: Callable[[], SparkContext | None],
        *,
        lease: bool,
    ) -> None:
        """Prepare the observer.

        `stands_by` tells whether another process works on a flow. `lease` is True if the flows have leases, so that
        other processes may stand by.
        """
        self._flows = flows
        self._stands_by = stands_by
        self._spark = spark
        self._lease = lease
        self._closing = threading.Event()
        self.processes: dict[str, int] = {}
        """Flow to the number of processes at work on it or standing by."""
        self.differences: dict[str, tuple[str, ...]] = {}
        """Flow to the settings that differ in the working process."""
        self.pages: dict[str, str] = {}
        """Flow to the working process's live page address.

        Only flows for which the process stands by.
        """
        self.silent_ms: dict[str, int] = {}
        """Flow to the time of the newest status, if too old to tell the present.

        Only flows for which the process stands by.
        """
        self.certificates: dict[str, tuple[int | None, int | None]] = {}
        """Flow to when the first certificate ends on each side."""
        self.jvm = JvmFigures()
        self._thread = threading.Thread(target=self._run, name="surroundings", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()

    def _run(self) -> None:
        rest_s, look_at = FIRST_REST_S, 0.0
        while not self._closing.wait(SPARK_S if not self.jvm.version else LOOK_S):
            if time.monotonic() >= look_at:
                self._look_around()
                look_at = time.monotonic() + rest_s
                rest_s = min(2 * rest_s, LOOK_S - SPARK_S)
            self._ask_the_jvm()

    def _look_around(self) -> None:
        for flow in self._flows():
            try:
                self._look(flow)
            except (ConnectionError, SparkMirrorError) as error:
                log.debug("flow %s: the number of its processes is not known: %s", flow.name, error)
            except Exception:  # this thread must not end
                log.exception("flow %s: looking around", flow.name, extra=Event.LOOKING_AROUND_FAILED.extra)
        self.certificates = {
            flow.name: (first_end_ms(flow.source), first_end_ms(flow.target)) for flow in self._flows()
        }

    def _ask_the_jvm(self) -> None:
        spark = self._spark()
        if spark is not None:
            try:
                self.jvm = _jvm(spark)
            except Exception as error:  # Py4J raises many kinds of errors once the JVM has ended
                log.debug("the JVM does not answer: %r", error)

    def _look(self, flow: FlowConfig) -> None:
        if not self._lease:
            return
        with closing(ClusterClient(flow.target, f"{flow.name}|sparkmirror-surroundings")) as client:
            group = f"{flow.source.alias}-mm2"
            described = Groups(client).described([group]).groups.get(group)
        if described is not None and described.type:
            self.processes[flow.name] = len(described.members)
        self._compare(flow)

    def _compare(self, flow: FlowConfig) -> None:
        """Compare the flow's settings with the working process's settings."""
        status = read_status(flow) if self._stands_by(flow.name) else Status(None, 0)
        self.pages.pop(flow.name, None)
        self.silent_ms.pop(flow.name, None)
        if status.flow is not None and (status.age_s() or 0.0) > OLD_STATUS_S:
            self.silent_ms[flow.name] = status.flow.at_ms
        elif status.flow is not None:
            self.pages[flow.name] = status.flow.page
        if status.flow is None or (status.age_s() or 0.0) > OLD_STATUS_S:
            self.differences.pop(flow.name, None)
            return
        if status.flow.differs and status.flow.differs != self.differences.get(flow.name):
            log.warning(
                "flow %s: %s works on it with other settings, which a takeover by this process would change: %s",
                flow.name,
                status.flow.leader or "another process",
                "; ".join(status.flow.differs),
                extra=Event.OTHER_SETTINGS.extra,
            )
        self.differences[flow.name] = status.flow.differs


def _jvm(spark: SparkContext) -> JvmFigures:
    management = spark._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr] # noqa: SLF001
    heap = management.getMemoryMXBean()
    used = heap.getHeapMemoryUsage().getUsed() + heap.getNonHeapMemoryUsage().getUsed()
    gc_ms = sum(max(collector.getCollectionTime(), 0) for collector in management.getGarbageCollectorMXBeans())
    return JvmFigures(spark.version, used, management.getThreadMXBean().getThreadCount(), gc_ms / 1000)
