"""Connectors' offsets in Kafka Connect's own topic and format (`mm2.md` 2.2).

So a real MirrorMaker 2 continues behind sparkmirror's offsets, and sparkmirror reads MirrorMaker 2's offsets.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping

from sparkmirror.config import FlowConfig
from sparkmirror.config.formats.connect_files import ConnectorRole
from sparkmirror.connect.connector_model import Offset
from sparkmirror.exact.mm2.connect_offsets import java_partition, offsets_topics
from sparkmirror.exact.mm2.stored_offsets import stored_entries
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode

_ORDER: Mapping[ConnectorRole, tuple[str, ...]] = {
    ConnectorRole.SOURCE: ("cluster", "partition", "topic"),
    ConnectorRole.CHECKPOINT: ("partition", "topic", "group"),
    ConnectorRole.HEARTBEAT: ("sourceClusterAlias", "targetClusterAlias"),
}
"""The key order in a source partition.

Connect looks records up by their keys' bytes, so that the order counts.
"""

_CONNECT_TIMEOUT_S = 15.0
_READ_AGAIN_S = 5.0
_AGAIN_S = 0.1


class OffsetStore:
    """Stored offsets for one of a flow's connectors, as a context manager.

    Methods block, and raise `ConnectionError` and `ClusterUnreachable`.
    """

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
        """Return the stored offsets in the order of their keys.

        A partition may have no leader for a moment, or one that does not know yet, or no longer, that it leads: then
        the topic is read again for a few seconds.
        """
        until = time.monotonic() + _READ_AGAIN_S
        while True:
            try:
                return self._read()
            except ConnectionError:
                if time.monotonic() > until:
                    raise
                time.sleep(_AGAIN_S)

    def _read(self) -> list[Offset]:
        topic = self._client.metadata([self._topic])[self._topic]
        if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return []
        offsets: dict[bytes, Offset] = {}
        for key, value, _ in stored_entries(self._client, topic):
            partition = self._partition(key)
            if key is None or partition is None:
                continue
            offset = _parsed(value)
            if isinstance(offset, dict):
                offsets[key] = partition, offset
            else:
                offsets.pop(key, None)
        return [offsets[key] for key in sorted(offsets)]

    def write(self, offsets: Iterable[Offset]) -> None:
        """Store offsets, and remove the offsets given as None.

        A missing topic is created first.
        """
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
