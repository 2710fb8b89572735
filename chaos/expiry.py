"""Whether the target has forgotten the mirror's producer: looked at twice a second, past the proxies."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, Self

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

_EVERY_S = 0.5
_NEAR_S = 2.0
"""How far from a fault it still counts: the state comes back with each append, and is gone a second later."""


class ExpiryWatch:
    """Looks at one topic of the copy; as a context, until its end."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.forgotten: list[float] = []
        """When a partition's leader knew of nobody's records, though there were some: times of the monotonic clock."""
        self._servers = servers
        self._parts = [TopicPartition(topic, partition) for partition in range(partitions)]
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="expiry", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closing.wait(_EVERY_S):
            try:
                admin: Any = KafkaAdminClient(
                    bootstrap_servers=self._servers, request_timeout_ms=2000, bootstrap_timeout_ms=2000
                )
            except (KafkaError, OSError):
                continue
            try:
                while not self._closing.wait(_EVERY_S):
                    if self._looks_forgotten(admin):
                        self.forgotten.append(time.monotonic())
            except (KafkaError, OSError):
                continue  # its leader is being broken, or it isn't there yet
            finally:
                admin.close()

    def _looks_forgotten(self, admin: Any) -> bool:
        known = admin.describe_producers(self._parts)
        # A transaction marker, which is new, leaves its producer behind without a sequence.
        unknown = [
            part for part, state in known.items() if not any(one.last_sequence >= 0 for one in state.active_producers)
        ]
        return bool(unknown) and any(
            it.offset for it in admin.list_partition_offsets(dict.fromkeys(unknown, -1)).values()
        )


def met(forgotten: Sequence[float], began: float, ended: float) -> bool:
    """Whether the producer was found forgotten while a fault lasted, or within two seconds of it."""
    return any(began - _NEAR_S <= at <= ended + _NEAR_S for at in forgotten)
