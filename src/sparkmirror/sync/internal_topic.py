"""A topic of MirrorMaker 2's own that we write to: compacted, one partition, created when it is first needed."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.cluster.admin import ClusterAdmin
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterUnreachable

PARTITION = 0
"""MirrorMaker 2 writes all records of a kind to this one (`mm2.md` section 2)."""

_NOT_THERE, _NOT_AUTHORIZED = 3, 29


class InternalTopic:
    """`name` on `cluster`; `role` goes into the client's id, `factor_key` is the setting of `replication_factor`.

    `otherwise` is what else one can do where we may not write to it.
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
        self._timeout_s = timeout_s
        self._otherwise = otherwise
        self._client = ClusterClient(cluster, role)
        self._log = TopicLog(self._client, name)
        self._there = False

    def create(self) -> None:
        """Create it, unless it is known to be there; raises `ClusterUnreachable`, and may be called again then.

        Where we may not create topics it is taken to be there (`mm2.md` 2.1).
        """
        if self._there:
            return
        if self._client.metadata([self.name])[self.name].error == _NOT_THERE:
            with ClusterAdmin.connect(self._cluster, self._role, self._timeout_s) as admin:
                admin.create_compacted_topic(self.name, 1, self._replication_factor, factor_key=self._factor_key)
        self._there = True

    def append(self, entries: Sequence[tuple[bytes, bytes | None]], *, timestamp_ms: int | None = None) -> None:
        """Write records with acks=all, creating the topic first if need be.

        Raises `ConnectionError` and `ClusterUnreachable`; some or all may be written then.
        """
        self.create()
        try:
            self._log.append(PARTITION, entries, timestamp_ms=timestamp_ms)
        except LogUnavailable as error:
            self._there = error.code != _NOT_THERE
            if error.code == _NOT_AUTHORIZED:
                raise ClusterUnreachable(
                    f"cluster {self._cluster.alias}: our principal may not write to topic {self.name}: "
                    f"grant it CREATE and WRITE on it{self._otherwise}"
                ) from error
            raise

    def close(self) -> None:
        """Hang up."""
        self._client.close()
