"""Frozen values of both clusters, as a migration sees them at one moment.

`phase` and `planner` are pure functions of an `Observation` and the file. Nothing here is remembered from one run to
the next: whoever looks again at the same clusters gets the same values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sparkmirror.kafka.wire.topic_partition import TopicPartition

Ends = Mapping[int, int]
"""Offsets by partition."""


class Side(StrEnum):
    """A migration's two clusters: where it begins, and where it leads."""

    SOURCE = "source"
    TARGET = "target"

    @property
    def other(self) -> Side:
        return Side.TARGET if self is Side.SOURCE else Side.SOURCE


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceSeen:
    """Principals that may write to a topic, as the brokers tell.

    Sets are of principals, such as `User:shop`; the mirror's own is left out of them.
    """

    writers: frozenset[str] = frozenset()
    """Principals that an ACL lets write."""
    denied: frozenset[str] = frozenset()
    """Principals that each broker denies writing."""
    denied_somewhere: frozenset[str] = frozenset()
    """Principals that a broker denies writing, also without an ACL that lets them."""
    impossible: str = ""
    """Reason why no denial can hold all writers; empty if denials can."""
    shut: bool = False
    """True if no ACL lets anybody write.

    Super users may, or all clients if brokers have `allow.everyone.if.no.acl.found`.
    """
    added: frozenset[str] = frozenset()
    """Principals that are denied by this migration; others' denials are an operator's."""

    @property
    def open(self) -> frozenset[str]:
        """Principals that can write."""
        return self.writers - self.denied

    @property
    def complete(self) -> bool:
        """True if each broker refuses each principal that an ACL lets write."""
        return not self.impossible and not self.open


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSeen:
    """A topic at one of the clusters."""

    name: str
    topic_id: str = ""
    ends: Ends = field(default_factory=dict)
    """The leaders' own log ends."""
    watermarks: Ends = field(default_factory=dict)
    """High watermarks; equal to `ends` when all replicas have all records."""
    steady: bool = False
    """True if two readings of `ends` were equal, and equal to the high watermarks."""
    still_s: float = 0.0
    """Seconds for which this run has seen no change of `ends`."""
    leaderless: tuple[int, ...] = ()
    """Partitions without a leader, whose ends nobody tells."""
    open_transactions: tuple[str, ...] = ()
    """Transactional ids, or producer ids, with an open transaction in the topic."""
    transactions_untold: str = ""
    """Reason why a partition's open transactions are not known."""
    fence: FenceSeen = field(default_factory=FenceSeen)


@dataclass(frozen=True, slots=True, order=True)
class MemberSeen:
    """A member of a group."""

    client_id: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSeen:
    """A consumer group at one of the clusters; a missing group has no state."""

    state: str = ""
    """Kafka's state: `Empty`, `Stable`, `Dead`, …"""
    members: tuple[MemberSeen, ...] = ()
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Committed offsets in the migration's topics."""
    readers: frozenset[str] = frozenset()
    """Principals that can read as members, and that a denial can hold."""
    read_denied: bool = False
    """True if this migration denies the group reading at this cluster."""

    @property
    def empty(self) -> bool:
        return self.state in ("", "Empty", "Dead")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSeen:
    """One cluster."""

    alias: str
    bootstrap: str = ""
    cluster_id: str = ""
    brokers: int = 0
    authorizer: bool = False
    """True if the cluster keeps ACLs."""
    topics: Mapping[str, TopicSeen] = field(default_factory=dict)
    """The migration's topics, and their copies, that exist here."""
    groups: Mapping[str, GroupSeen] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordSeen:
    """Words on a source topic in a flow's durable topics."""

    copy: str
    """The topic's name at the flow's target."""
    done: bool = False
    """True if the topic's ends are published: the flow copies up to them."""
    ends: Ends = field(default_factory=dict)
    """Published ends at the flow's source."""
    accepted: Ends = field(default_factory=dict)
    """Offsets at the flow's source below which the operator leaves late records."""
    reached: Ends = field(default_factory=dict)
    """Ends of the copy at the flow's target.

    Only partitions that are copied up to the published ends have one.
    """
    begun: bool = False
    """True if the topic's newest turn is this flow's.

    The first flow's first turn needs no word.
    """
    lag: int | None = None
    """Offsets that the source has and the copy lacks; None: not known."""
    stopped: bool = False
    """True if producers were told to stop without an ACL, and not started since.

    Only the first flow notes this.
    """
    stopped_at: Side | None = None
    """Side where they stopped; None: perhaps nowhere, as an order was cut off."""
    closed: bool = False
    """True if the migration of the topic is complete: there is no way back."""
    foreign: tuple[str, ...] = ()
    """Entries of the loss ledger on others' records in the copy, in words."""

    @property
    def drained(self) -> bool:
        """True if the copy holds everything below the published ends."""
        return self.done and self.ends.keys() <= self.reached.keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSeen:
    """One direction's flow."""

    name: str
    at_work: bool = False
    """True if a mirror published its status in the last seconds."""
    standbys: int = 0
    topics: Mapping[str, WordSeen] = field(default_factory=dict)
    """Words by the topic's name at the flow's source."""
    positions: Mapping[str, Mapping[TopicPartition, int | None]] = field(default_factory=dict)
    """Committed offsets at the source, translated.

    By group and the copy's partition; None: not copied yet.
    """
    untranslated: Mapping[str, str] = field(default_factory=dict)
    """Reasons for None in `positions`, by group: the first partition's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Clusters and flows at one moment."""

    at_ms: int
    clusters: Mapping[Side, ClusterSeen]
    flows: Mapping[Side, FlowSeen]
    """Flows by the side that they copy from.

    `Side.TARGET` is missing where nothing flows back.
    """
