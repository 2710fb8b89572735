"""When MirrorMaker 2 writes an offset sync (`mm2.md` 3.5): a decision a record, and two queues.

A sync that is due is *pending*. The others are *delayed*: they are promoted from time to time, so that a topic that
has gone quiet is known to its last record. The newest of a partition replaces those before it.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.mm2.records import OffsetSync
from sparkmirror.wire.topic_partition import TopicPartition


class SyncState:
    """One source partition: whether the record that was just copied makes a sync due."""

    __slots__ = ("_downstream", "_most_lag", "_synced_downstream", "_upstream")

    def __init__(self, most_lag: int) -> None:
        self._most_lag = most_lag
        self._upstream = self._downstream = self._synced_downstream = -1

    def update(self, upstream: int, downstream: int) -> bool:
        """One record was copied; whether its offsets must be told now.

        That is so for the first one, if the last sync is `offset.lag.max` records back, after a gap or a step back
        upstream, and after a step back downstream. Nobody says so again: it is taken for done.
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
        """As `update`, where only the newest of many records is told.

        If both offsets grew by as much, those in between had no gap.
        """
        if upstream - self._upstream == downstream - self._downstream > 0:
            self._upstream = upstream - 1
        return self.update(upstream, downstream)


class SyncQueues:
    """The newest sync of each partition that was not written yet, pending or delayed."""

    def __init__(self, most_lag: int) -> None:
        self._most_lag = most_lag
        self._states: dict[TopicPartition, SyncState] = {}
        self._newest: dict[TopicPartition, tuple[int, int]] = {}
        self._pending: dict[TopicPartition, OffsetSync] = {}
        self._delayed: dict[TopicPartition, OffsetSync] = {}

    def note(self, topic: str, partition: int, upstream: int, downstream: int) -> None:
        """The newest record copied; nothing happens if it was told before."""
        where = (topic, partition)
        if self._newest.get(where) == (upstream, downstream):
            return
        self._newest[where] = upstream, downstream
        state = self._states.get(where)
        if state is None:
            state = self._states[where] = SyncState(self._most_lag)
        sync = OffsetSync(topic, partition, upstream, downstream)
        if state.advance(upstream, downstream):
            self._delayed.pop(where, None)
            self._pending[where] = sync
        else:
            self._delayed[where] = sync

    def promote(self) -> None:
        """What is delayed is pending now."""
        self._pending |= self._delayed
        self._delayed.clear()

    def take(self) -> list[OffsetSync]:
        """What is pending, the oldest first; it is the caller's now."""
        taken = list(self._pending.values())
        self._pending.clear()
        return taken

    def put_back(self, syncs: Iterable[OffsetSync]) -> None:
        """They could not be written. Newer ones go instead."""
        self._pending = {(sync.topic, sync.partition): sync for sync in syncs} | self._pending
