"""A cluster's clock, read without writing anything.

The active controller tells for each replica of the metadata log when it last caught up (KIP-836); for the controller
itself this time is its present time.
"""

from __future__ import annotations

import time

from kafka.protocol.admin import DescribeQuorumRequest

from sparkmirror.kafka.cluster.client import ClusterClient

METADATA_TOPIC = "__cluster_metadata"


def clock_skew_s(client: ClusterClient) -> float | None:
    """Return how far the controller's clock is ahead of this machine's, in seconds.

    Accurate to half the round-trip time. None if the clock can't be read: before KRaft, and without DESCRIBE on the
    cluster.
    """
    try:
        client.ask_any(_request)  # a first call, so that the measured one has an open connection
        before = time.time()
        answer = client.ask_any(_request)
        after = time.time()
    except ConnectionError:
        return None
    if answer.error_code or not answer.topics:
        return None
    partition = answer.topics[0].partitions[0]
    for replica in partition.current_voters:
        if replica.replica_id == partition.leader_id and replica.last_caught_up_timestamp > 0:
            return float(replica.last_caught_up_timestamp / 1000 - (before + after) / 2)
    return None


def _request() -> DescribeQuorumRequest:
    topic = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(
        topics=[topic(topic_name=METADATA_TOPIC, partitions=[topic.PartitionData(partition_index=0)])]
    )
