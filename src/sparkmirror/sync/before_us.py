"""Where groups stand in what MirrorMaker 2 copied before we took over, each time: by its own offset syncs."""

from __future__ import annotations

from collections import defaultdict

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.config import FlowConfig
from sparkmirror.mm2.records import OffsetSync
from sparkmirror.mm2.stored_syncs import read_syncs, syncs_place
from sparkmirror.mm2.synced_map import AdoptedMap, SyncedOffset
from sparkmirror.policy import ReplicationPolicy
from sparkmirror.wire.topic_partition import TopicPartition


class BeforeUs:
    """Reads the offset syncs once, when they are first asked for. For one thread; the clients are the caller's."""

    def __init__(
        self, flow: FlowConfig, policy: ReplicationPolicy, source: ClusterClient, target: ClusterClient
    ) -> None:
        place = syncs_place(flow, policy)
        self._client, self._topic = source if place.at_source else target, place.topic
        self._syncs: dict[TopicPartition, list[OffsetSync]] | None = None
        self._maps: dict[tuple[TopicPartition, int], AdoptedMap] = {}

    def downstream(self, where: TopicPartition, upstream: int, begins: int) -> SyncedOffset | None:
        """Where a group of a source partition goes on, if we began at the target's offset `begins`; None: unknown.

        Raises `ConnectionError`.
        """
        if self._syncs is None:
            self._syncs = self._read()
        if (where, begins) not in self._maps:
            self._maps[where, begins] = AdoptedMap(self._syncs.get(where, ()), begins)
        return self._maps[where, begins].downstream(upstream)

    def _read(self) -> dict[TopicPartition, list[OffsetSync]]:
        found: dict[TopicPartition, list[OffsetSync]] = defaultdict(list)
        for sync in read_syncs(self._client, self._topic):
            found[sync.topic, sync.partition].append(sync)
        return found
