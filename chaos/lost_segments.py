"""The segments topic is deleted: with it the mirror's own knowledge of what it has copied, and its producer id."""

from __future__ import annotations

import random
import time

from chaos.arena import NoVictim, wait_in_sync
from chaos.copied_anew import GoingOn, copies_of, delete_topic
from chaos.mirror import SOURCE
from chaos.replicas import ask, log_ends
from chaos.world import World
from sparkmirror.exact.durable.claims import segments_topic

_QUIET_S = 2.0
"""Nothing comes for so long: what killed mirrors had sent has arrived."""
_POLL_S = 0.5


class LostSegments:
    """Every mirror is killed, the topic deleted, and the mirror started again.

    It has to find by the stored offsets, and by what both logs hold, how far it was. Where they don't tell it parks,
    and then the copy is deleted here, too, and must come again; what it held until then must have been right.
    """

    lasts = False
    victim = "the segments topic"

    def __init__(self, world: World, _: random.Random) -> None:
        self._world = world
        self._target = world.arena.target
        self._parts = copies_of(world)

    def begin(self) -> None:
        lost = segments_topic(SOURCE)
        there = ask(self._target, lambda admin: admin.list_topics())
        if not {lost, *(part.topic for part in self._parts)}.issubset(there):
            raise NoVictim("there is no segments topic yet, or no copy")
        deployment = self._world.deployment
        with deployment.ended():
            self._quiet()
            self._going_on = GoingOn(self._world)
            delete_topic(self._target, lost)
            self._world.aftermath.claims_lost = True

    def end(self) -> None:
        pass

    def settle(self) -> None:
        wait_in_sync(self._target)
        self._going_on.wait()

    def _quiet(self) -> None:
        ends, since = log_ends(self._target, self._parts), time.monotonic()
        while time.monotonic() - since < _QUIET_S:
            time.sleep(_POLL_S)
            now = log_ends(self._target, self._parts)
            if now != ends:
                ends, since = now, time.monotonic()
