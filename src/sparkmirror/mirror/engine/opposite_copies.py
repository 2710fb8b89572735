"""Records behind a done topic's end that the opposite flow has copied: not late.

After a migration's way back the stopped flow's source grows again, by the opposite flow's copies. The opposite flow's
claims, at this flow's source, tell them from late records.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.exact.maps.map_keeper import MapKeeper
from sparkmirror.exact.maps.partition_map import NOTHING_YET, PartitionMap
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.topic_partition import TopicPartition

log = logging.getLogger(__name__)


class OppositeCopies:
    """Late offsets at one flow's source, without the opposite flow's copies.

    For one thread.
    """

    def __init__(self, flow: FlowConfig) -> None:
        self._name = flow.name
        self._client = ClusterClient(flow.source, f"{flow.name}|sparkmirror-opposite-copies")
        self._maps = MapKeeper(self._client, flow.target.alias)
        self._late: dict[TopicPartition, int] = {}

    def late(self, copied_to: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return how many offsets behind a done partition's end are late.

        `copied_to` has the ends of partitions whose logs are longer. Partitions into which the opposite flow copied
        nothing are left out: there all offsets are late. Of partitions that can't be told now the last answer counts, 0
        without one.
        """
        try:
            maps = self._maps.refresh(dict.fromkeys(copied_to)) if copied_to else {}
        except (ConnectionError, SparkMirrorError) as error:
            log.debug("flow %s: the opposite flow's copies are not known: %s", self._name, error)
            return {partition: self._late.get(partition, 0) for partition in copied_to}
        late: dict[TopicPartition, int] = {}
        for partition, answer in maps.items() if self._maps.has_flow else ():
            if answer is NOTHING_YET:
                continue
            count = answer.foreign_from(copied_to[partition]) if isinstance(answer, PartitionMap) else None
            late[partition] = self._late.get(partition, 0) if count is None else count
        self._late = late
        return late

    def close(self) -> None:
        self._maps.close()
        self._client.close()
