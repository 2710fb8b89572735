"""Connector names under which Connect's offsets topics have a flow's partitions.

A real worker looks for these names when it is back. Connect's keys name the connector and the source, but not the
target. A connector that copies the same source to a further cluster must not find this flow's offsets: the connector
would skip the records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.exact.mm2.connect_offsets import (
    DEDICATED_CONNECTOR,
    STRIMZIS_TOPIC,
    offsets_topics,
    strimzis_connector,
)
from sparkmirror.exact.mm2.stored_offsets import read_stored_offsets
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.topic_partition import TopicPartition


class ConnectorName(NamedTuple):
    """A connector's name, with its worker's offsets topic."""

    offsets_topic: str
    connector: str


@dataclass(frozen=True, slots=True)
class ConnectorNames:
    """Names of one flow's source connector."""

    always: frozenset[ConnectorName]
    """Names for every partition, including new partitions."""
    stored: Mapping[TopicPartition, frozenset[ConnectorName]]
    """Further names under which single partitions' offsets were stored."""
    guessed: frozenset[str]
    """Topics where names were guessed: no offset for this flow was found there."""

    def of(self, partition: TopicPartition) -> frozenset[ConnectorName]:
        return self.always | self.stored.get(partition, frozenset())

    def without(self, topic: str) -> ConnectorNames:
        """Return the names without those for an offsets topic to write to no longer."""
        stored = {partition: _elsewhere(names, topic) for partition, names in self.stored.items()}
        return ConnectorNames(_elsewhere(self.always, topic), stored, self.guessed)


def find_names(client: ClusterClient, flow: FlowConfig, *, is_new: bool) -> ConnectorNames:
    """Find the flow's connector names in the target's topics.

    `is_new` is True if the flow's own offsets topic was just created and is empty. Raises `ConnectionError`s.
    """
    topics = offsets_topics(flow.source.alias, flow.connect.offset_storage_topic)
    own = ConnectorName(topics[0], flow.connect.connector)
    before = topics[1:] if is_new else topics
    stored = read_stored_offsets(client, before, flow.mm2_source).by_partition
    names_of = {
        partition: frozenset(
            ConnectorName(entry.offsets_topic, entry.of.connector)
            for entry in entries
            if may_be(flow, entry.of.connector)
        )
        for partition, entries in stored.items()
    }
    others = frozenset[ConnectorName]().union(*names_of.values()) - {own}
    known = {name for name in others if is_configured(flow, name.connector)}
    if len(others) == 1:  # of two names, either may be this flow's
        known |= others
    guessed = frozenset[ConnectorName]() if others else _guessed(client, flow, before)
    return ConnectorNames(
        frozenset({own} | known | guessed),
        names_of,
        frozenset(name.offsets_topic for name in guessed) - {own.offsets_topic},
    )


def is_configured(flow: FlowConfig, connector: str) -> bool:
    """Tell whether a name follows from the configuration: it is this flow's.

    A connector's file or Strimzi's resource gives the only name. `MirrorSourceConnector` may be another flow's then.
    """
    if flow.connect.connector != DEDICATED_CONNECTOR:
        return connector == flow.connect.connector
    return connector in (DEDICATED_CONNECTOR, strimzis_connector(flow.source.alias, flow.target.alias))


def may_be(flow: FlowConfig, connector: str) -> bool:
    """Tell whether a name in an offsets topic can be this flow's."""
    if is_configured(flow, connector):
        return True
    if connector.startswith(f"{flow.source.alias}->") and connector.endswith(f".{DEDICATED_CONNECTOR}"):
        return False  # Strimzi's name for another target
    return flow.connect.connector == DEDICATED_CONNECTOR  # a connector's file gives the name otherwise


def _guessed(client: ClusterClient, flow: FlowConfig, topics: Collection[str]) -> frozenset[ConnectorName]:
    """Return names in existing offsets topics although no offset is stored yet.

    Only names known from the configuration are returned.
    """
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
