"""An internal topic in MirrorMaker 2's format, written by sparkmirror.

The topic is compacted, has one partition, and is created on first use.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode

_CONNECT_S = 15.0
"""Most seconds for an admin request."""

PARTITION = 0
"""Partition for all records of a kind in MirrorMaker 2 (`mm2.md` section 2)."""


class InternalTopic:
    """An internal topic on one cluster.

    `role` goes into the client's id. `factor_key` is the setting that gives `replication_factor`. `otherwise` is a
    further remedy for the error message where the principal may not write to the topic.
    """

    def __init__(
        self,
        cluster: ClusterConfig,
        name: str,
        role: str,
        *,
        replication_factor: int,
        factor_key: str,
        timeout_s: float,
        otherwise: str = "",
    ) -> None:
        self.name = name
        self._cluster = cluster
        self._role = role
        self._replication_factor = replication_factor
        self._factor_key = factor_key
        self._timeout_s = min(timeout_s, _CONNECT_S)
        self._otherwise = otherwise
        self._client = ClusterClient(cluster, role)
        self._log = TopicLog(self._client, name)
        self._there = False

    def create(self) -> None:
        """Create the topic, unless known to exist.

        Raises `ClusterUnreachable`; a later call tries again. If the principal may not create topics, the topic is
        assumed to exist (`mm2.md` 2.1).
        """
        if self._there:
            return
        if self._client.metadata([self.name])[self.name].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            with ClusterAdmin.connect(self._cluster, self._role, self._timeout_s) as admin:
                admin.create_compacted_topic(self.name, 1, self._replication_factor, factor_key=self._factor_key)
        self._there = True

    def append(self, entries: Sequence[tuple[bytes, bytes | None]], *, timestamp_ms: int | None = None) -> None:
        """Write records with acks=all, creating the topic first if need be.

        Raises `ConnectionError` and `ClusterUnreachable`; then some or all records may be written.
        """
        self.create()
        try:
            self._log.append(PARTITION, entries, timestamp_ms=timestamp_ms)
        except LogUnavailable as error:
            self._there = error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise ClusterUnreachable(
                    f"cluster {self._cluster.alias}: sparkmirror's principal may not write to topic {self.name}: "
                    f"grant it CREATE and WRITE on it{self._otherwise}"
                ) from error
            raise

    def close(self) -> None:
        self._client.close()
