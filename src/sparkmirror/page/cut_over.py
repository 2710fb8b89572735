"""Forecast of a cut-over now: for a flow, and for each of its consumer groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.engine.loss_counts import acknowledged, totals
from sparkmirror.engine.snapshot import Flow, FlowState, Group, PartitionState, Role
from sparkmirror.page.sentences import OLD_S, STUCK, are_stuck, is_old, short, unknown_partitions
from sparkmirror.page.words import cannot, count, duration, listed
from sparkmirror.sync.group_standing import GroupState

ACCEPTABLE = "if that is acceptable, say so (sparkmirror losses ack)"
NAMED = 3
"""Groups that a sentence names; further groups are counted."""
WRITERS = "The page can't see whether the source's writers have stopped: stop them, then look again."


class CutOverVerdict(StrEnum):
    """Answer to the question of a cut-over now."""

    READY = "ready"
    NOT_YET = "not yet"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class CutOver:
    """Verdict on a cut-over now, with the obstacles and the missing figures."""

    verdict: CutOverVerdict
    words: str
    reasons: tuple[str, ...] = ()


def cut_over(flow: Flow, now_ms: int) -> CutOver:
    """Return a flow's verdict; `ready` needs every figure to be known."""
    against, unknown = list(_against(flow)), list(_unknown(flow, now_ms))
    if against:
        return CutOver(CutOverVerdict.NOT_YET, f"Not yet: {against[0]}.", (*against, *unknown))
    if unknown:
        return CutOver(CutOverVerdict.UNKNOWN, f"Not known: {unknown[0]}.", tuple(unknown))
    known = acknowledged(flow.losses)
    but = f" but for {count(known, 'acknowledged loss', 'acknowledged losses')}" if known else ""
    return CutOver(CutOverVerdict.READY, f"Ready: everything is copied{but}. {_exactly(flow)} {WRITERS}")


def if_moved(group: Group) -> str:
    """Return, in words, how a group's consumers would go on at the target now."""
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
    return "goes on at the exact record"


def is_beyond_end(group: Group) -> bool:
    """Tell whether a group's offset lies past the end of the source's log."""
    return group.state is GroupState.BEYOND_END or any(place.beyond_end for place in group.partitions)


def _exactly(flow: Flow) -> str:
    if not flow.groups:
        return "No consumer group is translated" + (f": {flow.no_group}." if flow.no_group else ".")
    return f"{count(len(flow.groups), 'group')} would go on at the exact record."


def _would(counts: Mapping[str, int], verb: str, after: str = "") -> str:
    """Return words on what groups would do with so many records, the most first."""
    worst = sorted(counts, key=lambda name: (-counts[name], name))
    records = f"{count(sum(counts.values()), 'record')}{after}"
    if len(worst) == 1:
        return f"{worst[0]} would {verb} {records}"
    named = [f"{name} {counts[name]:,}" for name in worst[:NAMED]]
    more = [f"{len(worst) - NAMED:,} more"] if len(worst) > NAMED else []
    return f"{count(len(worst), 'group')} would {verb} {records} ({listed(named + more)})"


def _against(flow: Flow) -> Iterator[str]:
    if flow.role is not Role.LEADER:
        return
    yield from _not_copied(flow)
    if parked := len(flow.parked):
        yield f"{count(parked, 'partition')} {'is' if parked == 1 else 'are'} parked"
    if paused := sum(
        partition.state is PartitionState.PAUSED for topic in flow.topics for partition in topic.partitions
    ):
        yield f"{count(paused, 'partition')} {'is' if paused == 1 else 'are'} paused"
    if refused := [topic for topic in flow.topics if topic.refused]:
        yield f"{count(len(refused), 'topic')} {cannot(refused)}"
    if late := sum(topic.late for topic in flow.topics):
        yield f"writers that were said to have moved wrote {count(late, 'record')} at the source"
    for outcome, entries, offsets in totals(flow.losses):
        if outcome.differs:
            yield f"{outcome.words(entries, offsets)}: {ACCEPTABLE}"
    if stuck := sum(group.state is GroupState.NOT_SYNCED for group in flow.groups):
        yield f"{count(stuck, 'group')} can't move"
    movable = [group for group in flow.groups if group.state is not GroupState.NOT_SYNCED]
    if beyond := [group.group for group in movable if is_beyond_end(group)]:
        named = beyond if len(beyond) <= NAMED else [*beyond[:NAMED], f"{len(beyond) - NAMED:,} more"]
        yield f"{listed(named)} {'is' if len(beyond) == 1 else 'are'} beyond the end of the source's log"
    if skipping := {group.group: group.skipped for group in movable if group.skipped}:
        yield _would(skipping, "skip")
    if rereading := {group.group: group.reread for group in movable if group.reread}:
        yield _would(rereading, "read", " again")
    if behind := sum(group.state is GroupState.CATCHING_UP for group in flow.groups):
        yield f"{count(behind, 'group')} {'has' if behind == 1 else 'have'} read what isn't copied yet"


def _not_copied(flow: Flow) -> Iterator[str]:
    if flow.state in (FlowState.UNREACHABLE, FlowState.WRONG_CLUSTER):
        yield flow.reason or flow.state.value
    if flow.state is FlowState.NOTHING:
        yield f"nothing is copied: {flow.reason or 'no topic of the source matches'}"
    if flow.lag:
        of = " for what can be copied" if are_stuck(flow) else ""
        until = f" (about {duration(flow.eta_s)} more{of})" if flow.eta_s is not None and _all_move(flow) else ""
        yield f"{count(flow.lag, 'record')} {'is' if flow.lag == 1 else 'are'} not copied{until}"
    if transactions := flow.open_transactions:
        topic, partition = transactions[0]
        yield f"{topic.topic}-{partition.partition}: {short(partition.reason)}"
    for pattern in flow.unmatched if flow.state is not FlowState.NOTHING else ():
        if pattern.hint and pattern.key != "topics.exclude":
            yield f"nothing matches {pattern.words}"


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


def _unknown(flow: Flow, now_ms: int) -> Iterator[str]:
    if flow.role is not Role.LEADER:
        yield f"{flow.leader or 'another process'} works on this flow; ask there"
        return
    if is_old(flow, now_ms):
        yield f"the figures are older than {duration(OLD_S)}"
    if unknown := unknown_partitions(flow):
        yield f"the lag of {count(unknown, 'partition')} isn't known"
    elif flow.lag is None:
        yield "the lag isn't known"
    if not any(topic.partitions or topic.released for topic in flow.topics):
        yield "no topic that is copied is known"
    vague = sum(
        group.state is GroupState.SYNCED
        and not is_beyond_end(group)
        and (group.skipped is None or group.reread is None or not group.partitions)
        for group in flow.groups
    )
    if vague:
        yield f"what {count(vague, 'group')} would skip or read again isn't known"
