"""The topics that connectors have written to (KIP-558): since they were reset, or since there was ever anything."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable

from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.messages.orders import Receipt


class ActiveTopics:
    """By connector. Of a reset only this process knows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._topics: dict[str, set[str]] = defaultdict(set)
        self._reset_at: dict[tuple[str, str, int], int] = {}
        """By connector and target partition: where it ended."""

    def copied(self, connector: str, driver: FlowDriver) -> None:
        """Take in what a flow's pumps have reported."""
        with self._lock:
            for receipt in _receipts(driver):
                where = connector, receipt.target_topic, receipt.partition
                if receipt.downstream > self._reset_at.get(where, 0):
                    self._topics[connector].add(receipt.target_topic)

    def written(self, connector: str, topic: Callable[[], str]) -> None:
        """Take in that a connector has written, which writes to one topic only."""
        if not self.of(connector):
            name = topic()
            with self._lock:
                self._topics[connector].add(name)

    def of(self, connector: str) -> set[str]:
        """All of a connector's."""
        with self._lock:
            return set(self._topics[connector])

    def reset(self, connector: str, driver: FlowDriver | None) -> None:
        """Forget them; what its pumps have not reported yet counts anew."""
        with self._lock:
            self._topics.pop(connector, None)
            for receipt in _receipts(driver) if driver is not None else ():
                self._reset_at[connector, receipt.target_topic, receipt.partition] = receipt.downstream


def _receipts(driver: FlowDriver) -> Iterable[Receipt]:
    return [view.receipt for view in list(driver.view.partitions.values()) if view.receipt is not None]
