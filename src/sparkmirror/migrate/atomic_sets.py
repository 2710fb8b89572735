"""A cluster's atomic sets, tied by transactions or by Kafka Streams.

Three sources are read, each with limits: `__transaction_state` has a transaction's topics until compaction removes the
open transaction's record; `__consumer_offsets` has the groups with offsets committed in transactions; leaders know the
producers since `producer.id.expiration.ms` (DescribeProducers). So a set is found or not seen, and never certainly
complete. READ on the brokers' own topics is often refused by providers; then ListTransactions gives a part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from kafka.protocol.admin import DescribeTransactionsRequest, ListTransactionsRequest

from sparkmirror.chunks import chunks
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.group_members import STREAMS, describe_groups
from sparkmirror.kafka.cluster.groups import SINKS, Groups, ListedGroup
from sparkmirror.kafka.cluster.list_offsets import led_partitions, topic_chunks
from sparkmirror.kafka.cluster.log_range import LogBatch, RangeUnread
from sparkmirror.kafka.cluster.log_samples import batches_from, log_ends
from sparkmirror.kafka.cluster.producers import describe_producers
from sparkmirror.kafka.cluster.topic_descriptions import TopicDescription, describe_topics
from sparkmirror.kafka.wire.batches import TRANSACTIONAL_BIT
from sparkmirror.kafka.wire.error_codes import NOT_AUTHORIZED, ErrorCode
from sparkmirror.kafka.wire.pieces import records
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.migrate.coordinator_records import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    commit_key,
    transaction,
    transactional_id,
)
from sparkmirror.migrate.ties import AtomicSet, Ties, TieVerdict, own_topics_of_streams, touches

TAIL = 1_000_000
"""Most offsets to read in each partition of the brokers' own topics, from the end."""
_IDS_PER_REQUEST = 500
_NO_FILTERS = 0
"""Newest ListTransactions version without fields that older brokers lack."""
_CONSUMERS = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomicSets:
    """Atomic sets that a cluster shows."""

    sets: tuple[AtomicSet, ...]
    sinks: Mapping[str, frozenset[str]]
    """Topics that Kafka Connect's sinks read, by group (`connect-<name>`)."""
    unknown: tuple[str, ...] = ()
    """Reasons why further sets may be unknown, one line each."""
    cut: tuple[str, ...] = field(default=())
    """Partitions where only the newest records were read, such as `topic-0`."""

    def verdict(self, topics: Set[str], groups: Set[str]) -> TieVerdict:
        """Tell whether any tie of these topics and groups is known."""
        if any(touches(each, topics, groups) for each in self.sets):
            return TieVerdict.FOUND
        return TieVerdict.UNKNOWN if self.unknown else TieVerdict.NOT_SEEN


def atomic_sets(client: ClusterClient) -> AtomicSets:
    """Look for a cluster's atomic sets; nothing is written.

    If a source can't be read, the result is unknown in part. Raises `ClusterUnreachable` if topics and groups can't
    be listed.
    """
    survey = _Survey(client)
    survey.read_transactions()
    survey.read_commits()
    survey.ask_leaders()
    survey.look_at_groups()
    return survey.result()


class _Survey:
    """A walk through the sources."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._ties = Ties()
        self._topics: Mapping[str, TopicDescription] = describe_topics(client)
        self._groups: Mapping[str, ListedGroup] = Groups(client).listed()
        self._sinks: dict[str, frozenset[str]] = {}
        self._unknown: list[str] = []
        self._cut: list[str] = []

    def result(self) -> AtomicSets:
        return AtomicSets(sets=self._ties.sets(), sinks=self._sinks, unknown=tuple(self._unknown), cut=tuple(self._cut))

    def read_transactions(self) -> None:
        """Read `__transaction_state`, or ask the coordinators if it can't be read."""

        def take(batch: LogBatch) -> None:
            for record in records(batch.header, batch.view):
                name, state = transactional_id(record.key), transaction(record.value)
                if name is None or state is None:
                    continue
                self._ties.written[name] |= state.topics
                for producer in state.producers:
                    self._ties.producers[producer].add(name)

        if not self._read(TRANSACTION_STATE, take):
            self._ask_coordinators()

    def read_commits(self) -> None:
        """Read `__consumer_offsets`; only batches of transactions are unpacked."""

        def take(batch: LogBatch) -> None:
            if not batch.header.attributes & TRANSACTIONAL_BIT:
                return
            for record in records(batch.header, batch.view):
                key = commit_key(record.key)
                if key is not None:
                    self._ties.committed[batch.header.producer_id].add(key.group)

        self._read(CONSUMER_OFFSETS, take)

    def ask_leaders(self) -> None:
        """Ask the topics' leaders for producers; only transactional producers count."""
        if not self._ties.transactional:
            return
        refused: set[str] = set()
        partitions = [(name, part.partition) for name, topic in self._topics.items() for part in topic.partitions]
        for leader, led in led_partitions(self._client, partitions).items():
            for chunk in topic_chunks(led):
                try:
                    described = describe_producers(self._client, leader, chunk)
                except ConnectionError as error:
                    self._unknown.append(f"broker {leader} doesn't tell its topics' producers: {_line(error)}")
                    break
                for (topic, _), part in described.items():
                    for producer in {entry.producer_id for entry in part.producers} & self._ties.transactional:
                        self._ties.written_by_producer[producer].add(topic)
                    if part.error in NOT_AUTHORIZED:
                        refused.add(topic)
        if refused:
            more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
            self._unknown.append(
                f"the producers of topic {min(refused)}{more} can't be read: grant sparkmirror's principal READ on it"
            )

    def look_at_groups(self) -> None:
        """Find Streams applications, Connect's sinks, and the tied groups' topics."""
        classic = [name for name, listed in self._groups.items() if listed.protocol == _CONSUMERS]
        streams = {name for name, listed in self._groups.items() if listed.type == STREAMS}
        described = describe_groups(self._client, [*classic, *streams])
        streams |= {name for name, group in described.groups.items() if group.is_streams}
        owned = own_topics_of_streams(self._groups, self._topics)
        self._ties.streams |= {
            name: owned.get(name, set()) | (group.internal if (group := described.groups.get(name)) else set())
            for name in streams | owned.keys()
        }
        sinks = {name for name in self._groups if name.startswith(SINKS)}
        committing = {name for names in self._ties.committed.values() for name in names}
        fetched = Groups(self._client).committed(sorted(sinks | committing | self._ties.streams.keys()))
        read = {name: frozenset(topic for topic, _ in offsets) for name, offsets in fetched.offsets.items()}
        for name, group in described.groups.items():
            assigned = frozenset(topic for member in group.members for topic, _ in member.assigned)
            read[name] = read.get(name, frozenset()) | assigned
        self._ties.read |= read
        self._sinks = {name: read.get(name, frozenset()) for name in sorted(sinks)}
        refused = {**described.refused, **fetched.refused}
        if refused:
            first = min(refused)
            more = f", and {len(refused) - 1} groups more" if len(refused) > 1 else ""
            self._unknown.append(f"group {first} can't be read: {refused[first]}{more}")

    def _ask_coordinators(self) -> None:
        """Ask for all transactional ids, and for the topics of open transactions."""
        for broker in self._client.brokers:
            try:
                listed = self._client.ask(
                    broker, ListTransactionsRequest(state_filters=[], producer_id_filters=[]), newest=_NO_FILTERS
                ).transaction_states
                for state in listed:
                    self._ties.producers[state.producer_id].add(state.transactional_id)
                for names in chunks([state.transactional_id for state in listed], _IDS_PER_REQUEST):
                    answer = self._client.ask(broker, DescribeTransactionsRequest(transactional_ids=list(names)))
                    for state in answer.transaction_states:
                        self._ties.written[state.transactional_id] |= {each.topic for each in state.topics or ()}
            except ConnectionError as error:
                self._unknown.append(f"broker {broker} doesn't list its transactions: {_line(error)}")

    def _read(self, topic: str, take: Callable[[LogBatch], None]) -> bool:
        """Read a topic of the brokers; False, with a reason noted, after a failure."""
        try:
            leaders = self._client.metadata([topic])[topic]
            if leaders.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return True  # the first transaction, or the first group, creates it
            if leaders.error:
                raise RangeUnread(error_name(leaders.error))
            self._read_all(leaders, take)
        except (ConnectionError, ValueError) as error:
            self._unknown.append(
                f"topic {topic} can't be read: {_line(error)}; grant sparkmirror's principal READ on it, where that is"
                " possible"
            )
            return False
        return True

    def _read_all(self, topic: TopicLeaders, take: Callable[[LogBatch], None]) -> None:
        bounds = log_ends(self._client, {topic.name: topic}, read_committed=False)
        begin = {at: max(start, end - TAIL) for at, (start, end) in bounds.items() if start < end}
        self._cut += [f"{name}-{index}" for (name, index), at in begin.items() if at > bounds[name, index][0]]

        def damaged(at: TopicPartition, error: ValueError) -> None:
            raise RangeUnread(f"{at[0]}-{at[1]}: {error}") from error

        batches = batches_from(
            self._client,
            {topic.name: topic},
            begin,
            read_committed=False,
            damaged=damaged,
            more=lambda at, following: following < bounds[at][1],
        )
        for _, batch, _ in batches:
            take(batch)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
