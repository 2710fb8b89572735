"""A real MirrorMaker 2 that mirrors everything from our target leaves our internal topics alone; so do we."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from kafka import KafkaAdminClient
from lab import KafkaCluster, RealMirrorMaker
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.loss_tools import Record, delete_records, records
from tests.support.started import started

from sparkmirror.config import load_mm2_properties
from sparkmirror.demo.jvm import QUICK_START
from sparkmirror.errors import CopyIncomplete
from sparkmirror.mirror.engine.mirror import Mirror

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

OURS = {
    "mm2-sparkmirror-segments.A.internal": 8,
    "mm2-sparkmirror-control.A.internal": 1,
    "mm2-sparkmirror-receipts.A.internal": 1,
    "mm2-sparkmirror-losses.A.internal": 1,
    "mm2-sparkmirror-status.A.internal": 1,
}
"""Our internal topics and their partitions."""

DECOY = "sparkmirror-segments.A.internal"
"""Named as ours would be without the rule of design section 6: since Kafka 4.0 it is a topic like any other.

To A it does not go: its name looks like that of a topic that came from there.
"""


class Chain(NamedTuple):
    """A is mirrored to B by us; B to A and to C by others."""

    a: KafkaCluster
    b: KafkaCluster
    c: KafkaCluster


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    """Clusters with no topics of other tests."""
    chain = Chain(*(KafkaCluster(tmp_path / name) for name in "abc"))
    with started(*chain):
        yield chain


def topics(cluster: KafkaCluster) -> set[str]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        return set(admin.list_topics())
    finally:
        admin.close()


def mirrored(cluster: KafkaCluster, alias: str) -> set[str]:
    """What the cluster has from another one, but for MirrorMaker 2's own."""
    return {topic for topic in topics(cluster) if topic.startswith(f"{alias}.")} - {f"{alias}.checkpoints.internal"}


def in_order(cluster: KafkaCluster, topic: str) -> list[Record]:
    return list(records(cluster, topic, 0).values())


def wait_for_copies(cluster: KafkaCluster, counts: Mapping[str, int]) -> None:
    """Wait until partition 0 of each of these topics has so many records."""
    for topic, count in counts.items():
        mp.wait_for(
            lambda: mp.end_offsets(cluster.bootstrap_servers, topic, 1) == [count],  # noqa: B023
            180,
            f"{count} records in {topic}",
        )


def copy_once(path: Path, spark: SparkSession) -> None:
    Mirror(load_mm2_properties(str(path)), once=True, spark=spark).run()


def test_nobody_mirrors_our_internal_topics(chain: Chain, spark: SparkSession, tmp_path: Path) -> None:
    a, b, c = (cluster.bootstrap_servers for cluster in chain)
    mp.create_topic(a, "orders", 1)
    mp.produce(a, "orders", 1, 200)
    ours = mp.write_properties(tmp_path / "ours.properties", a, b, "orders", {"sparkmirror.on.expired": "continue"})
    copy_once(ours, spark)
    mp.produce(a, "orders", 1, 200)
    delete_records(chain.a, "orders", 0, before=300)
    with pytest.raises(CopyIncomplete, match="expired"):
        copy_once(ours, spark)
    assert {topic for topic, partitions in OURS.items() if sum(mp.end_offsets(b, topic, partitions))} == set(OURS)
    for topic in ("plain", DECOY):
        mp.create_topic(b, topic, 1)
        mp.produce(b, topic, 1, 100)

    flows = {
        **{f"{alias}.bootstrap.servers": servers for alias, servers in zip("ABC", (a, b, c), strict=True)},
        "clusters": "A, B, C",
        "B->A.enabled": "true",
        "B->C.enabled": "true",
        "topics": ".*",
        "groups": ".*",
        "refresh.topics.interval.seconds": "1",
        "emit.heartbeats.enabled": "false",
        **mp.ONE_REPLICA,
    }
    with RealMirrorMaker(flows, tmp_path / "mm2", jvm_options=QUICK_START):
        wait_for_copies(chain.a, {"B.plain": 100})
        wait_for_copies(chain.c, {"B.plain": 100, f"B.{DECOY}": 100, "B.A.orders": 300})
        mp.create_topic(b, "later", 1)
        mp.produce(b, "later", 1, 100)
        for cluster in (chain.a, chain.c):
            wait_for_copies(cluster, {"B.later": 100})
        time.sleep(3)  # one more look or two
        assert mirrored(chain.a, "B") == {"B.plain", "B.later"}
        assert mirrored(chain.c, "B") == {"B.plain", "B.later", f"B.{DECOY}", "B.A.orders"}
        for cluster in (chain.a, chain.c):
            assert not {topic for topic in topics(cluster) if "mm2-sparkmirror" in topic}
    assert in_order(chain.c, "B.A.orders") == in_order(chain.b, "A.orders")

    chained = {
        "clusters": "Z, C",
        "Z.bootstrap.servers": b,
        "C.bootstrap.servers": c,
        "Z->C.enabled": "true",
        "replication.factor": "1",
    }
    path = tmp_path / "chained.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in chained.items()))
    copy_once(path, spark)
    assert mirrored(chain.c, "Z") == {"Z.plain", "Z.later", f"Z.{DECOY}", "Z.A.orders"}
    assert in_order(chain.c, "Z.A.orders") == in_order(chain.b, "A.orders")
