"""Explanations why a name is or isn't mirrored: facts, reasons and words.

Plain values. `explain_facts` collects the facts; `explain_topic` and `explain_group` judge by the facts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from sparkmirror.exact.durable.losses import Loss
from sparkmirror.kafka.cluster.missing_rights import MissingRights
from sparkmirror.mirror.sync.flow_troubles import FlowTrouble
from sparkmirror.mirror.sync.name_refusals import LeftOut, NameAnswer
from sparkmirror.mirror.sync.other_flows import RefusedSecond
from sparkmirror.pump.messages.control import DoneTopic
from sparkmirror.snapshot.snapshot import Flow


class Mark(StrEnum):
    """Result of a check."""

    YES = "yes"
    NO = "no"
    NOTE = "note"
    """The name is mirrored, but the operator should know the check's words."""


class Reason(StrEnum):
    """Reasons why a check of clusters or mirror did not simply pass.

    A closed list, in the order of the checks. Checks of names come first, with the reasons of `LeftOut`.
    """

    FAN_IN = "another flow has the same copy"
    SOURCE_UNREACHABLE = "the source can't be reached"
    TARGET_UNREACHABLE = "the target can't be reached"
    SOURCE_PERMISSION = "a right is lacking at the source"
    TARGET_PERMISSION = "a right is lacking at the target"
    NOT_AT_SOURCE = "it is not at the source"
    NOT_AT_TARGET = "its copy is not at the target"
    REFUSED = "it, or its newest partitions, can't be copied"
    GONE = "it was deleted at the source"
    OPPOSITE_TURN = "it is live in the other direction"
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
    BEYOND_END = "its offset is beyond the end of the source's log"
    WOULD_SKIP = "it would skip records if it moved"
    CATCHING_UP = "it has read records that are not copied yet"
    CHECKPOINTS_ONLY = "its offsets are translated, and not set at the target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One check.

    Texts are one line.
    """

    check: str
    mark: Mark
    words: str
    reason: LeftOut | Reason | None = None
    """Reason; `None` if the check passed."""
    change: str = ""
    """Action for another result; empty without an action."""


def yes(check: str, words: str) -> Step:
    return Step(check=check, mark=Mark.YES, words=words)


def no(check: str, reason: Reason, words: str, change: str) -> Step:
    return Step(check=check, mark=Mark.NO, words=words, reason=reason, change=change)


def note(check: str, reason: Reason, words: str, change: str) -> Step:
    return Step(check=check, mark=Mark.NOTE, words=words, reason=reason, change=change)


def step_of(answer: NameAnswer) -> Step:
    """Return the step of a check of a name."""
    check, words, reason, change = answer
    return Step(check=check, mark=Mark.NO if reason else Mark.YES, words=words, reason=reason, change=change)


def until_no(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return the steps up to the first NO."""
    taken: list[Step] = []
    for step in steps:
        taken.append(step)
        if step.mark is Mark.NO:
            break
    return tuple(taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Checks of one topic, partition or group along one flow.

    The checks end with the first NO.
    """

    flow: str
    kind: str
    """Kind: `topic`, `partition` or `group`."""
    name: str
    steps: tuple[Step, ...]
    in_part: bool = False
    """True for a topic that a check says no to, and that is copied in part."""

    @property
    def mirrored(self) -> bool:
        """True if no check is a NO."""
        return all(step.mark is not Mark.NO for step in self.steps)

    @property
    def last(self) -> Step:
        """Check that decided."""
        return self.steps[-1]

    @property
    def changes(self) -> tuple[str, ...]:
        """Actions to take, in order."""
        return tuple(dict.fromkeys(step.change for step in self.steps if step.change))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSide:
    """A topic, or a topic's copy, at one cluster."""

    alias: str
    trouble: str = ""
    """Reason why the cluster did not answer; then all else is unknown."""
    partitions: int | None = None
    """Number of partitions; `None` if the topic is missing or may not be seen."""
    told: bool = False
    """True if the brokers tell sparkmirror's rights on the topic."""
    lacks: MissingRights | None = None
    """Rights that sparkmirror needs on the topic and lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Known facts about the mirror at work."""

    flow: Flow | None = None
    """Last published state of the flow; `None` without a published state."""
    age_s: float = 0.0
    stale_s: float = 60.0
    leader: str = ""
    """Last process, as host:pid, to announce work on the flow."""
    trouble: str = ""
    """Reason for missing facts."""

    @property
    def fresh(self) -> bool:
        """True if the published status can be believed."""
        return self.flow is not None and self.age_s <= self.stale_s


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """All facts that decide about a topic or a partition."""

    flow: str
    topic: str
    partition: int | None
    names: tuple[NameAnswer, ...]
    """Results of the checks by name."""
    source: TopicSide
    target: TopicSide
    remote: str = ""
    """Name of the topic's copy."""
    fan_in: FlowTrouble | RefusedSecond | None = None
    """Refusal by the start or the topic duty: another flow has the same copy."""
    may_create: bool | None = None
    """True if sparkmirror may create topics at the target; `None` if unknown."""
    refresh_s: int | None = 600
    """Seconds between two looks for new topics; `None`: only at the start."""
    turn_of: str = ""
    """Name of the opposite flow if it is that flow's turn."""
    done: DoneTopic | None = None
    recreated: bool = False
    """True if `done` is about an earlier topic of the name."""
    paused_by: str = ""
    bytes_per_s_cap: float | None = None
    backfill_per_s_cap: float | None = None
    running: Running = field(default_factory=Running)
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """All facts that decide about a consumer group."""

    flow: str
    group: str
    filtered: NameAnswer
    """The group filter's answer."""
    checkpoints: bool = True
    """Value of `emit.checkpoints.enabled`."""
    sync: bool = True
    """Value of `sync.group.offsets.enabled`."""
    source: str = ""
    """Alias of the source."""
    trouble: str = ""
    """Reason why the source did not answer."""
    there: bool = True
    """True if the source lists the group."""
    refused: str = ""
    """Reason why the group may not be read at the source."""
    grant: str = ""
    """Command that gives the right to read it."""
    type: str = "classic"
    protocol: str = "consumer"
    looked_after: bool = True
    """True if groups of this type and protocol are translated."""
    topics: tuple[str, ...] = ()
    """Source topics with committed offsets of the group."""
    copied: tuple[str, ...] = ()
    """Copied topics among `topics`."""
    refresh_s: int | None = 600
    """Seconds between two looks for new groups; `None`: only at the start."""
    running: Running = field(default_factory=Running)
