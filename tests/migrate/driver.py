"""Runs of plans in the model world, with clients at work and kills between any two effects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random

from tests.migrate.world import SOURCE, TARGET, World

from sparkmirror.migrate import switch_plan
from sparkmirror.migrate.actions import Action, Drain, Open, WaitCopied, WaitEmpty
from sparkmirror.migrate.file import Fence, MigrationFile, Set
from sparkmirror.migrate.observation import Side
from sparkmirror.migrate.switch_plan import SwitchGoal, Who

MOST_ACTIONS = 400
"""More actions than any run of this world needs, with all its kills."""
_MOST_KILLS = 6


def file_of(world: World) -> MigrationFile:
    """Return a file with one set of all that the world has."""
    one = {"name": "shop", "topics": world.names, "groups": world.groups}
    hooks: Mapping[str, object] = {"fence": {"stop": "./stop", "start": "./start"}}
    return MigrationFile.model_validate(
        {
            "mirror": "mm2.properties",
            "type": "all-at-once",
            "sets": [one],
            "fence": world.fence,
            "hooks": hooks if world.fence is Fence.HOOK else {},
        }
    )


class Driver:
    """One person with the verbs, and clients that never rest.

    With `faults`, mirrors stop and start, the program is killed, and members come back where they were stopped.
    """

    def __init__(self, world: World, random: Random, *, faults: bool = True) -> None:
        self.world, self.random, self.faults = world, random, faults
        self.file = file_of(world)

    @property
    def one(self) -> Set:
        return self.file.sets[0]

    def left(self, goal: SwitchGoal) -> tuple[Action, ...]:
        """Return what is left to do, as a new process sees it."""
        return switch_plan.plan(self.file, self.world.observe(), self.one, goal)

    def clients(self, steps: int = 6, leaving: Side | None = None, late: Collection[str] = ()) -> None:
        """Have producers write, groups read, and flows copy a little; some of `late` start where they were stopped."""
        world, random = self.world, self.random
        for _ in range(random.randint(0, steps)):
            side = random.choice((SOURCE, TARGET))
            topic, part = random.choice(world.names), random.choice(world.partitions)
            match random.randint(0, 9):
                case 0 | 1 | 2:
                    world.write(side, topic, part)
                case 3 | 4 | 5:
                    for group in world.groups:
                        world.poll(side, group, topic, part)
                case 6 | 7:
                    world.flow(random.randint(0, 2))
                case 8:
                    world.sync()
                case 9 if self.faults and leaving and random.random() < 0.3:
                    for group in late:
                        world.start_group(leaving, group)
                case 9 if self.faults and side in world.flows:
                    world.flows[side].at_work = not world.flows[side].at_work

    def run(self, goal: SwitchGoal, *, most: int = MOST_ACTIONS) -> bool:
        """Run towards a goal; return False if so many actions do not lead there."""
        kills = self.random.randint(0, _MOST_KILLS) if self.faults else 0
        self.world.new_process()
        leaving = None if goal.who is Who.PRODUCERS else goal.at.other
        late = [name for name in self.world.groups if leaving and self.world.clusters[leaving].groups[name].members]
        for _ in range(most):
            seen = self.world.observe()
            todo = switch_plan.plan(self.file, seen, self.one, goal)
            if not todo:
                return True
            action = todo[0]
            if self.faults and isinstance(action, (Drain, WaitCopied)):
                self.world.flows[action.leaving].at_work |= self.random.random() < 0.5
            effects = self.world.effects(action, seen)
            killed = kills > 0 and self.random.random() < 0.3
            for effect in effects[: self.random.randint(0, len(effects)) if killed else len(effects)]:
                effect()
                self.check()
                if not isinstance(action, WaitEmpty):
                    self.clients(2)
            if killed:
                kills -= 1
                self.world.new_process()
                self.world.spread()
            if not isinstance(action, Open):
                self.clients(6, leaving, late)
            self.check()
        return False

    def check(self) -> None:
        """Assert what holds at any moment: producers can write at one side only, which has all that was written."""
        world = self.world
        sides = world.open_sides()
        if world.renamed:
            return
        assert len(sides) < 2, "producers can write at both sides"
        for side in sides:
            for (topic, part), records in world.written.items():
                if world.may_write(side, topic):
                    assert world.clusters[side].topics[topic].logs[part] == records, f"{topic} is open too early"

    def rest(self) -> None:
        """Have producers write, flows copy everything, and groups read it."""
        world = self.world
        world.observe()
        for flow in world.flows.values():
            flow.at_work = True
        for side in (SOURCE, TARGET):
            for topic, part in world.written:
                world.write(side, topic, part)
        world.flow()
        for topic, part in world.written:
            for group in world.groups:
                for side in (SOURCE, TARGET):
                    for _ in range(len(world.written[topic, part])):
                        world.poll(side, group, topic, part)
