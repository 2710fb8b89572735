"""Detect losses from readings on both sides of a partition.

`look_for_losses` is a pure function: it names the losses, and the upstream offset at which the copy continues.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from sparkmirror.config import LossPolicy
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.durable.losses import Action, Loss, LossKind, halted_at_target, standing_notes
from sparkmirror.exact.position.decision import Position
from sparkmirror.exact.position.expired_entries import expired_entries
from sparkmirror.exact.position.foreign import ForeignRecords
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.leader_epochs import EpochEnd, EpochStart
from sparkmirror.kafka.wire.topic_ids import same_topic

TELL_US = "alter the connector's offset, or delete the target topic to have it copied again"
"""Remedy for a partition whose progress nothing tells any more."""


class Writers(Enum):
    """Place of a source topic's own writers, as operators have said it."""

    UNSAID = "not said"
    MOVED = "at the target"
    IN_TURNS = "where the topic is live"


class LedgerPosition(NamedTuple):
    """A loss's place at the target."""

    target_topic_id: bytes
    downstream: int


class Found(NamedTuple):
    """Losses, and the upstream offset to continue from.

    `resume_at` is None if no record was ever copied, or a loss at the target halts the partition.
    """

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
    writers: Writers = Writers.UNSAID,
    turn_is_over: bool = False,
) -> Found:
    """Return the losses between the last copied record and the source's log.

    - `target_end` is where the target's log ends.
    - `known` are the ledger's losses in the target partition, read before the log.
    - `appended` is the target offset after the last record that the target acknowledged to the flow; -1: not known.
    - `cut_at` is the source offset from which on the source's log is not the copied log (`cut_in`).
    - `passed` has an upstream and a downstream offset. When the copy ended at the downstream offset, no record was left
      at the source below the upstream offset: only markers may be between.
    - `writers` says where the topic's own writers write.
    - `turn_is_over`: the copy has come to the published end of the flow's turn. What others wrote last at the target is
      the next turn's.
    """
    cut = halted_at_target(known)
    if (halted := _cut_and_emptied(route, target_topic_id, position, cut, appended)) is not None:
        return Found((halted,), None)
    at = LedgerPosition(target_topic_id, position.downstream)
    losses = [
        target_truncated(route, target_topic_id, *gone)
        for gone in _lost_by_target(position, target_end, known, appended)
    ]
    # The copy continues, so the halting losses are healed.
    losses += [target_truncated(route, target_topic_id, loss.first, loss.end) for loss in cut]
    # The notes come last, so that the losses don't overrule the notes.
    losses += [
        not_ours(
            route, target_topic_id, stretch, Writers.MOVED if turn_is_over and stretch.end == target_end else writers
        )
        for stretch in foreign
    ]

    def expired(done: int, *, recreated: bool = False, cut_at: int | None = None) -> Iterable[Loss]:
        for first, end, apart in expired_entries(
            known, at.downstream, source_topic_id, done, source_start, recreated=recreated, cut_at=cut_at
        ):
            yield expired_loss(route, at, first, end, policy).model_copy(update={"apart": apart})

    resume_at = position.upstream
    if position.source_topic_id is not None and not same_topic(position.source_topic_id, source_topic_id):
        losses.append(recreated_loss(route, at, position.upstream or 0, policy))
        resume_at = source_start
        if source_start and policy.recreated != "halt":
            losses += expired(0, recreated=True)
    elif position.upstream is not None and cut_at is not None and cut_at < position.upstream:
        losses.append(truncated_loss(route, at, cut_at, position.upstream, policy))
        resume_at = max(cut_at, source_start)
        if cut_at < source_start and policy.truncated != "halt":
            losses += expired(cut_at, cut_at=cut_at)
    elif position.upstream is not None and position.upstream < source_start:
        done = _done_below(position, foreign, cut_at, passed, known)
        if done < source_start:
            losses += expired(done)
        resume_at = max(done, source_start)
    return Found(tuple(losses), resume_at)


def _done_below(
    position: Position,
    foreign: Sequence[ForeignRecords],
    cut_at: int | None,
    passed: tuple[int, int],
    known: Sequence[Loss],
) -> int:
    """Return the upstream offset below which no record is left to copy.

    The `passed` offset counts while the source's log is the log that was passed, and while the target's copy ends at
    the same offset. Later fences at the target are no records, and don't change the end.
    """
    upstream, downstream = passed
    end = position.downstream
    for stretch in sorted(foreign, reverse=True):
        if stretch.fence and stretch.end == end > downstream >= position.end:
            end = max(stretch.first, downstream)
    if position.upstream is None or downstream != end or _is_outdated(downstream, known):
        return position.upstream or 0
    return max(position.upstream, upstream if cut_at is None else min(upstream, cut_at))


def _is_outdated(downstream: int, known: Sequence[Loss]) -> bool:
    """Tell whether a copy may have ended at a target offset once before.

    The target lost records there, and another log's came in their place. Until the copy is longer, records that were
    passed over may be told as lost.
    """
    others = [loss.downstream for loss in known if loss.kind in (LossKind.RECREATED, LossKind.TRUNCATED)]
    cut = [loss for loss in known if loss.kind is LossKind.TARGET_TRUNCATED and loss.first < downstream <= loss.end]
    return any(loss.first <= other < downstream for loss in cut for other in others)


def cut_in(copied: Sequence[EpochStart], upstream: int, ask: Callable[[int], EpochEnd]) -> int | None:
    """Return the offset at which the source's log departs from the copied log.

    The copied log reaches up to `upstream`. Return None if the source's leader can't tell. `copied` are the copied
    records' leader epochs, in order; `ask` asks the leader where a leader epoch ends in its log. Two logs with the same
    epoch share the epoch's records up to the end in the shorter log. Without a common epoch so far, the copied log's
    next lower epoch is asked for (KIP-101).
    """
    shared, left = upstream, list(copied)
    while left:
        asked = left[-1].epoch
        answered = ask(asked)
        if answered.epoch < 0 or answered.end < 0:
            return None
        shared = min(shared, answered.end)
        while left and left[-1].epoch > answered.epoch:
            shared = min(shared, left.pop().start)
        if answered.epoch == asked or not left or left[-1].epoch == answered.epoch:
            break
    return shared


def _cut_and_emptied(
    route: PartitionPair, target_topic_id: bytes, position: Position, cut: Sequence[Loss], appended: int
) -> Loss | None:
    """Return the halting loss for a target log that was cut and emptied, or None.

    The log shows none of the flow's records and has lost acknowledged ones, so nobody knows who wrote its last offsets.
    The partition stays halted, however far a foreign producer writes, until the log or a claim says where to continue.
    `cut` are the known losses that halt the partition.
    """
    first = max(position.end, position.downstream)
    if not position.unseen or (not cut and appended <= first):
        return None
    if cut:
        return cut[-1]
    words = (
        f"{_lost_offsets(route, first, appended)}, and has deleted all records since: a foreign producer may have "
        f"written in their place, so nothing tells where to continue; {TELL_US}"
    )
    return _loss(
        LossKind.TARGET_TRUNCATED, route, LedgerPosition(target_topic_id, first), first, appended, "halted", words
    )


def stretch_of(note: Loss) -> ForeignRecords:
    return ForeignRecords(note.first, note.end, fence=note.kind is LossKind.FENCED)


def _lost_by_target(
    position: Position, target_end: int | None, known: Sequence[Loss], appended: int
) -> Iterable[tuple[int, int]]:
    """Yield the target offset ranges whose records the target lost.

    The flow's claims, or notes on foreign records and fences, tell the records that were there. The flow's records were
    lost from where its present records end, or from behind the noted stretches there; foreign producers may have filled
    the place since.
    """
    notes = [stretch_of(note) for note in standing_notes(known)]
    first, last = position.end if position.end >= 0 else position.downstream, max(position.lost_to, appended)
    if any(loss.kind is LossKind.TARGET_TRUNCATED and loss.first == first and loss.end >= last for loss in known):
        last = first  # the ledger has the loss, and the notes behind its beginning came later
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
    """Return the loss for records that the target acknowledged.

    The target acknowledged the records below `end`; later its log ended at `first` or before.
    """
    words = f"{_lost_offsets(route, first, end)}: the records copied there are copied again from the source"
    return _loss(LossKind.TARGET_TRUNCATED, route, LedgerPosition(target_topic_id, first), first, end, "healed", words)


def target_truncated_for_good(
    route: PartitionPair, target_topic_id: bytes, first: int, end: int, written: Collection[str] = ()
) -> Loss:
    """Return the halting loss for acknowledged records that a query had copied.

    Not every query's rows tell of which records they were made, so none is copied again in its place. `written` are all
    topics of a query that also writes to topics of other names: it only copies into all of them again.
    """
    words = f"{_lost_offsets(route, first, end)}: a query does not copy them again in their place; "
    if written:
        words += f"stop the flow, delete {', '.join(sorted(written))}, and start it to have all of them copied again"
    else:
        words += f"delete {route.target_topic} to have it copied again"
    return _loss(LossKind.TARGET_TRUNCATED, route, LedgerPosition(target_topic_id, first), first, end, "halted", words)


def _lost_offsets(route: PartitionPair, first: int, end: int) -> str:
    return (
        f"target {route.target_topic}-{route.partition} lost offsets {first} to {end - 1}, which it had acknowledged "
        "(an unclean leader election?)"
    )


def altered(route: PartitionPair, at: LedgerPosition, copied_to: int, upstream: int) -> Loss:
    """Return the entry for an altered offset.

    The copy had got to `copied_to`, and an operator has the copy continue at `upstream`.
    """
    if upstream == copied_to:
        words = f"an operator had the copy of source {route.source_topic}-{route.partition} continue at offset "
        words += f"{upstream}, where it had got to: no record is skipped, and none is copied again"
        return _loss(LossKind.ALTERED, route, at, upstream, upstream, "expected", words)
    first, end = min(copied_to, upstream), max(copied_to, upstream)
    words = f"the offset of source {route.source_topic}-{route.partition} was altered from {copied_to} to {upstream}: "
    words += (
        "the records between them are skipped" if upstream > copied_to else "the records between them are copied again"
    )
    action: Action = "continued" if upstream > copied_to else "restarted"
    return _loss(LossKind.ALTERED, route, at, first, end, action, words)


def turned(route: PartitionPair, at: LedgerPosition, copied_to: int, upstream: int) -> Loss:
    """Return the entry for a later turn of a migration, which is expected (M3).

    The flow had copied up to `copied_to`; its turn begins at `upstream`, after the opposite flow's copies.
    """
    words = (
        f"offsets {copied_to} to {upstream - 1} of source {route.source_topic}-{route.partition} came from the target "
        "in the turn before, so they are not copied; the next turn begins after them"
    )
    return _loss(LossKind.ALTERED, route, at, copied_to, upstream, "expected", words)


def not_ours(
    route: PartitionPair, target_topic_id: bytes, stretch: ForeignRecords, writers: Writers = Writers.UNSAID
) -> Loss:
    """Return the note on a stretch with foreign records or fence markers.

    Of topics that two flows take turns with, the records are a straggler's: the other side lacks them.
    """
    at = LedgerPosition(target_topic_id, stretch.first)
    if stretch.fence:
        words = (
            f"a takeover fenced its predecessor: {stretch.end - stretch.first} marker(s) from offset {stretch.first} "
            f"on of target {route.target_topic}-{route.partition}; no record was lost, offsets still translate exactly"
        )
        return _loss(LossKind.FENCED, route, at, stretch.first, stretch.end, "continued", words)
    words = (
        f"a foreign producer wrote offsets {stretch.first} to {stretch.end - 1} of target {route.target_topic}-"
        f"{route.partition}: they are stepped over, and offsets still translate exactly; "
    )
    if writers is Writers.MOVED:
        words += "the topic's writers have moved there"
        return _loss(LossKind.FOREIGN, route, at, stretch.first, stretch.end, "expected", words)
    if writers is Writers.IN_TURNS:
        words += (
            "the topic is not live there, so these records are there only: stop that producer, and write them again "
            "where the topic is live"
        )
        return _loss(LossKind.FOREIGN, route, at, stretch.first, stretch.end, "continued", words)
    words += (
        f"has the topic's producer moved there? Then say so: sparkmirror topics done FILE --topics "
        f"{re.escape(route.source_topic)}; else keep foreign producers away from it"
    )
    return _loss(LossKind.FOREIGN, route, at, stretch.first, stretch.end, "continued", words)


def shrunk_by_claim(route: PartitionPair, newest: Claim, target_end: int) -> Loss:
    """Return the loss for a partition that the source topic has no more.

    `newest` is the last claim on the copied records.
    """
    upstream = newest.next_upstream(newest.sequence + target_end - newest.downstream)
    return shrunk(route, LedgerPosition(newest.target_topic_id, target_end), upstream)


def shrunk(route: PartitionPair, at: LedgerPosition, upstream: int) -> Loss:
    """Return the loss for a partition that was copied up to source offset `upstream`."""
    words = (
        f"source topic {route.source_topic} was created again without partition {route.partition}, which was copied up "
        f"to offset {upstream}; whether records came after it is not known, and the copied records stay at the target"
    )
    return _loss(LossKind.SHRUNK, route, at, upstream, upstream, "halted", words)


def target_recreated(route: PartitionPair, target_topic_id: bytes, first: int, source_start: int | None) -> Loss:
    """Return the loss for a target topic that was created again.

    In the old target topic the copy began at source offset `first`. `source_start` is where the source's log starts
    now; None if the source topic is a new topic, too.
    """
    end = max(first, source_start or 0)
    action: Action = "restarted" if source_start is None else "healed"
    words = f"target topic {route.target_topic} was deleted and created again; partition {route.partition}: "
    if source_start is None:
        words += "the source topic is a new one, too, and is copied from its start; the records copied before are gone"
    elif end > first:
        words += f"copied again from the source, but for offsets {first} to {end - 1}, which it has no more"
    else:
        words += "copied again from the source, which still has all that was copied before"
    return _loss(LossKind.TARGET_RECREATED, route, LedgerPosition(target_topic_id, 0), first, end, action, words)


def truncated_loss(route: PartitionPair, at: LedgerPosition, first: int, end: int, policy: LossPolicy) -> Loss:
    halts = policy.truncated == "halt"
    words = (
        f"the log of source {route.source_topic}-{route.partition} was cut at offset {first} by an unclean leader "
        f"election, after offsets {first} to {end - 1} were copied: the target has records that the source disowns"
    )
    words += (
        "; set sparkmirror.on.truncated=continue to copy the source's present records there, after them"
        if halts
        else "; the source's present records there are copied after them"
    )
    return _loss(LossKind.TRUNCATED, route, at, first, end, "halted" if halts else "continued", words)


def expired_loss(
    route: PartitionPair, at: LedgerPosition, first: int, end: int, policy: LossPolicy, *, copied: int = 0
) -> Loss:
    """Return the loss for records that expired before they were copied.

    `copied` records before `first` had been copied, so `end - first` others are lost at the most.
    """
    halts = policy.expired == "halt"
    words = f"offsets {first} to {end - 1} of source {route.source_topic}-{route.partition} are gone: "
    if copied:
        words += (
            f"{copied} records of the micro-batch had been copied, and at most {end - first} more expired before they "
            "were"
        )
    else:
        words += "they expired before they were copied"
    words += "; set sparkmirror.on.expired=continue to step over them" if halts else "; the copy continues after them"
    return _loss(LossKind.EXPIRED, route, at, first, end, "halted" if halts else "continued", words)


def recreated_loss(route: PartitionPair, at: LedgerPosition, upstream: int, policy: LossPolicy) -> Loss:
    halts = policy.recreated == "halt"
    words = (
        f"source topic {route.source_topic} was deleted and created again; partition {route.partition} of the old one "
        f"was copied up to offset {upstream}, and whether records came after it is not known"
    )
    words += (
        "; set sparkmirror.on.recreated=restart to copy the new one after it"
        if halts
        else "; the new one is copied after it, from its start"
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
