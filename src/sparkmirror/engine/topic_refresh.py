"""Turns of the topic duty, at each flow's refresh interval."""

from __future__ import annotations

import time

from sparkmirror.engine.flow_driver import FlowDriver

RETRY_S = 30.0
"""Longest time in seconds until a failed turn is repeated.

The same counts while a takeover waits for something.
"""


class TopicRefresh:
    """Times of the next turns of all flows' topic duties."""

    def __init__(self) -> None:
        self._due_at: dict[str, float] = {}

    def forget(self, flow: str) -> None:
        """Have a flow's next turn come at once."""
        self._due_at.pop(flow, None)

    def refresh(self, driver: FlowDriver) -> bool:
        """Run the topic duty if due; True if the partitions to pump changed."""
        now = time.monotonic()
        topics = driver.topics
        if now < self._due_at.get(driver.name, 0.0) and not topics.done_topics.changed:
            return False
        interval = driver.flow.refresh_topics_interval_seconds
        self._due_at[driver.name] = now + min(interval, RETRY_S)  # counts if the duty fails now
        changed = driver.sync_topics()
        if not topics.takeover.waiting:
            self._due_at[driver.name] = now + interval if driver.flow.refresh_topics_enabled else float("inf")
        return changed
