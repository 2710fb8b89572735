"""Connect workers whose own cluster is not the connectors' target: `docs/connect.md`, "A worker on another cluster"."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import KafkaCluster
from tests.connect.served_worker import ServedWorker
from tests.support import mirror_process as mp

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

UNKNOWN = 0


@pytest.mark.parametrize("own", ["source", "third"])
def test_records_go_to_the_connectors_target(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    own: str,
) -> None:
    third = KafkaCluster(tmp_path / "third")
    try:
        if own == "third":
            third.start()
        servers = third.bootstrap_servers if own == "third" else source_cluster.bootstrap_servers
        mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
        mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 100)
        group, alias = f"{topic_name}-worker", f"E{own}"
        worker = ServedWorker(source_cluster, target_cluster, group, tmp_path, {"bootstrap.servers": servers})
        with worker:
            for name, config in worker.connectors(topic_name, alias).items():
                worker.put(name, {**config, "producer.override.bootstrap.servers": target_cluster.bootstrap_servers})
            for name in worker.names:
                worker.wait_for(name, "RUNNING")
            mp.wait_for(lambda: worker.copied(f"{alias}.{topic_name}") == 100, 400, "all is copied")
            offsets = f"mm2-offsets.{alias}.internal"
            mp.wait_for(
                lambda: sum(mp.end_offsets(target_cluster.bootstrap_servers, offsets, 25)) > UNKNOWN, 200, "offsets"
            )
        kept = f"connect-configs-{group}"
        assert mp.end_offsets(servers, kept, 1)[0] > 0
        assert mp.end_offsets(target_cluster.bootstrap_servers, kept, 1) == [UNKNOWN]
        assert sum(mp.end_offsets(servers, f"connect-offsets-{group}", 1)) == UNKNOWN
    finally:
        third.cleanup(keep_logs=True)
