"""Wait until a fenced batch's earlier attempts append nothing more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from sparkmirror.clock import now_s
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import DEBUG_CONSUMER, LATEST, offsets_by_leader
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.quiet import GRACE_S
from sparkmirror.sink.audit import counts, leader_places
from sparkmirror.sink.order import AppendOrder

_PAUSE_S = 0.5
_PATIENCE_S = 60.0
"""Longest wait for the high watermarks to reach the records."""


def counts_at_rest(
    client: ClusterClient, order: AppendOrder, topics: Callable[[], Iterable[str]]
) -> dict[TopicPartition, int]:
    """Return the numbers of a fenced batch's records once they have rested for 8 s.

    An attempt looks for the fence at its start, and before it appends if no broker has answered it for 3 s (R6). So the
    wait is the quiet rule's (R5). Records that only a leader has may vanish: the high watermarks must reach the ends of
    the leaders' logs (R10), and then all is counted again. `topics` tells where attempts have rows. Raises
    `AttemptFenced`, `RowsInDoubt` and `ClusterUnreachable`.
    """
    seen: dict[TopicPartition, int] | None = None
    ends: dict[TopicPartition, int] | None = None
    """Ends of the leaders' logs since the records rest."""
    rests_since, due_since = now_s(), 0.0
    while True:
        are_replicated = ends is not None and _are_replicated(client, ends)
        asked = now_s()
        now = {at: count for at, count in counts(client, order, topics(), {}, in_logs=True).items() if count}
        rested_s = asked - rests_since
        if now != seen:
            seen, rests_since, ends = now, now_s(), None
        elif are_replicated:
            return now
        elif ends is not None and now_s() - due_since > _PATIENCE_S:
            raise ClusterUnreachable(
                f"cluster {client.config.alias}: {', '.join(sorted(topics()))}: replicas are far behind, or a leader "
                f"is away: nothing is appended until replicas have all records of batch {order.batch.number}"
            )
        elif rested_s > GRACE_S and ends is None:
            ends, due_since = _ends(client, topics()), now_s()
        time.sleep(_PAUSE_S)


def _ends(client: ClusterClient, topics: Iterable[str]) -> dict[TopicPartition, int] | None:
    """Return the ends of the leaders' own logs; None if one doesn't tell now."""
    try:
        partitions = leader_places(client, set(topics)).keys()
        ends = offsets_by_leader(client, partitions, LATEST, replica_id=DEBUG_CONSUMER)
    except ConnectionError:
        client.hang_up()
        return None
    return ends if ends.keys() == partitions else None


def _are_replicated(client: ClusterClient, ends: Mapping[TopicPartition, int]) -> bool:
    try:
        reached = offsets_by_leader(client, ends, LATEST)
    except ConnectionError:  # a leader is away: count again
        client.hang_up()
        return False
    return all(reached.get(at, -1) >= end for at, end in ends.items())
