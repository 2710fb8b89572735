"""Offsets kept by Kafka Connect for MirrorMaker 2's source tasks (`mm2.md` 2.2).

The offsets topic has one record for each source partition: the key names connector, cluster, partition and topic, the
value holds the last copied upstream offset. Key and value are JSON as written by Connect's `JsonConverter`. Connect
finds keys by their bytes, so the fields' order counts. Connectors can have any name (Strimzi's are called
`source->target.MirrorSourceConnector`): the shape of the fields after the name identifies a key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from kafka.partitioner import murmur2

DEDICATED_CONNECTOR = "MirrorSourceConnector"
"""Connector name in MirrorMaker 2's dedicated mode (`mm2.md` 3.10)."""

STRIMZIS_TOPIC = "mirrormaker2-cluster-offsets"
"""Default offsets topic that Strimzi's Connect workers use.

A resource can name a different topic.
"""

_EXAMPLES = ("connect-offsets", STRIMZIS_TOPIC)
_NO_OFFSET = (1 << 63) - 1
"""Largest possible record offset, plus one."""


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """Source partition as a source connector's offsets name it."""

    connector: str
    cluster: str
    """The source's alias."""
    topic: str
    partition: int

    def key(self) -> bytes:
        source_partition = {"cluster": self.cluster, "partition": self.partition, "topic": self.topic}
        return _json([self.connector, source_partition])


def read_key(key: bytes | None) -> SourcePartition | None:
    """Return a key's partition; `None` for other connectors' keys."""
    match _parsed(key):
        case [str(connector), {"cluster": str(cluster), "partition": int(partition), "topic": str(topic), **more}]:
            if not more and not isinstance(partition, bool):
                return SourcePartition(connector, cluster, topic, partition)
    return None


def offset_value(last_copied: int) -> bytes:
    """Return the value that stores the last copied record's upstream offset."""
    return _json({"offset": last_copied})


def read_value(value: bytes | None) -> int | None:
    """Return the last copied record's upstream offset.

    Return `None` if the entry was deleted, or holds no offset.
    """
    match _parsed(value):
        case {"offset": int(offset)} if not isinstance(offset, bool) and 0 <= offset < _NO_OFFSET:
            return offset
    return None


def offsets_topics(source_alias: str, configured: str = "") -> tuple[str, ...]:
    """Return the target's topics that may hold Connect's offsets, likeliest first.

    `configured` is `offset.storage.topic`. Without `configured`, the dedicated mode's topic comes first, then the
    topics in Connect's and Strimzi's examples.
    """
    return (configured,) if configured else (f"mm2-offsets.{source_alias}.internal", *_EXAMPLES)


def strimzis_connector(source_alias: str, target_alias: str) -> str:
    """Return a source connector's name under Strimzi, which can't be changed."""
    return f"{source_alias}->{target_alias}.{DEDICATED_CONNECTOR}"


def java_partition(key: bytes, partitions: int) -> int:
    """Return the partition that Java's producer chooses for a record with this key."""
    return int(murmur2(key) & 0x7FFFFFFF) % partitions


def _json(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _parsed(content: bytes | None) -> object:
    try:
        return None if content is None else json.loads(content)
    except (ValueError, RecursionError):
        return None
