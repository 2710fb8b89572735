"""The offsets that Kafka Connect keeps for MirrorMaker 2's source tasks (`mm2.md` 2.2).

One record a source partition: the key names connector, cluster, partition and topic, the value the last upstream
offset that was copied. Both are JSON as Connect's `JsonConverter` writes it, and Connect finds keys by their bytes, so
that the order of the fields counts. Connectors can have any name (Strimzi's are called
`source->target.MirrorSourceConnector`): a key is known by the shape of what follows the name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from kafka.partitioner import murmur2

DEDICATED_CONNECTOR = "MirrorSourceConnector"
"""What the dedicated driver calls it (`mm2.md` 3.10)."""

STRIMZIS_TOPIC = "mirrormaker2-cluster-offsets"
"""Where a Connect worker of Strimzi's keeps them, if its resource says nothing else."""

_EXAMPLES = ("connect-offsets", STRIMZIS_TOPIC)
_NO_OFFSET = (1 << 63) - 1
"""One more than the last record can have."""


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """A partition as a source connector of this name knows it."""

    connector: str
    cluster: str
    """The source's alias."""
    topic: str
    partition: int

    def key(self) -> bytes:
        where = {"cluster": self.cluster, "partition": self.partition, "topic": self.topic}
        return _json([self.connector, where])


def read_key(key: bytes | None) -> SourcePartition | None:
    """The partition; None for what is another connector's."""
    match _parsed(key):
        case [str(connector), {"cluster": str(cluster), "partition": int(partition), "topic": str(topic), **more}]:
            if not more and not isinstance(partition, bool):
                return SourcePartition(connector, cluster, topic, partition)
    return None


def offset_value(last_copied: int) -> bytes:
    """What says that the record of this upstream offset was the last."""
    return _json({"offset": last_copied})


def read_value(value: bytes | None) -> int | None:
    """The upstream offset of the last record copied; None where the entry was deleted, or says nothing."""
    match _parsed(value):
        case {"offset": int(offset)} if not isinstance(offset, bool) and 0 <= offset < _NO_OFFSET:
            return offset
    return None


def offsets_topics(source_alias: str, configured: str = "") -> tuple[str, ...]:
    """Where Connect may keep them, on the target; first where the dedicated driver does.

    `configured` is `offset.storage.topic`; without it those of Connect's and Strimzi's examples are looked at too.
    """
    return (configured,) if configured else (f"mm2-offsets.{source_alias}.internal", *_EXAMPLES)


def strimzis_connector(source_alias: str, target_alias: str) -> str:
    """What Strimzi calls a source connector; nobody can give it another name."""
    return f"{source_alias}->{target_alias}.{DEDICATED_CONNECTOR}"


def java_partition(key: bytes, partitions: int) -> int:
    """To which partition Java's producer sends a record with this key."""
    return int(murmur2(key) & 0x7FFFFFFF) % partitions


def _json(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _parsed(content: bytes | None) -> object:
    try:
        return None if content is None else json.loads(content)
    except (ValueError, RecursionError):
        return None
