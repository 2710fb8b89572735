"""Open transactions, which hold records back at read_committed.

A leader tells each open transaction's producer (DescribeProducers, KIP-664); the transaction's coordinator tells its
name, its begin and its timeout, to clients that may describe its transactional id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka.protocol.admin import DescribeTransactionsRequest, ListTransactionsRequest

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.producers import DescribedPartition, describe_producers
from sparkmirror.kafka.wire.error_codes import NOT_AUTHORIZED
from sparkmirror.kafka.wire.rpc import UnsupportedBroker
from sparkmirror.kafka.wire.topic_partition import TopicPartition

_OPEN = ["Ongoing", "PrepareCommit", "PrepareAbort"]
"""States of a transaction that has not ended in every partition."""

_ALL_STATES = 0
"""Newest ListTransactions version without filters that older brokers lack."""


class Coordinated(NamedTuple):
    """A transaction, as its coordinator describes it."""

    transactional_id: str
    began_ms: int
    timeout_ms: int


class OpenTransaction(NamedTuple):
    """A partition's first open transaction: nothing after its begin may be read."""

    producer_id: int
    start_offset: int
    last_ms: int
    """Timestamp of the producer's last record in the partition; -1: not known."""
    coordinated: Coordinated | None = None
    """The coordinator's answer; None: no coordinator told this client."""
    unasked: bool = False
    """True if no coordinator told, and not every broker could be asked."""


def open_transactions(
    client: ClusterClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, OpenTransaction | str]:
    """Return each partition's first open transaction, or why it is not known.

    Partitions without an open transaction are left out.
    """
    described = _described(client, sorted(set(partitions)))
    told: dict[TopicPartition, OpenTransaction | str] = {}
    for partition, answer in described.items():
        if isinstance(answer, str):
            told[partition] = answer
        elif answer.error:
            grant = "; grant sparkmirror's principal READ on the topic" if answer.error in NOT_AUTHORIZED else ""
            told[partition] = f"{error_name(answer.error)}{grant}"
        elif among := [entry for entry in answer.producers if entry.transaction_start >= 0]:
            first = min(among, key=lambda entry: entry.transaction_start)
            told[partition] = OpenTransaction(
                producer_id=first.producer_id, start_offset=first.transaction_start, last_ms=first.last_timestamp_ms
            )
    producers = {entry.producer_id for entry in told.values() if isinstance(entry, OpenTransaction)}
    coordinated, all_asked = _coordinated(client, producers) if producers else ({}, True)
    return {
        partition: entry
        if isinstance(entry, str)
        else entry._replace(
            coordinated=coordinated.get(entry.producer_id),
            unasked=not all_asked and entry.producer_id not in coordinated,
        )
        for partition, entry in told.items()
    }


def _described(
    client: ClusterClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, DescribedPartition | str]:
    """Ask each partition's leader for its producers; a leader may be too old to tell."""
    led: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    leaders = client.metadata({topic for topic, _ in partitions})
    for topic, index in partitions:
        partition = leaders[topic].partitions.get(index)
        if partition is not None and partition.leader >= 0:
            led[partition.leader][topic].append(index)
    described: dict[TopicPartition, DescribedPartition | str] = {}
    for leader, topics in led.items():
        try:
            described |= describe_producers(client, leader, topics)
        except UnsupportedBroker:
            too_old = f"broker {leader} is older than Kafka 2.8, and can't tell"
            described |= {(topic, index): too_old for topic, indexes in topics.items() for index in indexes}
    return described


def _coordinated(client: ClusterClient, producers: Iterable[int]) -> tuple[Mapping[int, Coordinated], bool]:
    """Return what coordinators tell about the producers' transactions, by producer id.

    Also returns whether all brokers answered. They leave out transactions that the principal may not describe, and
    brokers before Kafka 3.0 don't know the request.
    """
    told: dict[int, Coordinated] = {}
    all_asked = True
    for broker in client.brokers:
        try:
            request = ListTransactionsRequest(state_filters=_OPEN, producer_id_filters=sorted(producers))
            listed = client.ask(broker, request, newest=_ALL_STATES)
            all_asked &= not listed.error_code
            names = [state.transactional_id for state in listed.transaction_states]
            if not names:
                continue
            answer = client.ask(broker, DescribeTransactionsRequest(transactional_ids=names))
        except ConnectionError:  # the other brokers may tell
            all_asked = False
            continue
        told |= {
            state.producer_id: Coordinated(
                state.transactional_id, state.transaction_start_time_ms, state.transaction_timeout_ms
            )
            for state in answer.transaction_states
            if not state.error_code
        }
    return told, all_asked
