"""Flows' mistakes, found in their settings alone, for lint and the run's start.

Fatal mistakes stop a run before anything is created; of the rest the run warns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.mirror.sync.echoes import Echo, echoes
from sparkmirror.mirror.sync.fan_in import FanIn, fan_ins
from sparkmirror.mirror.sync.listed_topics import listed_topics
from sparkmirror.mirror.sync.topic_rules import topic_rules

_SEPARATORS = (".", "_", "-", "__", "--", "..", "-_-")
"""Separators that topic names may hold, in the order in which they are proposed."""
_POLICY, _SEPARATOR = "replication.policy.class", "replication.policy.separator"
_TURN = "sparkmirror.turn"


class TroubleKind(Enum):
    """Kinds of mistakes, in the words that lint and run share."""

    ECHO_LOOP = "flows send the same topics in a circle"
    TURNS = "two flows can't take turns"
    COMES_BACK = "a flow brings copies back to the cluster that they come from"
    FAN_IN = "two flows would copy into one topic"
    MAY_FAN_IN = "two flows could copy into one topic"
    NEVER_COPIED = "a listed topic is never copied"
    NOTHING_LISTED = "none of the listed topics is ever copied"


FATAL = frozenset({TroubleKind.ECHO_LOOP, TroubleKind.TURNS, TroubleKind.FAN_IN, TroubleKind.NOTHING_LISTED})
SAID_BY_RUN = FATAL | {TroubleKind.COMES_BACK, TroubleKind.NEVER_COPIED}
"""Kinds that a run reports.

The clusters tell whether two flows' patterns match a common topic; then the second flow's topic is refused.
"""

EFFECTS = {
    TroubleKind.ECHO_LOOP: "each record comes back to where it was written, for ever: topics grow without end",
    TroubleKind.TURNS: "each topic must be live in one direction only, and the same records on both sides",
    TroubleKind.COMES_BACK: "each record is copied back once more, under another name",
    TroubleKind.FAN_IN: "records of both would mix in it, and offsets and groups of neither could be translated",
    TroubleKind.MAY_FAN_IN: "if both sources have a topic of the same name, that of the second flow is refused",
    TroubleKind.NEVER_COPIED: "it stays uncopied, without another word",
    TroubleKind.NOTHING_LISTED: "the flow runs and copies nothing",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowTrouble:
    """One mistake in one or several flows."""

    kind: TroubleKind
    flows: tuple[str, ...]
    """The flows' names."""
    key: str
    """Setting to look at."""
    detail: str
    remedy: str

    @property
    def reason(self) -> str:
        """Reason why the flow can't run, or not as written, with effect."""
        return f"{self.kind.value}: {self.detail}: {EFFECTS[self.kind]}"

    @property
    def line(self) -> str:
        """Reason and remedy."""
        return f"{self.reason}; {self.remedy}"


def flow_troubles(flows: Sequence[FlowConfig]) -> list[FlowTrouble]:
    """Return all mistakes, fatal ones first."""
    troubles = [*_turns(flows), *_echoes(flows), *_fan_ins(flows), *_listed(flows)]
    return sorted(troubles, key=lambda trouble: trouble.kind not in FATAL)


def _turns(flows: Sequence[FlowConfig]) -> Iterator[FlowTrouble]:
    """Yield mistakes in flows that take turns, perhaps with one in another file."""
    by_pair = {(flow.source.alias, flow.target.alias): flow for flow in flows}
    for flow in flows:
        if not flow.turn:
            continue
        opposite = by_pair.get((flow.target.alias, flow.source.alias))
        other = {"first": "second", "second": "first"}[flow.turn]
        if not _keeps_names(flow):
            detail, remedy = "its replication policy changes names", "use IdentityReplicationPolicy in both flows"
        elif flow.connect_transforms or flow.transform_queries or flow.legacy is not None:
            detail, remedy = "it changes records, or is MirrorMaker 1's", "take its transforms and queries out"
        elif opposite is not None and opposite.turn != other:
            said = f"has {_TURN} = {opposite.turn}, too" if opposite.turn else f"has no {_TURN}"
            detail, remedy = f"{opposite.name} {said}", f"write {opposite.name}.{_TURN} = {other}"
        else:
            continue
        names = (flow.name,) if opposite is None else (flow.name, opposite.name)
        yield FlowTrouble(
            kind=TroubleKind.TURNS, flows=names, key=_TURN, detail=f"{flow.name}: {detail}", remedy=remedy
        )


def _echoes(flows: Sequence[FlowConfig]) -> Iterator[FlowTrouble]:
    for echo in echoes(flows):
        kind = TroubleKind.ECHO_LOOP if echo.endless else TroubleKind.COMES_BACK
        key, remedy = _remedy_of_echo(echo, flows)
        yield FlowTrouble(
            kind=kind, flows=echo.flows, key=key, detail=f"{' and '.join(echo.flows)}: {echo.words}", remedy=remedy
        )


def _remedy_of_echo(echo: Echo, flows: Sequence[FlowConfig]) -> tuple[str, str]:
    """Return the setting to blame, and a remedy."""
    concerned = [flow for flow in flows if flow.name in echo.flows]
    if echo.apart:
        verb = "hold" if len(echo.apart) > 1 else "holds"
        why = f"{' and '.join(echo.apart)} {verb} the separator {echo.separator}, so no copy is known by its name"
        return _SEPARATOR, f"{why}: {_other_separator(flows)}"
    if any(not flow.replication_policy_separator for flow in concerned) and not any(map(_keeps_names, concerned)):
        return _SEPARATOR, _other_separator(flows)
    last = echo.flows[-1]
    return (
        _POLICY,
        f"take {last}.enabled out to mirror one way only, or use DefaultReplicationPolicy in all of these flows, or"
        " give each topics of its own",
    )


def _other_separator(flows: Sequence[FlowConfig]) -> str:
    aliases = {alias for flow in flows for alias in (flow.source.alias, flow.target.alias)}
    free = next((separator for separator in _SEPARATORS if not any(separator in alias for alias in aliases)), None)
    if free is None:
        return "give the clusters aliases without dots, dashes and underscores"
    return f"write {_SEPARATOR} = {free}, which no alias holds"


def _keeps_names(flow: FlowConfig) -> bool:
    try:
        return topic_rules(flow).remote_name("orders") == "orders"
    except SparkMirrorError:
        return False


def _fan_ins(flows: Sequence[FlowConfig]) -> Iterator[FlowTrouble]:
    return (_trouble_of(fan_in, flows) for fan_in in fan_ins(flows))


def fatal_fan_in(flow: str, remote: str, flows: Sequence[FlowConfig]) -> FlowTrouble | None:
    """Return the trouble that stops the start: another flow into the same topic."""
    fatal = (each for each in fan_ins(flows) if each.certain and flow in each.flows and remote in each.topics)
    return next((_trouble_of(fan_in, flows) for fan_in in fatal), None)


def _trouble_of(fan_in: FanIn, flows: Sequence[FlowConfig]) -> FlowTrouble:
    target = fan_in.flows[0].partition("->")[2]
    topics = ", ".join(fan_in.topics)
    return FlowTrouble(
        kind=TroubleKind.FAN_IN if fan_in.certain else TroubleKind.MAY_FAN_IN,
        flows=fan_in.flows,
        key=_SEPARATOR if fan_in.renamed else "topics",
        detail=f"{' and '.join(fan_in.flows)} both into {topics} of {target}",
        remedy=_other_separator(flows) if fan_in.renamed else _remedy_of_fan_in(fan_in),
    )


def _remedy_of_fan_in(fan_in: FanIn) -> str:
    """Return the remedy where names are kept; copied records stay in place."""
    first, second = fan_in.flows
    return (
        f"list each topic in one of {first}.topics and {second}.topics only, or use DefaultReplicationPolicy in both,"
        " or mirror one of them to another cluster"
    )


def _listed(flows: Sequence[FlowConfig]) -> Iterator[FlowTrouble]:
    for flow in flows:
        listed = listed_topics(flow)
        if listed.nothing:
            why = "; ".join(f"{entry.topic}: {entry.why}" for entry in listed.never)
            yield FlowTrouble(
                kind=TroubleKind.NOTHING_LISTED,
                flows=(flow.name,),
                key="topics",
                detail=f"{flow.name}: {why}",
                remedy="list topics that can be",
            )
            continue
        for entry in listed.never:
            detail = f"{entry.topic} of {flow.source.alias}: {entry.why}"
            yield FlowTrouble(
                kind=TroubleKind.NEVER_COPIED, flows=(flow.name,), key="topics", detail=detail, remedy=entry.remedy
            )
