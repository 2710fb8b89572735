"""Number of tasks to plan for.

The mirror's own local Spark takes the number asked for. A cluster, or a session that others use too, takes at most the
number that can run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark import SparkContext

from sparkmirror.config.spark_guards import is_local
from sparkmirror.events import Event
from sparkmirror.mirror.engine.session import local_slots, slots_of

START_S = 10.0
"""Seconds after the first task's report until missing tasks count as without slot.

Missing tasks keep their slots for longer if the cluster says that it has enough.
"""

LONGEST_START_S = 60.0
"""Seconds that a task with a slot has to start.

A new executor's first Python process may take long.
"""

LOOK_S = 1.0
"""Seconds between questions to a cluster about its slots."""

GROWN_S = 5.0
"""Seconds after which additional slots count.

Executors that come together don't come at the same moment.
"""

HELD_S = 3600.0
"""Seconds until slots that a session's other jobs hold are tried again.

The trial may cost the missing tasks `LONGEST_START_S`.
"""


class _Held(NamedTuple):
    """Finding that other jobs hold some of a session's slots."""

    slots: int
    """Number of slots that Spark told."""
    usable: int
    until: float


log = logging.getLogger(__name__)


class Slots:
    """One mirror's slots; for one thread.

    Call `begin` with each round, and `changed` while it lasts.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        asked: int,
        *,
        shared: bool = False,
        reserved: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with Spark's `settings`; `asked` sums up the flows' `tasks.max`.

        `shared` is True for a Spark that others use, too. `reserved` slots are left to other jobs.
        """
        self._clock = clock
        self._reserved = reserved
        self._given = local_slots(settings) if is_local(settings) else None
        self._shared = shared
        self._theirs = shared or not is_local(settings)
        self._on_demand = settings.get("spark.dynamicAllocation.enabled", "").strip().lower() == "true"
        self._newest: int | None = None
        """The cluster's newest answer; None: not asked yet, or no answer."""
        self._looked_at = float("-inf")
        self._fewer_since: float | None = None
        self._more_since: float | None = None
        self._enough: int | None = None
        """Number of slots for which the last plan had no use."""
        self._held: _Held | None = None
        self._tasks = 0
        self._first_started_at: float | None = None
        self._starts_known = False
        self.ask(asked)

    def ask(self, asked: int) -> None:
        """Set how many tasks the flows ask for from now on.

        Flows may all be gone for a moment, while their last drivers still work.
        """
        self._most = max(self._given - self._reserved, 1) if self._given else max(asked, 1)
        self.count = self._room()
        """Number of tasks to plan for."""

    def begin(self, tasks: int) -> None:
        """Note that a round with `tasks` tasks has begun."""
        self._tasks = tasks
        self._first_started_at = None
        self._starts_known = False
        self._fewer_since = self._more_since = None

    def changed(self, spark: SparkContext, started: Callable[[], int], is_same_plan: Callable[[], bool]) -> bool:
        """True if the round's tasks no longer fit the slots, so that `count` changed.

        `started` returns how many tasks have reported; `is_same_plan` returns True if the plan for `count` is the
        round's.
        """
        if not self._theirs:
            return False
        if not self._starts_known:
            return self._see_starts(spark, started())
        self._look(spark)
        newest = self._newest
        if newest and max(newest - self._reserved, 1) < self._tasks:
            return self._without_lost(newest)
        self._fewer_since = None
        if not newest or min(newest, self._room()) <= self._tasks or newest == self._enough:
            self._more_since = None
            return False
        if self._more_since is None:
            self._more_since = self._clock()
        if self._clock() - self._more_since < GROWN_S:
            return False
        before, self.count = self.count, self._room()
        if is_same_plan():
            self.count, self._enough = before, newest
            return False
        return self._replan(newest, self.count)

    def _without_lost(self, newest: int) -> bool:
        """Plan without the slots that have gone.

        With dynamic allocation Spark asks for others as long as the tasks that lost theirs wait.
        """
        if self._fewer_since is None:
            self._fewer_since = self._clock()
        if self._on_demand and self._clock() - self._fewer_since < START_S:
            return False
        return self._replan(newest, max(newest - self._reserved, 1))

    def _see_starts(self, spark: SparkContext, started: int) -> bool:
        """Notice tasks without a slot; True if there are any."""
        if started and self._first_started_at is None:
            self._first_started_at = self._clock()
        if started < self._tasks:
            waited_s = self._clock() - self._first_started_at if self._first_started_at is not None else 0.0
            if waited_s < START_S:
                return False
            self._look(spark)
            there = max(self._newest or 0, started)
            if there >= self._tasks:
                if waited_s < LONGEST_START_S:
                    return False
                if self._shared and self._newest:
                    self._held = _Held(self._newest, started, self._clock() + HELD_S)
                there = started
            log.warning(
                "%d of %d tasks have no slot: planning for %d",
                self._tasks - there,
                self._tasks,
                there,
                extra=Event.SLOTS_MISSING.extra,
            )
            self.count = max(there - self._reserved, 1) if there > started else there
        self._starts_known = True
        return started < self._tasks

    def _replan(self, newest: int, count: int) -> bool:
        log.info("%d tasks run, and there are %d slots", self._tasks, newest, extra=Event.SLOTS_CHANGED.extra)
        self.count = count
        return True

    def _look(self, spark: SparkContext) -> None:
        if self._clock() - self._looked_at < LOOK_S:
            return
        self._looked_at = self._clock()
        try:
            self._newest = slots_of(spark)
        except Exception as error:
            log.debug("Spark does not say how many slots there are: %s", error)
            self._newest = None

    def _room(self) -> int:
        """Return how many tasks to plan for.

        With dynamic allocation present executors set no limit, since Spark asks for more when tasks wait.
        """
        held = self._held
        if held is not None and held.slots == self._newest and self._clock() < held.until:
            return min(self._most, held.usable)
        if not self._newest or self._on_demand:
            return self._most
        return min(self._most, max(self._newest - self._reserved, 1))
