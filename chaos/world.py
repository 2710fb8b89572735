"""What can be broken, and what a fault is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kafka import TopicPartition

from chaos.arena import Arena
from chaos.checker import Findings
from chaos.cuts import Election
from chaos.load import Load
from chaos.meter import Meter
from chaos.mirror import Deployment, remote
from chaos.records import Isolation
from chaos.scribe import Scribe
from chaos.words import FalseWords


@dataclass(slots=True)
class Aftermath:
    """What faults leave behind that the check at the end has to know."""

    findings: Findings = field(default_factory=Findings)
    """Of copies that were deleted."""
    copied_anew: list[str] = field(default_factory=list)
    """Topics whose copies were deleted, and why."""
    elections: dict[TopicPartition, list[Election]] = field(default_factory=dict)
    """Those in which the source took back what it had acknowledged, by its partition, in their order."""
    target_cuts: dict[TopicPartition, list[int]] = field(default_factory=dict)
    """Where copies ended when the target had lost what it had acknowledged, by the copy's partition."""
    claims_lost: bool = False
    """Whether the mirror's own knowledge of offsets was taken from it, or a part of it."""
    silences: list[str] = field(default_factory=list)
    """What the mirror did not name in all its time."""
    false: FalseWords = field(default_factory=FalseWords)
    """What it said to a fault that was not so."""


@dataclass(frozen=True, slots=True)
class World:
    """All that can be broken."""

    arena: Arena
    deployment: Deployment
    meter: Meter
    topics: Mapping[str, str]
    """At the source, by kind: `orders`, `payments`, `archive`, `drafts`, `notes`, `bills`."""
    partitions: int
    isolation: Isolation
    properties: Path
    """The mirror's file."""
    scribe: Scribe
    load: Load
    aftermath: Aftermath = field(default_factory=Aftermath)

    def copies(self, *kinds: str) -> list[str]:
        """Return the topics of these kinds that there are, by their names at the target."""
        return [remote(topic) for kind, topic in self.topics.items() if kind in kinds]


class Fault(Protocol):
    """Something that goes wrong."""

    victim: str
    """Whom it hurts; known once it has begun."""
    lasts: bool
    """Whether it continues until `end`; else there is nothing to end."""

    def begin(self) -> None:
        """Break it. Raises NoVictim."""

    def end(self) -> None:
        """Make it good again. Not called if `begin` failed."""

    def settle(self) -> None:
        """Wait until the next one may come."""
