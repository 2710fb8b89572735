"""How many tasks to plan for: all that are asked for in local mode, on a cluster as many as its executors can run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from sparkmirror.engine.session import is_local, local_slots
from sparkmirror.events import Event

START_S = 10.0
"""Tasks that have not reported so long after the first one have no slot, unless the cluster says that they have."""

LONGEST_START_S = 60.0
"""A task that has a slot has so long to start: a new executor's first Python process may take its time."""

LOOK_S = 1.0
"""How often a cluster is asked for its slots."""

GROWN_S = 5.0
"""More slots count once they have been there for so long: executors that come together don't come at once."""

log = logging.getLogger(__name__)


def slots_of(spark: SparkSession) -> int:
    """Slots of all executors that take tasks: not of those that are being decommissioned.

    Spark goes by it before it starts a stage all of whose tasks must run at once. Raises whatever Py4J raises.
    """
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark has it nowhere else
    return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))


class Slots:
    """Of one mirror; for one thread. `begin` with each epoch, `changed` while it lasts."""

    def __init__(self, settings: Mapping[str, str], asked: int) -> None:
        """`settings`: Spark's; `asked`: the sum of the flows' `tasks.max`."""
        self._given = local_slots(settings) if is_local(settings) else None
        self._theirs = not is_local(settings)
        self._on_demand = settings.get("spark.dynamicAllocation.enabled", "").strip().lower() == "true"
        self._newest: int | None = None
        """What the cluster said; None: it was not asked yet, or did not say."""
        self._looked_at = float("-inf")
        self._more_since: float | None = None
        self._enough: int | None = None
        """So many slots no plan had use for."""
        self._tasks = 0
        self._first_started_at: float | None = None
        self._settled = False
        self.ask(asked)

    def ask(self, asked: int) -> None:
        """Flows ask for so many tasks from now on."""
        self._most = self._given or asked
        self.count = self._room()
        """How many tasks to plan for."""

    def begin(self, tasks: int) -> None:
        """An epoch of so many tasks has begun."""
        self._tasks = tasks
        self._first_started_at = None
        self._settled = False
        self._more_since = None

    def changed(self, spark: SparkSession, started: Callable[[], int], is_same_plan: Callable[[], bool]) -> bool:
        """Whether the epoch's tasks and a cluster's slots don't fit any more, so that `count` is another one.

        `started`: how many tasks have reported; `is_same_plan`: whether the plan for `count` is the epoch's.
        """
        if not self._theirs:
            return False
        if not self._settled:
            return self._settle(spark, started())
        self._look(spark)
        newest = self._newest
        if newest and newest < self._tasks:
            return self._plan_anew(newest)
        if not newest or min(newest, self._most) <= self._tasks or newest == self._enough:
            self._more_since = None
            return False
        if self._more_since is None:
            self._more_since = time.monotonic()
        if time.monotonic() - self._more_since < GROWN_S:
            return False
        before, self.count = self.count, self._room()
        if is_same_plan():
            self.count, self._enough = before, newest
            return False
        return self._plan_anew(newest)

    def _settle(self, spark: SparkSession, started: int) -> bool:
        """Tasks that have no slot are noticed; whether there are such."""
        if started and self._first_started_at is None:
            self._first_started_at = time.monotonic()
        if started < self._tasks:
            waited_s = time.monotonic() - self._first_started_at if self._first_started_at is not None else 0.0
            if waited_s < START_S:
                return False
            self._look(spark)
            there = max(self._newest or 0, started)
            if there >= self._tasks:
                if waited_s < LONGEST_START_S:
                    return False
                there = started
            log.warning(
                "%d of %d tasks have no slot: planning for %d",
                self._tasks - there,
                self._tasks,
                there,
                extra=Event.SLOTS_MISSING.extra,
            )
            self.count = there
        self._settled = True
        return started < self._tasks

    def _plan_anew(self, newest: int) -> bool:
        log.info("%d tasks run, and there are %d slots", self._tasks, newest, extra=Event.SLOTS_CHANGED.extra)
        self.count = self._room()
        return True

    def _look(self, spark: SparkSession) -> None:
        if time.monotonic() - self._looked_at < LOOK_S:
            return
        self._looked_at = time.monotonic()
        try:
            self._newest = slots_of(spark)
        except Exception as error:
            log.debug("Spark does not say how many slots there are: %s", error)
            self._newest = None

    def _room(self) -> int:
        """Where Spark asks for executors when tasks wait (dynamic allocation), those that there are set no limit."""
        return min(self._most, self._newest) if self._newest and not self._on_demand else self._most
