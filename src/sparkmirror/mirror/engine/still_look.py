"""The result of looking at a flow's partitions, kept while the flow stands still.

Looks at a thousand partitions that nothing happens to would take most of the CPU that it costs to be watched.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from sparkmirror.mirror.engine.flow_driver import FlowDriver

KEPT_S = 5.0
"""Longest time in seconds that a result is kept.

The driver reads the source's ends as often. A state that follows from time alone is late by this at most.
"""

Result = TypeVar("Result")


class StillLook(Generic[Result]):
    """Keep the newest result; for a single thread at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._basis: tuple[object, ...] = ()
        self._result: Result | None = None
        self._made_at = float("-inf")

    def at(self, driver: FlowDriver, look: Callable[[], tuple[Result, bool]]) -> Result:
        """Return what `look` returned, or look again.

        `look` returns its result, and True if all partitions stand still. Only then the result is kept, until a report,
        an end, a topic or the plan changes.
        """
        now, basis = self._clock(), _basis(driver)
        kept = self._result
        if kept is not None and now - self._made_at < KEPT_S and _are_same(basis, self._basis):
            return kept
        result, still = look()
        self._basis, self._made_at = basis, now
        self._result = result if still else None
        return result


def _basis(driver: FlowDriver) -> tuple[object, ...]:
    """Return the values that partitions are seen by; each is replaced when it changes."""
    view, topics = driver.view, driver.topics
    answers = tuple(away is None for away in view.away)
    count = view.changes, len(view.partitions), topics.synced, topics.checked, len(topics.done_topics.released), answers
    return (
        driver,
        topics.newest,
        topics.waiting,
        driver.orders.tasks,
        view.gone,
        view.source_ends,
        view.source_starts,
        view.late,
        count,
    )


def _are_same(basis: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """Return True if the values are the same objects, and the counts are equal.

    Comparing all topics would cost as much as a look.
    """
    return len(other) == len(basis) and all(map(operator.is_, basis[:-1], other[:-1])) and basis[-1] == other[-1]
