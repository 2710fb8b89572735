"""Audit of a batch before Spark commits it: leaders and tasks must agree."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from sparkmirror.errors import AttemptFenced, ClusterTrouble, ClusterUnreachable, RowsChanged
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.producers import describe_producers
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.sink.order import AppendedRange, AppendOrder
from sparkmirror.sink.read_back import BatchProducer, LeaderPlace, last_sequence, may_be_hidden, search_from

_TRIES, _PAUSE_S = 60, 0.5


def audit(
    client: ClusterClient,
    order: AppendOrder,
    ranges: Sequence[AppendedRange],
    topics_of_the_query: Collection[str] = (),
    *,
    in_logs: bool = False,
) -> None:
    """Compare the leaders' counts of the batch's records with the tasks' counts.

    With `in_logs` the logs tell where leaders may have forgotten all attempts. Raises `RowsChanged` if the counts
    differ, or if two tasks had rows for a partition; `ClusterUnreachable` if a leader doesn't answer.
    """
    told: dict[TopicPartition, AppendedRange] = {}
    for each in ranges:
        at = each.topic, each.partition
        if at in told:
            raise RowsChanged(
                f"{each.topic}-{each.partition}: two tasks of batch {order.batch.number} have rows for it: let the "
                "sink gather them"
            )
        told[at] = each
    topics = {each.topic for each in ranges} | {order.topic} - {""} | set(topics_of_the_query)
    known = counts(client, order, topics, told, in_logs=in_logs)
    for at in sorted(told.keys() | known.keys()):
        count = told[at].records if at in told else 0
        if known.get(at, 0) != count:
            raise RowsChanged(
                f"{at[0]}-{at[1]}: its leader has {known.get(at, 0):,} records of batch {order.batch.number}, and the "
                f"tasks have {count:,}: an earlier attempt had other rows"
            )


def counts(
    client: ClusterClient,
    order: AppendOrder,
    topics: Iterable[str],
    told: Mapping[TopicPartition, AppendedRange],
    *,
    in_logs: bool,
) -> dict[TopicPartition, int]:
    """Return the numbers of the batch's records, by partition.

    Leaders tell them. Where a leader may have forgotten the producer, the log does. Raises `AttemptFenced`,
    `RowsInDoubt` and `ClusterUnreachable`.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            return _counts(client, order, sorted(topics), told, in_logs=in_logs)
        except ConnectionError as error:
            client.hang_up()
            if not tries_left:
                raise ClusterUnreachable(f"cluster {client.config.alias}: {error}") from error
            time.sleep(_PAUSE_S)
    return {}


def leader_places(
    client: ClusterClient, topics: Collection[str], demanded: Container[str] = ()
) -> dict[TopicPartition, LeaderPlace]:
    """Return topics' partitions at their leaders; `demanded` topics must be there.

    Raises `ConnectionError`.
    """
    places: dict[TopicPartition, LeaderPlace] = {}
    for name, topic in client.metadata(topics).items() if topics else ():
        if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and name not in demanded:
            continue  # it was deleted since
        if topic.error:
            raise ClusterTrouble(f"{name}: {error_name(topic.error)}")
        for number, at_leader in topic.partitions.items():
            places[name, number] = LeaderPlace(name, number, topic.topic_id, at_leader.leader)
    return places


def _counts(
    client: ClusterClient,
    order: AppendOrder,
    topics: Sequence[str],
    told: Mapping[TopicPartition, AppendedRange],
    *,
    in_logs: bool,
) -> dict[TopicPartition, int]:
    writer = BatchProducer(order.producer_id, order.producer_epoch)
    places = leader_places(client, topics, {topic for topic, _ in told})
    by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (name, number), place in places.items():
        by_leader[place.leader][name].append(number)
    counts: dict[TopicPartition, int] = {}
    for leader, asked in by_leader.items():
        for at, described in describe_producers(client, leader, asked).items():
            if described.error:
                raise ClusterTrouble(f"{at[0]}-{at[1]}: {error_name(described.error)}")
            for state in described.producers:
                if state.producer_id == order.producer_id and state.producer_epoch > order.producer_epoch:
                    raise AttemptFenced(
                        f"{at[0]}-{at[1]}: a newer batch of the query than {order.batch.number} has begun"
                    )
                if (state.producer_id, state.producer_epoch) == writer:
                    counts[at] = state.last_sequence + 1
            if any(state.producer_id == order.producer_id for state in described.producers):
                continue
            if at in told:
                counts[at] = last_sequence(client, places[at], writer, told[at].first_offset) + 1
            elif in_logs and may_be_hidden(client, places[at], order):
                floor, is_whole = search_from(client, places[at], order)
                counts[at] = last_sequence(client, places[at], writer, floor, is_whole=is_whole) + 1
    return counts
