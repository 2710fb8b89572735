"""Why something is or isn't mirrored: the facts that decide it, the reasons there can be, and how they are told.

Plain values. `explain_topic` and `explain_group` decide by them, `explain_facts` collects them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from sparkmirror.durable.losses import Loss
from sparkmirror.engine.snapshot import Flow
from sparkmirror.messages.control import DoneTopic


class Mark(StrEnum):
    """How a check went."""

    YES = "yes"
    NO = "no"
    NOTE = "note"
    """It is mirrored; something is to be known."""


class Reason(StrEnum):
    """Why a check did not simply pass: a closed list, in the order in which they are decided."""

    NOTHING_COPIED = "the flow copies nothing"
    NOT_LISTED = "no expression matches it"
    EXCLUDED = "it is excluded"
    OWN_FILTER = "a filter of the user's own does not want it"
    INTERNAL_OF_MM2 = "it is one of MirrorMaker 2's own"
    INTERNAL = "it is internal"
    ILLEGAL_NAME = "its copy's name would not be legal"
    CYCLE = "it came from the target"
    OWN_HEARTBEATS = "its copy would be the target's own topic of heartbeats"
    FAN_IN = "another flow has the same copy"
    SOURCE_UNREACHABLE = "the source can't be reached"
    TARGET_UNREACHABLE = "the target can't be reached"
    SOURCE_PERMISSION = "a right is lacking at the source"
    TARGET_PERMISSION = "a right is lacking at the target"
    NOT_AT_SOURCE = "it is not at the source"
    NOT_AT_TARGET = "its copy is not at the target"
    REFUSED = "it, or its newest partitions, can't be copied"
    GONE = "it was deleted at the source"
    RELEASED = "its writers have moved to the copy"
    LATE = "records came after its writers had moved"
    ENDS = "it is copied up to its end only"
    PAUSED = "an operator has paused it"
    PARKED = "it can't be copied now"
    WAITING = "it waits"
    NOT_SEEN = "the mirror has not seen it yet"
    NOT_REPORTED = "no task has reported it yet"
    NOBODY_WORKS = "no process works on the flow"
    THROTTLED = "a broker's quota holds it back"
    CAPPED = "an operator has capped the flow"
    LOST = "the loss ledger has entries of it"

    CHECKPOINTS_OFF = "groups are not translated"
    GROUP_TYPE = "it is no consumer group"
    NO_OFFSETS = "it has committed nothing"
    NO_COPIED_TOPIC = "it has read no topic that is copied"
    NOT_SYNCED = "its offsets can't be set at the target"
    CATCHING_UP = "it has read what is not copied yet"
    CHECKPOINTS_ONLY = "its offsets are translated, and not set at the target"


@dataclass(frozen=True, slots=True)
class Step:
    """One check. Texts are one line."""

    check: str
    mark: Mark
    words: str
    reason: Reason | None = None
    """None: it passed."""
    change: str = ""
    """What to do, if it is to be otherwise."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The checks of one topic, partition or group along one flow, up to the first that says no."""

    flow: str
    kind: str
    """`topic`, `partition` or `group`."""
    name: str
    steps: tuple[Step, ...]

    @property
    def mirrored(self) -> bool:
        """Whether nothing is against it."""
        return all(step.mark is not Mark.NO for step in self.steps)

    @property
    def last(self) -> Step:
        """The check that decided."""
        return self.steps[-1]

    @property
    def changes(self) -> tuple[str, ...]:
        """What to change, in order."""
        return tuple(dict.fromkeys(step.change for step in self.steps if step.change))


@dataclass(frozen=True, slots=True)
class Filtered:
    """What a flow's filter says of a name."""

    key: str
    """`topics` or `groups`."""
    accepted: bool
    included_by: str = ""
    """The expression that matches; empty: none does."""
    excluded_by: str = ""
    own_class: str = ""
    """The filter's name, if it isn't MirrorMaker 2's."""


@dataclass(frozen=True, slots=True)
class Side:
    """A topic, or its copy, at one cluster."""

    alias: str
    trouble: str = ""
    """Why the cluster did not answer; then nothing else is known."""
    partitions: int | None = None
    """None: it is not there, or may not be seen."""
    operations: frozenset[str] | None = None
    """What our principal may do with it; None: not known."""


@dataclass(frozen=True, slots=True)
class Running:
    """What is known of the mirror at work."""

    flow: Flow | None = None
    """As it was published last; None: it was not."""
    age_s: float = 0.0
    stale_s: float = 60.0
    leader: str = ""
    """host:pid that said last that it works on the flow."""
    trouble: str = ""
    """Why nothing is known."""

    @property
    def fresh(self) -> bool:
        """Whether the published status can be believed."""
        return self.flow is not None and self.age_s <= self.stale_s


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """All that decides about a topic, or one of its partitions."""

    flow: str
    topic: str
    partition: int | None
    filtered: Filtered
    source: Side
    target: Side
    copies: bool = True
    """Whether the flow copies records."""
    heartbeats: bool = False
    """It holds heartbeats, which go along whatever the filter says."""
    internal: bool = False
    internal_of_mm2: bool = False
    policy: str = "DefaultReplicationPolicy"
    remote: str = ""
    """Its copy's name."""
    illegal: str = ""
    """Why there can't be a topic of that name."""
    cycle: bool = False
    own_heartbeats: bool = False
    fan_in: tuple[str, ...] = ()
    """Other flows whose copy that is, or would be."""
    may_create: bool | None = None
    """Whether we may create topics at the target; None: not known."""
    refresh_s: int | None = 600
    """How often new topics are looked for; None: only at the start."""
    done: DoneTopic | None = None
    paused_by: str = ""
    bytes_per_s_cap: float | None = None
    backfill_per_s_cap: float | None = None
    running: Running = field(default_factory=Running)
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """All that decides about a consumer group."""

    flow: str
    group: str
    filtered: Filtered
    checkpoints: bool = True
    """`emit.checkpoints.enabled`."""
    sync: bool = True
    """`sync.group.offsets.enabled`."""
    source: str = ""
    """Alias."""
    trouble: str = ""
    """Why the source did not answer."""
    there: bool = True
    """Whether the source lists it."""
    refused: str = ""
    """Why it may not be read at the source."""
    type: str = "classic"
    protocol: str = "consumer"
    looked_after: bool = True
    """Whether groups of this type and protocol are translated."""
    topics: tuple[str, ...] = ()
    """Of the source, that it has committed offsets of."""
    copied: tuple[str, ...] = ()
    """Those of them that are copied."""
    refresh_s: int | None = 600
    """How often new groups are looked for; None: only at the start."""
    running: Running = field(default_factory=Running)
