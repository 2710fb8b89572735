"""Sizes of a mirror: those that `--growth` measures, and how one is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

TOPICS = 20
"""Topics of each size, fewer with fewer partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One size of a mirror; `partitions` of all flows together, `tasks` of each flow."""

    partitions: int
    tasks: int = 1
    flows: int = 1
    workers: int = 0
    """Workers of a Spark standalone cluster; 0: Spark in the mirror's own process."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `partitions/tasks/workers`, of which the last ones may be missing."""
        numbers = [int(part) for part in text.split("/")]
        names = ("partitions", "tasks", "workers")
        if len(numbers) > len(names) or min(numbers[:2]) < 1 or min(numbers) < 0:
            raise ValueError(f"{text!r} is not partitions/tasks/workers")
        return cls(**dict(zip(names, numbers, strict=False)))

    def __str__(self) -> str:
        spark = f"{self.workers} Spark workers" if self.workers else "local Spark"
        return f"{self.partitions:,} partitions, tasks.max {self.tasks}, {self.flows} flows, {spark}"


REAL_SIZES = (
    *(Size(partitions=partitions) for partitions in (10, 100, 1_000)),
    *(Size(partitions=1_000, tasks=tasks) for tasks in (2, 4, 8)),
    *(Size(partitions=1_000, tasks=workers, workers=workers) for workers in (1, 2, 4)),
    Size(partitions=10_000),
)
"""Sizes on real brokers, one of each side; those of equal partitions follow each other, as they share topics.

Several flows would need as many clusters, since a cluster under two names is refused.
"""
PAPER_SIZES = (
    *(Size(partitions=partitions) for partitions in (10, 100, 1_000, 10_000)),
    Size(partitions=10_000, tasks=8, flows=20),
    Size(partitions=100_000, tasks=50, flows=10),
)
"""Sizes without brokers."""
