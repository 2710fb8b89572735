"""Read which rights sparkmirror lacks on a partition's topics."""

from __future__ import annotations

from collections.abc import Callable

from sparkmirror.clock import now_s
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.acls import Acl
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.missing_rights import AT_SOURCE, AT_TARGET, missing_rights, topic_acls
from sparkmirror.kafka.cluster.permissions import topic_operations

KEPT_S = 30.0
"""Time for which an answer is kept.

Many of a topic's partitions are refused at once.
"""


class RightsReader:
    """Read missing rights, for one thread."""

    def __init__(self, source: ClusterClient, target: ClusterClient, clock: Callable[[], float] = now_s) -> None:
        self._sides = ((source, AT_SOURCE), (target, AT_TARGET))
        self._clock = clock
        self._read_at = 0.0
        self._acls: dict[ClusterClient, set[Acl]] = {}
        self._answers: dict[tuple[str, str], list[str]] = {}

    def of(self, pair: PartitionPair) -> list[str]:
        """Return a line for each topic on which rights are missing, with the commands.

        Raises `ConnectionError` or `SparkMirrorError`.
        """
        if self._clock() - self._read_at > KEPT_S:
            self._read_at = self._clock()
            self._acls.clear()
            self._answers.clear()
        topics = pair.source_topic, pair.target_topic
        if topics not in self._answers:
            self._answers[topics] = [
                line
                for topic, (client, needed) in zip(topics, self._sides, strict=True)
                if (line := self._line(client, topic, needed))
            ]
        return self._answers[topics]

    def _line(self, client: ClusterClient, topic: str, needed: frozenset[str]) -> str:
        allowed = topic_operations(client, [topic]).get(topic)
        lacking = missing_rights(client.config, topic, needed, allowed, lambda: self._topic_acls(client))
        return f"{lacking}: run {' and '.join(f'`{line}`' for line in lacking.commands)}" if lacking is not None else ""

    def _topic_acls(self, client: ClusterClient) -> set[Acl]:
        if client not in self._acls:
            self._acls[client] = topic_acls(client)
        return self._acls[client]
