"""Facts for checks: an observation, and answers gathered once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sparkmirror.kafka.cluster.groups import ListedGroup
from sparkmirror.lint.probe import FlowProbe, ProbedCluster
from sparkmirror.migrate import phase
from sparkmirror.migrate.atomic_sets import AtomicSets
from sparkmirror.migrate.file import MigrationFile, Set
from sparkmirror.migrate.observation import Observation, Side
from sparkmirror.migrate.phase import Blocker, Phase
from sparkmirror.migrate.verifications import VerifiedFlow
from sparkmirror.schemas import SchemaCheck
from sparkmirror.snapshot.snapshot import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideGroup:
    """A group outside all sets with offsets in the sets' topics."""

    group: str
    topics: tuple[str, ...]
    active: bool
    """True if the group has members now."""
    share: bool = False
    """True for a share group (KIP-932), which has no committed offsets."""
    excluded: bool = False
    """True if the mirror's file leaves the group out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts of a run of the checks."""

    file: MigrationFile
    sets: tuple[Set, ...]
    """Sets still to move, or able to go back."""
    seen: Observation
    earlier: Observation
    """An observation of some moments before."""
    probes: Mapping[Side, FlowProbe] = field(default_factory=dict)
    """Lint's survey of each flow, by the flow's source."""
    status: Mapping[Side, Flow] = field(default_factory=dict)
    """Newly published status of each flow, by the flow's source."""
    listed: Mapping[Side, Mapping[str, ListedGroup]] = field(default_factory=dict)
    """All groups of a cluster."""
    readers: Mapping[Side, tuple[OutsideGroup, ...]] = field(default_factory=dict)
    unread: Mapping[Side, Mapping[str, str]] = field(default_factory=dict)
    """Reasons why other groups' offsets can't be read, by group."""
    group_rights: Mapping[Side, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """Rights of sparkmirror's principal on the sets' groups.

    A group that the brokers don't tell of is missing.
    """
    super_users: Mapping[Side, bool | None] = field(default_factory=dict)
    """True if the brokers name super users; None: not known."""
    ties: Mapping[Side, AtomicSets] = field(default_factory=dict)
    """Topics and groups of a cluster tied by transactions or Streams."""
    verified: Mapping[tuple[str, str], VerifiedFlow] = field(default_factory=dict)
    """Verifications that count, by flow and topic."""
    verified_untold: str = ""
    """Reason why the evidence can't be read."""
    schemas: SchemaCheck | str | None = None
    """Schema ids at both registries.

    A text is the reason why the registries can't be asked; None: the mirror's file names none.
    """

    def leaving(self, moving: Set) -> Side:
        """Return the side to be left by the set next."""
        return phase.set_phase(self.seen, moving).live

    @property
    def sides(self) -> tuple[Side, ...]:
        """Sides left next by any set."""
        return tuple(side for side in Side if any(self.leaving(moving) is side for moving in self.sets))

    def topics(self) -> Iterator[tuple[Side, str]]:
        """Yield the sets' topics, each with the side that it leaves next."""
        for moving in self.sets:
            for topic in moving.topics:
                yield self.leaving(moving), topic

    def groups(self) -> Iterator[tuple[Side, str]]:
        """Yield the sets' groups, each with the side that its set leaves next."""
        for moving in self.sets:
            for group in moving.groups:
                yield self.leaving(moving), group

    def blockers(self, *ids: str) -> Iterator[Blocker]:
        """Yield blockers of the sets' next switch, by kind."""
        for moving in self.sets:
            yield from self.blockers_of(moving, *ids)

    def blockers_of(self, moving: Set, *ids: str) -> Iterator[Blocker]:
        """Yield blockers of a set's next switch, by kind."""
        to = self.leaving(moving).other
        known = phase.producers_blockers(self.seen, self.file, moving, to)
        known += phase.consumers_blockers(self.seen, self.file, moving, to)
        yield from dict.fromkeys(each for each in known if each.id in ids)

    def probed(self, side: Side) -> ProbedCluster | None:
        """Return lint's survey of a cluster."""
        probe = self.probes.get(Side.SOURCE)
        if probe is None:
            return None
        return probe.source if side is Side.SOURCE else probe.target

    def alias(self, side: Side) -> str:
        """Return a cluster's alias."""
        return self.seen.clusters[side].alias


def still_to_move(seen: Observation, sets: tuple[Set, ...]) -> tuple[Set, ...]:
    """Return the incomplete sets."""
    return tuple(moving for moving in sets if phase.set_phase(seen, moving).phase is not Phase.COMPLETED)
