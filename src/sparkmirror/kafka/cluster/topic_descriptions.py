"""Topics as a cluster's metadata describes them, with replicas."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.protocol.metadata import MetadataRequest

from sparkmirror.chunks import chunks
from sparkmirror.kafka.cluster.client import TOPICS_PER_REQUEST, ClusterClient
from sparkmirror.kafka.wire.topic_ids import NO_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """One partition, as described by the cluster's metadata."""

    partition: int
    leader: int
    """Node id; -1 while the partition has no leader."""
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """One topic, as described by the cluster's metadata."""

    name: str
    topic_id: bytes
    """Topic id, 16 bytes; all zero if the cluster has no topic ids."""
    partitions: tuple[PartitionDescription, ...]


def describe_topics(client: ClusterClient, names: Iterable[str] | None = None) -> dict[str, TopicDescription]:
    """Describe all topics, or the named ones; return the descriptions by name.

    Leaves out the brokers' internal topics, and missing and unreadable topics. Without `names` a single response brings
    all topics, as Kafka's protocol has it; named topics are asked for in chunks.
    """
    if names is None:
        return _described(client.ask_any(functools.partial(_request, None)))
    wanted = sorted(set(names))
    described: dict[str, TopicDescription] = {}
    for chunk in chunks(wanted, TOPICS_PER_REQUEST):
        described |= _described(client.ask_any(functools.partial(_request, chunk)))
    return described


def _request(names: Sequence[str] | None) -> Any:
    topics = None if names is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def _described(answer: Any) -> dict[str, TopicDescription]:
    return {
        topic.name: TopicDescription(
            topic.name,
            topic.topic_id.bytes if topic.topic_id else NO_ID,
            tuple(
                PartitionDescription(
                    partition=partition.partition_index,
                    leader=partition.leader_id,
                    leader_epoch=partition.leader_epoch,
                    replicas=tuple(partition.replica_nodes),
                    in_sync=tuple(partition.isr_nodes),
                )
                for partition in sorted(topic.partitions, key=_index)
            ),
        )
        for topic in answer.topics
        if topic.partitions and not topic.is_internal
    }


def _index(partition: Any) -> int:
    return int(partition.partition_index)
