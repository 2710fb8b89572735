"""What brokers must speak, so that a flow can read from them or write to them: asked of each one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafka.protocol.admin import DescribeProducersRequest, IncrementalAlterConfigsRequest
from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.wire import fetch, produce
from sparkmirror.wire.rpc import UnsupportedBroker

Need = tuple[int, tuple[int, int], str]
"""A request's key, the versions we speak, and its name."""


def _kafka_pythons(kind: type) -> Need:
    return kind.API_KEY, (kind.min_version, kind.max_version), kind.name  # type: ignore[attr-defined]


AT_SOURCE: tuple[Need, ...] = (
    (fetch.API_KEY, fetch.VERSIONS, "Fetch"),
    _kafka_pythons(OffsetForLeaderEpochRequest),
)
"""Kafka 2.7."""

AT_TARGET: tuple[Need, ...] = (
    *AT_SOURCE,
    (produce.API_KEY, produce.VERSIONS, "Produce"),
    _kafka_pythons(DescribeProducersRequest),
    _kafka_pythons(IncrementalAlterConfigsRequest),
)
"""Kafka 2.8."""


def unspoken(client: ClusterClient, needs: Iterable[Need]) -> Iterator[str]:
    """Each broker that lacks something, and what. Raises `ConnectionError` where one can't be asked."""
    wanted = list(needs)
    for number in client.brokers:
        broker = client.broker(number)
        for key, versions, name in wanted:
            try:
                broker.version(key, versions, name)
            except UnsupportedBroker as error:
                yield f"broker {number}: {error}"
