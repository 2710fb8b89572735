"""Questions about mirrored clusters, for applications: `docs/client.md`.

The same questions as Kafka's `MirrorClient` and `RemoteClusterUtils`, on topics that either has written.
"""

from sparkmirror.client.mirror_client import MirrorClient
from sparkmirror.client.offsets import GroupOffsets, OffsetAndMetadata, TopicPartition
from sparkmirror.client.remote_cluster import (
    checkpoint_topics,
    heartbeat_topics,
    replication_hops,
    translate_offsets,
    upstream_clusters,
)

__all__ = [
    "GroupOffsets",
    "MirrorClient",
    "OffsetAndMetadata",
    "TopicPartition",
    "checkpoint_topics",
    "heartbeat_topics",
    "replication_hops",
    "translate_offsets",
    "upstream_clusters",
]
