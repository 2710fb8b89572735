"""What the mirror can't continue with is deleted at the target, as its words say, and must come anew."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from kafka import TopicPartition
from kafka.errors import UnknownTopicOrPartitionError
from lab import KafkaCluster

from chaos.checker import check_beginning
from chaos.logs import WRITTEN, read_logs
from chaos.mirror import remote
from chaos.replicas import ask, log_ends, wait_for
from chaos.world import World

_GOES_ON_TIMEOUT_S = 240.0
_PARKED_S = 20.0
"""Parked for so long without a break: it does not come by itself."""
_BACKOFF_S = 40.0
"""For so long the mirror may say what it found before the copy was deleted."""
_SURE_S = 10.0
"""Nothing waits for so long: a mirror that has just begun would have said what it can't continue with."""
_POLL_S = 0.5


def copies_of(world: World) -> list[TopicPartition]:
    """Return every partition of the copy."""
    return [
        TopicPartition(remote(topic), partition)
        for topic in world.topics.values()
        for partition in range(world.partitions)
    ]


class GoingOn:
    """Waits until all partitions have more than at the moment when it was made."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._target = world.arena.target
        self._parts = copies_of(world)
        there = set(ask(self._target, lambda admin: admin.list_topics()))
        self._ends = dict.fromkeys(self._parts, 0) | log_ends(
            self._target, [part for part in self._parts if part.topic in there]
        )
        self._emptied: set[TopicPartition] = set()
        """Those whose copies held records and were deleted."""
        self._position = world.deployment.log.stat().st_size

    def wait(self) -> None:
        """Wait until every partition continues; where the mirror parks one, its copy is deleted, and must come anew."""
        deadline = time.monotonic() + _GOES_ON_TIMEOUT_S
        give_up_at: dict[str, float] = {}
        anew: set[str] = set()
        since = time.monotonic()
        while time.monotonic() < min(deadline, since + _SURE_S):
            waiting = self._waiting(parked := self._parked())
            since = time.monotonic() if waiting else since
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

    def _parked(self) -> Mapping[str, str]:
        """Return what the mirror says last is parked, and why."""
        said = self._world.deployment.parked_since(self._position)
        return said[-1] if said else {}

    def _waiting(self, parked: Mapping[str, str]) -> list[str]:
        """Return the source's partitions in whose copies nothing came since; of those that get no more records, the
        parked ones, and those whose copy was deleted."""
        there = set(ask(self._target, lambda admin: admin.list_topics()))
        ends = log_ends(self._target, [part for part in self._parts if part.topic in there])
        of = {remote(topic): (kind, topic) for kind, topic in self._world.topics.items()}
        waiting = []
        for part in self._parts:
            kind, topic = of[part.topic]
            name, end = f"{topic}-{part.partition}", ends.get(part, 0)
            if kind in WRITTEN and part.partition < self._world.load.busy:
                waits = end <= self._ends[part]
            else:
                waits = name in parked or (part in self._emptied and not end)
            if waits:
                waiting.append(name)
        return waiting

    def _copy_anew(self, kind: str, topic: str, why: str) -> None:
        """Check what the copy holds, and delete it; the mirror creates it and begins at the source's start."""
        world, copy = self._world, remote(topic)
        logs, _ = read_logs(world.arena, kind, topic, world.partitions, world.aftermath.elections)
        world.aftermath.findings.merge(check_beginning(logs, world.isolation))
        world.aftermath.copied_anew.append(f"{topic}: {why}")
        delete_topic(self._target, copy)
        for part in self._parts:
            if part.topic == copy:
                if self._ends[part]:
                    self._emptied.add(part)
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
