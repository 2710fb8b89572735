"""The offsets of connectors where Kafka Connect keeps them: its own topic, its own keys (`mm2.md` 2.2).

A real MirrorMaker 2 finds there where we ended, and we what it has stored.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping

from sparkmirror.cluster.admin import ClusterAdmin
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.connect.model import Offset
from sparkmirror.formats.connect import ConnectorRole
from sparkmirror.mm2.connect_offsets import java_partition, offsets_topics
from sparkmirror.mm2.stored_offsets import stored_entries

_ORDER: Mapping[ConnectorRole, tuple[str, ...]] = {
    ConnectorRole.SOURCE: ("cluster", "partition", "topic"),
    ConnectorRole.CHECKPOINT: ("partition", "topic", "group"),
    ConnectorRole.HEARTBEAT: ("sourceClusterAlias", "targetClusterAlias"),
}
"""Keys are found by their bytes, so that the order counts."""

_CONNECT_TIMEOUT_S = 15.0
_UNKNOWN_TOPIC = 3


class OffsetStore:
    """Of one connector of a flow. A context manager; blocking; raises `ConnectionError`s and `ClusterUnreachable`."""

    def __init__(self, flow: FlowConfig, connector: str, role: ConnectorRole) -> None:
        self._flow = flow
        self._connector = connector
        self._role = role
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-offset-store")
        self._topic = offsets_topics(flow.source.alias, flow.connect.offset_storage_topic)[0]

    def __enter__(self) -> OffsetStore:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._client.close()

    def read(self) -> list[Offset]:
        """What is stored, in the order of its keys."""
        topic = self._client.metadata([self._topic])[self._topic]
        if topic.error == _UNKNOWN_TOPIC:
            return []
        found: dict[bytes, Offset] = {}
        for key, value, _ in stored_entries(self._client, topic):
            partition = self._partition(key)
            if key is None or partition is None:
                continue
            offset = _parsed(value)
            if isinstance(offset, dict):
                found[key] = partition, offset
            else:
                found.pop(key, None)
        return [found[key] for key in sorted(found)]

    def write(self, offsets: Iterable[Offset]) -> None:
        """Store these, or remove those that are None; the topic is created first if need be."""
        self._create()
        log = TopicLog(self._client, self._topic)
        records: dict[int, list[tuple[bytes, bytes | None]]] = defaultdict(list)
        for partition, offset in offsets:
            key = _json([self._connector, self._ordered(partition)])
            records[java_partition(key, log.partitions)].append((key, None if offset is None else _json(dict(offset))))
        for home, entries in records.items():
            log.append(home, entries)

    def _create(self) -> None:
        storage = self._flow.connect
        timeout_s = min(self._flow.admin_timeout_ms / 1000, _CONNECT_TIMEOUT_S)
        with ClusterAdmin.connect(self._flow.target, f"{self._flow.name}|offset-store", timeout_s) as admin:
            admin.create_compacted_topic(
                self._topic,
                storage.offset_storage_partitions,
                storage.offset_storage_replication_factor,
                factor_key="offset.storage.replication.factor",
            )

    def _ordered(self, partition: Mapping[str, object] | None) -> object:
        known = _ORDER[self._role]
        if partition is None or set(partition) != set(known):
            return partition
        return {key: partition[key] for key in known}

    def _partition(self, key: bytes | None) -> dict[str, object] | None:
        match _parsed(key):
            case [str(connector), dict(partition)] if connector == self._connector:
                return partition
        return None


def _json(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _parsed(content: bytes | None) -> object:
    try:
        return None if content is None else json.loads(content)
    except ValueError:
        return None
