"""Records of a begun micro-batch that the source no longer has.

An earlier attempt may have copied some of the records: only the others are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sparkmirror.config import LossPolicy
from sparkmirror.exact.durable.claims import TargetPartition
from sparkmirror.exact.durable.losses import Loss, LossKind
from sparkmirror.exact.position.loss_detection import recreated_loss
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.queries.plan_log import PlannedBatch
from sparkmirror.queries.source_ranges import QueriedLog


class GoneRecords(NamedTuple):
    """Planned offsets [begin, end) of a partition that the source no longer has."""

    at: TopicPartition
    """The partition at the source."""
    target: TopicPartition
    begin: int
    end: int
    is_all: bool
    """True if the source has no record of the partition's range."""
    log: QueriedLog | None = None
    """The partition's log; None for a topic that is gone for good, without a loss."""
    is_expired: bool = False
    """False if the topic is another one now."""
    floor: int = 0
    """Target offset below which the micro-batch has no records."""

    @property
    def most(self) -> int:
        return self.end - self.begin

    @property
    def in_doubt(self) -> str:
        """Words for rows at the target that may come from these records."""
        topic, partition = self.at
        words = (
            f"offsets {self.begin} to {self.end - 1} of source {topic}-{partition} are gone, and nothing tells whether "
            "the target's rows are of these records"
        )
        return words if self.log is not None else f"{words}; the topic is gone for good, so save its copy first"

    def halts(self, policy: LossPolicy) -> bool:
        """True if the loss of all of them would halt the partition."""
        loss = self.loss(0, (), policy)
        return loss is not None and loss.action == "halted"

    def is_decided(self, copied: int) -> bool:
        """True if the number of copied records shows the loss.

        Else some may be records that the source still has.
        """
        return self.is_all or not 0 < copied < self.most

    def loss(self, copied: int, known: Iterable[Loss], policy: LossPolicy) -> Loss | None:
        """Return the loss, with the first offsets' `copied` records at the target.

        None if nothing is lost. `known` are the ledger's losses in the target partition: after an entry from a shorter
        copy, earlier attempts have copied records behind the entry's range.
        """
        if self.log is None:
            return None
        if not self.is_expired:
            upstream = min(self.begin + copied, self.end)
            return recreated_loss(self.log.route, self.log.at, upstream, policy)
        first, left = self.begin, copied
        told = [each for each in self._told(known) if each.downstream != self.log.at.downstream]
        for start, end in sorted((each.first, each.end) for each in told):
            if first <= start < end and first + left >= start:
                left -= start - first
                first = end
        first += left
        if first >= self.end:
            return None
        return self.log.expired(first, self.end, policy, copied=copied)

    def lost(self, known: Iterable[Loss]) -> int:
        """Return how many of the offsets `known` losses have: no attempt copied them."""
        reached, count = self.begin, 0
        for start, end in sorted((each.first, each.end) for each in self._told(known)):
            start, end = max(start, reached), min(end, self.end)
            count += max(end - start, 0)
            reached = max(reached, end)
        return count

    def _told(self, known: Iterable[Loss]) -> list[Loss]:
        """Return losses of this log's records.

        Before the log was cut, or at another topic of the name, others had the same offsets.
        """
        if self.log is None:
            return []
        own = [each for each in known if each.kind is LossKind.EXPIRED and each.downstream >= self.floor]
        return [each for each in own if each.apart == f"{self.log.topic_id}:{each.first}"]


def gone_records(
    batch: PlannedBatch,
    logs: Mapping[TopicPartition, QueriedLog],
    losses: Iterable[Loss],
    reached: Callable[[TargetPartition], int],
) -> list[GoneRecords]:
    """Return the records that the source lacks; `losses` are those of `present`.

    `reached` tells at which target offset earlier micro-batches ended.
    """
    gone: list[GoneRecords] = []
    for loss in losses:
        at = loss.source_topic, loss.partition
        log, planned = logs[at], batch.ranges[at]
        is_expired = loss.kind is LossKind.EXPIRED
        end = loss.end if is_expired else planned.end
        gone.append(
            GoneRecords(
                at=at,
                target=log.route.target,
                begin=planned.begin,
                end=end,
                is_all=end == planned.end,
                log=log,
                is_expired=is_expired,
                floor=reached((log.target_topic_id, at[1])),
            )
        )
    return gone
