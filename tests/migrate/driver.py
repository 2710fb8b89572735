"""Runs of `plan` in the model world, with clients at work and kills between any two effects."""

from __future__ import annotations

from random import Random

from sparkmirror.migrate import planner
from sparkmirror.migrate.actions import Action, Open, WaitEmpty
from sparkmirror.migrate.file import Fence, MigrationFile, MigrationType, Set
from sparkmirror.migrate.planner import Goal
from tests.migrate.world import SOURCE, TARGET, World

MOST_ACTIONS = 400
"""More actions than any run of this world needs, with all its kills."""


def file_of(world: World) -> MigrationFile:
    """Return a file with one set of all that the world has."""
    one = Set(name="shop", topics=world.names, groups=world.groups)
    hooks = {"fence": {"stop": "./stop", "start": "./start"}} if world.fence is Fence.HOOK else {}
    return MigrationFile.model_validate(
        {
            "mirror": "mm2.properties",
            "type": MigrationType.ALL_AT_ONCE,
            "sets": [one],
            "fence": world.fence,
            "hooks": hooks,
        }
    )


class Driver:
    """One person with the verbs, and clients that never rest."""

    def __init__(self, world: World, random: Random, kills: float = 0.2) -> None:
        self.world, self.random, self.kills = world, random, kills
        self.file = file_of(world)

    @property
    def one(self) -> Set:
        return self.file.sets[0]

    def left(self, goal: Goal) -> tuple[Action, ...]:
        """Return what is left to do, as a new process sees it."""
        return planner.plan(self.file, self.world.observe(), self.one, goal)

    def clients(self, steps: int = 6) -> None:
        """Have producers write, groups read and flows copy a little."""
        world, random = self.world, self.random
        for _ in range(random.randint(0, steps)):
            side, topic, part = (
                random.choice((SOURCE, TARGET)),
                random.choice(world.names),
                random.choice(world.partitions),
            )
            match random.randint(0, 3):
                case 0 | 1:
                    world.write(side, topic, part)
                case 2:
                    for group in world.groups:
                        world.poll(side, group, topic, part)
                case 3:
                    world.flow(random.randint(0, 2))

    def run(self, goal: Goal, *, actions: int = MOST_ACTIONS) -> bool:
        """Run towards a goal; return False if so many actions do not lead there."""
        done: list[Action] = []
        for _ in range(actions):
            seen = self.world.observe()
            action = planner.next_action(self.file, seen, self.one, goal, done)
            if action is None:
                return True
            effects = self.world.effects(action, seen)
            killed = self.random.random() < self.kills
            for effect in effects[: self.random.randint(0, len(effects)) if killed else len(effects)]:
                effect()
                self.check()
                if not isinstance(action, (WaitEmpty, Open)):
                    self.clients(2)
            self.clients()
            self.check()
            if killed:
                done = []
                self.world.spread()
            else:
                done.append(action)
        return False

    def check(self) -> None:
        """Assert what holds at any moment."""
        world = self.world
        sides = world.open_sides()
        assert world.renamed or len(sides) < 2, "producers can write at both sides"
        if sides and not world.renamed:
            (side,) = sides
            others = [name for name in world.names if not all_here(world, side, name)]
            assert not others, f"{others} are closed on this side's way, yet producers can write there"

    def rest(self) -> None:
        """Have clients do all they can, and flows copy everything."""
        world = self.world
        for side in (SOURCE, TARGET):
            for topic, part in world.written:
                for _ in range(2):
                    world.write(side, topic, part)
        world.flow()
        for group in world.groups:
            for side in (SOURCE, TARGET):
                for topic, part in world.written:
                    for _ in range(1000):
                        world.poll(side, group, topic, part)
        world.flow()
        world.observe()


def all_here(world: World, side: object, name: str) -> bool:
    """True if a side that is open for producers has all of a topic's records."""
    mine = world.clusters[side].topics[name].logs  # type: ignore[index]
    return all(log == world.written[name, part] for part, log in enumerate(mine))
