"""What is done in each round, drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum


class Names(StrEnum):
    """How copies are named."""

    RENAMED = "renamed"
    """DefaultReplicationPolicy: `A.orders` and `B.orders`."""
    AMAZON = "amazon"
    """Amazon's CustomMM2ReplicationPolicy keeps names."""
    KEPT = "kept"
    """IdentityReplicationPolicy."""

    @property
    def policy(self) -> str:
        """Return the policy's class."""
        return _POLICIES[self]


_POLICIES = {
    Names.RENAMED: "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    Names.AMAZON: "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
    Names.KEPT: "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
}


class Window(StrEnum):
    """When a straggler writes at the source."""

    PUBLISH = "before publish"
    ARM = "before arm"
    FIRST = "before the first record of the flow back"
    LATER = "behind the first record of the flow back"


TYPES = ("consumers-first", "producers-first", "all-at-once")
MOMENTS = (
    ("before", "empty"),
    ("before", "drain"),
    ("before", "position"),
    ("before", "fence"),
    ("after", "fence"),
    ("before", "publish"),
    ("after", "publish"),
    ("after", "drain"),
    ("before", "arm"),
    ("after", "arm"),
    ("before", "open"),
)
"""Hooks at which the tool is killed: before, or after, a step."""
LONGEST_DELAY_S = 0.25


@dataclass(frozen=True, slots=True)
class Kill:
    """When the tool is killed by SIGKILL: some time after a hook's answer."""

    when: str
    step: str
    delay_s: float

    def __str__(self) -> str:
        return f"{self.delay_s * 1000:.0f} ms from {self.when} {self.step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One round."""

    number: int
    names: Names
    type: str
    halts: bool
    """True if people stop the producers; else these run into the fence."""
    kill: Kill | None = None
    strays: frozenset[Window] = frozenset()
    turns: int = 1
    """1: there; 2: there and back; 3: there once more."""

    @property
    def words(self) -> str:
        """What is done, in a few words."""
        parts = [self.names, self.type, "producers halt" if self.halts else "producers run on"]
        parts += [f"killed {self.kill}"] if self.kill else []
        parts += [f"{self.turns} turns"] if self.turns > 1 else []
        parts += [f"stray {window}" for window in sorted(self.strays)]
        return ", ".join(parts)


def draw(seed: int, rounds: int, names: tuple[Names, ...] = tuple(Names)) -> list[Plan]:
    """Draw rounds: a third plain, a third with a kill, a third with a way back; rounds with equal names in a row.

    Of the ways back a third has three turns. Stragglers come in a third of all rounds.
    """
    chance = random.Random(seed)
    plans = []
    kills = list(MOMENTS)
    chance.shuffle(kills)
    windows = list(Window)
    for index in range(rounds):
        kind = index % 3
        when, step = kills[index // 3 % len(kills)]
        plans.append(
            Plan(
                number=index + 1,
                names=names[index * len(names) // rounds],
                type=chance.choice(TYPES),
                halts=chance.random() < 0.3,
                kill=Kill(when, step, chance.random() * LONGEST_DELAY_S) if kind == 1 else None,
                strays=frozenset({windows[index // 3 % len(windows)]}) if kind == (index // 3) % 3 else frozenset(),
                turns=(3 if index // 3 % 3 == 2 else 2) if kind == 2 else 1,
            )
        )
    return plans
