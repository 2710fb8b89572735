"""Any switch, killed anywhere and turned round at any moment, ends at its goal, and each record is there once."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.migrate.file import Fence
from sparkmirror.migrate.planner import Goal, Who
from tests.migrate.driver import Driver
from tests.migrate.world import SOURCE, TARGET, World

_SIDES = st.sampled_from((SOURCE, TARGET))
_WORLDS = st.builds(
    World,
    topics=st.sampled_from((("orders",), ("orders", "stock"))),
    groups=st.sampled_from(((), ("billing",), ("billing", "app"))),
    partitions=st.integers(1, 2),
    renamed=st.booleans(),
    fence=st.sampled_from((Fence.ACL, Fence.HOOK, Fence.NONE)),
)


@settings(max_examples=400, deadline=None)
@given(_WORLDS, st.lists(_SIDES, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_turns(world: World, sides: list, random: Random) -> None:
    driver = Driver(world, random)
    driver.clients(20)
    for side in sides:
        assert driver.run(Goal(Who.ALL, side)), driver.left(Goal(Who.ALL, side))
        for group in world.groups:
            assert world.start_group(side, group)
        world.running[side] = True
        driver.rest()
        assert not driver.left(Goal(Who.ALL, side))
        world.prove()
