"""Where groups stand in what MirrorMaker 2 copied before we took over: by its own offset syncs."""

from __future__ import annotations

from collections import defaultdict

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.offsets.adopted import AdoptedMap, Translated
from sparkmirror.offsets.mirror_records import Malformed, OffsetSync
from sparkmirror.policy import ReplicationPolicy

TopicPartition = tuple[str, int]

_NOT_THERE = {3, 29}
"""UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED: there is nothing to be read."""


class BeforeUs:
    """Reads the offset syncs once, when they are first asked for. For one thread; the clients are the caller's."""

    def __init__(
        self, flow: FlowConfig, policy: ReplicationPolicy, source: ClusterClient, target: ClusterClient
    ) -> None:
        on_source = flow.offset_sync.offset_syncs_topic_location == "source"
        client, other = (source, flow.target.alias) if on_source else (target, flow.source.alias)
        self._log = TopicLog(client, policy.offset_syncs_topic(other))
        self._syncs: dict[TopicPartition, list[OffsetSync]] | None = None
        self._maps: dict[tuple[TopicPartition, int], AdoptedMap] = {}

    def downstream(self, where: TopicPartition, upstream: int, begins: int) -> Translated | None:
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
        try:
            entries, _ = self._log.read(0, 0)
        except LogUnavailable as error:
            if error.code not in _NOT_THERE:
                raise
            return found
        for _, key, value in entries:
            try:
                sync = OffsetSync.read(key, value)
            except Malformed:
                continue  # a tombstone
            found[sync.topic, sync.partition].append(sync)
        return found
