"""Turns of the topic duty, at each flow's refresh interval."""

from __future__ import annotations

import random
import time

from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.pump.messages.control import TryNow

RETRY_S = 30.0
"""Longest time in seconds until a failed turn is repeated.

The same counts while a takeover or a flow's first notes wait for something.
"""


QUOTA_PAUSE_S = 2.0
"""Shortest time between turns while a quota stops creations, in seconds.

Each turn lists all topics in both clusters.
"""


class TopicRefresh:
    """Next turns of all flows' topic duties."""

    def __init__(self) -> None:
        self._due_at: dict[str, float] = {}
        self._tried: dict[str, TryNow | None] = {}
        """The newest word to try again, once followed by a turn."""

    def forget(self, flow: str) -> None:
        """Have a flow's next turn come at once."""
        self._due_at.pop(flow, None)

    def is_due(self, driver: FlowDriver) -> bool:
        wanted = driver.reports.heard.try_now
        asked = wanted is not None and wanted != self._tried.get(driver.name)
        has_words = driver.topics.done_topics.changed or driver.topics.turns.changed
        return time.monotonic() >= self._due_at.get(driver.name, 0.0) or has_words or asked

    def refresh(self, driver: FlowDriver) -> bool:
        """Run the topic duty if due; True if the partitions to pump changed."""
        if not self.is_due(driver):
            return False
        self._tried[driver.name] = driver.reports.heard.try_now
        now = time.monotonic()
        interval = driver.flow.refresh_topics_interval_seconds
        # Counts if the duty fails or waits. Flows that wait for each other must not look in step for ever.
        self._due_at[driver.name] = now + min(interval, RETRY_S) * random.uniform(0.5, 1.0)  # noqa: S311
        changed = driver.sync_topics()
        wait_s = driver.topics.newest.wait_s
        if wait_s:
            self._due_at[driver.name] = now + max(wait_s, QUOTA_PAUSE_S)
        elif not driver.topics.waits:
            self._due_at[driver.name] = now + interval if driver.flow.refresh_topics_enabled else float("inf")
        return changed
