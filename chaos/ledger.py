"""What a loss ledger names: what the source took back after it had been copied, and what no fault has done."""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from lab import KafkaCluster

from chaos.cuts import Cut
from chaos.mirror import SOURCE, remote
from chaos.words import FalseWords
from sparkmirror.config.model import ClusterConfig
from sparkmirror.errors import SetupError, SparkMirrorError
from sparkmirror.exact.durable.losses import Loss, LossKind, LossLedger, losses_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog

_TIMEOUT_S = 60.0
_POLL_S = 0.5


def read_cuts(target: KafkaCluster, topic: str, alias: str = SOURCE) -> Mapping[int, Sequence[Cut]]:
    """Return the cuts of a source topic by partition, in the copy's order; those of a copy that was deleted are left
    out. The ledger is that of the flow from `alias`. Raises SetupError if it can't be read for a minute."""
    losses, copy_id = read_losses(target, topic, alias)
    cuts: dict[int, list[Cut]] = {}
    for one in losses:
        if one.kind is LossKind.TRUNCATED and one.action == "continued" and one.target_topic_id == copy_id:
            cuts.setdefault(one.partition, []).append(Cut(one.first, one.end, one.downstream))
    return {partition: sorted(found, key=lambda one: one.downstream) for partition, found in cuts.items()}


def read_losses(target: KafkaCluster, topic: str, alias: str = SOURCE) -> tuple[list[Loss], str]:
    """Return the ledger's entries about a source topic, and the id of its copy. Raises SetupError as `read_cuts`."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            with _ledger(target, topic, alias) as (ledger, copy_id):
                return [one for one in ledger.read() if one.source_topic == topic], copy_id
        except (SparkMirrorError, ConnectionError) as error:
            if time.monotonic() > deadline:
                raise SetupError(f"{losses_topic(alias)} can't be read: {error}") from error
            time.sleep(_POLL_S)


class Caused(NamedTuple):
    """What faults did to a topic and its copy that the ledger may name."""

    source_cuts: Container[int]
    """Partitions in which the source took back what it had acknowledged: `cuts.py` says whether that is named right."""
    target_cuts: Mapping[int, Sequence[int]]
    """Where the copy ended when the target had lost what it had acknowledged, by partition."""
    copy_deleted: bool
    strangers: Mapping[int, Container[int]]
    """Offsets of the copy with records of somebody else, by partition."""
    ours: Mapping[int, Container[int]]
    """Offsets of the copy with records of the mirror."""


def false_entries(losses: Iterable[Loss], copy_id: str, caused: Caused) -> FalseWords:
    """Return the entries that name what no fault has done."""
    false = FalseWords()
    for one in losses:
        if why := _objection(one, one.target_topic_id == copy_id, caused):
            named = f"{one.source_topic}-{one.partition}, {one.kind}, offsets {one.first} to {one.end}"
            false.add(f"ledger: {named}: {why}")
    return false


def _objection(one: Loss, is_of_this_copy: bool, caused: Caused) -> str:
    match one.kind:
        case LossKind.TRUNCATED:
            return "" if one.partition in caused.source_cuts else "the source took nothing back there"
        case LossKind.TARGET_RECREATED:
            return "" if caused.copy_deleted else "nobody deleted the copy"
        case LossKind.TARGET_TRUNCATED:
            cuts = caused.target_cuts.get(one.partition, ())
            if not cuts:
                return "the target lost nothing there that it had acknowledged"
            return "" if one.first >= min(cuts) else f"the target has lost only what was from {min(cuts)} on"
        case LossKind.FOREIGN:
            if not is_of_this_copy or caused.target_cuts.get(one.partition):
                return ""  # what was there is gone, a stranger's records too
            if not caused.strangers.get(one.partition):
                return "nobody else wrote there"
            ours = caused.ours.get(one.partition, ())
            mine = [offset for offset in range(one.first, one.end) if offset in ours]
            return f"the record at offset {mine[0]} is the mirror's" if mine else ""
        case _:
            return "no fault does such a thing"


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
