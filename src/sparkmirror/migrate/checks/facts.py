"""What checks look at: an observation, and further facts that are gathered once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sparkmirror.kafka.cluster.groups import ListedGroup
from sparkmirror.lint.probe import FlowProbe
from sparkmirror.migrate import phase
from sparkmirror.migrate.atomic_sets import AtomicSets
from sparkmirror.migrate.file import MigrationFile, Set
from sparkmirror.migrate.observation import Observation, Side
from sparkmirror.migrate.phase import Blocker, Phase
from sparkmirror.schemas import SchemaCheck
from sparkmirror.snapshot.snapshot import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReader:
    """A group of one cluster that has read the sets' topics, and is in no set."""

    group: str
    topics: tuple[str, ...]
    active: bool
    """True if it has members now."""
    share: bool = False
    """True for a share group (KIP-932), which has no committed offsets."""
    excluded: bool = False
    """True if the mirror's file leaves the group out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that checks look at."""

    file: MigrationFile
    sets: tuple[Set, ...]
    """Sets that are still to move, or that can go back."""
    seen: Observation
    earlier: Observation
    """An observation of some moments before."""
    probes: Mapping[Side, FlowProbe] = field(default_factory=dict)
    """Lint's survey of each flow, by the side that the flow copies from."""
    status: Mapping[Side, Flow] = field(default_factory=dict)
    """What a mirror has published in the last seconds, by the side that the flow copies from."""
    listed: Mapping[Side, Mapping[str, ListedGroup]] = field(default_factory=dict)
    """All groups of a cluster."""
    readers: Mapping[Side, tuple[TopicReader, ...]] = field(default_factory=dict)
    group_rights: Mapping[Side, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """What sparkmirror may do with the sets' groups; a group that the brokers don't tell of is missing."""
    super_users: Mapping[Side, bool | None] = field(default_factory=dict)
    """True if the brokers name super users; None: they don't tell."""
    ties: Mapping[Side, AtomicSets] = field(default_factory=dict)
    """Topics and groups of a cluster that move at once only."""
    schemas: SchemaCheck | str | None = None
    """Schema ids at both registries; a text: why they can't be asked; None: the mirror's file names none."""

    def leaving(self, one: Set) -> Side:
        """Return the side that the set leaves next."""
        return phase.set_phase(self.seen, one).live

    @property
    def sides(self) -> tuple[Side, ...]:
        """Sides that some set leaves next."""
        return tuple(side for side in Side if any(self.leaving(one) is side for one in self.sets))

    def topics(self) -> Iterator[tuple[Side, str]]:
        """Yield the sets' topics, each with the side that it leaves next."""
        for one in self.sets:
            for topic in one.topics:
                yield self.leaving(one), topic

    def groups(self) -> Iterator[tuple[Side, str]]:
        """Yield the sets' groups, each with the side that its set leaves next."""
        for one in self.sets:
            for group in one.groups:
                yield self.leaving(one), group

    def blockers(self, *ids: str) -> Iterator[Blocker]:
        """Yield what blocks the next switch of the sets, of these kinds."""
        for one in self.sets:
            yield from self.blockers_of(one, *ids)

    def blockers_of(self, one: Set, *ids: str) -> Iterator[Blocker]:
        """Yield what blocks the set's next switch, of these kinds."""
        to = self.leaving(one).other
        found = phase.producers_blockers(self.seen, self.file, one, to)
        found += phase.consumers_blockers(self.seen, self.file, one, to)
        yield from dict.fromkeys(each for each in found if each.id in ids)

    def alias(self, side: Side) -> str:
        """Return a cluster's alias."""
        return self.seen.clusters[side].alias


def still_to_move(seen: Observation, sets: tuple[Set, ...]) -> tuple[Set, ...]:
    """Return the sets that are not complete."""
    return tuple(one for one in sets if phase.set_phase(seen, one).phase is not Phase.COMPLETED)
