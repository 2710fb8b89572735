"""Which topics a flow leaves on both clusters: MirrorMaker 2's own names, and ours, on clusters that had none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.started import started

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

FILE = """
clusters = source, target
source.bootstrap.servers = {source}
target.bootstrap.servers = {target}
source->target.enabled = true
source->target.topics = orders
replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
refresh.topics.interval.seconds = 1
emit.checkpoints.interval.seconds = 1
target.offset.flush.interval.ms = 1000
"""

AT_SOURCE = {"__consumer_offsets", "heartbeats", "mm2-offset-syncs.target.internal", "orders"}
AT_TARGET = {
    "__consumer_offsets",
    "heartbeats",
    "mm2-offsets.source.internal",
    "source.checkpoints.internal",
    "source.heartbeats",
    "source.orders",
}
OURS = {f"mm2-sparkmirror-{what}.source.internal" for what in ("control", "losses", "receipts", "segments", "status")}
ONLY_CONNECT = {f"mm2-{what}.target.internal" for what in ("configs", "offsets", "status")} | {
    f"mm2-{what}.source.internal" for what in ("configs", "status")
}
"""Of Connect's workers, which we have none of (`docs/topics.md`)."""


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    pair = KafkaCluster(tmp_path / "source"), KafkaCluster(tmp_path / "target")
    with started(*pair):
        yield pair


def topics_of(cluster: KafkaCluster) -> set[str]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        return set(admin.list_topics())
    finally:
        admin.close()


def test_both_lists(clusters: tuple[KafkaCluster, KafkaCluster], tmp_path: Path) -> None:
    source, target = clusters
    mp.create_topic(source.bootstrap_servers, "orders", 1)
    mp.produce(source.bootstrap_servers, "orders", 1, 100)
    file = tmp_path / "mm2.properties"
    file.write_text(FILE.format(source=source.bootstrap_servers, target=target.bootstrap_servers))
    with mp.MirrorProcess(file, tmp_path / "mirror.log") as mirror:
        mp.wait_for(lambda: topics_of(source) >= AT_SOURCE, 120, f"{AT_SOURCE} at the source")
        mp.wait_for(lambda: topics_of(target) >= AT_TARGET | OURS, 120, f"{AT_TARGET | OURS} at the target")
        assert mirror.terminate() == 0
    assert topics_of(source) == AT_SOURCE
    assert topics_of(target) == AT_TARGET | OURS
    assert not (topics_of(source) | topics_of(target)) & ONLY_CONNECT
