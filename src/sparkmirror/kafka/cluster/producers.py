"""Producer ids, and DescribeProducers: each producer's last sequence at a leader.

Any replica answers DescribeProducers without an error, so the caller must ask the leader (`exactness.md`, reading the
position). The request needs READ on the topic.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka.protocol.admin import DescribeProducersRequest
from kafka.protocol.producer import InitProducerIdRequest

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.coordinators import PASSING
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.only_asked import only_asked
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition

_ID_TRIES, _ID_PAUSE_S = 50, 0.2


class ProducerEntry(NamedTuple):
    """One producer's state on one partition, as a broker holds it in memory."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    transaction_start: int = -1
    """First offset in the producer's open transaction there; -1 without one."""


class DescribedPartition(NamedTuple):
    """All producers on a partition, or Kafka's error code."""

    error: int
    producers: tuple[ProducerEntry, ...]


def describe_producers(
    client: ClusterClient, leader: int, partitions: Mapping[str, Sequence[int]]
) -> dict[TopicPartition, DescribedPartition]:
    """Ask `leader` which producers it knows on each partition."""
    request = DescribeProducersRequest(
        topics=[
            DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=list(indexes))
            for topic, indexes in partitions.items()
        ]
    )
    described = {
        (topic.name, part.partition_index): DescribedPartition(
            part.error_code,
            tuple(
                ProducerEntry(
                    producer_id=p.producer_id,
                    producer_epoch=p.producer_epoch,
                    last_sequence=p.last_sequence,
                    last_timestamp_ms=p.last_timestamp,
                    transaction_start=p.current_txn_start_offset,
                )
                for p in part.active_producers
            ),
        )
        for topic in client.ask(leader, request).topics
        for part in topic.partitions
    }
    asked = ((topic, index) for topic, indexes in partitions.items() for index in indexes)
    return only_asked(described, asked, "DescribeProducers")


def new_producer_id(client: ClusterClient) -> tuple[int, int]:
    """Get a new, unique producer id with its epoch.

    Retries while a fresh broker is not ready yet (R13). Raises `ClusterUnreachable`.
    """
    answer = None
    for _ in range(_ID_TRIES):
        answer = client.ask_any(
            lambda: InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
            )
        )
        if not answer.error_code:
            return answer.producer_id, answer.producer_epoch
        if answer.error_code not in PASSING:
            break
        time.sleep(_ID_PAUSE_S)
    code = answer.error_code if answer else ErrorCode.UNKNOWN_SERVER_ERROR
    raise ClusterUnreachable(
        f"cluster {client.config.alias} gives no producer id: {error_name(code)}; "
        "grant sparkmirror's principal IDEMPOTENT_WRITE on the cluster"
    )
