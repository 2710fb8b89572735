"""Wait until a fenced batch's earlier attempts append nothing more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from sparkmirror.clock import now_s
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.quiet import GRACE_S
from sparkmirror.sink.audit import counts
from sparkmirror.sink.order import AppendOrder

_PAUSE_S = 0.5


def counts_at_rest(
    client: ClusterClient, order: AppendOrder, topics: Callable[[], Iterable[str]]
) -> dict[TopicPartition, int]:
    """Return the numbers of a fenced batch's records once they have rested for 8 s.

    An attempt looks for the fence at its start, and before it appends if no broker has answered it for 3 s (R6). So the
    wait is the quiet rule's (R5). `topics` tells where attempts have rows. Raises `AttemptFenced` and
    `ClusterUnreachable`.
    """
    seen: dict[TopicPartition, int] | None = None
    rests_since = now_s()
    while True:
        now = counts(client, order, topics(), {}, in_logs=True)
        if now != seen:
            seen, rests_since = now, now_s()
        elif now_s() - rests_since > GRACE_S:
            return now
        time.sleep(_PAUSE_S)
