"""What can be broken, and what a fault is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from chaos.arena import Arena
from chaos.meter import Meter
from chaos.mirror import Deployment


@dataclass(frozen=True, slots=True)
class World:
    """All that can be broken."""

    arena: Arena
    deployment: Deployment
    meter: Meter
    copied_topic: str
    """At the target, where somebody else may write."""
    copied_topics: tuple[str, ...]
    """All of them, by their names at the target."""
    partitions: int


class Fault(Protocol):
    """Something that goes wrong."""

    victim: str
    """Whom it hurts; known once it has begun."""
    lasts: bool
    """Whether it goes on until `end`; else there is nothing to end."""

    def begin(self) -> None:
        """Break it. Raises NoVictim."""

    def end(self) -> None:
        """Make it good again. Not called if `begin` failed."""

    def settle(self) -> None:
        """Wait until the next one may come."""
