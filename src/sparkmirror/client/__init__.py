"""Client library for applications of mirrored clusters (`docs/client.md`).

Offers the methods of Kafka's `MirrorClient` and `RemoteClusterUtils`, and reads the topics of MirrorMaker 2 and of
sparkmirror.
"""

from sparkmirror.client.mirror_client import MirrorClient
from sparkmirror.client.remote_cluster import (
    checkpoint_topics,
    heartbeat_topics,
    replication_hops,
    translate_offsets,
    upstream_clusters,
)
from sparkmirror.client.translated_offsets import GroupOffsets, OffsetAndMetadata, TopicPartition

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
