"""Wait until a fenced batch's earlier attempts append nothing more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from sparkmirror.clock import now_s
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.quiet import GRACE_S
from sparkmirror.sink.audit import counts, leader_places
from sparkmirror.sink.order import AppendOrder
from sparkmirror.sink.read_back import BatchProducer, is_committed, offset_since

_PAUSE_S = 0.5
_PATIENCE_S = 60.0
"""Longest wait for the high watermarks to reach the records."""


def counts_at_rest(
    client: ClusterClient, order: AppendOrder, topics: Callable[[], Iterable[str]]
) -> dict[TopicPartition, int]:
    """Return the numbers of a fenced batch's records once they have rested for 8 s.

    An attempt looks for the fence at its start, and before it appends if no broker has answered it for 3 s (R6). So the
    wait is the quiet rule's (R5). Records that only a leader has may vanish: the high watermarks must have reached all
    (R10). `topics` tells where attempts have rows. Raises `AttemptFenced` and `ClusterUnreachable`.
    """
    seen: dict[TopicPartition, int] | None = None
    rests_since = now_s()
    while True:
        asked = now_s()
        now = {at: count for at, count in counts(client, order, topics(), {}, in_logs=True).items() if count}
        rested_s = asked - rests_since
        if now != seen:
            seen, rests_since = now, now_s()
        elif rested_s > GRACE_S and _are_committed(client, order, now):
            return now
        elif rested_s > GRACE_S + _PATIENCE_S:
            raise ClusterUnreachable(
                f"cluster {client.config.alias}: records that earlier attempts of batch {order.batch.number} appended "
                "are deleted, or the replicas are far behind"
            )
        time.sleep(_PAUSE_S)


def _are_committed(client: ClusterClient, order: AppendOrder, counted: Mapping[TopicPartition, int]) -> bool:
    writer = BatchProducer(order.producer_id, order.producer_epoch)
    try:
        places = leader_places(client, {topic for topic, _ in counted})
        floors = {at: offset_since(client, places[at], order.oldest_ms) for at in counted}
        return all(is_committed(client, places[at], writer, counted[at] - 1, floors[at]) for at in counted)
    except (ConnectionError, KeyError):  # a leader or topic is away: count again
        client.hang_up()
        return False
