"""The loss sentinel: what a partition's two sides show to be lost, and where the copy goes on (a pure function)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sparkmirror.cluster.leader_epochs import EpochEnd
from sparkmirror.config import LossPolicy
from sparkmirror.durable.claims import Segment
from sparkmirror.durable.losses import Action, Loss, LossKind, halted_at_target, standing_notes
from sparkmirror.position.decision import Position
from sparkmirror.position.foreign import ForeignRecords
from sparkmirror.position.route import PartitionPair
from sparkmirror.wire.topic_ids import same_topic

TELL_US = "alter the connector's offset, or delete the target topic to have it copied again"
"""What helps where nothing tells any more how far a partition was copied."""


class LedgerPosition(NamedTuple):
    """Where at the target a loss shows."""

    target_topic_id: bytes
    downstream: int


class Found(NamedTuple):
    """Losses, and the upstream offset to go on from; None: nothing was ever copied."""

    losses: tuple[Loss, ...]
    resume_at: int | None


def look_for_losses(
    route: PartitionPair,
    position: Position,
    foreign: Sequence[ForeignRecords],
    source_topic_id: bytes,
    source_start: int,
    policy: LossPolicy,
    *,
    target_topic_id: bytes,
    target_end: int | None = None,
    known: Sequence[Loss] = (),
    appended: int = -1,
    cut_at: int | None = None,
    passed: tuple[int, int] = (-1, -1),
    moved: bool = False,
) -> Found:
    """What was lost between what was copied last and what the source still has.

    `target_end`: of the target's log; `known`: what the ledger said of it before it was read. `appended`: where the
    last record ended that it had acknowledged to us; -1: not known. `cut_at`: from there on the
    source's log is not the one that was copied (`cut_in`). `passed`: when the copy ended at the second of these
    offsets nothing was left at the source below the first: only markers may be between. `moved`: the topic's writers
    have moved to the target.
    """
    cut = halted_at_target(known)
    if (halted := _cut_and_emptied(route, target_topic_id, position, cut, appended)) is not None:
        return Found((halted,), None)
    at = LedgerPosition(target_topic_id, position.downstream)
    losses = [
        target_truncated(route, target_topic_id, *gone)
        for gone in _lost_by_target(position, target_end, known, appended)
    ]
    losses += [target_truncated(route, target_topic_id, loss.first, loss.end) for loss in cut]  # it goes on
    losses += [not_ours(route, target_topic_id, stretch, moved=moved) for stretch in foreign]  # later, so it stands
    resume_at = position.upstream
    if position.source_topic_id is not None and not same_topic(position.source_topic_id, source_topic_id):
        losses.append(_recreated(route, at, position.upstream or 0, policy))
        resume_at = source_start
        if source_start and policy.recreated != "halt":
            losses.append(_expired(route, at, 0, source_start, policy))
    elif position.upstream is not None and cut_at is not None and cut_at < position.upstream:
        losses.append(_truncated(route, at, cut_at, position.upstream, policy))
        resume_at = max(cut_at, source_start)
    elif position.upstream is not None and position.upstream < source_start:
        done = _done_below(position, foreign, cut_at, passed)
        if done < source_start:
            losses.append(_expired(route, at, done, source_start, policy))
        resume_at = max(done, source_start)
    return Found(tuple(losses), resume_at)


def _done_below(
    position: Position, foreign: Sequence[ForeignRecords], cut_at: int | None, passed: tuple[int, int]
) -> int:
    """Up to where nothing was left: what was passed over counts while the log is the one in which it was.

    Fences that came since are nobody's records.
    """
    upstream, downstream = passed
    end = position.downstream
    for stretch in sorted(foreign, reverse=True):
        if stretch.fence and stretch.end == end > downstream >= position.end:
            end = max(stretch.first, downstream)
    if position.upstream is None or downstream != end:
        return position.upstream or 0
    return max(position.upstream, upstream if cut_at is None else min(upstream, cut_at))


def cut_in(copied: Sequence[Segment], upstream: int, ask: Callable[[int], EpochEnd]) -> int | None:
    """Where the source's log stopped being the one that was copied up to `upstream`; None: its leader can't tell.

    `copied` are the true claims, in order; `ask` asks the leader where an epoch ends in its log. Of an epoch that
    both logs have, they share what the shorter one has; below, the epoch before that is asked for (KIP-101).
    """
    shared, left = upstream, list(copied)
    while left:
        asked = left[-1].source_leader_epoch
        answered = ask(asked)
        if answered.epoch < 0 or answered.end < 0:
            return None
        shared = min(shared, answered.end)
        while left and left[-1].source_leader_epoch > answered.epoch:
            shared = min(shared, left.pop().upstream)
        if answered.epoch == asked or not left or left[-1].source_leader_epoch == answered.epoch:
            break
    return shared


def _cut_and_emptied(
    route: PartitionPair, target_topic_id: bytes, position: Position, cut: Sequence[Loss], appended: int
) -> Loss | None:
    """A log that shows nothing of ours and has lost what it had acknowledged: whose its last offsets were is not known.

    So it stays, however far somebody else writes, until the log or a claim says where to go on. `cut`: it stays so.
    """
    first = max(position.end, position.downstream)
    if not position.unseen or (not cut and appended <= first):
        return None
    if cut:
        return cut[-1]
    words = (
        f"target {route.target_topic}-{route.partition} lost offsets {first} to {appended - 1}, which it had "
        "acknowledged (an unclean leader election?), and has deleted all records since: somebody else may have written "
        f"in their place, so nothing tells where to go on; {TELL_US}"
    )
    return _loss(
        LossKind.TARGET_TRUNCATED, route, LedgerPosition(target_topic_id, first), first, appended, "halted", words
    )


def stretch_of(note: Loss) -> ForeignRecords:
    """Where something is that is not ours."""
    return ForeignRecords(note.first, note.end, fence=note.kind is LossKind.FENCED)


def _lost_by_target(
    position: Position, target_end: int | None, known: Sequence[Loss], appended: int
) -> Iterable[tuple[int, int]]:
    """Offsets of the target where something was, by our claims or by notes of what is not ours, and is no more.

    Ours was lost from where ours ends now, or behind what was noted there; somebody else may have filled its place.
    """
    notes = [stretch_of(note) for note in standing_notes(known)]
    first, last = position.end if position.end >= 0 else position.downstream, max(position.lost_to, appended)
    if any(loss.kind is LossKind.TARGET_TRUNCATED and loss.first == first and loss.end >= last for loss in known):
        last = first  # it was named before, and what was noted behind its beginning has come since
    for note in sorted(notes):
        if note.first <= first:
            first = max(first, note.end if target_end is None else min(note.end, target_end))
    gone = [(first, last)] if first < last else []
    for note in notes:
        if target_end is not None and note.end > target_end:
            gone.append((max(note.first, target_end), note.end))
        first, end = max(note.first, position.ours_from), min(note.end, position.end)
        if position.ours_from >= 0 and first < end:
            yield first, end
    if gone:
        yield min(first for first, _ in gone), max(end for _, end in gone)


def target_truncated(route: PartitionPair, target_topic_id: bytes, first: int, end: int) -> Loss:
    """The target acknowledged what was below `end`, and then its log ended at `first` or before."""
    words = (
        f"target {route.target_topic}-{route.partition} lost offsets {first} to {end - 1}, which it had acknowledged "
        "(an unclean leader election?): what we had copied there is copied again from the source"
    )
    return _loss(LossKind.TARGET_TRUNCATED, route, LedgerPosition(target_topic_id, first), first, end, "healed", words)


def altered(route: PartitionPair, at: LedgerPosition, copied_to: int, upstream: int) -> Loss:
    """An operator has the copy go on at `upstream`; it had got to `copied_to`."""
    first, end = min(copied_to, upstream), max(copied_to, upstream)
    words = f"the offset of source {route.source_topic}-{route.partition} was altered from {copied_to} to {upstream}: "
    words += "what is between them is skipped" if upstream > copied_to else "what is between them is copied again"
    action: Action = "continued" if upstream > copied_to else "restarted"
    return _loss(LossKind.ALTERED, route, at, first, end, action, words)


def not_ours(route: PartitionPair, target_topic_id: bytes, stretch: ForeignRecords, *, moved: bool = False) -> Loss:
    """Somebody else wrote a stretch of a target partition, or it holds the markers of a fence.

    `moved`: the operator has said that the topic's writers have moved to the target.
    """
    at = LedgerPosition(target_topic_id, stretch.first)
    if stretch.fence:
        words = (
            f"a takeover fenced its predecessor: {stretch.end - stretch.first} marker(s) from offset {stretch.first} "
            f"on of target {route.target_topic}-{route.partition}; no record was lost, offsets still translate exactly"
        )
        return _loss(LossKind.FENCED, route, at, stretch.first, stretch.end, "continued", words)
    words = (
        f"somebody else wrote offsets {stretch.first} to {stretch.end - 1} of target {route.target_topic}-"
        f"{route.partition}: they are stepped over, and offsets still translate exactly; "
    )
    if moved:
        words += "the topic's writers have moved there"
        return _loss(LossKind.FOREIGN, route, at, stretch.first, stretch.end, "expected", words)
    words += (
        f"has the topic's producer moved there? Then say so: sparkmirror topics done FILE --topics "
        f"{re.escape(route.source_topic)}; else let nobody else write to it"
    )
    return _loss(LossKind.FOREIGN, route, at, stretch.first, stretch.end, "continued", words)


def shrunk(route: PartitionPair, newest: Segment, target_end: int) -> Loss:
    """The source has no such partition any more; `newest` is the last claim on what was copied of it."""
    upstream = newest.next_upstream(newest.sequence + target_end - newest.downstream)
    words = (
        f"source topic {route.source_topic} was created again without partition {route.partition}, which was copied up "
        f"to offset {upstream}; what came after that is not known, and what was copied stays at the target"
    )
    at = LedgerPosition(newest.target_topic_id, target_end)
    return _loss(LossKind.SHRUNK, route, at, upstream, upstream, "halted", words)


def target_recreated(route: PartitionPair, target_topic_id: bytes, first: int, source_start: int | None) -> Loss:
    """The target topic is a new one; in the old one the copy began at source offset `first`.

    `source_start`: of the source's log now; None if the source topic is a new one, too.
    """
    end = max(first, source_start or 0)
    words = f"target topic {route.target_topic} was deleted and created again; partition {route.partition}: "
    if source_start is None:
        words += "the source topic is a new one, too, and is copied from its start; what was copied before is gone"
    elif end > first:
        words += f"copied again from the source, but for offsets {first} to {end - 1}, which it has no more"
    else:
        words += "copied again from the source, which still has all that was copied before"
    return _loss(LossKind.TARGET_RECREATED, route, LedgerPosition(target_topic_id, 0), first, end, "healed", words)


def _truncated(route: PartitionPair, at: LedgerPosition, first: int, end: int, policy: LossPolicy) -> Loss:
    halts = policy.truncated == "halt"
    words = (
        f"the log of source {route.source_topic}-{route.partition} was cut at offset {first} by an unclean leader "
        f"election, after offsets {first} to {end - 1} were copied: the target has records that the source disowns"
    )
    words += (
        "; set sparkmirror.on.truncated=continue to copy what the source has there now, behind them"
        if halts
        else "; what the source has there now is copied behind them"
    )
    return _loss(LossKind.TRUNCATED, route, at, first, end, "halted" if halts else "continued", words)


def _expired(route: PartitionPair, at: LedgerPosition, first: int, end: int, policy: LossPolicy) -> Loss:
    halts = policy.expired == "halt"
    words = (
        f"offsets {first} to {end - 1} of source {route.source_topic}-{route.partition} are gone: "
        "they expired before they were copied"
    )
    words += "; set sparkmirror.on.expired=continue to go on behind them" if halts else "; the copy goes on behind them"
    return _loss(LossKind.EXPIRED, route, at, first, end, "halted" if halts else "continued", words)


def _recreated(route: PartitionPair, at: LedgerPosition, upstream: int, policy: LossPolicy) -> Loss:
    halts = policy.recreated == "halt"
    words = (
        f"source topic {route.source_topic} was deleted and created again; partition {route.partition} of the old one "
        f"was copied up to offset {upstream}, and what came after that is not known"
    )
    words += (
        "; set sparkmirror.on.recreated=restart to copy the new one behind it"
        if halts
        else "; the new one is copied behind it, from its start"
    )
    return _loss(LossKind.RECREATED, route, at, upstream, upstream, "halted" if halts else "restarted", words)


def _loss(
    kind: LossKind, route: PartitionPair, at: LedgerPosition, first: int, end: int, action: Action, words: str
) -> Loss:
    return Loss(
        kind=kind,
        source_topic=route.source_topic,
        target_topic=route.target_topic,
        partition=route.partition,
        first=first,
        end=end,
        downstream=at.downstream,
        target_topic_id=at.target_topic_id.hex(),
        action=action,
        words=words,
        at_ms=time.time_ns() // 1_000_000,
    )
