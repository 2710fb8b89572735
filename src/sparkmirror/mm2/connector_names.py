"""Under which names a flow's partitions are in Connect's offsets topics: what a real worker looks for when it is back.

Connect's keys say the connector and the source, not the target. A connector that copies the same source to another
cluster must not be told that it has copied what went here: it would skip that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.config import FlowConfig
from sparkmirror.mm2.connect_offsets import (
    DEDICATED_CONNECTOR,
    STRIMZIS_TOPIC,
    offsets_topics,
    strimzis_connector,
)
from sparkmirror.mm2.stored_offsets import read_stored_offsets
from sparkmirror.wire.topic_partition import TopicPartition


class ConnectorName(NamedTuple):
    """What a connector is called, in the offsets topic of its worker."""

    offsets_topic: str
    connector: str


@dataclass(frozen=True, slots=True)
class ConnectorNames:
    """Those of one flow's source connector."""

    always: frozenset[ConnectorName]
    """For every partition, those too that are new."""
    found: Mapping[TopicPartition, frozenset[ConnectorName]]
    """For what was stored under them, beside these."""
    guessed: frozenset[str]
    """Topics in which nothing of this flow was found."""

    def of(self, where: TopicPartition) -> frozenset[ConnectorName]:
        """A source partition's."""
        return self.always | self.found.get(where, frozenset())

    def without(self, topic: str) -> ConnectorNames:
        """Where an offsets topic is not written to any more."""
        found = {where: _elsewhere(names, topic) for where, names in self.found.items()}
        return ConnectorNames(_elsewhere(self.always, topic), found, self.guessed)


def find_names(client: ClusterClient, flow: FlowConfig, *, is_new: bool) -> ConnectorNames:
    """As the target's topics say now; `is_new`: the flow's own offsets topic was just made, and holds nothing.

    Raises `ConnectionError`s.
    """
    topics = offsets_topics(flow.source.alias, flow.connect.offset_storage_topic)
    own = ConnectorName(topics[0], flow.connect.connector)
    before = topics[1:] if is_new else topics
    stored = read_stored_offsets(client, before, flow.mm2_source)
    found = {
        where: frozenset(
            ConnectorName(one.offsets_topic, one.of.connector) for one in some if _may_be(flow, one.of.connector)
        )
        for where, some in stored.items()
    }
    others = frozenset[ConnectorName]().union(*found.values()) - {own}
    strimzis = strimzis_connector(flow.source.alias, flow.target.alias)
    known = {name for name in others if name.connector in (DEDICATED_CONNECTOR, strimzis)}
    if len(others) == 1:  # of two it can't be told which one is this flow's
        known |= others
    guessed = frozenset[ConnectorName]() if others else _guessed(client, flow, before)
    return ConnectorNames(
        frozenset({own} | known | guessed),
        found,
        frozenset(name.offsets_topic for name in guessed) - {own.offsets_topic},
    )


def _may_be(flow: FlowConfig, connector: str) -> bool:
    """Whether a name that was found can be this flow's."""
    if connector in (flow.connect.connector, DEDICATED_CONNECTOR):
        return True
    if connector.startswith(f"{flow.source.alias}->") and connector.endswith(f".{DEDICATED_CONNECTOR}"):
        return connector == strimzis_connector(flow.source.alias, flow.target.alias)
    return flow.connect.connector == DEDICATED_CONNECTOR  # else a connector's file says what it is called


def _guessed(client: ClusterClient, flow: FlowConfig, topics: Collection[str]) -> frozenset[ConnectorName]:
    """Where a worker has its topic, though the connector has stored nothing yet, and its name can be told."""
    there = [topic.name for topic in client.metadata(topics).values() if not topic.error] if topics else []
    strimzis = strimzis_connector(flow.source.alias, flow.target.alias)
    is_named = flow.connect.connector != DEDICATED_CONNECTOR
    names = set()
    for topic in there:
        if is_named:
            names.add(ConnectorName(topic, flow.connect.connector))
        elif topic in (STRIMZIS_TOPIC, flow.connect.offset_storage_topic):
            names.add(ConnectorName(topic, strimzis))
    return frozenset(names)


def _elsewhere(names: Collection[ConnectorName], topic: str) -> frozenset[ConnectorName]:
    return frozenset(name for name in names if name.offsets_topic != topic)
