"""The newest claims are lost, and older ones stay: a partition of the segments topic is elected uncleanly."""

from __future__ import annotations

import random
import time

from chaos.arena import NoVictim, wait_in_sync
from chaos.copied_anew import GoingOn
from chaos.mirror import SOURCE, kill, workers
from chaos.replicas import log_ends, replicas
from chaos.unclean import UncleanElection
from chaos.world import World
from sparkmirror.exact.durable.claims import segments_topic

_LOOK_S = 4.0


class SegmentsCut(UncleanElection):
    """The partition that grows most loses its last claims; then all workers are killed, and the next ones read it.

    Where the mirror parks a partition for want of its claims, its copy is deleted, and must come again.
    """

    to_lose = 3

    def __init__(self, world: World, chance: random.Random) -> None:
        super().__init__(world.arena.target, [segments_topic(SOURCE)], 1, chance)
        self._world = world

    def begin(self) -> None:
        parts = [part for part in replicas(self._cluster, [self._part.topic])]
        if not parts:
            raise NoVictim("there is no segments topic yet")
        before = log_ends(self._cluster, parts)
        time.sleep(_LOOK_S)
        now = log_ends(self._cluster, parts)
        self._part = max(sorted(parts), key=lambda part: now[part] - before[part])
        self.victim = f"{self._part.topic}-{self._part.partition}"
        super().begin()

    def end(self) -> None:
        self._going_on = GoingOn(self._world)
        super().end()
        if self.lost:
            self._world.aftermath.claims_lost = True
        kill(workers())

    def settle(self) -> None:
        wait_in_sync(self._cluster)
        self._going_on.wait()
