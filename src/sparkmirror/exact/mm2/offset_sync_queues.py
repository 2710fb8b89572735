"""Rule by which MirrorMaker 2 writes an offset sync (`mm2.md` 3.5).

MirrorMaker 2 decides at each record, and has two queues. A due sync is *pending*. All further syncs are *delayed*: they
are promoted from time to time, so that readers know a quiet topic to its last record. A partition's newest sync
replaces earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.exact.mm2.record_formats import OffsetSync
from sparkmirror.kafka.wire.topic_partition import TopicPartition


class SyncState:
    """One source partition's state: tells whether a copied record makes a sync due."""

    __slots__ = ("_downstream", "_most_lag", "_synced_downstream", "_upstream")

    def __init__(self, most_lag: int) -> None:
        self._most_lag = most_lag
        self._upstream = self._downstream = self._synced_downstream = -1

    def update(self, upstream: int, downstream: int) -> bool:
        """Take in one copied record; return True if a sync of its offsets is due.

        A sync is due for the first record, if the last sync is `offset.lag.max` records back, after a gap or a step
        back upstream, and after a step back downstream. A due sync counts as written: the caller gives no confirmation.
        """
        due = (
            self._synced_downstream == -1
            or downstream - (self._synced_downstream + 1) >= self._most_lag
            or upstream - self._upstream != 1
            or downstream < self._downstream
        )
        self._upstream, self._downstream = upstream, downstream
        if due:
            self._synced_downstream = downstream
        return due

    def advance(self, upstream: int, downstream: int) -> bool:
        """Take in the newest of many copied records, as `update` does.

        If both offsets grew by the same number, the records in between had no gap.
        """
        if upstream - self._upstream == downstream - self._downstream > 0:
            self._upstream = upstream - 1
        return self.update(upstream, downstream)


class SyncQueues:
    """Each partition's newest unwritten sync, pending or delayed."""

    def __init__(self, most_lag: int) -> None:
        self._most_lag = most_lag
        self._states: dict[TopicPartition, SyncState] = {}
        self._newest: dict[TopicPartition, tuple[int, int]] = {}
        self._pending: dict[TopicPartition, OffsetSync] = {}
        self._delayed: dict[TopicPartition, OffsetSync] = {}

    def note(self, topic: str, partition: int, upstream: int, downstream: int) -> None:
        """Take in the newest copied record; a repeated one changes nothing."""
        topic_partition = (topic, partition)
        if self._newest.get(topic_partition) == (upstream, downstream):
            return
        self._newest[topic_partition] = upstream, downstream
        state = self._states.get(topic_partition)
        if state is None:
            state = self._states[topic_partition] = SyncState(self._most_lag)
        sync = OffsetSync(topic, partition, upstream, downstream)
        if state.advance(upstream, downstream):
            self._delayed.pop(topic_partition, None)
            self._pending[topic_partition] = sync
        else:
            self._delayed[topic_partition] = sync

    def promote(self) -> None:
        self._pending |= self._delayed
        self._delayed.clear()

    def take(self) -> list[OffsetSync]:
        """Return the pending syncs, oldest first, and remove them from the queue."""
        taken = list(self._pending.values())
        self._pending.clear()
        return taken

    def put_back(self, syncs: Iterable[OffsetSync]) -> None:
        """Take back syncs that could not be written; newer syncs replace them."""
        self._pending = {(sync.topic, sync.partition): sync for sync in syncs} | self._pending
