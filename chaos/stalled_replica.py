"""A follower that stalls in sync, then a leader that dies: what only the leader had is gone, in a clean election.

Nothing acknowledged is lost, so the mirror must not take it for copied: not while it lies above the high watermark, and
not after. The partition gets no further record, which would show a wrong belief to the mirror.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from http.client import HTTPException

from kafka import TopicPartition
from lab import Broker
from lab.proxy import Proxy

from chaos.arena import NoVictim, wait_in_sync
from chaos.history import NOTE
from chaos.leaders import elect
from chaos.mirror import kill, remote, workers
from chaos.onlookers import fetched
from chaos.replicas import Replicas, ask, configure, leaders_log_end, log_end, place, replicas, wait_for
from chaos.replication import ReplicatedCluster
from chaos.words import position_of
from chaos.world import World
from sparkmirror.errors import SetupError

_RECORDS = 10
_COPIED_TIMEOUT_S = 90.0
_SAID_TIMEOUT_S = 60.0
_ELECTED_TIMEOUT_S = 45.0
_POLL_S = 0.3
_ALONE = {"min.insync.replicas": "1"}


class StalledReplica:
    """One partition of `notes` lies on two brokers, and its leader leads nothing else.

    Replication from the leader stalls, a batch is appended there, every worker is killed, and when the mirror takes the
    batch for copied, or after a minute, the leader is killed. The follower, in sync all the time, leads.
    """

    lasts = True
    victim = "a partition of the copy"

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world = world
        self._cluster: ReplicatedCluster = world.arena.target
        self._topic, self._partition = world.topics["notes"], chance.randrange(world.partitions)
        self._part = TopicPartition(remote(self._topic), self._partition)
        self._chance = chance
        self._placed: Replicas | None = None

    def begin(self) -> None:
        if len(self._cluster.brokers) < 3:
            raise NoVictim("it takes three brokers")
        self._write()
        self._wait("the copy has no record yet", lambda: self._is_there() and self._copied() >= self._promised())
        self._placed = self._now()
        one, other = self._chance.sample([broker.node_id for broker in self._cluster.brokers], 2)
        self._leader = self._broker(one)
        self._proxy = Proxy(self._cluster.inner_port(self._leader))
        self._proxy.start()
        try:
            self._cluster.put_behind(self._leader, self._proxy)
            wait_in_sync(self._cluster)
            self._lead_alone(one, other)
            before = self._copied()
            self._proxy.stall()  # from here on its other port is asked
            self._write()
            self._wait(
                "nothing was appended at the leader",
                lambda: leaders_log_end(self._leader, self._part) >= before + _RECORDS,
            )
            if leaders_log_end(self._leader, self._part, acknowledged=True) > before:
                raise NoVictim("the follower has it all the same")
            kill(workers())
        except BaseException:
            self._restore()
            raise
        self.victim = f"{self._part.topic}-{self._partition}: only broker {one} had its last {_RECORDS} records"

    def end(self) -> None:
        try:
            said = self._wait_until_said()
            self._leader.kill()
            self._proxy.heal()
            wait_for("a clean election", lambda: self._now().leader == self._heir, _ELECTED_TIMEOUT_S)
            self.victim += f", which was killed; {'they were' if said else 'they were not'} called copied before"
        finally:
            self._restore()

    def settle(self) -> None:
        wait_in_sync(self._cluster)

    def _write(self) -> None:
        self._world.scribe.write(self._topic, NOTE, self._partition, _RECORDS)

    def _lead_alone(self, one: int, other: int) -> None:
        """Leave the partition to these two, and nothing but it to the first."""
        configure(self._cluster, self._part.topic, _ALONE)
        order: dict[TopicPartition, tuple[int, ...]] = {
            part: (*(node for node in it.brokers if node != one), one)
            for part, it in replicas(self._cluster).items()
            if one in it.brokers and len(it.brokers) > 1
        }
        order[self._part] = (one, other)
        self._heir = other
        place(self._cluster, order)
        wait_for("two replicas", lambda: self._now().in_sync == {one, other} and len(self._now().brokers) == 2)
        ask(self._cluster, lambda admin: elect(admin, order))
        leads = [part for part, it in replicas(self._cluster).items() if it.leader == one]
        if leads != [self._part]:
            raise NoVictim(f"broker {one} leads {len(leads)} partitions")

    def _wait_until_said(self) -> bool:
        """Wait until the mirror takes all of the partition for copied; False if it does not in a minute."""
        promised, deadline = self._promised(), time.monotonic() + _SAID_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, HTTPException, ValueError, LookupError):
                snapshot = fetched(self._world.deployment.port(), "/snapshot")[1]
                if position_of(snapshot, self._topic, self._partition) >= promised:
                    return True
            time.sleep(_POLL_S)
        return False

    def _wait(self, otherwise: str, condition: Callable[[], bool]) -> None:
        try:
            wait_for(otherwise, condition, _COPIED_TIMEOUT_S)
        except SetupError as error:
            raise NoVictim(otherwise) from error

    def _restore(self) -> None:
        """All brokers run as they did, and the partition lies where it lay."""
        self._proxy.heal()
        self._cluster.put_back(self._leader)
        self._proxy.close()
        if self._placed is not None:
            place(self._cluster, {self._part: self._placed.brokers})
            wait_for(
                "all replicas", lambda: self._now().in_sync == set(self._now().brokers) and len(self._now().brokers) > 2
            )
        configure(self._cluster, self._part.topic, dict.fromkeys(_ALONE))

    def _is_there(self) -> bool:
        return self._part in replicas(self._cluster, [self._part.topic])

    def _copied(self) -> int:
        return log_end(self._cluster, self._part)

    def _promised(self) -> int:
        return log_end(self._world.arena.source, TopicPartition(self._topic, self._partition))

    def _broker(self, node_id: int) -> Broker:
        return next(broker for broker in self._cluster.brokers if broker.node_id == node_id)

    def _now(self) -> Replicas:
        return replicas(self._cluster, [self._part.topic]).get(self._part, Replicas(-1, (), frozenset()))
