"""Forecast for a cut-over now: for a flow, and for each of its consumer groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.look.page.sentences import OLD_S, STUCK, are_stuck, is_old, short, unknown_partitions
from sparkmirror.look.page.words import cannot, count, duration, listed
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.loss_counts import acknowledged, totals
from sparkmirror.snapshot.snapshot import ELSEWHERE, Flow, FlowState, Group, PartitionState, Role

ACCEPTABLE = "if that is acceptable, say so (sparkmirror losses ack)"
NAMED = 3
"""Groups that a sentence names; further groups are counted."""
STOPPED = "The source's writers have stopped"
WRITERS = "The page can't see whether the source's writers have stopped: stop them, then look again."


class CutOverVerdict(StrEnum):
    """Answer to the question of a cut-over now."""

    READY = "ready"
    NOT_YET = "not yet"
    UNKNOWN = "not known"


class CheckMark(StrEnum):
    """Answer to a condition of a cut-over."""

    OK = "ok"
    NOT = "not"
    UNKNOWN = "not known"
    YOURS = "look yourself"
    """The condition is out of the page's sight."""


@dataclass(frozen=True, slots=True)
class CutOverCheck:
    """A line in the check list."""

    name: str
    mark: CheckMark
    words: str
    """The condition's figure, or the obstacle."""


@dataclass(frozen=True, slots=True)
class CutOver:
    """Verdict on a cut-over now, with the check list."""

    verdict: CutOverVerdict
    words: str
    conditions: tuple[CutOverCheck, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Obstacles, then missing figures."""
        return tuple(
            condition.words
            for mark in (CheckMark.NOT, CheckMark.UNKNOWN)
            for condition in self.conditions
            if condition.mark is mark
        )


def cut_over(flow: Flow, now_ms: int) -> CutOver:
    """Return a flow's verdict; `ready` needs every figure to be known."""
    if flow.role is not Role.LEADER:
        ask = CutOverCheck("This process works on the flow", CheckMark.UNKNOWN, _ask(flow))
        return CutOver(CutOverVerdict.UNKNOWN, f"Not known: {ask.words}.", (ask,))
    conditions = (*_of_records(flow), *_of_losses(flow), *_of_groups(flow), *_of_figures(flow, now_ms))
    for mark, verdict, begin in (
        (CheckMark.NOT, CutOverVerdict.NOT_YET, "Not yet"),
        (CheckMark.UNKNOWN, CutOverVerdict.UNKNOWN, "Not known"),
    ):
        first = next((condition for condition in conditions if condition.mark is mark), None)
        if first is not None:
            return CutOver(verdict, f"{begin}: {first.words}.", conditions)
    known = acknowledged(flow.losses)
    but = f" but for {count(known, 'acknowledged loss', 'acknowledged losses')}" if known else ""
    words = f"Ready: everything is copied{but}. {_exactly(flow)} {WRITERS}"
    yours = CutOverCheck(STOPPED, CheckMark.YOURS, "the page does not see it")
    return CutOver(CutOverVerdict.READY, words, (*conditions, yours))


def if_moved(group: Group) -> str:
    """Return, in words, how a group's consumers would continue at the target now."""
    if group.state is GroupState.NOT_SYNCED:
        return f"can't move: {short(group.reason) or 'why is not known'}"
    if is_beyond_end(group):
        return "must be set right first: it is beyond the source's end"
    parts = [
        f"skips {count(group.skipped, 'record')}" if group.skipped else "",
        f"reads {count(group.reread, 'record')} again" if group.reread else "",
    ]
    if group.state is GroupState.CATCHING_UP:
        parts.append("must wait: it has read what isn't copied yet")
    if any(parts):
        return ", ".join(filter(None, parts))
    if group.skipped is None or group.reread is None or not group.partitions:
        return "not known"
    return "continues at the exact record"


def is_beyond_end(group: Group) -> bool:
    """Tell whether a group's offset is past the source's log end."""
    return group.state is GroupState.BEYOND_END or any(place.beyond_end for place in group.partitions)


def _exactly(flow: Flow) -> str:
    if not flow.groups:
        return "No consumer group is translated" + (f": {flow.no_group}." if flow.no_group else ".")
    return f"{count(len(flow.groups), 'group')} would continue at the exact record."


def _would(counts: Mapping[str, int], verb: str, after: str = "") -> str:
    """Return words on what groups would do with so many records, the most first."""
    worst = sorted(counts, key=lambda name: (-counts[name], name))
    records = f"{count(sum(counts.values()), 'record')}{after}"
    if len(worst) == 1:
        return f"{worst[0]} would {verb} {records}"
    named = [f"{name} {counts[name]:,}" for name in worst[:NAMED]]
    more = [f"{len(worst) - NAMED:,} more"] if len(worst) > NAMED else []
    return f"{count(len(worst), 'group')} would {verb} {records} ({listed(named + more)})"


def _ask(flow: Flow) -> str:
    if flow.state is FlowState.JOINING or flow.reason not in ("", ELSEWHERE):
        return "this process does not work on the flow, and whether another one does isn't known here"
    return f"{flow.leader or 'another process'} works on this flow; ask there"


def _no(name: str, against: Iterable[str], well: str) -> Iterator[CutOverCheck]:
    """Yield a condition, or each obstacle."""
    lines = list(against)
    yield from (CutOverCheck(name, CheckMark.NOT, line) for line in lines)
    if not lines:
        yield CutOverCheck(name, CheckMark.OK, well)


def _of_records(flow: Flow) -> Iterator[CutOverCheck]:
    away = flow.state in (FlowState.UNREACHABLE, FlowState.WRONG_CLUSTER)
    yield from _no("Both clusters answer", [flow.reason or flow.state.value] if away else [], "yes")
    nothing = flow.state is FlowState.NOTHING
    topics = sum(bool(topic.partitions or topic.released or topic.waits) for topic in flow.topics)
    if nothing or topics:
        why = [f"nothing is copied: {flow.reason or 'no topic of the source matches'}"] if nothing else []
        yield from _no("Topics are copied", why, count(topics, "topic"))
    yield from _copied(flow)
    held_back = [
        f"{topic.topic}-{partition.partition}: {short(partition.reason)}"
        for topic, partition in flow.open_transactions[:1]
    ]
    yield from _no("No open transaction holds records back", held_back, "none")
    patterns = [
        f"nothing matches {pattern.words}"
        for pattern in flow.unmatched
        if pattern.hint and pattern.key != "topics.exclude" and not nothing
    ]
    yield from _no("Each pattern of topics and groups matches", patterns, "yes")
    parked = len(flow.parked)
    words = f"{count(parked, 'partition')} {'is' if parked == 1 else 'are'} parked"
    yield from _no("No partition is parked", [words] if parked else [], "none")
    paused = sum(partition.state is PartitionState.PAUSED for topic in flow.topics for partition in topic.partitions)
    words = f"{count(paused, 'partition')} {'is' if paused == 1 else 'are'} paused"
    yield from _no("No partition is paused", [words] if paused else [], "none")
    refused = [topic for topic in flow.topics if topic.refused]
    words = f"{count(len(refused), 'topic')} {cannot(refused)}"
    yield from _no("Every topic can be copied", [words] if refused else [], "yes")
    late = sum(topic.late for topic in flow.topics)
    words = f"writers that were said to have moved wrote {count(late, 'record')} at the source"
    yield from _no("Writers that moved stay away from the source", [words] if late else [], "0 late records")


def _copied(flow: Flow) -> Iterator[CutOverCheck]:
    name = "All records are copied"
    unknown = unknown_partitions(flow)
    if flow.lag:
        of = " for what can be copied" if are_stuck(flow) else ""
        until = f" (about {duration(flow.eta_s)} more{of})" if flow.eta_s is not None and _all_move(flow) else ""
        are = "is" if flow.lag == 1 else "are"
        yield CutOverCheck(name, CheckMark.NOT, f"{count(flow.lag, 'record')} {are} not copied{until}")
    if unknown or flow.lag is None:
        whose = f" of {count(unknown, 'partition')}" if unknown else ""
        yield CutOverCheck(name, CheckMark.UNKNOWN, f"the lag{whose} isn't known")
    elif not flow.lag:
        yield CutOverCheck(name, CheckMark.OK, "0 records are left")


def _of_losses(flow: Flow) -> Iterator[CutOverCheck]:
    open_losses = [
        f"{outcome.words(entries, offsets)}: {ACCEPTABLE}"
        for outcome, entries, offsets in totals(flow.losses)
        if outcome.differs
    ]
    known = acknowledged(flow.losses)
    well = f"{count(known, 'loss', 'losses')}, all acknowledged" if known else "none"
    yield from _no("No record is lost", open_losses, well)


def _of_groups(flow: Flow) -> Iterator[CutOverCheck]:
    groups = count(len(flow.groups), "group")
    stuck = sum(group.state is GroupState.NOT_SYNCED for group in flow.groups)
    yield from _no("Every group can move", [f"{count(stuck, 'group')} can't move"] if stuck else [], groups)
    movable = [group for group in flow.groups if group.state is not GroupState.NOT_SYNCED]
    beyond = [group.group for group in movable if is_beyond_end(group)]
    named = beyond if len(beyond) <= NAMED else [*beyond[:NAMED], f"{len(beyond) - NAMED:,} more"]
    words = f"{listed(named)} {'is' if len(beyond) == 1 else 'are'} beyond the end of the source's log"
    yield from _no("No group is beyond the source's end", [words] if beyond else [], "none")
    yield from _exact(movable)
    behind = sum(group.state is GroupState.CATCHING_UP for group in flow.groups)
    words = f"{count(behind, 'group')} {'has' if behind == 1 else 'have'} read what isn't copied yet"
    yield from _no("No group must wait for the copy", [words] if behind else [], "none")


def _all_move(flow: Flow) -> bool:
    """Tell whether each partition that can be copied moves.

    Else the flow's rate does not tell when it will have caught up: a parked partition that is tried again looks like
    any other for a moment.
    """
    return all(
        partition.records_per_s > 0 or not partition.lag or partition.state in STUCK
        for topic in flow.topics
        for partition in topic.partitions
    )


def _exact(groups: Sequence[Group]) -> Iterator[CutOverCheck]:
    """Yield whether groups would continue at the exact record, as far as known."""
    name = "Each group would continue at the exact record"
    against = []
    if skipping := {group.group: group.skipped for group in groups if group.skipped}:
        against.append(_would(skipping, "skip"))
    if rereading := {group.group: group.reread for group in groups if group.reread}:
        against.append(_would(rereading, "read", " again"))
    vague = sum(
        group.state is GroupState.SYNCED
        and not is_beyond_end(group)
        and (group.skipped is None or group.reread is None or not group.partitions)
        for group in groups
    )
    yield from (CutOverCheck(name, CheckMark.NOT, words) for words in against)
    if vague:
        yield CutOverCheck(
            name, CheckMark.UNKNOWN, f"what {count(vague, 'group')} would skip or read again isn't known"
        )
    elif not against:
        yield CutOverCheck(name, CheckMark.OK, "0 records would be skipped, 0 read again")


def _of_figures(flow: Flow, now_ms: int) -> Iterator[CutOverCheck]:
    missing = []
    if is_old(flow, now_ms):
        missing.append(f"the figures are older than {duration(OLD_S)}")
    if not any(topic.partitions or topic.released for topic in flow.topics):
        missing.append("no topic that is copied is known")
    name = "These figures are of now"
    yield from (CutOverCheck(name, CheckMark.UNKNOWN, words) for words in missing)
    if not missing:
        yield CutOverCheck(name, CheckMark.OK, f"{duration(max(now_ms - flow.at_ms, 0) / 1000)} old")
