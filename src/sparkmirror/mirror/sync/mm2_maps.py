"""MirrorMaker 2's maps, for what it copied before the takeover.

They are made of MirrorMaker 2's own offset syncs.
"""

from __future__ import annotations

from collections import defaultdict

from sparkmirror.config import FlowConfig
from sparkmirror.exact.mm2.record_formats import OffsetSync
from sparkmirror.exact.mm2.stored_syncs import read_syncs, syncs_topic
from sparkmirror.exact.mm2.synced_map import Mm2OffsetMap, SyncedOffset
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.policy import ReplicationPolicy


class Mm2Maps:
    """Maps made of MirrorMaker 2's offset syncs, read at the first question.

    For one thread. The caller closes the clients.
    """

    def __init__(
        self, flow: FlowConfig, policy: ReplicationPolicy, source: ClusterClient, target: ClusterClient
    ) -> None:
        topic = syncs_topic(flow, policy)
        self._client, self._topic = source if topic.at_source else target, topic.name
        self._syncs: dict[TopicPartition, list[OffsetSync]] | None = None
        self._maps: dict[tuple[TopicPartition, int], Mm2OffsetMap] = {}

    @property
    def is_read(self) -> bool:
        """True once the syncs were read: then `downstream` asks no cluster."""
        return self._syncs is not None

    def downstream(self, partition: TopicPartition, upstream: int, begins: int) -> SyncedOffset | None:
        """Translate a group's offset in a source partition; `None` if unknown.

        `begins` is the target offset at which sparkmirror's own copy began. Raises `ConnectionError`.
        """
        if self._syncs is None:
            self._syncs = self._read()
        if (partition, begins) not in self._maps:
            self._maps[partition, begins] = Mm2OffsetMap(self._syncs.get(partition, ()), begins)
        return self._maps[partition, begins].downstream(upstream)

    def _read(self) -> dict[TopicPartition, list[OffsetSync]]:
        syncs: dict[TopicPartition, list[OffsetSync]] = defaultdict(list)
        for sync in read_syncs(self._client, self._topic):
            syncs[sync.topic, sync.partition].append(sync)
        return syncs
