"""What is known for good of somebody else's records in target partitions, and of our fences, by the loss ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from sparkmirror.durable.losses import Loss, LossLedger, standing_notes
from sparkmirror.position.foreign import ForeignRecords
from sparkmirror.position.loss_detection import not_ours, stretch_of
from sparkmirror.position.route import PartitionPair
from sparkmirror.wire.topic_partition import TopicPartition


class ForeignNotes:
    """For these target partitions of one flow, by where they are; what others note meanwhile is not seen."""

    def __init__(
        self,
        ledger: LossLedger,
        routes: Mapping[TopicPartition, PartitionPair],
        topic_ids: Mapping[str, bytes],
        moved: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`moved`: whether a source topic's writers have moved to its copy."""
        self._ledger = ledger
        self._routes = routes
        self._topic_ids = topic_ids
        self._moved = moved

    def note(self, where: TopicPartition, stretch: ForeignRecords) -> None:
        """Make a stretch known, before claims are written behind it: nobody looks for it again then."""
        route = self._routes[where]
        moved = self._moved(route.source_topic)
        self._ledger.record(not_ours(route, self._topic_ids[where[0]], stretch, moved=moved))

    def known(self, where: TopicPartition) -> list[ForeignRecords]:
        """All stretches of the partition that were ever noted, but for what the target has lost since."""
        return list(self._noted[self._topic_ids[where[0]].hex(), where[1]])

    @cached_property
    def _noted(self) -> Mapping[tuple[str, int], Sequence[ForeignRecords]]:
        """By target topic id and partition."""
        losses: dict[tuple[str, int], list[Loss]] = defaultdict(list)
        for loss in self._ledger.read():
            losses[loss.target_topic_id, loss.partition].append(loss)
        noted = {where: [stretch_of(note) for note in standing_notes(some)] for where, some in losses.items()}
        return defaultdict(list, noted)
