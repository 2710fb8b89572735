"""What hurts no broker: answers that are throttled, and records that somebody else writes to the copy."""

from __future__ import annotations

import contextlib
import random
import threading
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from chaos.arena import NoVictim, wait_in_sync
from chaos.records import STRANGER, last_names
from sparkmirror.demo import KafkaCluster
from sparkmirror.demo.quotas import set_quota

_QUOTA = 100_000.0
"""Bytes a second, of each broker for each client id: less than the load brings."""
_EVERY_S = 0.2
_PATIENCE_S = 3.0


class Throttle:
    """Quotas for every client: brokers answer late, and say for how long they are to be left alone."""

    lasts = True
    victim = "every client"

    def __init__(self, cluster: KafkaCluster, rate: str) -> None:
        self._cluster = cluster
        self._rate = rate

    def begin(self) -> None:
        set_quota(self._cluster, self._rate, _QUOTA)

    def end(self) -> None:
        set_quota(self._cluster, self._rate, None)

    def settle(self) -> None:
        wait_in_sync(self._cluster)


class Stranger:
    """Somebody else writes to a topic of the copy, behind the mirror's records; the checker knows them by a header.

    Not to partitions that are empty: what somebody else began is parked, on purpose.
    """

    lasts = True
    victim = "a topic of the copy"

    def __init__(self, cluster: KafkaCluster, topic: str, partitions: int, chance: random.Random) -> None:
        self._cluster = cluster
        self._topic = topic
        self._all = partitions
        self._partitions: list[int] = []
        self._chance = chance
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, name="stranger", daemon=True)

    def begin(self) -> None:
        self._partitions = sorted(last_names(self._cluster.direct_servers, self._topic, self._all))
        if not self._partitions:
            raise NoVictim("nothing is copied yet")
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def settle(self) -> None:
        wait_in_sync(self._cluster)

    def _write(self) -> None:
        """Some records, in batches of few; what can't be written is left."""
        producer: Any = KafkaProducer(
            bootstrap_servers=self._cluster.direct_servers,
            max_block_ms=2_000,
            request_timeout_ms=3_000,
            delivery_timeout_ms=6_000,
        )
        try:
            while not self._ended.wait(_EVERY_S):
                with contextlib.suppress(KafkaError):
                    for _ in range(self._chance.randint(1, 5)):
                        partition = self._chance.choice(self._partitions)
                        producer.send(self._topic, b"not yours", partition=partition, headers=[(STRANGER, b"")])
        finally:
            with contextlib.suppress(KafkaError):
                producer.flush(_PATIENCE_S)
            producer.close(_PATIENCE_S)
