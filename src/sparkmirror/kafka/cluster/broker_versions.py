"""Requests that each broker must know for a flow to read from it or write to it.

A broker tells which requests it knows, in which versions, but not its release. So messages name the oldest Apache Kafka
release that knows as much.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from kafka.protocol.admin import DescribeConfigsRequest, DescribeProducersRequest, IncrementalAlterConfigsRequest

from sparkmirror.errors import ClusterTooOld, ClusterTrouble
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire import fetch_format, produce
from sparkmirror.kafka.wire import fetch_session as fetch
from sparkmirror.kafka.wire.rpc import RpcConnection
from sparkmirror.kafka.wire.topic_ids import NO_ID

_Seen = TypeVar("_Seen")

OLDEST_SOURCE, OLDEST_TARGET = "1.0", "2.8"

_AT_SOURCE = ((fetch.API_KEY, fetch.VERSIONS[0]), (produce.API_KEY, produce.VERSIONS[0]))
_AT_TARGET = (
    (fetch.API_KEY, fetch_format.FLEXIBLE_FROM),
    (produce.API_KEY, produce.FLEXIBLE_FROM),
    (DescribeProducersRequest.API_KEY, 0),
    (IncrementalAlterConfigsRequest.API_KEY, 0),
)

_FETCH, _PRODUCE, _ALTER_CONFIGS, _QUOTAS, _CLUSTER, _TRANSACTIONS = 1, 0, 44, 49, 60, 65
_RELEASES = (
    (_FETCH, 2, "0.10"),
    (_FETCH, 4, "0.11"),
    (_FETCH, 6, "1.0"),
    (_FETCH, 7, "1.1"),
    (_FETCH, 8, "2.0"),
    (_FETCH, 10, "2.1"),
    (_ALTER_CONFIGS, 0, "2.3"),
    (_PRODUCE, 8, "2.4"),
    (_QUOTAS, 0, "2.6"),
    (_FETCH, 12, "2.7"),
    (_CLUSTER, 0, "2.8"),
    (_TRANSACTIONS, 0, "3.0"),
    (_FETCH, 13, "3.1"),
    (_FETCH, 15, "3.5"),
    (_FETCH, 16, "3.7"),
    (_FETCH, 17, "3.9"),
    (_FETCH, 18, "4.1"),
)
"""Requests and versions first known by each Apache Kafka release.

By the message definitions in Kafka's sources.
"""

STATE_LIFETIME_KEYS = ("producer.id.expiration.ms", "transactional.id.expiration.ms")
"""Broker settings that say how long producer state lives.

The second counts in brokers that don't know the first.
"""
PROTOCOL_VERSION_KEY = "inter.broker.protocol.version"
_VERSION = re.compile(r"(\d+)\.(\d+)")
_BROKER = 4
SAMPLE = 20
"""Number of a source's topics that are checked for a topic id."""
LONGEST_S = 5.0
"""Longest time to ask a cluster's brokers.

The pumps find out about the rest: a flow's start must not wait for all brokers in a large cluster.
"""


def release(broker: RpcConnection) -> str:
    """Return the oldest Apache Kafka release that knows as much as this broker.

    For example `2.4`.
    """
    known = "0.9"
    for api_key, version, name in _RELEASES:
        if broker.speaks(api_key) < version:
            break
        known = name
    return known


def too_old_as_source(client: ClusterClient) -> list[str]:
    """Return one line for each broker that is too old to be copied from."""

    def look(_: int, broker: RpcConnection) -> str:
        if all(broker.speaks(api_key) >= version for api_key, version in _AT_SOURCE):
            return ""
        return f"it speaks as Kafka {release(broker)} does, and a source must be Kafka {OLDEST_SOURCE} or newer"

    return [f"broker {node}: {line}" for node, line in _each(client, look) if line]


def too_old_as_target(client: ClusterClient) -> list[str]:
    """Return one line for each broker that is too old to be copied to.

    Such a broker lacks a request, or its cluster gives topics no ids.
    """

    def look(node: int, broker: RpcConnection) -> str:
        if not all(broker.speaks(api_key) >= version for api_key, version in _AT_TARGET):
            return f"it speaks as Kafka {release(broker)} does, and a target must be Kafka {OLDEST_TARGET} or newer"
        protocol = _protocol_version(node, broker)
        if protocol is not None and protocol < (2, 8):
            return (
                f"it speaks as Kafka {release(broker)} does, but its {PROTOCOL_VERSION_KEY} is "
                f"{'.'.join(map(str, protocol))}, and a target must give its topics ids: set {OLDEST_TARGET} or newer "
                "on all brokers"
            )
        return ""

    return [f"broker {node}: {line}" for node, line in _each(client, look) if line]


def see_that_brokers_serve(source: ClusterClient, target: ClusterClient) -> None:
    """Raise `ClusterTooOld`, with one line, if a broker is too old for its side."""
    for client, lines in ((source, too_old_as_source(source)), (target, too_old_as_target(target))):
        if lines:
            more = f" (and {len(lines) - 1} more of its brokers)" if len(lines) > 1 else ""
            raise ClusterTooOld(f"cluster {client.config.alias}: {lines[0]}{more}")


def weaker_guarantees(client: ClusterClient, topics: Sequence[str]) -> list[str]:
    """Return one line for each event at a source that its old brokers can't reveal.

    The first `SAMPLE` of `topics`, the source's topics, are checked for a topic id.
    """
    lines = []
    epochs = fetch_format.LEADER_EPOCHS_FROM
    old = [node for node, at in _each(client, lambda _, broker: broker.speaks(fetch.API_KEY)) if at < epochs]
    if old:
        brokers = ", ".join(map(str, old))
        lines.append(
            f"brokers older than Kafka 2.1 ({brokers}): an unclean leader election there shows only if it makes a "
            "log shorter than its copied part, since older brokers check no leader epochs (KIP-320)"
        )
    if any(topic.topic_id == NO_ID and not topic.error for topic in client.metadata(topics[:SAMPLE]).values()):
        lines.append(
            "its topics have no ids (before Kafka 2.8, or with an older inter.broker.protocol.version): a topic that "
            "is deleted and created again can't be told from the old one"
        )
    return lines


def producer_state_ms(client: ClusterClient) -> int | None:
    """Read how long the brokers remember an idle producer, in ms.

    The shortest time among all brokers; None if no broker tells. The setting is `producer.id.expiration.ms` since Kafka
    3.4 (KIP-854), and `transactional.id.expiration.ms` before. Raises `ClusterTrouble` if no broker answers.
    """
    shortest: int | None = None
    answers = list(_each(client, lambda node, broker: _settings(node, broker, STATE_LIFETIME_KEYS)))
    if not answers:
        raise ClusterTrouble("no broker answers how long it remembers who appended records")
    for _, settings in answers:
        value = next((settings[key] for key in STATE_LIFETIME_KEYS if key in settings), None)
        if value is not None:
            shortest = int(value) if shortest is None else min(shortest, int(value))
    return shortest


def _each(client: ClusterClient, look: Callable[[int, RpcConnection], _Seen]) -> Iterator[tuple[int, _Seen]]:
    until = time.monotonic() + LONGEST_S
    client.metadata([])
    yield from each_broker(client, look, until=until)


def each_broker(
    client: ClusterClient, look: Callable[[int, RpcConnection], _Seen], *, until: float
) -> Iterator[tuple[int, _Seen]]:
    """Yield each broker's number and the result of `look`, until `until`.

    `until` is a time by `time.monotonic`. A broker that can't be reached is left out: the requests that need the broker
    report it.
    """
    for node in sorted(client.brokers):
        if time.monotonic() > until:
            return
        try:
            seen = look(node, client.broker(node))
        except ConnectionError:
            client.hang_up(node)  # a late answer would be taken for the next one
            continue
        yield node, seen


def _protocol_version(node: int, broker: RpcConnection) -> tuple[int, int] | None:
    """Read `inter.broker.protocol.version`; None if the broker does not tell it.

    Kafka 4 has no such setting, and the principal may lack the right to read it.
    """
    value = _settings(node, broker, (PROTOCOL_VERSION_KEY,)).get(PROTOCOL_VERSION_KEY, "")
    version = _VERSION.match(value)
    return (int(version[1]), int(version[2])) if version else None


def _settings(node: int, broker: RpcConnection, keys: Sequence[str]) -> dict[str, str]:
    """Read one broker's settings; empty if the principal may not read them."""
    kind = DescribeConfigsRequest.DescribeConfigsResource
    asked = kind(resource_type=_BROKER, resource_name=str(node), configuration_keys=list(keys))
    answer = broker.call(DescribeConfigsRequest(resources=[asked], include_synonyms=False))
    return {
        entry.name: entry.value
        for result in answer.results
        if not result.error_code
        for entry in result.configs
        if entry.name in keys and entry.value is not None
    }
