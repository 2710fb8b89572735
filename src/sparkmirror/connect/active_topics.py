"""Topics that connectors have written to (KIP-558), since the last reset if any."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Container, Iterable

from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.pump.messages.orders import Receipt


class ActiveTopics:
    """Each connector's active topics; a reset is known to this process alone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._topics: dict[str, set[str]] = defaultdict(set)
        self._reset_at: dict[tuple[str, str, int], int] = {}
        """Downstream offset at the last reset, by connector and target partition."""

    def copied(self, connector: str, driver: FlowDriver) -> None:
        """Add the target topics in all receipts from a flow's pumps."""
        with self._lock:
            for receipt in _receipts(driver):
                target_partition = connector, receipt.target_topic, receipt.partition
                if receipt.downstream > self._reset_at.get(target_partition, 0):
                    self._topics[connector].add(receipt.target_topic)

    def written(self, connector: str, topic: Callable[[], str]) -> None:
        """Add a connector's topic if it writes to a single topic.

        `topic` is called only if the connector has no topic yet.
        """
        if not self.of(connector):
            name = topic()
            with self._lock:
                self._topics[connector].add(name)

    def of(self, connector: str) -> set[str]:
        with self._lock:
            return set(self._topics[connector])

    def keep(self, connectors: Container[str]) -> None:
        """Forget all other connectors, which were deleted."""
        with self._lock:
            for name in [name for name in self._topics if name not in connectors]:
                del self._topics[name]
            for entry in [entry for entry in self._reset_at if entry[0] not in connectors]:
                del self._reset_at[entry]

    def stand_by(self) -> None:
        """Forget the topics, which another process may reset, but no own reset."""
        with self._lock:
            self._topics.clear()

    def reset(self, connector: str, driver: FlowDriver | None) -> None:
        """Forget the connector's topics; records that its pumps report later count again."""
        with self._lock:
            self._topics.pop(connector, None)
            for receipt in _receipts(driver) if driver is not None else ():
                self._reset_at[connector, receipt.target_topic, receipt.partition] = receipt.downstream


def _receipts(driver: FlowDriver) -> Iterable[Receipt]:
    return [view.receipt for view in list(driver.view.partitions.values()) if view.receipt is not None]
