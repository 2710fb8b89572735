"""What is known for good of somebody else's records in target partitions, and of our fences, by the loss ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from sparkmirror.offsets.foreign import ForeignRecords
from sparkmirror.offsets.losses import NOT_OURS, Loss, LossKind, LossLedger
from sparkmirror.offsets.route import Route
from sparkmirror.offsets.sentinel import not_ours
from sparkmirror.wire.topic_partition import TopicPartition


class ForeignNotes:
    """For these target partitions of one flow, by where they are; what others note meanwhile is not seen."""

    def __init__(
        self, ledger: LossLedger, routes: Mapping[TopicPartition, Route], topic_ids: Mapping[str, bytes]
    ) -> None:
        self._ledger = ledger
        self._routes = routes
        self._topic_ids = topic_ids

    def note(self, where: TopicPartition, stretch: ForeignRecords) -> None:
        """Make a stretch known, before claims are written behind it: nobody looks for it again then."""
        self._ledger.record(not_ours(self._routes[where], self._topic_ids[where[0]], stretch))

    def known(self, where: TopicPartition) -> list[ForeignRecords]:
        """All stretches of the partition that were ever noted."""
        ours = self._topic_ids[where[0]].hex(), where[1]
        return [
            ForeignRecords(loss.first, loss.end, fence=loss.kind is LossKind.FENCED)
            for loss in self._foreign
            if (loss.target_topic_id, loss.partition) == ours
        ]

    @cached_property
    def _foreign(self) -> Sequence[Loss]:
        return [loss for loss in self._ledger.read() if loss.kind in NOT_OURS]
