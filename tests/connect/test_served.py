"""Records through `sparkmirror serve`: put by HTTP, changed, paused, killed and started again, under load."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import KafkaCluster
from tests.connect.served_worker import ServedWorker
from tests.support import mirror_process as mp
from tests.support.connectors import read

from sparkmirror.connect.connector_model import TargetState

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

PARTITIONS = 2


def test_connectors_put_over_http_copy_every_record_once(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """`topics` changed by PUT, a pause, a SIGKILL, a supervisor's SIGTERM to the group, and new processes in between.

    Its offsets are the target's ends.
    """
    first, second = f"{topic_name}-one", f"{topic_name}-two"
    alias = "H" + topic_name[-3:].replace("-", "")
    servers = source_cluster.bootstrap_servers
    for topic in (first, second):
        mp.create_topic(servers, topic, PARTITIONS)
    served = ServedWorker(source_cluster, target_cluster, f"{topic_name}-group", tmp_path)
    with served, mp.load(servers, first, PARTITIONS, per_s=300), mp.load(servers, second, PARTITIONS, per_s=300):
        for name, config in served.connectors(first, alias).items():
            served.put(name, config)
        for name in served.names:
            served.wait_for(name, "RUNNING")
        mp.wait_for(lambda: served.copied(f"{alias}.{first}") > 1_000, 90, "the first topic")
        served.change("mm2-msc", topics=f"{first},{second}")
        mp.wait_for(lambda: served.copied(f"{alias}.{second}") > 1_000, 90, "the second topic")
        served.to(TargetState.PAUSED, "mm2-msc")
        served.wait_for("mm2-msc", "PAUSED")
        served.kill()
        served.start()
        served.wait_for("mm2-msc", "PAUSED")
        served.to(TargetState.STARTED, "mm2-msc")
        before = served.copied(f"{alias}.{first}")
        mp.wait_for(lambda: served.copied(f"{alias}.{first}") > before + 500, 120, "more after the kill")
        served.end(to_group=True)  # Spark's JVM ends first
    with served:
        for topic in (first, second):
            ends = mp.end_offsets(servers, topic, PARTITIONS)
            remote = f"{alias}.{topic}"
            mp.wait_for(lambda r=remote, e=ends: mp.end_offsets(served.target, r, PARTITIONS) == e, 120, "all")  # type: ignore[misc]
            for index in range(PARTITIONS):
                ours = [(one.timestamp, one.key, one.value) for one in read(served.target, remote, index)]
                assert ours == [(one.timestamp, one.key, one.value) for one in read(served.source, topic, index)]
        assert set(served.ask("GET", "/connectors/mm2-msc/topics")["mm2-msc"]["topics"]) >= {f"{alias}.{first}"}

        def stored() -> dict[tuple[str, int], int]:
            found = served.ask("GET", "/connectors/mm2-msc/offsets")["offsets"]
            return {
                (one["partition"]["topic"], one["partition"]["partition"]): one["offset"]["offset"] for one in found
            }

        last = {
            (topic, index): end - 1
            for topic in (first, second)
            for index, end in enumerate(mp.end_offsets(servers, topic, PARTITIONS))
        }
        mp.wait_for(lambda: last.items() <= stored().items(), 180, "its offsets")
        # All may have been copied and stored by the process before.
        mp.wait_for(lambda: [line for line in served.printed() if "flow" in line][-1]["lag"] == 0, 90, "its own word")
    (answering, *_) = starts = [line for line in served.printed() if "listeners" in line]
    assert len(starts) == 3
    assert answering["listeners"] == [served.url]
    flows = [line for line in served.printed() if "flow" in line]
    assert {line["flow"] for line in flows} == {f"{alias}->mskdest"}
    assert flows[-1]["lag"] == 0
