"""What the source took back after it had been copied, as a loss ledger names it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from chaos.cuts import Cut
from chaos.mirror import SOURCE, remote
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config.model import ClusterConfig
from sparkmirror.demo import KafkaCluster
from sparkmirror.durable.losses import Loss, LossKind, LossLedger, losses_topic
from sparkmirror.errors import SetupError, SparkMirrorError

_TIMEOUT_S = 60.0
_POLL_S = 0.5


def read_cuts(target: KafkaCluster, topic: str, alias: str = SOURCE) -> Mapping[int, Sequence[Cut]]:
    """Return the cuts of a source topic by partition, in the copy's order; those of a copy that was deleted are left
    out. The ledger is that of the flow from `alias`. Raises SetupError if it can't be read for a minute."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            with _ledger(target, topic, alias) as (ledger, copy_id):
                losses = ledger.read()
            break
        except (SparkMirrorError, ConnectionError) as error:
            if time.monotonic() > deadline:
                raise SetupError(f"{losses_topic(alias)} can't be read: {error}") from error
            time.sleep(_POLL_S)
    cuts: dict[int, list[Cut]] = {}
    for one in losses:
        if one.kind is LossKind.TRUNCATED and one.action == "continued" and one.target_topic_id == copy_id:
            cuts.setdefault(one.partition, []).append(Cut(one.first, one.end, one.downstream))
    return {partition: sorted(found, key=lambda one: one.downstream) for partition, found in cuts.items()}


def write_cut(target: KafkaCluster, topic: str, cut: Cut, alias: str) -> None:
    """Write down that partition 0 of the topic was cut, as the mirror does."""
    with _ledger(target, topic, alias) as (ledger, copy_id):
        ledger.record(
            Loss(
                kind=LossKind.TRUNCATED,
                source_topic=topic,
                target_topic=remote(topic),
                partition=0,
                first=cut.first,
                end=cut.end,
                downstream=cut.downstream,
                target_topic_id=copy_id,
                action="continued",
                words="planted",
            )
        )


@contextmanager
def _ledger(target: KafkaCluster, topic: str, alias: str) -> Iterator[tuple[LossLedger, str]]:
    """The ledger, and the id of the topic's copy."""
    servers = tuple(target.direct_servers.split(","))
    client = ClusterClient(ClusterConfig(alias="ledger", bootstrap_servers=servers), "chaos")
    try:
        copy_id = client.metadata([remote(topic)])[remote(topic)].topic_id.hex()
        yield LossLedger(TopicLog(client, losses_topic(alias))), copy_id
    finally:
        client.close()
