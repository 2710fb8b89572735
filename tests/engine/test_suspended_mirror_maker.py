"""A MirrorMaker 2 that was stopped in its tracks, replaced by us, and woken: what it still writes, and what we do."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.handover import PARTITIONS, Handover, exactly_once_support, read

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.durable.losses import Loss, LossKind, LossLedger, losses_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]


def foreign(handover: Handover) -> list[Loss]:
    """What our ledger says of others' records."""
    servers = (handover.target.bootstrap_servers,)
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=servers), "test")
    try:
        found = LossLedger(TopicLog(client, losses_topic(handover.alias))).read()
    finally:
        client.close()
    assert {one.kind for one in found} <= {LossKind.FOREIGN}, found
    return found


def difference(ours: list[object], there: list[object]) -> str:
    """Where records are not there once and in order; empty: they are."""
    if ours == there:
        return ""
    first = next((at for at, (one, other) in enumerate(zip(ours, there, strict=False)) if one != other), len(ours))
    counts = Counter(ours)
    twice = sum(counts.values()) - len(counts)
    return f"from {first} on, of {len(there)} there {len(set(there) - set(ours))} missing, {twice} twice"


@pytest.mark.parametrize("support", ["disabled", "exactly once"])
def test_what_it_still_writes_is_stepped_over_and_named(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, support: str
) -> None:
    """It can't come back into its group, which is ours, and ends; until then its tasks continue where they were."""
    settings = exactly_once_support() if support == "exactly once" else {}
    handover = Handover(source_cluster, target_cluster, topic_name, tmp_path, settings)
    log = tmp_path / "ours.log"
    with mp.load(source_cluster.bootstrap_servers, topic_name, PARTITIONS, per_s=500), handover.mirror_maker:
        handover.wait_for_more(4_000, "MirrorMaker 2")
        mp.wait_for(lambda: len(handover.stored()) == PARTITIONS, 180, "an offset stored for each partition")
        handover.mirror_maker.pause()
        with mp.MirrorProcess(handover.properties, log) as mirror:
            handover.wait_for_more(6_000, "us")
            handover.mirror_maker.resume()
            woken = time.monotonic()
            mp.wait_for(lambda: not handover.mirror_maker.running, 120, "its end")
            lived = time.monotonic() - woken
            handover.wait_for_more(2_000, "us")
            assert mirror.terminate(60) == 0, log.read_text()[-3000:]
    with mp.MirrorProcess(handover.properties, log, "--once") as last:
        assert last.process.wait(120) == 0, log.read_text()[-3000:]
    losses = foreign(handover)
    theirs = {(one.partition, offset) for one in losses for offset in range(one.first, one.end)}
    print(losses)
    print(f"{support}: it lived for {lived:.1f} s, and wrote {len(theirs)} offsets in {len(losses)} stretches")
    ours: dict[int, list[object]] = {index: [] for index in range(PARTITIONS)}
    for partition, record in read(target_cluster, handover.remote, PARTITIONS):
        if (partition, record.offset) not in theirs:
            ours[partition].append(record.value)
    there: dict[int, list[object]] = {index: [] for index in range(PARTITIONS)}
    for partition, record in read(source_cluster, topic_name, PARTITIONS):
        there[partition].append(record.value)
    for index in range(PARTITIONS):
        assert not difference(ours[index], there[index]), f"{index}: without what we say is somebody else's"
    assert all("a foreign producer wrote" in one.words for one in losses)
    assert len(theirs) > 0 or support == "exactly once"
