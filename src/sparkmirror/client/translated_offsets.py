"""Groups' translated offsets, read from a cluster's checkpoints (`mm2.md` 3.11)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.events import Event
from sparkmirror.exact.mm2.record_formats import Checkpoint, Malformed
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode

log = logging.getLogger(__name__)

_PARTITION = 0


class TopicPartition(NamedTuple):
    """A partition, by this cluster's topic name; equal to kafka-python's class."""

    topic: str
    partition: int


class OffsetAndMetadata(NamedTuple):
    """A group's committed offset for a partition, with its metadata."""

    offset: int
    """Offset of the next record to consume."""
    metadata: str


GroupOffsets: TypeAlias = dict[TopicPartition, OffsetAndMetadata]


def read_checkpoints(cluster: ClusterConfig, topic: str, timeout_s: float) -> Iterator[Checkpoint]:
    """Yield all checkpoints of `topic`, the oldest first, to its present end.

    Skips records in another format. Ends with a warning once time is up. Raises `ClusterUnreachable`.
    """
    deadline = time.monotonic() + timeout_s
    client = ClusterClient(cluster, "mirror-client")
    try:
        checkpoints = TopicLog(client, topic)
        offset, end = 0, checkpoints.end(_PARTITION)
        while offset < end:
            if time.monotonic() >= deadline:
                log.warning(
                    "%s was read only up to offset %d of %d in %g s",
                    topic,
                    offset,
                    end,
                    timeout_s,
                    extra=Event.CHECKPOINTS_UNREADABLE.extra,
                )
                return
            entries, offset, _ = checkpoints.read_some(_PARTITION, offset)
            for entry in entries:
                try:
                    yield Checkpoint.read(entry.key, entry.value)
                except Malformed as error:
                    log.info(
                        "%s: the record at offset %d is no checkpoint: %s",
                        topic,
                        entry.offset,
                        error,
                        extra=Event.CHECKPOINTS_UNREADABLE.extra,
                    )
    except ConnectionError as error:
        raise ClusterUnreachable(_why(cluster, topic, error)) from error
    finally:
        client.close()


def _why(cluster: ClusterConfig, topic: str, error: ConnectionError) -> str:
    servers = ",".join(cluster.bootstrap_servers)
    if isinstance(error, LogUnavailable) and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return (
            f"there is no topic {topic} on the cluster at {servers}: no mirror into it writes checkpoints of that "
            "source, or its replication.policy is another one"
        )
    return f"the checkpoints of the cluster at {servers} can't be read: {error}"
