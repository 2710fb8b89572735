"""Notes on foreign records and fences, in the loss ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from sparkmirror.exact.durable.losses import Loss, LossLedger, standing_notes
from sparkmirror.exact.position.foreign import ForeignRecords
from sparkmirror.exact.position.loss_detection import Writers, not_ours, stretch_of
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.wire.topic_partition import TopicPartition


class ForeignNotes:
    """Notes for some target partitions of one flow.

    The ledger is read once, at first use: notes that another process writes later are not seen.
    """

    def __init__(
        self,
        ledger: LossLedger,
        routes: Mapping[TopicPartition, PartitionPair],
        topic_ids: Mapping[str, bytes],
        writers: Callable[[str], Writers] = lambda _: Writers.UNSAID,
    ) -> None:
        """Take the pairs by target partition, and the target topics' ids.

        `writers` tells where a source topic's own writers write.
        """
        self._ledger = ledger
        self._routes = routes
        self._topic_ids = topic_ids
        self._writers = writers

    def note(self, partition: TopicPartition, stretch: ForeignRecords) -> None:
        """Note a stretch in the ledger.

        Call `note` before claims are written behind the stretch: no process searches for the stretch again afterwards.
        """
        route = self._routes[partition]
        writers = self._writers(route.source_topic)
        self._ledger.record(not_ours(route, self._topic_ids[partition[0]], stretch, writers))

    def known(self, partition: TopicPartition) -> list[ForeignRecords]:
        """Return all noted stretches in a partition, without the target's later losses."""
        return list(self._noted[self._topic_ids[partition[0]].hex(), partition[1]])

    @cached_property
    def _noted(self) -> Mapping[tuple[str, int], Sequence[ForeignRecords]]:
        """Noted stretches, by target topic id and partition."""
        losses: dict[tuple[str, int], list[Loss]] = defaultdict(list)
        for loss in self._ledger.read():
            losses[loss.target_topic_id, loss.partition].append(loss)
        noted = {
            partition: [stretch_of(note) for note in standing_notes(entries)] for partition, entries in losses.items()
        }
        return defaultdict(list, noted)
