"""What hurts no broker: throttled answers, a limit that refuses records, and records that somebody else writes."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import Any, NoReturn

from kafka import KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from lab import KafkaCluster
from lab.quotas import set_quota

from chaos.arena import NoVictim, wait_in_sync
from chaos.records import STRANGER, last_names
from chaos.replicas import configure, log_ends
from chaos.world import World

_QUOTA = 100_000.0
"""Bytes a second, of each broker for each client id: less than the load brings."""
_EVERY_S = 0.2
_PATIENCE_S = 3.0
_BEFORE = "message.timestamp.before.max.ms"
_DAY_MS = 86_400_000
_REFUSED_TIMEOUT_S = 120.0
_LIMIT_EVERY_S = 2.0
_COPIED_TICKS = 20
"""In so many looks other topics must have got records before it counts that nothing is said."""
_COPIED_TIMEOUT_S = 120.0


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


class TimestampLimit:
    """A topic of the copy refuses records that are older than a day (INVALID_TIMESTAMP), as all of its are.

    It begins when the mirror says so of a partition. Once the limit is gone, the mirror continues by itself. If it says
    nothing for two minutes, though it copied these records before, and others all the time, that is a silence.
    """

    lasts = True

    def __init__(self, world: World) -> None:
        self._world = world
        self._cluster = world.arena.target
        self._topics = world.copies("archive")
        self._deployment = world.deployment
        self.victim = ", ".join(self._topics)

    def begin(self) -> None:
        if not self._topics:
            raise NoVictim("there are no old records")
        self._wait_until_copied()
        self._limit(str(_DAY_MS))
        position = self._deployment.log.stat().st_size
        deadline, copied = time.monotonic() + _REFUSED_TIMEOUT_S, 0
        while not self._refused_since(position):
            self._limit(str(_DAY_MS))  # again, as a mirror that starts sets it to what the source has
            copied += self._world.meter.wait_for_progress(_LIMIT_EVERY_S)
            if time.monotonic() > deadline:
                self.end()
                self._give_up(copied)
            time.sleep(_LIMIT_EVERY_S)

    def _wait_until_copied(self) -> None:
        """Wait until old records come to the copy: else nothing could be refused."""
        parts = [TopicPartition(topic, part) for topic in self._topics for part in range(self._world.partitions)]
        ends, deadline = log_ends(self._cluster, parts), time.monotonic() + _COPIED_TIMEOUT_S
        while log_ends(self._cluster, parts) == ends:
            if time.monotonic() > deadline:
                raise NoVictim("no old records are being copied")
            time.sleep(_EVERY_S)

    def _give_up(self, copied: int) -> NoReturn:
        if copied < _COPIED_TICKS:
            raise NoVictim("the mirror copied too little to be refused anything")
        silence = f"in {_REFUSED_TIMEOUT_S:.0f} s the mirror did not name a partition of {self.victim} as refused"
        self._world.aftermath.silences.append(silence)
        raise NoVictim(silence)

    def end(self) -> None:
        self._limit(None)

    def settle(self) -> None:
        wait_in_sync(self._cluster)

    def _refused_since(self, position: int) -> bool:
        said = self._deployment.parked_since(position)
        return any("INVALID_TIMESTAMP" in why for parked in said for why in parked.values())

    def _limit(self, before_ms: str | None) -> None:
        for topic in self._topics:
            configure(self._cluster, topic, {_BEFORE: before_ms})


class Stranger:
    """Somebody else writes to a topic of the copy, behind the mirror's records; the checker knows them by a header.

    Not to partitions that are empty: what somebody else began is parked, on purpose.
    """

    lasts = True
    victim = "a topic of the copy"

    def __init__(self, world: World, chance: random.Random) -> None:
        self._cluster = world.arena.target
        self._topic = world.copies("payments")[0]
        self._all = world.partitions
        self._partitions: list[int] = []
        self._chance = chance
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, name="stranger", daemon=True)

    def begin(self) -> None:
        deadline = time.monotonic() + _COPIED_TIMEOUT_S
        while not self._partitions:
            if time.monotonic() > deadline:
                raise NoVictim("nothing is copied yet")
            self._partitions = sorted(last_names(self._cluster.direct_servers, self._topic, self._all))
            time.sleep(_EVERY_S)
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
