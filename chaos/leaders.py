"""Leaders that move while every broker lives."""

from __future__ import annotations

import random
from typing import Any

from kafka import TopicPartition
from lab import KafkaCluster

from chaos.arena import NoVictim, wait_in_sync
from chaos.replicas import ask, place, replicas

_PREFERRED = 0


class LeaderMove:
    """All partitions' next replicas in line are preferred and elected: in good order, and all at once.

    Those of the coordinators and of the mirror's own topics are among them.
    """

    lasts = False
    victim = "every leader"

    def __init__(self, cluster: KafkaCluster, _: random.Random) -> None:
        self._cluster = cluster

    def begin(self) -> None:
        before = replicas(self._cluster)
        order = {part: turned(it.brokers, it.leader) for part, it in before.items() if len(it.brokers) > 1}
        if not order:
            raise NoVictim("there is nobody else to lead")
        place(self._cluster, order)
        ask(self._cluster, lambda admin: elect(admin, order))
        after = replicas(self._cluster)
        moved = sum(part in after and after[part].leader != it.leader for part, it in before.items())
        if not moved:
            raise NoVictim("no leader moved")
        self.victim = f"leaders of {moved} of {len(before)} partitions"

    def end(self) -> None:
        pass

    def settle(self) -> None:
        wait_in_sync(self._cluster)


def turned(brokers: tuple[int, ...], leader: int) -> tuple[int, ...]:
    """Return the same brokers, beginning with the one that comes after the leader."""
    if leader not in brokers:
        return brokers
    first = (brokers.index(leader) + 1) % len(brokers)
    return brokers[first:] + brokers[:first]


def elect(admin: Any, partitions: dict[TopicPartition, tuple[int, ...]]) -> None:
    """Some may not be electable: those stay where they are."""
    by_topic: dict[str, list[int]] = {}
    for part in partitions:
        by_topic.setdefault(part.topic, []).append(part.partition)
    admin.elect_leaders(_PREFERRED, by_topic, raise_errors=False)
