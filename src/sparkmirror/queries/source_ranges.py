"""Plan a query's next micro-batch: begins, ends, and records lost before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from sparkmirror.config import FlowConfig, LossPolicy
from sparkmirror.exact.durable.losses import Loss
from sparkmirror.exact.position.cause import Cause, cause_of_loss
from sparkmirror.exact.position.loss_detection import (
    LedgerPosition,
    expired_loss,
    recreated_loss,
    shrunk,
    target_recreated,
    truncated_loss,
)
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.epoch_history import epochs_in
from sparkmirror.kafka.cluster.leader_epochs import EpochStart
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.queries.plan_log import NOT_KNOWN, PlannedBatch, PlannedRange, TargetEnd
from sparkmirror.source.range_cuts import bounded

MOST_OFFSETS = 500_000
"""Most offsets in a micro-batch, in proportion to partitions' lags."""


class QueriedLog(NamedTuple):
    """A partition's log at the source, and its copy's end."""

    route: PartitionPair
    topic_id: str
    """The source topic's id, as hexadecimal digits."""
    start: int
    end: int
    until: int
    """Source offset at which the copy ends."""
    target_topic_id: bytes
    target_end: int
    """Largest end of the copy and of topics to which records go; -1: not known."""
    history: tuple[EpochStart, ...] = ()
    """Leader epochs of the records that may be planned, as far as known."""
    cut_at: int | None = None
    """Offset from which on the log is not the planned log any more; None: it is."""
    lost: Loss | None = None
    """Loss at the target that halts the partition."""
    ends_in: str = ""
    """The topic that has `target_end`; empty: the copy."""

    @property
    def target_id(self) -> str:
        return self.target_topic_id.hex()

    def is_of(self, planned: PlannedRange) -> bool:
        """Tell whether the log's topic may be the range's."""
        return planned.is_of(bytes.fromhex(self.topic_id))

    @property
    def at(self) -> LedgerPosition:
        return LedgerPosition(self.target_topic_id, self.target_end)

    def expired(self, first: int, end: int, policy: LossPolicy, *, copied: int = 0) -> Loss:
        """Return the loss of records that expired before they were copied.

        The target's end doesn't tell it from others: all records in between may have expired or been filtered out.
        """
        loss = expired_loss(self.route, self.at, first, end, policy, copied=copied)
        return loss.model_copy(update={"apart": f"{self.topic_id}:{first}"})


class Halt(NamedTuple):
    """Reason why a partition can't be copied."""

    cause: Cause
    reason: str


class NextRanges(NamedTuple):
    """The next micro-batch, with its losses, and partitions left out of it."""

    batch: PlannedBatch | None
    """Next micro-batch; None if there is nothing new."""
    losses: tuple[Loss, ...]
    halted: Mapping[TopicPartition, Halt]


def due_logs(
    before: PlannedBatch | None,
    logs: Mapping[TopicPartition, QueriedLog],
    wanted: Set[TopicPartition],
    flow: FlowConfig,
) -> list[QueriedLog]:
    """Return the logs to plan the micro-batch after `before` from.

    `wanted` are partitions that may be copied now. A first batch at the ends takes all logs: it reads nothing, and
    notes where the others begin later.
    """
    return [log for at, log in logs.items() if at in wanted or _is_at_ends(before, flow)]


def unknown_end(
    before: PlannedBatch | None,
    logs: Mapping[TopicPartition, QueriedLog],
    held_up: Mapping[TopicPartition, Halt],
    flow: FlowConfig,
) -> Halt | None:
    """Return why a first batch at the ends must wait; None: all ends are known.

    A partition that it left out would be taken for a new one, and copied from its start. `held_up` are those whose
    leaders don't tell.
    """
    silent = sorted(held_up.keys() - logs.keys()) if _is_at_ends(before, flow) else []
    if not silent:
        return None
    topic, partition = silent[0]
    words = f"{held_up[silent[0]].reason}, so where the query begins is not known"
    return Halt(Cause.NO_LEADER, f"{topic}-{partition}: {words}; it begins once all its partitions have leaders")


def next_ranges(
    before: PlannedBatch | None, logs: Iterable[QueriedLog], flow: FlowConfig, most: int = MOST_OFFSETS
) -> NextRanges:
    """Return the micro-batch after the batch `before`.

    In the first batch partitions begin as `auto.offset.reset` says, new ones later at the start of the log; either only
    if the target has no records yet. A halted partition keeps its place. A first batch at the ends also notes the
    partitions whose target has no leader.
    """
    from_latest = _is_at_ends(before, flow)
    known = {} if before is None else before.ranges
    begin: dict[TopicPartition, int] = {}
    end: dict[TopicPartition, int] = {}
    planned: dict[TopicPartition, QueriedLog] = {}
    losses: list[Loss] = []
    halted: dict[TopicPartition, Halt] = {}
    forgotten: set[TopicPartition] = set()
    logs = list(logs)
    # The query's own rows there would hide whether the copy was empty.
    unseen = {log.route.target_topic: log for log in logs if log.target_end < 0 and _is_noted(known, log)}
    for log in logs:
        at = log.route.source
        if log.route.target_topic in unseen:
            halted[at] = _unknown_begin(unseen[log.route.target_topic])
            continue
        if log.lost is not None:
            losses.append(log.lost)
            halted[at] = Halt(cause_of_loss(log.lost.kind), log.lost.words)
            continue
        continued = {log.target_id} if log.target_end else {log.target_id, NOT_KNOWN}
        if at in known and known[at].target_id in continued:
            gone, first = _losses(log, known[at], flow.loss)
        elif at in known and not log.target_end:
            gone, first = [target_recreated(log.route, log.target_topic_id, 0, log.start)], log.start
        elif log.target_end:
            halted[at] = _unknown_begin(log)
            if from_latest and log.target_end < 0:
                begin[at], end[at], planned[at] = log.end, log.end, log._replace(target_topic_id=b"")
            elif log.target_end > 0 and _is_noted(known, log):
                forgotten.add(at)
            continue
        else:
            gone, first = [], log.end if from_latest else log.start
        losses += gone
        halting = next((loss for loss in gone if loss.action == "halted"), None)
        if halting is not None:
            halted[at] = Halt(cause_of_loss(halting.kind), halting.words)
            continue
        begin[at], end[at], planned[at] = first, max(first, min(log.end, log.until)), log
    wanted = bounded(begin, end, most)
    passed = {at: each.passed for at, each in known.items()}
    ranges = {at: each for at, each in passed.items() if at not in forgotten}
    ranges |= {at: _planned(planned[at], begin[at], place, passed.get(at)) for at, place in wanted.items()}
    if ranges == passed:
        return NextRanges(None, tuple(losses), halted)
    return NextRanges(PlannedBatch(0 if before is None else before.number + 1, ranges), tuple(losses), halted)


def _is_at_ends(before: PlannedBatch | None, flow: FlowConfig) -> bool:
    return before is None and flow.fetch.auto_offset_reset == "latest"


def _is_noted(known: Mapping[TopicPartition, PlannedRange], log: QueriedLog) -> bool:
    """Tell whether only a begin is known, and nothing of the copy."""
    return log.route.source in known and known[log.route.source].target_id == NOT_KNOWN


def _planned(log: QueriedLog, begin: int, end: int, before: PlannedRange | None) -> PlannedRange:
    continues = before is not None and (log.topic_id, log.target_id) == (before.topic_id, before.target_id)
    if before is not None and continues and begin == end == before.end:
        return before
    first = begin - 1 if begin == end else begin
    epochs = epochs_in(log.history, first, end)
    return PlannedRange(begin=begin, end=end, topic_id=log.topic_id, target_id=log.target_id, epochs=epochs)


def shrunk_losses(
    before: PlannedBatch, former: Iterable[tuple[PartitionPair, bytes]], ends: Mapping[TopicPartition, TargetEnd]
) -> list[Loss]:
    """Return the losses of partitions that a topic created again has no more.

    `former` are partitions that only the copies have, with the source topics' ids; `ends` are those of the query's
    records at the target.
    """
    losses = []
    for route, topic_id in former:
        copied = before.ranges.get(route.source)
        if copied is not None and copied.target_id != NOT_KNOWN and not copied.is_of(topic_id):
            end = ends[route.target].log.end if route.target in ends else 0
            losses.append(shrunk(route, LedgerPosition(bytes.fromhex(copied.target_id), end), copied.end))
    return losses


def shortened(
    batch: PlannedBatch, logs: Mapping[TopicPartition, QueriedLog], policy: LossPolicy
) -> tuple[PlannedBatch, list[Loss]]:
    """Return a batch without the records that the source took back after the plan.

    Nothing more is written to a partition that lost records. The losses count if an earlier attempt has copied some of
    the records that are left out.
    """
    ranges = dict(batch.ranges)
    losses: list[Loss] = []
    halting = policy.model_copy(update={"truncated": "halt"})
    for at, planned in batch.ranges.items():
        log = logs.get(at)
        if log is None or not log.is_of(planned) or log.target_id != planned.target_id:
            continue
        if planned.begin == planned.end:
            continue
        if log.lost is not None:
            ranges[at] = planned.up_to(planned.begin)
            losses.append(log.lost)
        elif log.cut_at is not None and log.cut_at < planned.end:
            ranges[at] = planned.up_to(log.cut_at)
            losses.append(truncated_loss(log.route, log.at, ranges[at].end, planned.end, halting))
    return PlannedBatch(batch.number, ranges), losses


def present(
    batch: PlannedBatch, logs: Mapping[TopicPartition, QueriedLog], policy: LossPolicy
) -> tuple[dict[TopicPartition, tuple[int, int]], list[Loss]]:
    """Return the ranges of a batch that the source still has, and the losses.

    A topic that was created again has none; nor has a copy that was.
    """
    ranges: dict[TopicPartition, tuple[int, int]] = {}
    losses: list[Loss] = []
    for at, planned in batch.ranges.items():
        log = logs.get(at)
        if planned.begin == planned.end or log is None:
            continue
        if log.target_id != planned.target_id:
            continue  # all of it is copied again
        if not log.is_of(planned):
            losses.append(recreated_loss(log.route, log.at, planned.begin, policy))
            continue
        first = min(max(planned.begin, log.start), planned.end)
        if planned.begin < first:
            losses.append(log.expired(planned.begin, first, policy))
        if first < planned.end:
            ranges[at] = first, planned.end
    return ranges, losses


def _losses(log: QueriedLog, copied: PlannedRange, policy: LossPolicy) -> tuple[list[Loss], int]:
    """Return the losses since a range's end, and the next offset to copy."""
    first = copied.end
    if not log.is_of(copied):
        losses = [recreated_loss(log.route, log.at, first, policy)]
        if log.start and policy.recreated != "halt":
            losses.append(log.expired(0, log.start, policy))
        return losses, log.start
    if log.cut_at is not None and log.cut_at < first:
        losses = [truncated_loss(log.route, log.at, log.cut_at, first, policy)]
        if log.cut_at < log.start and policy.truncated != "halt":
            losses.append(log.expired(log.cut_at, log.start, policy))
        return losses, max(log.cut_at, log.start)
    if first < log.start:
        return [log.expired(first, log.start, policy)], log.start
    return [], first


def _unknown_begin(log: QueriedLog) -> Halt:
    topic, partition = log.route.target
    if log.target_end < 0:
        return Halt(Cause.NO_LEADER, f"{topic}-{partition} has no leader now, so its end is not known")
    written = log.ends_in or topic
    return Halt(
        Cause.TAKEOVER,
        f"{written}-{partition} ends at {log.target_end:,}, and no plan of this query knows up to which source offset "
        f"it was copied: delete {written} to have the query copy all, or take {log.route.source_topic} out of the "
        "query",
    )
