"""The segments topic is deleted: with it the mirror's own knowledge of what it has copied, and its producer id."""

from __future__ import annotations

import contextlib
import random
import time
from typing import Any

from kafka import TopicPartition
from kafka.errors import UnknownTopicOrPartitionError

from chaos.arena import NoVictim, wait_in_sync
from chaos.checker import check_beginning
from chaos.logs import read_logs
from chaos.mirror import SOURCE, remote
from chaos.replicas import ask, log_ends, wait_for
from chaos.world import World
from sparkmirror.demo import KafkaCluster
from sparkmirror.durable.claims import segments_topic

_QUIET_S = 2.0
"""Nothing comes for so long: what killed mirrors had sent has arrived."""
_GOES_ON_TIMEOUT_S = 240.0
_PARKED_S = 20.0
"""Parked for so long without a break: it does not come by itself."""
_BACKOFF_S = 40.0
"""For so long the mirror may say what it found before the copy was deleted."""
_POLL_S = 0.5


class LostSegments:
    """Every mirror is killed, the topic deleted, and the mirror started again.

    It has to find by the stored offsets, and by what both logs hold, how far it was. Where they don't tell it parks,
    and then the copy is deleted here, too, and must come anew; what it held until then must have been right.
    """

    lasts = False
    victim = "the segments topic"

    def __init__(self, world: World, _: random.Random) -> None:
        self._world = world
        self._target = world.arena.target
        self._parts = [
            TopicPartition(remote(topic), partition)
            for topic in world.topics.values()
            for partition in range(world.partitions)
        ]

    def begin(self) -> None:
        lost = segments_topic(SOURCE)
        there = ask(self._target, lambda admin: admin.list_topics())
        if not {lost, *(part.topic for part in self._parts)}.issubset(there):
            raise NoVictim("there is no segments topic yet, or no copy")
        deployment = self._world.deployment
        with deployment.ended():
            self._quiet()
            self._ends = log_ends(self._target, self._parts)
            delete_topic(self._target, lost)
            self._position = deployment.log.stat().st_size

    def end(self) -> None:
        pass

    def settle(self) -> None:
        """Wait until every partition goes on; where the mirror parks one, its copy is deleted, and must come anew."""
        wait_in_sync(self._target)
        deadline = time.monotonic() + _GOES_ON_TIMEOUT_S
        give_up_at: dict[str, float] = {}
        anew: set[str] = set()
        while (waiting := self._waiting()) and time.monotonic() < deadline:
            said = self._world.deployment.parked_since(self._position)
            parked = said[-1] if said else {}
            for kind, topic in self._world.topics.items():
                why = next((parked[one] for one in waiting if one in parked and one.rpartition("-")[0] == topic), None)
                if why is None:
                    give_up_at.pop(topic, None)
                elif time.monotonic() > give_up_at.setdefault(topic, time.monotonic() + _PARKED_S):
                    self._copy_anew(kind, topic, why)
                    if topic not in anew:  # what parks again and again must not hold up the round for ever
                        deadline = time.monotonic() + _GOES_ON_TIMEOUT_S
                        anew.add(topic)
                    give_up_at[topic] = time.monotonic() + _PARKED_S + _BACKOFF_S
            time.sleep(_POLL_S)

    def _quiet(self) -> None:
        ends, since = log_ends(self._target, self._parts), time.monotonic()
        while time.monotonic() - since < _QUIET_S:
            time.sleep(_POLL_S)
            now = log_ends(self._target, self._parts)
            if now != ends:
                ends, since = now, time.monotonic()

    def _waiting(self) -> list[str]:
        """Return the source's partitions in whose copies nothing came since."""
        there = set(ask(self._target, lambda admin: admin.list_topics()))
        ends = log_ends(self._target, [part for part in self._parts if part.topic in there])
        return [
            f"{topic}-{part.partition}"
            for topic in self._world.topics.values()
            for part in self._parts
            if part.topic == remote(topic) and ends.get(part, 0) <= self._ends[part]
        ]

    def _copy_anew(self, kind: str, topic: str, why: str) -> None:
        """Check what the copy holds, and delete it; the mirror creates it and begins at the source's start."""
        world, copy = self._world, remote(topic)
        logs, _ = read_logs(world.arena, kind, topic, world.partitions, world.aftermath.elections)
        world.aftermath.findings.merge(check_beginning(logs, world.isolation))
        world.aftermath.copied_anew.append(f"{topic}: {why}")
        delete_topic(self._target, copy)
        for part in self._parts:
            if part.topic == copy:
                self._ends[part] = 0
                world.meter.target_lost(copy, part.partition, 0)


def delete_topic(cluster: KafkaCluster, topic: str) -> None:
    """Delete it, and wait until it is gone, or there is another one of its name. Raises SetupError where that fails."""
    former = _topic_id(cluster, topic)

    def delete(admin: Any) -> None:
        with contextlib.suppress(UnknownTopicOrPartitionError):  # an answer before this one was lost
            admin.delete_topics([topic])

    ask(cluster, delete)
    wait_for(f"{topic} deleted", lambda: _topic_id(cluster, topic) != former)


def _topic_id(cluster: KafkaCluster, topic: str) -> str | None:
    found = ask(cluster, lambda admin: admin.describe_topics([topic]))
    return next((str(one["topic_id"]) for one in found if not one["error_code"]), None)
