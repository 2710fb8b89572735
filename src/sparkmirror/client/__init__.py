"""Client library for applications of mirrored clusters (`docs/python.md`).

Offers the methods of Kafka's `MirrorClient` and `RemoteClusterUtils`, and reads MirrorMaker 2's topics and
sparkmirror's.
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
