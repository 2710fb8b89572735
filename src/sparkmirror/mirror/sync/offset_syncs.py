"""The duty of MirrorMaker 2's offset syncs, read by its connectors and by tools.

Readers translate offsets by the syncs (`mm2.md` 3.5). Each sync is true: the record with the upstream offset has the
downstream offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from sparkmirror.clock import now_s
from sparkmirror.config import FlowConfig
from sparkmirror.exact.mm2.offset_sync_queues import SyncQueues
from sparkmirror.exact.mm2.stored_syncs import syncs_topic
from sparkmirror.mirror.sync.internal_topic import InternalTopic
from sparkmirror.policy import ReplicationPolicy


class CopiedTo(NamedTuple):
    """A source partition's last copied record, on both sides; -1 if unknown."""

    topic: str
    partition: int
    upstream: int
    downstream: int


class OffsetSyncEmitter:
    """The offset sync duty, about once a second.

    `copied` gives each partition's newest copied record; unchanged ones are passed over. While `mark` returns equal
    values other than None, `copied` would give the same again, and is not asked. MirrorMaker 2 looks at each record,
    and this duty only at each turn's last record: no sync is written for the records between.
    """

    def __init__(
        self,
        flow: FlowConfig,
        policy: ReplicationPolicy,
        copied: Callable[[], Iterable[CopiedTo]],
        mark: Callable[[], object] = lambda: None,
    ) -> None:
        topic = syncs_topic(flow, policy)
        self._copied = copied
        self._mark = mark
        self._noted: object = None
        """Mark of the last records taken in."""
        self._queues = SyncQueues(flow.offset_sync.offset_lag_max)
        self._promote_every_s = flow.connect.offset_flush_interval_ms / 1000
        self._promote_at = now_s() + self._promote_every_s
        self._topic = InternalTopic(
            flow.source if topic.at_source else flow.target,
            topic.name,
            f"{flow.name}|sparkmirror-offset-syncs",
            replication_factor=flow.offset_sync.offset_syncs_topic_replication_factor,
            factor_key="offset-syncs.topic.replication.factor",
            timeout_s=flow.admin_timeout_ms / 1000,
            otherwise=", or write offset-syncs.topic.location = target" if topic.at_source else "",
        )

    def run(self) -> None:
        """Write the syncs that are due.

        Raises `ConnectionError` and `ClusterUnreachable`; then the next turn writes them.
        """
        self._note()
        if now_s() >= self._promote_at:
            self._promote_at = now_s() + self._promote_every_s
            self._queues.promote()
        self._write()

    def finish(self) -> None:
        """Do the last turn: write all known syncs, like MirrorMaker 2 at an orderly end.

        Raises the same errors as `run`.
        """
        self._note()
        self._queues.promote()
        self._write()

    def close(self) -> None:
        self._topic.close()

    def _note(self) -> None:
        mark = self._mark()  # first: what comes in between is taken in again
        if mark is not None and mark == self._noted:
            return
        self._noted = mark
        for topic, partition, upstream, downstream in self._copied():
            if upstream >= 0 and downstream >= 0:
                self._queues.note(topic, partition, upstream, downstream)

    def _write(self) -> None:
        self._topic.create()
        syncs = self._queues.take()
        if not syncs:
            return
        try:
            self._topic.append([(sync.key(), sync.value()) for sync in syncs])
        except BaseException:
            self._queues.put_back(syncs)
            raise
